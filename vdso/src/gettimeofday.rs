//! `gettimeofday`.

use datapage::cycles::WideTime;
use datapage::{ClockId, Slot, Time, TimeZone};

use crate::fallback::{Call, fallback};
use crate::platform::Platform;
use crate::quick::{self, Quick};
use crate::slow::{self, Reading, kernel_page};
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
    if tv.is_null() || !tz.is_null() {
        return slow(platform, tv, tz);
    }
    match quick::time(platform, ClockId::REALTIME, |time| answer(tv, time)) {
        Quick::Done(()) => 0,
        Quick::Unserved => ask_kernel(platform, tv, tz),
        Quick::Undecided => slow(platform, tv, tz),
    }
}

/// With a timezone, which hardly a program asks for, or when the quick attempt failed.
#[cold]
#[inline] // a copy of the image's own, in place of a symbol; being cold, it stays out of line
fn slow<P: Platform, V: Val>(platform: &P, tv: UserPtr<V>, tz: UserPtr<Timezone>) -> isize {
    let Some((time, zone)) = read(platform, !tv.is_null(), !tz.is_null()) else {
        return ask_kernel(platform, tv, tz);
    };
    if let Some(time) = time {
        answer(tv, time.into());
    }
    if let Some(zone) = zone {
        tz.write(Timezone { tz_minuteswest: zone.minutes_west, tz_dsttime: zone.dst_time });
    }
    0
}

#[inline(always)] // the fallback's few instructions
fn ask_kernel<P: Platform, V: Val>(platform: &P, tv: UserPtr<V>, tz: UserPtr<Timezone>) -> isize {
    fallback(platform, Call::Gettimeofday, [tv.address(), tz.address(), 0])
}

/// What was asked for, or `None` if not all of it can be served.
#[inline]
fn read<P: Platform>(
    platform: &P,
    time: bool,
    zone: bool,
) -> Option<(Option<Time>, Option<TimeZone>)> {
    if time {
        let Reading { time, zone: found } = slow::read(platform, Slot::REALTIME)?;
        return if zone { Some((Some(time), Some(found?))) } else { Some((Some(time), None)) };
    }
    let zone = if zone { Some(kernel_page(platform).timezone()?) } else { None };
    Some((None, zone))
}

#[inline(always)] // a multiplication and two stores
fn answer<V: Val>(tv: UserPtr<V>, time: WideTime) {
    tv.write(V::of(time));
}
