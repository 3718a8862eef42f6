//! `clock_getres`.

use datapage::snapshot::resolution_time;
use datapage::{ClockId, Route, Slot};

use crate::fallback::{fallback, register};
use crate::platform::Platform;
use crate::slow::kernel_page;
use crate::user::{Spec, UserPtr};

/// The resolution of a clock (`clock_getres(2)`); `res` may be null.
///
/// # Errors
/// Those of the system call, for clocks that the page does not serve.
#[inline(always)] // the exported function is this body
pub fn clock_getres<P: Platform, S: Spec>(platform: &P, id: i32, res: UserPtr<S>) -> isize {
    match quick(platform, ClockId(id)) {
        Some(resolution) => answer(res, resolution),
        None => slow(platform, id, res),
    }
}

#[inline(always)] // the hot path
fn quick<P: Platform>(platform: &P, clock: ClockId) -> Option<u32> {
    match clock.route() {
        Route::Steered(slot) => platform.page().try_precise_resolution(slot),
        Route::Raw => platform.page().try_precise_resolution(Slot::MONOTONIC_RAW),
        Route::Coarse(slot) => platform.page().try_coarse_resolution(slot),
        Route::Kernel => None,
    }
}

#[cold]
#[inline] // a copy of the image's own, in place of a symbol; being cold, it stays out of line
fn slow<P: Platform, S: Spec>(platform: &P, id: i32, res: UserPtr<S>) -> isize {
    match ClockId(id).slot().and_then(|slot| kernel_page(platform).resolution(slot)) {
        Some(resolution) => answer(res, resolution),
        None => fallback(platform, S::CLOCK_GETRES, [register(id), res.address(), 0]),
    }
}

#[inline(always)] // two stores
fn answer<S: Spec>(res: UserPtr<S>, resolution: u32) -> isize {
    if !res.is_null() {
        res.write(S::of(resolution_time(resolution)));
    }
    0
}
