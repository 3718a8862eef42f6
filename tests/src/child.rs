//! Calls that may end the process, made in a child.

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
/// # Panics
/// If the kernel grants no child.
pub fn outcome(body: impl FnOnce() -> i32) -> Outcome {
    // SAFETY: the child calls `body`, which the documentation binds, and functions that are safe
    // between fork and exec.
    match unsafe { fork() }.expect("a child") {
        ForkResult::Child => {
            be_quiet();
            let code = body();
            // SAFETY: ends the child without running the parent's exit handlers.
            unsafe { libc::_exit(code) }
        }
        ForkResult::Parent { child } => match waitpid(child, None).expect("the child's end") {
            WaitStatus::Exited(_, code) => Outcome::Exited(code),
            WaitStatus::Signaled(_, nix::sys::signal::Signal::SIGALRM, _) => Outcome::Hung,
            WaitStatus::Signaled(_, signal, _) => Outcome::Signalled(signal as i32),
            other => unreachable!("waitpid without flags returned {other:?}"),
        },
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
    // SAFETY: arms a timer of this child alone.
    unsafe { libc::alarm(10) };
}
