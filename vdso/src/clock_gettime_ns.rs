//! `clock_gettime_ns`: the time in a register.

use core::mem::MaybeUninit;

use datapage::cycles::nanos_of;
use datapage::{ClockId, NANOS_PER_SEC, Time};

use crate::fallback::{Call, fallback, register};
use crate::platform::Platform;
use crate::quick::{self, Quick};
use crate::slow;
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
    let quick = if cfg!(target_pointer_width = "64") {
        quick::nanos(platform, ClockId(id))
    } else {
        quick::time(platform, ClockId(id), |time| of_time(time.into()))
    };
    match quick {
        Quick::Done(nanos) => nanos,
        // Either needs a frame, so neither is in here.
        Quick::Unserved | Quick::Undecided => slow(platform, id),
    }
}

#[cold]
#[inline] // a copy of the image's own, in place of a symbol; being cold, it stays out of line
fn slow<P: Platform>(platform: &P, id: i32) -> i64 {
    match ClockId(id).slot().and_then(|slot| slow::read(platform, slot)) {
        Some(reading) => of_time(reading.time),
        None => ask_kernel(platform, id),
    }
}

/// A time as a return value that no caller takes for an error.
#[inline(always)] // a comparison
fn encode(nanos: i64) -> i64 {
    if nanos < 0 {
        core::hint::cold_path();
        if nanos >= -MAX_ERRNO {
            return 0;
        }
    }
    nanos
}

#[cold]
#[inline] // as `slow`
fn of_time(time: Time) -> i64 {
    nanos_of(time).map_or(-EOVERFLOW, encode)
}

/// The fallback: one `clock_gettime` into this function's own stack, converted.
#[inline(always)] // the one exit of its caller
fn ask_kernel<P: Platform>(platform: &P, id: i32) -> i64 {
    // Not zeroed: two words of zeros become one aligned 16-byte store, and a caller's stack may be
    // aligned to 8.
    let mut spec = MaybeUninit::<TimeSpec>::uninit();
    // SAFETY: a live local, writable as the type it has.
    let pointer = unsafe { UserPtr::new(spec.as_mut_ptr()) };
    let answer = fallback(platform, Call::ClockGettime, [register(id), pointer.address(), 0]);
    if answer != 0 {
        return answer as i64;
    }
    // SAFETY: `clock_gettime(2)` returns 0 after it stored both words.
    let spec = unsafe { spec.assume_init() };
    // The kernel keeps nanoseconds below 10^9; one that does not gets the error, not nonsense.
    match u32::try_from(spec.tv_nsec) {
        Ok(nanos) if nanos < NANOS_PER_SEC => of_time(Time { secs: spec.tv_sec, nanos }),
        _ => -EOVERFLOW,
    }
}
