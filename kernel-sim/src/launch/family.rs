//! The processes that serve a program: their names, and how they are found from outside by those who
//! watch a run or disturb it.

use std::ffi::CStr;
use std::fs;

use libc::pid_t;

use crate::launch::proc_stat::Stat;

/// The name of a keeper's process; of each, the kernel keeps 15 bytes.
pub(crate) const KEEPER: &CStr = c"kernel-sim-keep";

/// The name of a process that waits for the keeper's end.
pub(crate) const NEXT_KEEPER: &CStr = c"kernel-sim-next";

/// The name of a tracer's process.
pub(crate) const TRACER: &CStr = c"kernel-sim-trac";

/// A command that runs a program, and the processes that it started for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    command: pid_t,
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
        self.child(KEEPER)
    }

    /// The process that waits for the keeper's end.
    #[must_use]
    pub fn next_keeper(&self) -> Option<pid_t> {
        self.child(NEXT_KEEPER)
    }

    /// The process that follows programs.
    #[must_use]
    pub fn tracer(&self) -> Option<pid_t> {
        self.child(TRACER)
    }

    /// A child of the command with this name that is not dead.
    fn child(&self, name: &CStr) -> Option<pid_t> {
        let all = fs::read_dir("/proc").ok()?.flatten();
        let mut pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.find(|&pid| {
            Stat::of(pid).is_ok_and(|stat| {
                stat.name.as_bytes() == name.to_bytes()
                    && stat.field(PARENT).is_ok_and(|parent: pid_t| parent == self.command)
                    && !is_dead(&stat)
            })
        })
    }
}

/// Whether a process is the tracer of some command.
pub(crate) fn is_tracer(pid: pid_t) -> bool {
    Stat::of(pid).is_ok_and(|stat| stat.name.as_bytes() == TRACER.to_bytes())
}

/// Numbers of fields in `proc_pid_stat(5)`.
const STATE: usize = 3;
const PARENT: usize = 4;

/// Whether a process is gone, waited for or not.
#[must_use]
pub fn is_gone(pid: pid_t) -> bool {
    Stat::of(pid).map_or(true, |stat| is_dead(&stat))
}

fn is_dead(stat: &Stat) -> bool {
    matches!(stat.field(STATE), Ok('Z' | 'X'))
}
