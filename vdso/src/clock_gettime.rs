//! `clock_gettime`.

use datapage::ClockId;
use datapage::cycles::WideTime;

use crate::fallback::{fallback, register};
use crate::platform::Platform;
use crate::quick::{self, Quick};
use crate::slow;
use crate::user::{Spec, UserPtr};

/// The time of a clock (`clock_gettime(2)`).
///
/// REALTIME, MONOTONIC, BOOTTIME, TAI and MONOTONIC_RAW come from the page and the counter, the
/// two coarse clocks from the page alone, every other id from the kernel. `ts` is written once,
/// after a consistent read, and not at all on an error.
///
/// # Errors
/// Those of the system call, for what the page cannot serve. A bad `ts` faults for a served clock.
#[inline(always)] // the exported function is this body
pub fn clock_gettime<P: Platform, S: Spec>(platform: &P, id: i32, ts: UserPtr<S>) -> isize {
    match quick::time(platform, ClockId(id), |time| answer(ts, time)) {
        Quick::Done(done) => done,
        Quick::Unserved => ask_kernel(platform, id, ts),
        Quick::Undecided => slow(platform, id, ts),
    }
}

#[cold]
#[inline] // a copy of the image's own, in place of a symbol; being cold, it stays out of line
fn slow<P: Platform, S: Spec>(platform: &P, id: i32, ts: UserPtr<S>) -> isize {
    match ClockId(id).slot().and_then(|slot| slow::read(platform, slot)) {
        Some(reading) => answer(ts, reading.time.into()),
        None => ask_kernel(platform, id, ts),
    }
}

#[inline(always)] // the fallback's few instructions
fn ask_kernel<P: Platform, S: Spec>(platform: &P, id: i32, ts: UserPtr<S>) -> isize {
    fallback(platform, S::CLOCK_GETTIME, [register(id), ts.address(), 0])
}

#[inline(always)] // two stores
fn answer<S: Spec>(ts: UserPtr<S>, time: WideTime) -> isize {
    ts.write(S::of(time));
    quick::keep(time.nanos);
    0
}
