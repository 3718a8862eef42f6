//! `clock_getres`.

use datapage::ClockId;
use datapage::snapshot::resolution_time;

use crate::fallback::{fallback, register};
use crate::platform::Platform;
use crate::user::{Spec, UserPtr};

/// The resolution of a clock (`clock_getres(2)`); `res` may be null.
///
/// # Errors
/// Those of the system call, for clocks that the page does not serve.
#[inline(always)] // the exported function is this body
pub fn clock_getres<P: Platform, S: Spec>(platform: &P, id: i32, res: UserPtr<S>) -> isize {
    let resolution = ClockId(id)
        .slot()
        .and_then(|slot| platform.page().resolution(slot));
    let Some(resolution) = resolution else {
        return fallback(platform, S::CLOCK_GETRES, [register(id), res.address(), 0]);
    };
    if !res.is_null() {
        res.write(S::of(resolution_time(resolution)));
    }
    0
}
