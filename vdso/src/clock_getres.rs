//! `clock_getres`.

use datapage::snapshot::resolution_time;
use datapage::{ClockId, Time};

use crate::fallback::{Call, fallback, register};
use crate::platform::Platform;
use crate::user::{TimeSpec, UserPtr};

/// The resolution of a clock (`clock_getres(2)`); `res` may be null.
///
/// # Errors
/// Those of the system call, for clocks that the page does not serve.
#[inline(always)] // the exported function is this body
pub fn clock_getres<P: Platform>(platform: &P, id: i32, res: UserPtr<TimeSpec>) -> isize {
    let resolution = ClockId(id)
        .slot()
        .and_then(|slot| platform.page().resolution(slot));
    let Some(resolution) = resolution else {
        return fallback(
            platform,
            Call::ClockGetres,
            [register(id), res.address(), 0],
        );
    };
    if !res.is_null() {
        let Time { secs, nanos } = resolution_time(resolution);
        res.write(TimeSpec {
            tv_sec: secs,
            tv_nsec: i64::from(nanos),
        });
    }
    0
}
