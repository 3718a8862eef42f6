//! The quick attempt at a clock: the hot path of every call that tells the time.
//!
//! On a 64-bit machine it is inlined into each exported function, which so runs without saving a
//! register. On a 32-bit one it needs every register that there is, so nothing is won by inlining,
//! and five copies of it would not fit into an image of two pages: there it is one function.

use datapage::{ClockId, ClockSet, Route, Slot, Time};

use crate::do_coarse::do_coarse;
use crate::do_hres::{do_hres, do_hres_any, do_hres_raw};
use crate::platform::Platform;

/// The time of a clock if one attempt at it succeeds; `None` means the slow way.
#[cfg_attr(target_pointer_width = "64", inline(always))] // the hot path, see above
#[cfg_attr(not(target_pointer_width = "64"), inline(never))] // as above
pub(crate) fn time<P: Platform>(platform: &P, clock: ClockId) -> Option<Time> {
    if cfg!(not(target_pointer_width = "64")) {
        let slot = clock.slot()?;
        let precise = if ClockSet::COARSE.contains(clock.set()) {
            do_coarse(platform, slot)?.standing_still()?
        } else {
            do_hres_any(platform, slot)?
        };
        return precise.quick_time();
    }
    match clock.route() {
        Route::Steered(slot) => do_hres(platform, slot)?.quick_time(),
        Route::Raw => do_hres_raw(platform)?.quick_time(),
        Route::Coarse(slot) => do_coarse(platform, slot)?.time(),
        Route::Kernel => None,
    }
}

/// The same in nanoseconds, without splitting them into seconds on the way; for 64-bit machines.
#[inline(always)] // the hot path
pub(crate) fn nanos<P: Platform>(platform: &P, clock: ClockId) -> Option<i64> {
    match clock.route() {
        Route::Steered(slot) => do_hres(platform, slot)?.quick_nanos(),
        Route::Raw => do_hres_raw(platform)?.quick_nanos(),
        Route::Coarse(slot) => do_coarse(platform, slot)?.quick_nanos(),
        Route::Kernel => None,
    }
}

/// The resolution of a clock in nanoseconds if one attempt at it succeeds. Nobody asks often: a
/// 32-bit image spends no bytes on it.
#[inline(always)] // the hot path
pub(crate) fn resolution<P: Platform>(platform: &P, clock: ClockId) -> Option<u32> {
    if cfg!(not(target_pointer_width = "64")) {
        return None;
    }
    match clock.route() {
        Route::Steered(slot) => platform.page().try_precise_resolution(slot),
        Route::Raw => platform.page().try_precise_resolution(Slot::MONOTONIC_RAW),
        Route::Coarse(slot) => platform.page().try_coarse_resolution(slot),
        Route::Kernel => None,
    }
}
