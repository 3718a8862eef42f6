//! The processes that serve a program, found from outside: for those who watch a run or disturb it.

use std::fs;

use libc::pid_t;

/// A command that runs a program, and the processes that it started for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    command: pid_t,
}

/// What `/proc/PID/stat` says of a process.
struct Stat {
    name: String,
    state: char,
    parent: pid_t,
}

impl Family {
    /// The family of the process that called [`Command::run`](super::Command::run).
    #[must_use]
    pub fn of(command: pid_t) -> Self {
        Self { command }
    }

    /// The process that writes the page.
    #[must_use]
    pub fn keeper(&self) -> Option<pid_t> {
        self.child("kernel-sim-keep")
    }

    /// The process that waits for the keeper's end.
    #[must_use]
    pub fn next_keeper(&self) -> Option<pid_t> {
        self.child("kernel-sim-next")
    }

    /// The process that follows programs.
    #[must_use]
    pub fn tracer(&self) -> Option<pid_t> {
        self.child("kernel-sim-trac")
    }

    /// A child of the command with this name that is not dead.
    fn child(&self, name: &str) -> Option<pid_t> {
        let all = fs::read_dir("/proc").ok()?.flatten();
        let mut pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.find(|&pid| {
            stat(pid).is_some_and(|stat| {
                stat.name == name && stat.parent == self.command && !is_dead(&stat)
            })
        })
    }
}

/// Whether a process is gone, waited for or not.
#[must_use]
pub fn is_gone(pid: pid_t) -> bool {
    stat(pid).is_none_or(|stat| is_dead(&stat))
}

fn is_dead(stat: &Stat) -> bool {
    matches!(stat.state, 'Z' | 'X')
}

fn stat(pid: pid_t) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything, but it ends at the last parenthesis.
    let (before, rest) = text.rsplit_once(") ")?;
    let (_, name) = before.split_once('(')?;
    let mut fields = rest.split(' ');
    let state = fields.next()?.chars().next()?;
    Some(Stat { name: name.to_owned(), state, parent: fields.next()?.parse().ok()? })
}
