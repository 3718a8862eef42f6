//! Setting the clocks: what is legal, and what it does to which clock.
//!
//! REALTIME may be set to any date that 64 bits of nanoseconds around 1970 hold, also before 1970
//! and also to less than the uptime: no other clock depends on it. MONOTONIC, BOOTTIME and RAW do
//! not notice, not even below the nanosecond: all steered clocks share the bits below, and a set
//! moves whole nanoseconds.

use datapage::{NANOS_PER_SEC, Time, TimeZone, cycles::nanos_of};

use crate::error::{Error, checked};
use crate::line::Line;
use crate::timekeeper::Timekeeper;

/// Largest distance between UTC and TAI, in seconds; it has been 37 since 2017.
pub const MAX_TAI_OFFSET: i32 = 100_000;
/// Largest timezone, in minutes.
pub const MAX_MINUTES_WEST: i32 = 15 * 60;

/// Where all clocks stand at one instant, for a timekeeper that takes them over from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// Wall clock.
    pub realtime: Time,
    /// Steered time since boot, without suspend.
    pub monotonic: Time,
    /// Steered time since boot, with suspend.
    pub boottime: Time,
    /// Unsteered time since boot.
    pub monotonic_raw: Time,
    /// TAI - REALTIME in seconds.
    pub tai_offset: i32,
}

impl Timekeeper {
    /// Sets REALTIME, and TAI with it, to `realtime` at `now_cycles`.
    ///
    /// A phase correction or slew under way is dropped, because it was meant for the clock as it
    /// was. A leap second that is due is made at the end of the new day.
    ///
    /// # Errors
    /// [`Error::Nanos`], [`Error::Date`], [`Error::Suspended`], [`Error::Withdrawn`].
    #[doc(alias = "do_settimeofday64")]
    pub fn set_time(&mut self, now_cycles: u64, realtime: Time) -> Result<(), Error> {
        self.running()?;
        let realtime = date(realtime)?;
        self.forward(now_cycles);
        self.settle();
        self.move_realtime(realtime);
        Ok(())
    }

    /// Moves REALTIME, and TAI with it, by `offset` at `now_cycles`; negative seconds move it back.
    ///
    /// # Errors
    /// [`Error::Nanos`]; [`Error::Date`] for the resulting date; [`Error::Suspended`],
    /// [`Error::Withdrawn`].
    #[doc(alias = "ADJ_SETOFFSET")]
    #[doc(alias = "timekeeping_inject_offset")]
    pub fn inject_offset(&mut self, now_cycles: u64, offset: Time) -> Result<(), Error> {
        self.running()?;
        let offset = checked(offset)?;
        let mut next = *self;
        next.forward(now_cycles);
        next.settle();
        let realtime = date(plus(next.xtime.time(next.shift()), offset))?;
        next.move_realtime(realtime);
        *self = next;
        Ok(())
    }

    /// Sets TAI - REALTIME, in seconds; it is positive in this millennium.
    ///
    /// # Errors
    /// [`Error::TaiOffset`].
    #[doc(alias = "ADJ_TAI")]
    pub fn set_tai_offset(&mut self, seconds: i32) -> Result<(), Error> {
        self.tai_offset = tai(seconds)?;
        Ok(())
    }

    /// Sets the timezone that `gettimeofday` hands through. No clock depends on it.
    ///
    /// (On Linux the first call also moves REALTIME by the timezone if it is known to have started
    /// from a local clock: that is an [`inject_offset`](Self::inject_offset) of the caller's.)
    ///
    /// # Errors
    /// [`Error::Timezone`].
    pub const fn set_timezone(&mut self, timezone: TimeZone) -> Result<(), Error> {
        let west = timezone.minutes_west;
        if west < -MAX_MINUTES_WEST || west > MAX_MINUTES_WEST {
            return Err(Error::Timezone { found: west });
        }
        self.timezone = timezone;
        Ok(())
    }

    /// Places every clock: for a timekeeper that continues another's time.
    ///
    /// This alone can set MONOTONIC, BOOTTIME and RAW, and so make them go back. Corrections under
    /// way are dropped; frequency and tick length stay.
    ///
    /// # Errors
    /// [`Error::Nanos`], [`Error::Date`], [`Error::TaiOffset`], [`Error::Suspended`],
    /// [`Error::Withdrawn`].
    pub fn set_clocks(&mut self, now_cycles: u64, clocks: Clocks) -> Result<(), Error> {
        self.running()?;
        let realtime = date(clocks.realtime)?;
        let monotonic = date(clocks.monotonic)?;
        let boottime = date(clocks.boottime)?;
        let raw = date(clocks.monotonic_raw)?;
        let tai_offset = tai(clocks.tai_offset)?;
        self.forward(now_cycles);
        self.settle();
        self.move_realtime(realtime);
        self.tai_offset = tai_offset;
        let shift = self.shift();
        self.xtime = Line::at(realtime, shift);
        self.raw = Line::at(raw, shift);
        self.wall_to_monotonic = minus(monotonic, realtime);
        self.monotonic_to_boot = minus(boottime, monotonic);
        self.error = 0;
        Ok(())
    }

    /// Ends the corrections, before anything is set: the change of rate may move all clocks forward
    /// a little, and even over a leap second, and what is set is to stand as it was set.
    fn settle(&mut self) {
        self.ntp.clear();
        self.rates = self.ntp.rates(self.clocksource.scale().mult);
        self.steer();
    }

    /// REALTIME at `realtime`, with MONOTONIC exactly where it was.
    fn move_realtime(&mut self, realtime: Time) {
        let shift = self.shift();
        let step = minus(realtime, self.xtime.time(shift));
        self.xtime = self.xtime.moved_to(realtime, shift);
        self.wall_to_monotonic = minus(self.wall_to_monotonic, step);
        self.leap.moved_to(realtime.secs);
    }
}

/// `time`, if it is a date that the clocks can hold.
pub(crate) fn date(time: Time) -> Result<Time, Error> {
    let time = checked(time)?;
    if nanos_of(time).is_none() {
        return Err(Error::Date { found_secs: time.secs });
    }
    Ok(time)
}

/// `seconds`, if UTC can be that far from TAI.
const fn tai(seconds: i32) -> Result<i32, Error> {
    if seconds < -MAX_TAI_OFFSET || seconds > MAX_TAI_OFFSET {
        return Err(Error::TaiOffset { found: seconds });
    }
    Ok(seconds)
}

/// `a + b`, both normalised; the seconds saturate.
pub(crate) fn plus(a: Time, b: Time) -> Time {
    let nanos = a.nanos.wrapping_add(b.nanos); // below 2 * 10^9
    let (carry, nanos) = match nanos.checked_sub(NANOS_PER_SEC) {
        Some(rest) => (1, rest),
        None => (0, nanos),
    };
    Time { secs: a.secs.saturating_add(b.secs).saturating_add(carry), nanos }
}

/// `a - b`, both normalised; the seconds saturate.
pub(crate) fn minus(a: Time, b: Time) -> Time {
    let (borrow, nanos) = match a.nanos.checked_sub(b.nanos) {
        Some(nanos) => (0, nanos),
        None => (1, a.nanos.wrapping_add(NANOS_PER_SEC).wrapping_sub(b.nanos)),
    };
    Time { secs: a.secs.saturating_sub(b.secs).saturating_sub(borrow), nanos }
}
