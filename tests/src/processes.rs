//! Finding the processes that serve a program.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A command and the processes that it started.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// What serves the program.
    pub command: i32,
    /// The program.
    pub program: i32,
}

impl Family {
    /// As a guest wrote it to a file: its parent and itself.
    ///
    /// # Panics
    /// If the guest does not start.
    #[must_use]
    pub fn read(file: &Path) -> Self {
        let mut ids = Vec::new();
        eventually("the guest starts", || {
            let text = fs::read_to_string(file).unwrap_or_default();
            ids = text.split_whitespace().map(|word| word.parse().expect("a process id")).collect();
            text.ends_with('\n')
        });
        Self { command: ids[0], program: ids[1] }
    }

    /// The command's child of this name.
    pub fn child(&self, name: &str) -> Option<i32> {
        children(self.command, name).first().copied()
    }

    /// The process that writes the page.
    #[must_use]
    pub fn keeper(&self) -> Option<i32> {
        self.child("kernel-sim-keep")
    }

    /// The process that waits for the keeper's end.
    #[must_use]
    pub fn next_keeper(&self) -> Option<i32> {
        self.child("kernel-sim-next")
    }

    /// The process that follows programs.
    #[must_use]
    pub fn tracer(&self) -> Option<i32> {
        self.child("kernel-sim-trac")
    }
}

/// Processes with this parent and name that are not dead.
fn children(parent: i32, name: &str) -> Vec<i32> {
    let all = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid| {
        stat(pid).is_some_and(|(found, state, of)| found == name && state != 'Z' && of == parent)
    })
    .collect()
}

/// Name, state and parent of a process.
fn stat(pid: i32) -> Option<(String, char, i32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (before, rest) = text.rsplit_once(") ")?;
    let (_, name) = before.split_once('(')?;
    let mut fields = rest.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((name.to_owned(), state, fields.next()?.parse().ok()?))
}

/// Whether a process is gone, waited for or not.
pub fn is_gone(pid: i32) -> bool {
    stat(pid).is_none_or(|(_, state, _)| state == 'Z' || state == 'X')
}

/// Kills a process.
///
/// # Panics
/// If there is no such process of a user that this one may kill.
pub fn kill_hard(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGKILL).expect("a process of ours");
}

/// Waits until something holds, for far longer than it should take on the slowest machine.
///
/// # Panics
/// If it does not.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
