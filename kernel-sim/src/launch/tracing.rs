//! How a program is noticed that wants to trace, which it cannot while it is traced itself.
//!
//! A program has one tracer. A request to become another's fails with EPERM, and what a program
//! says then seldom leads anybody to the cause. Following each system call to see these requests
//! would cost every program dearly; so the program starts with a seccomp filter that stops at
//! `ptrace` alone, and lets every other call pass (from Linux 5.11 on without running the filter).
//!
//! The kernel lets a user without privilege set a filter only if its programs gain no privileges by
//! exec (`no_new_privs`), which programs that are traced without privilege do not either. Once the
//! tracer is gone, `ptrace` fails with ENOSYS.

use std::mem::offset_of;

use libc::{pid_t, sock_filter, sock_fprog};
use nix::errno::Errno;

use crate::launch::calls::{I386, X86_64};
use crate::launch::ptrace::BeginningCall;

/// `ptrace` in the tables of both kinds of programs.
const PTRACE: [(u32, u32); 2] = [(X86_64, 101), (I386, 26)];

/// Has the tracer told of each `ptrace` of this process and of all that come from it. Where the
/// kernel grants no filter they are not noticed, and nothing else changes.
pub(crate) fn announce() {
    let mut program = filter();
    let filter =
        sock_fprog { len: u16::try_from(program.len()).unwrap_or(0), filter: program.as_mut_ptr() };
    let set = || {
        // SAFETY: a complete program, which the kernel copies. The last flag leaves the mitigations
        // of speculation as they are, which older kernels turn on with a filter.
        unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                &raw const filter,
            )
        }
    };
    if set() != 0 && Errno::last() == Errno::EACCES {
        // SAFETY: sets an attribute of this process; plain numbers.
        unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        set();
    }
}

/// Stops at `ptrace` of either kind, lets all else pass.
#[allow(clippy::cast_possible_truncation, reason = "the codes of classic BPF have 16 bits")]
fn filter() -> [sock_filter; 9] {
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let equals = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let answer = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let [(native, native_call), (compat, compat_call)] = PTRACE;
    let arch = offset_of!(libc::seccomp_data, arch) as u32;
    let number = offset_of!(libc::seccomp_data, nr) as u32;
    [
        step(load, 0, 0, arch),
        step(equals, 1, 0, native),
        step(equals, 2, 5, compat),
        step(load, 0, 0, number),
        step(equals, 2, 3, native_call),
        step(load, 0, 0, number),
        step(equals, 0, 1, compat_call),
        step(answer, 0, 0, libc::SECCOMP_RET_TRACE),
        step(answer, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

/// What a program asks for in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// To be traced by its parent.
    ToBeTraced,
    /// To trace another process that is traced already.
    ToTrace,
}

/// Whether the filter of [`announce`] has stopped the program at this call, and not one of its own.
pub(crate) fn is_announced(call: BeginningCall) -> bool {
    PTRACE.iter().any(|(arch, number)| call.arch == *arch && call.number == u64::from(*number))
}

/// What a call asks for in vain, where `is_followed` says whom this tracer traces.
pub(crate) fn wish(call: BeginningCall, is_followed: impl Fn(pid_t) -> bool) -> Option<Wish> {
    if !is_announced(call) {
        return None;
    }
    #[allow(clippy::cast_possible_truncation, reason = "the kernel looks at 32 bits of a pid")]
    let whom = (call.second as u32).cast_signed();
    match u32::try_from(call.first) {
        Ok(libc::PTRACE_TRACEME) => Some(Wish::ToBeTraced),
        Ok(libc::PTRACE_ATTACH | libc::PTRACE_SEIZE) if is_followed(whom) => Some(Wish::ToTrace),
        _ => None,
    }
}
