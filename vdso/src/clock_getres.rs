//! `clock_getres`.

use datapage::ClockId;
use datapage::cycles::WideTime;
use datapage::snapshot::resolution_time;

use crate::fallback::{fallback, register};
use crate::platform::Platform;
use crate::quick::{self, Quick};
use crate::slow;
use crate::user::{Spec, UserPtr};

/// The resolution of a clock (`clock_getres(2)`); `res` may be null.
///
/// # Errors
/// Those of the system call, for clocks that the page does not serve.
#[inline(always)] // the exported function is this body
pub fn clock_getres<P: Platform, S: Spec>(platform: &P, id: i32, res: UserPtr<S>) -> isize {
    match quick::resolution(platform, ClockId(id), |time| answer(res, time)) {
        Quick::Done(done) => done,
        Quick::Unserved => ask_kernel(platform, id, res),
        Quick::Undecided => slow(platform, id, res),
    }
}

#[cfg_attr(target_pointer_width = "64", cold, inline)] // a copy of the image's own, out of line
#[cfg_attr(not(target_pointer_width = "64"), inline(always))] // the only way, see `quick`
fn slow<P: Platform, S: Spec>(platform: &P, id: i32, res: UserPtr<S>) -> isize {
    match slow::resolution(platform, ClockId(id)) {
        Some(resolution) => answer(res, resolution_time(resolution).into()),
        None => ask_kernel(platform, id, res),
    }
}

#[inline(always)] // the fallback's few instructions
fn ask_kernel<P: Platform, S: Spec>(platform: &P, id: i32, res: UserPtr<S>) -> isize {
    fallback(platform, S::CLOCK_GETRES, [register(id), res.address(), 0])
}

#[inline(always)] // two stores
fn answer<S: Spec>(res: UserPtr<S>, time: WideTime) -> isize {
    if !res.is_null() {
        res.write(S::of(time));
    }
    0
}
