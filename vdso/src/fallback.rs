//! The one way out: whatever a page cannot serve, the kernel is asked.
//!
//! The call passes on the caller's own arguments and returns the kernel's own answer, untouched: a
//! sandbox that answers `-EPERM` must be heard, not covered up.

use crate::platform::Platform;

/// A system call that the reader falls back to.
///
/// A 32-bit function never falls back to the call of the other width: a sandbox that was written
/// for the program's own calls kills it for one that it never made (Linux 5.3 had to repair that).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// `clock_gettime(id, ts)` with 64-bit seconds: `clock_gettime64` on 32-bit machines.
    ClockGettime,
    /// `clock_getres(id, res)` with 64-bit seconds: `clock_getres_time64` on 32-bit machines.
    ClockGetres,
    /// `clock_gettime(id, ts)` with 32-bit seconds; 32-bit machines only.
    ClockGettime32,
    /// `clock_getres(id, res)` with 32-bit seconds; 32-bit machines only.
    ClockGetres32,
    /// `gettimeofday(tv, tz)`.
    Gettimeofday,
    /// `time(t)`.
    Time,
    /// `getcpu(cpu, node, unused)`.
    Getcpu,
}

/// Falls back to `call`.
#[inline(always)] // the architecture's instruction, at the end of its caller
pub(crate) fn fallback<P: Platform>(platform: &P, call: Call, arguments: [usize; 3]) -> isize {
    core::hint::cold_path();
    platform.syscall(call, arguments)
}

/// An `i32` in a register, as a system call takes it.
#[inline(always)] // a sign extension
pub(crate) fn register(value: i32) -> usize {
    #[allow(clippy::cast_possible_truncation, reason = "a register holds an i32 on every machine")]
    let signed = value as isize;
    signed.cast_unsigned()
}
