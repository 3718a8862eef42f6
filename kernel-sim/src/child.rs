//! Calls that may end the process, made in a child.

use std::io;

use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It returned a code of at most 255.
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
    // SAFETY: the child calls `body`, which the documentation binds, and functions that are safe
    // between fork and exec.
    match unsafe { fork() }? {
        ForkResult::Child => {
            be_quiet();
            let code = body();
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

/// No core dump, no handler of Rust's runtime, and an end in any case: its own, or its parent's.
fn be_quiet() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a live structure.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
    for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGALRM] {
        // SAFETY: the default action is always there.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: a signal for this child alone, when the thread that waits for it is gone.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // SAFETY: arms a timer of this child alone.
    unsafe { libc::alarm(10) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, poll};
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
    }

    #[test]
    fn a_child_that_does_not_return_ends_with_its_parent() {
        let (read, write) = nix::unistd::pipe().unwrap();
        let wait = || loop {
            // SAFETY: waits for a signal.
            unsafe { libc::pause() };
        };
        let ends = outcome(|| {
            // Before the ten seconds that the inner child has.
            // SAFETY: arms a timer of the child.
            unsafe { libc::alarm(1) };
            outcome(wait).map_or(1, |_| 0)
        });
        assert_eq!(ends.unwrap(), Outcome::Hung);
        // The pipe is at its end when nobody is left who could write to it.
        drop(write);
        let mut ends = [PollFd::new(read.as_fd(), PollFlags::POLLIN)];
        assert_eq!(poll(&mut ends, 5000_u16).unwrap(), 1, "the inner child lives on");
    }
}
