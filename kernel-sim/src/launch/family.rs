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

/// Whether a process is gone, waited for or not; not so where that cannot be seen.
#[must_use]
pub fn is_gone(pid: pid_t) -> bool {
    match Stat::of(pid) {
        Ok(stat) => is_dead(&stat),
        // Others say something of this process, such as that it has no descriptor left.
        Err(error) => matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)),
    }
}

fn is_dead(stat: &Stat) -> bool {
    matches!(stat.field(STATE), Ok('Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use nix::sys::wait::{Id, WaitPidFlag, waitid, waitpid};
    use nix::unistd::{ForkResult, fork};

    use super::*;
    use crate::child::{Outcome, outcome};

    #[test]
    fn a_process_is_gone_once_it_has_ended_and_not_because_nobody_can_look() {
        // SAFETY: the child only ends.
        let child = match unsafe { fork() }.unwrap() {
            // SAFETY: ends the child without running the parent's exit handlers.
            ForkResult::Child => unsafe { libc::_exit(0) },
            ForkResult::Parent { child } => child,
        };
        waitid(Id::Pid(child), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
        assert!(is_gone(child.as_raw()), "not waited for");
        waitpid(child, None).unwrap();
        assert!(is_gone(child.as_raw()), "waited for");

        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        let without_descriptors = || {
            let this = nix::unistd::getpid().as_raw();
            // SAFETY: a live limit.
            unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const none) };
            let cannot_look = Stat::of(this).is_err();
            i32::from(!cannot_look || is_gone(this))
        };
        assert_eq!(outcome(without_descriptors).unwrap(), Outcome::Exited(0));
    }
}
