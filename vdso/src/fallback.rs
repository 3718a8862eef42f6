//! The one way out: whatever a page cannot serve, the kernel is asked.
//!
//! The call passes on the caller's own arguments and returns the kernel's own answer, untouched: a
//! sandbox that answers `-EPERM` must be heard, not covered up.

use crate::platform::Platform;

/// A system call that the reader falls back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// `clock_gettime(id, ts)`.
    ClockGettime,
    /// `clock_getres(id, res)`.
    ClockGetres,
    /// `gettimeofday(tv, tz)`.
    Gettimeofday,
    /// `time(t)`.
    Time,
    /// `getcpu(cpu, node, unused)`.
    Getcpu,
}

/// Falls back to `call`.
#[inline(always)] // the architecture's instruction; each exported call has one such exit
pub(crate) fn fallback<P: Platform>(platform: &P, call: Call, arguments: [usize; 3]) -> isize {
    core::hint::cold_path();
    platform.syscall(call, arguments)
}

/// An `i32` in a register, as a system call takes it.
#[inline(always)] // a sign extension
pub(crate) fn register(value: i32) -> usize {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a register holds an i32 on every machine"
    )]
    let signed = value as isize;
    signed.cast_unsigned()
}
