//! `time`.

use crate::fallback::{Call, fallback};
use crate::platform::Platform;
use crate::slow::kernel_page;
use crate::user::{Seconds, UserPtr};

/// Seconds of the wall clock as of the last update (`time(2)`); `t` may be null.
///
/// Coarse by nature: a second begins here with the first update in it, as on Linux.
///
/// # Errors
/// Those of the system call, while the page does not serve REALTIME.
#[inline(always)] // the exported function is this body
pub fn time<P: Platform, S: Seconds>(platform: &P, t: UserPtr<S>) -> S {
    match platform.page().try_realtime_seconds() {
        Some(seconds) => answer(t, S::of(seconds)),
        None => slow(platform, t),
    }
}

// Two words are no single load: on 32-bit machines this is the only way, and no detour.
#[cfg_attr(target_pointer_width = "64", cold)]
#[inline] // a copy of the image's own, in place of a symbol; being cold, it stays out of line
fn slow<P: Platform, S: Seconds>(platform: &P, t: UserPtr<S>) -> S {
    match kernel_page(platform).realtime_seconds() {
        Some(seconds) => answer(t, S::of(seconds)),
        None => S::from_register(fallback(platform, Call::Time, [t.address(), 0, 0])),
    }
}

#[inline(always)] // a store
fn answer<S: Seconds>(t: UserPtr<S>, seconds: S) -> S {
    if !t.is_null() {
        // Most pass null, and a jump that is taken is a cycle of seven.
        core::hint::cold_path();
        t.write(seconds);
    }
    seconds
}
