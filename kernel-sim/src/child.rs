//! Calls that may end the process, made in a child.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid};

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It returned a code of at most 255, or panicked, which is 101.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
    /// It did not end within ten seconds and was killed.
    Hung,
}

/// Runs `body` in a forked child; its result is the exit code.
///
/// `body` runs in a copy of a process with other threads. It may allocate, for which the C library's
/// fork cares, and take no other lock that a thread of this process could hold.
///
/// # Errors
/// If the kernel grants no child.
pub fn outcome(body: impl FnOnce() -> i32) -> io::Result<Outcome> {
    let parent = getpid();
    // SAFETY: the child calls `body`, which the documentation binds, and functions that are safe
    // between fork and exec.
    match unsafe { fork() }? {
        ForkResult::Child => {
            be_quiet();
            end_with(parent);
            // A panic must not unwind into the copy of what the parent was about to do.
            let code = catch_unwind(AssertUnwindSafe(body)).unwrap_or(PANICKED);
            // SAFETY: ends the child without running the parent's exit handlers.
            unsafe { libc::_exit(code) }
        }
        ForkResult::Parent { child } => Ok(match waitpid(child, None)? {
            WaitStatus::Exited(_, code) => Outcome::Exited(code),
            WaitStatus::Signaled(_, Signal::SIGALRM, _) => Outcome::Hung,
            WaitStatus::Signaled(_, signal, _) => Outcome::Signalled(signal as i32),
            other => unreachable!("waitpid without flags returned {other:?}"),
        }),
    }
}

/// What a Rust program that panics exits with.
const PANICKED: i32 = 101;

/// Ends this process when the thread of `parent` that started it ends; at once, if that is over.
///
/// What this process forks does not end with it.
pub fn end_with(parent: Pid) {
    // SAFETY: a signal for this process alone, when the thread that started it is gone.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // Who was gone before sends no signal any more, and somebody else is the parent since.
    if getppid() != parent {
        // SAFETY: ends this process, whose result nobody waits for.
        unsafe { libc::raise(libc::SIGKILL) };
    }
}

/// No core dump, no handler of Rust's runtime, and an end in any case.
fn be_quiet() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a live structure.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
    for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGALRM] {
        // SAFETY: the default action is always there.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    be_patient(10);
}

/// This process has so many seconds from now on.
fn be_patient(seconds: u32) {
    // SAFETY: arms a timer of this process alone.
    unsafe { libc::alarm(seconds) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, poll};
    use nix::sys::signal::kill;
    use nix::unistd::{pipe, read};
    use std::os::fd::AsFd as _;

    #[test]
    fn how_a_child_ends_is_told_apart() {
        assert_eq!(outcome(|| 7).unwrap(), Outcome::Exited(7));
        let raise = |signal| {
            move || {
                // SAFETY: raises a signal of the child.
                unsafe { libc::raise(signal) }
            }
        };
        assert_eq!(outcome(raise(libc::SIGSEGV)).unwrap(), Outcome::Signalled(libc::SIGSEGV));
        assert_eq!(outcome(raise(libc::SIGALRM)).unwrap(), Outcome::Hung);
        assert_eq!(outcome(|| panic!("as it has to")).unwrap(), Outcome::Exited(101));
    }

    #[test]
    fn a_child_that_does_not_return_ends_with_its_parent() {
        /// Ends its parent once it is set to end with it, and would live on for long.
        fn inner() -> i32 {
            be_patient(60);
            let _ = kill(getppid(), Signal::SIGKILL);
            loop {
                // SAFETY: waits for a signal.
                unsafe { libc::pause() };
            }
        }
        // In a process of its own, because other tests' children would inherit the pipe.
        let ends = outcome(|| {
            be_patient(60);
            let Ok((end, write)) = pipe() else {
                return 1;
            };
            if outcome(|| outcome(inner).map_or(1, |_| 2)).ok() != Some(Outcome::Signalled(9)) {
                return 3;
            }
            // The pipe is at its end when nobody is left who could write to it.
            drop(write);
            let mut ends = [PollFd::new(end.as_fd(), PollFlags::POLLIN)];
            match poll(&mut ends, 20_000_u16) {
                Ok(1) if read(&end, &mut [0]) == Ok(0) => 0,
                _ => 4,
            }
        });
        assert_eq!(ends.unwrap(), Outcome::Exited(0), "4: the inner child lives on");
    }

    #[test]
    fn a_parent_that_was_gone_before_is_not_waited_for() {
        let gone = || {
            // SAFETY: the child does nothing.
            match unsafe { fork() } {
                Ok(ForkResult::Parent { child }) => waitpid(child, None).map(|_| child),
                // SAFETY: ends the child without running the parent's exit handlers.
                Ok(ForkResult::Child) => unsafe { libc::_exit(0) },
                Err(error) => Err(error),
            }
        };
        let ends = outcome(|| {
            end_with(getppid());
            gone().map_or(1, |parent| {
                end_with(parent);
                2
            })
        });
        assert_eq!(ends.unwrap(), Outcome::Signalled(libc::SIGKILL));
    }
}
