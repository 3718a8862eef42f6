//! `time`.

use crate::fallback::{Call, fallback};
use crate::platform::Platform;
use crate::user::{Seconds, UserPtr};

/// Seconds of the wall clock as of the last update (`time(2)`); `t` may be null.
///
/// Coarse by nature: a second begins here with the first update in it, as on Linux.
///
/// # Errors
/// Those of the system call, while the page does not serve REALTIME.
#[inline(always)] // the exported function is this body
pub fn time<P: Platform, S: Seconds>(platform: &P, t: UserPtr<S>) -> S {
    let Some(seconds) = platform.page().realtime_seconds() else {
        return S::from_register(fallback(platform, Call::Time, [t.address(), 0, 0]));
    };
    let seconds = S::of(seconds);
    if !t.is_null() {
        t.write(seconds);
    }
    seconds
}
