//! `clock_gettime`.

use datapage::{ClockId, ClockSet, Time};

use crate::do_coarse::do_coarse;
use crate::do_hres::do_hres;
use crate::fallback::{fallback, register};
use crate::platform::Platform;
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
    let Some(time) = read(platform, ClockId(id)) else {
        return fallback(platform, S::CLOCK_GETTIME, [register(id), ts.address(), 0]);
    };
    ts.write(S::of(time));
    0
}

#[inline(always)] // as above
fn read<P: Platform>(platform: &P, clock: ClockId) -> Option<Time> {
    if ClockSet::PRECISE.intersects(clock.set()) {
        do_hres(platform, clock.slot()?)?.time()
    } else {
        do_coarse(platform, clock.slot()?)?.time()
    }
}
