//! A guest that runs, the processes that serve it, and their ends.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use kernel_sim::launch::Family;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub use kernel_sim::launch::is_gone;

/// A guest that runs, and what runs it.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// What serves the program.
    pub command: i32,
    /// The program.
    pub program: i32,
    /// The processes that the command started to serve it.
    pub family: Family,
}

impl Run {
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
        Self { command: ids[0], program: ids[1], family: Family::of(ids[0]) }
    }

    /// The process that writes the page.
    ///
    /// # Panics
    /// If there is none, however long one waits.
    #[must_use]
    pub fn keeper(&self) -> i32 {
        some("there is a keeper", || self.family.keeper())
    }

    /// The process that waits for the keeper's end, which begins beside the program.
    ///
    /// # Panics
    /// If there is none, however long one waits.
    #[must_use]
    pub fn next_keeper(&self) -> i32 {
        some("there is a next keeper", || self.family.next_keeper())
    }

    /// The process that follows programs.
    ///
    /// # Panics
    /// If there is none, however long one waits.
    #[must_use]
    pub fn tracer(&self) -> i32 {
        some("there is a tracer", || self.family.tracer())
    }
}

/// Kills a process.
///
/// # Panics
/// If there is no such process of a user that this one may kill.
pub fn kill_hard(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGKILL).expect("a process of ours");
}

/// Kills all that a thread of this process has started and that still has its parent, with what that has
/// started in turn.
pub fn kill_descendants(thread: i32) {
    let mut all = children(&format!("self/task/{thread}"));
    let mut at = 0;
    while let Some(&pid) = all.get(at) {
        // So that it starts no other meanwhile.
        let _ = kill(Pid::from_raw(pid), Signal::SIGSTOP);
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for thread in threads {
            all.extend(children(&format!("{pid}/task/{}", thread.file_name().display())));
        }
        at += 1;
    }
    for pid in all {
        // One that has ended meanwhile is no matter.
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
}

/// The children of a thread, as the kernel lists them (`proc_tid_children(5)`).
fn children(thread: &str) -> Vec<i32> {
    let list = fs::read_to_string(format!("/proc/{thread}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Waits until something holds, for far longer than it should take on the slowest machine.
///
/// # Panics
/// If it does not.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    some(what, || holds().then_some(()));
}

/// The same for something that is to be found.
///
/// # Panics
/// If it is not.
pub fn some<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
