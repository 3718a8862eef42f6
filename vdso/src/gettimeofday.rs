//! `gettimeofday`.

use datapage::{Slot, Time, TimeZone};

use crate::do_hres::do_hres;
use crate::fallback::{Call, fallback};
use crate::platform::Platform;
use crate::user::{Timezone, UserPtr, Val};

/// The wall clock in microseconds and the timezone (`gettimeofday(2)`); either may be null.
///
/// Both come from one update. With `tv` null neither the counter nor its mode matters.
///
/// # Errors
/// Those of the system call, which is made once, for both arguments, if either cannot be served.
#[inline(always)] // the exported function is this body
pub fn gettimeofday<P: Platform, V: Val>(
    platform: &P,
    tv: UserPtr<V>,
    tz: UserPtr<Timezone>,
) -> isize {
    let Some((time, zone)) = read(platform, !tv.is_null(), !tz.is_null()) else {
        return fallback(
            platform,
            Call::Gettimeofday,
            [tv.address(), tz.address(), 0],
        );
    };
    if let Some(time) = time {
        tv.write(V::of(time));
    }
    if let Some(zone) = zone {
        tz.write(Timezone {
            tz_minuteswest: zone.minutes_west,
            tz_dsttime: zone.dst_time,
        });
    }
    0
}

#[inline(always)] // as above
fn read<P: Platform>(
    platform: &P,
    time: bool,
    zone: bool,
) -> Option<(Option<Time>, Option<TimeZone>)> {
    match (time, zone) {
        (true, false) => Some((Some(do_hres(platform, Slot::REALTIME)?.time()?), None)),
        (true, true) => {
            core::hint::cold_path();
            let counter = |mode| platform.counter(mode);
            let (precise, zone) = platform.page().precise_with_timezone(counter)?;
            Some((Some(precise.time()?), Some(zone)))
        }
        (false, true) => Some((None, Some(platform.page().timezone()?))),
        (false, false) => Some((None, None)),
    }
}
