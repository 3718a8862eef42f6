//! What becomes of a program whose own seccomp filter meets the calls that are made for it.
//!
//! Where the kernel lets the launcher, the filter is suspended meanwhile. Elsewhere its answer holds:
//!
//! | answer | the program |
//! |---|---|
//! | ALLOW, LOG | is on the image |
//! | TRACE | is on the image: the launcher is the tracer that is asked, and lets the call pass |
//! | ERRNO, TRAP | runs on without what the call was for, which is named; also if ERRNO claims success |
//! | USER_NOTIF | has what the process that is asked answers: the call, or an error as with ERRNO |
//! | KILL_THREAD, KILL_PROCESS | has ended by SIGSYS, which is named: no call can be tried before |
//!
//! After TRAP, a program no longer ignores SIGSYS if it did: the kernel sees to that each time it answers
//! so, and the program alone could take it back, by one more call.
//!
//! While a process is asked (USER_NOTIF), the launcher serves all others, and with them this one, but
//! puts no other program on the image.

use std::fs;

use libc::pid_t;

use crate::launch::inject::InjectError;
use crate::launch::injected::InjectedCall;
use crate::launch::ptrace::Stopped;
use crate::launch::swap::SwapError;

/// Lets the calls that are made for a program pass its filter; returns whether it did. The kernel
/// wants CAP_SYS_ADMIN for that, and no filter on the launcher itself.
pub(crate) fn suspend(stopped: Stopped) -> bool {
    stopped.set_options(libc::PTRACE_O_SUSPEND_SECCOMP).is_ok()
}

/// How many filters a process has; 0 if the kernel does not say, which it does from Linux 5.10 on.
pub(crate) fn filters_of(pid: pid_t) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let number = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
    number.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// What a filter has to allow, and who is not asked for that.
pub(crate) fn needs() -> String {
    let names: Vec<&str> = InjectedCall::ALL.iter().map(|call| call.name()).collect();
    format!(
        "to be put on the image, a program has to be allowed {} when it is exec'ed; root suspends \
         its filter, unless root has one too, as in a container",
        names.join(", ")
    )
}

/// An error, with what is to be done where a filter is the cause, or may be because the program has
/// one.
pub(crate) fn explained(error: &SwapError, has_filter: bool) -> String {
    match error {
        SwapError::Inject(
            InjectError::Signal { signal: libc::SIGSYS, .. } | InjectError::NoEffect { .. },
        ) => {
            format!("{error}, the answer of its seccomp filter: {}", needs())
        }
        SwapError::Inject(InjectError::Call { .. }) if has_filter => {
            format!("{error}, which may be the answer of its seccomp filter: {}", needs())
        }
        _ => error.to_string(),
    }
}
