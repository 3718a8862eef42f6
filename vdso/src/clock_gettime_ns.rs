//! `clock_gettime_ns`: the time in a register.

use datapage::cycles::nanos_of;
use datapage::snapshot::NotServed;
use datapage::{ClockId, ClockSet, NANOS_PER_SEC, Time};

use crate::do_coarse::do_coarse;
use crate::do_hres::do_hres;
use crate::fallback::{Call, fallback, register};
use crate::platform::Platform;
use crate::user::{TimeSpec, UserPtr};

const EOVERFLOW: i64 = 75;
/// The lowest errno that a system call returns, negated.
const MAX_ERRNO: i64 = 4095;

/// Nanoseconds of a clock since its zero, or a raw negative errno.
///
/// As for every Linux system call, -4095..=-1 is an error. A time that falls there, the last four
/// microseconds before zero, is returned as 0.
///
/// # Errors
/// `-EOVERFLOW` for a time that an `i64` cannot hold, else those of `clock_gettime`.
#[inline(always)] // the exported function is this body
pub fn clock_gettime_ns<P: Platform>(platform: &P, id: i32) -> i64 {
    match read(platform, ClockId(id)) {
        Ok(nanos) => encode(nanos),
        Err(NotServed) => ask_kernel(platform, id),
    }
}

#[inline(always)] // as above
fn read<P: Platform>(platform: &P, clock: ClockId) -> Result<Option<i64>, NotServed> {
    let slot = clock.slot().ok_or(NotServed)?;
    if ClockSet::PRECISE.intersects(clock.set()) {
        do_hres(platform, slot).ok_or(NotServed)?.total_nanos()
    } else {
        do_coarse(platform, slot).ok_or(NotServed)?.total_nanos()
    }
}

/// A time as a return value that no caller takes for an error.
#[inline(always)] // a comparison
fn encode(nanos: Option<i64>) -> i64 {
    match nanos {
        Some(nanos) if (-MAX_ERRNO..0).contains(&nanos) => {
            core::hint::cold_path();
            0
        }
        Some(nanos) => nanos,
        None => -EOVERFLOW,
    }
}

/// The fallback: one `clock_gettime` into this function's own stack, converted.
#[inline(always)] // the one exit of its caller
fn ask_kernel<P: Platform>(platform: &P, id: i32) -> i64 {
    let mut spec = TimeSpec::default();
    // SAFETY: a live local, writable as the type it has.
    let pointer = unsafe { UserPtr::new(&raw mut spec) };
    let answer = fallback(
        platform,
        Call::ClockGettime,
        [register(id), pointer.address(), 0],
    );
    if answer != 0 {
        return answer as i64;
    }
    // The kernel keeps nanoseconds below 10^9; one that does not gets the error, not nonsense.
    let nanos = match u32::try_from(spec.tv_nsec) {
        Ok(nanos) if nanos < NANOS_PER_SEC => nanos,
        _ => return -EOVERFLOW,
    };
    encode(nanos_of(Time {
        secs: spec.tv_sec,
        nanos,
    }))
}
