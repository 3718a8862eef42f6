//! What a reader takes out of the page: plain values of one update.
//!
//! No reference to a word of the page leaves this crate. A function of the image takes one of
//! these snapshots, and everything after that is arithmetic on a copy.
//!
//! Each read comes in two forms. `try_*` is one attempt, which is all that an undisturbed page
//! needs, and short enough to be inlined into an exported function. The other form repeats the same
//! loads within the bound of [`Cells::ATTEMPTS`]; an image keeps it out of line.

use crate::clocks::{ClockId, ClockMode, ClockSet, Features, Slot};
use crate::cycles::{self, MAX_SHIFT, NANOS_PER_SEC, Time, WideTime};
use crate::layout::{BaseTime, ClockScale, Page};
use crate::protocol::{Attempt, Cell, Cells};
use crate::update::TimeZone;

/// A precise clock and the counter, taken together.
///
/// # Invariants
/// One that was read from a page is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precise {
    /// Counter cycles since the update, negative for a counter that is behind.
    pub cycles: i64,
    /// Nanoseconds a cycle, times 2^shift.
    pub mult: u32,
    /// See `mult`; above [`MAX_SHIFT`] there is no time.
    pub shift: u32,
    /// Two's complement seconds at the update.
    pub sec: u64,
    /// Nanoseconds at the update, shifted.
    pub nsec: u64,
}

impl Precise {
    /// Counter cycles that have gone by since the update: none for a counter that is behind.
    #[inline(always)] // a comparison
    #[must_use]
    pub const fn elapsed(&self) -> u64 {
        cycles::ahead(self.cycles)
    }

    /// The time, by the arithmetic that is enough while the product has 63 bits; `None` for anything
    /// else, for [`time`](Self::time) to look at.
    #[inline(always)] // the critical path behind the counter
    #[must_use]
    pub fn quick_time(&self) -> Option<WideTime> {
        // First, since the sum behind it needs the flags.
        if self.shift > cycles::QUICK_SHIFT {
            core::hint::cold_path();
            return None;
        }
        let shifted = cycles::scaled_narrow(self.nsec, self.cycles, self.mult)?;
        cycles::carry_narrow(self.sec.cast_signed(), shifted, self.shift)
    }

    /// The time; `None` if the seconds do not fit, or no page may hold the shift.
    #[inline]
    #[must_use]
    pub fn time(&self) -> Option<Time> {
        if self.shift > MAX_SHIFT {
            return None;
        }
        let shifted = cycles::scaled(self.nsec, self.elapsed(), self.mult);
        cycles::carry(self.sec.cast_signed(), shifted, self.shift)
    }

    /// Nanoseconds since zero, as [`quick_time`](Self::quick_time).
    #[inline(always)] // the critical path behind the counter
    #[must_use]
    pub fn quick_nanos(&self) -> Option<i64> {
        let shifted = cycles::scaled_narrow(self.nsec, self.cycles, self.mult)?;
        cycles::total_narrow(self.sec.cast_signed(), shifted, self.shift)
    }
}

/// What stands in the slot of a coarse clock: the time of the last tick, or zeros if the page does
/// not serve it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coarse {
    /// Two's complement seconds.
    pub sec: u64,
    /// Plain nanoseconds.
    pub nsec: u64,
}

impl Coarse {
    /// The time, if one comparison is enough to tell; `None` for an empty slot, a whole second and
    /// a page that is not normalised, which [`standing_still`](Self::standing_still) tells apart.
    #[inline(always)] // a subtraction and a comparison
    #[must_use]
    pub fn quick_time(&self) -> Option<WideTime> {
        const WHOLE: u64 = NANOS_PER_SEC as u64;
        if self.nsec.wrapping_sub(1) < WHOLE - 1 {
            return Some(WideTime { secs: self.sec.cast_signed(), nanos: self.nsec });
        }
        core::hint::cold_path();
        None
    }

    /// The same as a precise clock that stands still, so that one piece of code can finish both;
    /// `None` if the clock is unpublished.
    #[inline(always)] // two tests
    #[must_use]
    pub fn standing_still(&self) -> Option<Precise> {
        if (self.sec | self.nsec) == 0 {
            core::hint::cold_path();
            return None;
        }
        Some(Precise { cycles: 0, mult: 0, shift: 0, sec: self.sec, nsec: self.nsec })
    }

    /// Nanoseconds since zero; `None` as [`quick_time`](Self::quick_time), and for those that are
    /// negative or do not fit.
    #[inline(always)] // a multiplication, an addition, and the flags that they set
    #[must_use]
    pub fn quick_nanos(&self) -> Option<i64> {
        let time = self.quick_time()?;
        cycles::total_narrow(time.secs, time.nanos, 0)
    }
}

/// What stands in the page about the resolution of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// Nanoseconds, 0 if none is served: a `u32` in a whole register.
    nanos: u64,
    /// The word of the clock's slot that is hardly ever 0 unless the slot is empty.
    nsec: u64,
}

impl Resolution {
    /// The resolution, if two comparisons are enough to tell; `None` for an empty slot, a whole
    /// second in it, and a resolution of none or of a second and more, which [`Page::resolution`]
    /// tells apart.
    #[inline(always)] // two tests
    #[must_use]
    pub fn quick_time(&self) -> Option<WideTime> {
        const WHOLE: u64 = NANOS_PER_SEC as u64;
        if self.nsec == 0 || self.nanos.wrapping_sub(1) >= WHOLE - 1 {
            core::hint::cold_path();
            return None;
        }
        Some(WideTime { secs: 0, nanos: self.nanos })
    }
}

impl<C: Cells> Page<C> {
    /// One attempt at a clock on the steered scale.
    ///
    /// `read_counter` gets the page's clock mode and returns an ordered read of that counter, or
    /// `None` for a mode that is not its own. The scale is not chosen by the clock, so that its
    /// address is a constant.
    #[inline(always)] // the hot path
    pub fn try_steered(
        &self,
        slot: Slot,
        read_counter: impl Fn(ClockMode) -> Option<u64>,
    ) -> Attempt<Precise> {
        let [steered, _] = &self.cs;
        self.seq.attempt(|| self.load_precise(steered, self.base(slot), read_counter))
    }

    /// One attempt at MONOTONIC_RAW, as [`try_steered`](Self::try_steered).
    #[inline(always)] // the hot path
    pub fn try_raw(&self, read_counter: impl Fn(ClockMode) -> Option<u64>) -> Attempt<Precise> {
        let [_, raw] = &self.cs;
        let base = self.base(Slot::MONOTONIC_RAW);
        self.seq.attempt(|| self.load_precise(raw, base, read_counter))
    }

    /// Both of the above in one piece of code, for machines where it is short of space.
    #[inline(always)] // the hot path
    pub fn try_precise(
        &self,
        slot: Slot,
        read_counter: impl Fn(ClockMode) -> Option<u64>,
    ) -> Attempt<Precise> {
        let (scale, base) = (self.scale(slot), self.base(slot));
        self.seq.attempt(|| self.load_precise(scale, base, read_counter))
    }

    /// A precise clock with the counter, or `None` if the page has none, or cannot be read. What it
    /// holds may still have no [time](Precise::time).
    #[inline]
    pub fn precise(
        &self,
        slot: Slot,
        read_counter: impl Fn(ClockMode) -> Option<u64>,
    ) -> Option<Precise> {
        let (scale, base) = (self.scale(slot), self.base(slot));
        self.seq.read(|| self.load_precise(scale, base, &read_counter))
    }

    /// The loads of a precise clock, and its counter.
    ///
    /// Each cache line is touched before the counter's serialising instruction, so that a line that
    /// is not cached is fetched together with the others and not behind it. The remaining words of
    /// the first line, which is there by then, follow the instruction: they are loaded while the
    /// counter is on its way, and need no register until then (`docs/decisions/0003-loads-around-the-counter.md`).
    #[inline(always)] // the hot path
    fn load_precise(
        &self,
        scale: &ClockScale<C>,
        base: &BaseTime<C>,
        read_counter: impl Fn(ClockMode) -> Option<u64>,
    ) -> Option<Precise> {
        let mode = ClockMode(self.clock_mode.get().cast_signed());
        let (sec, nsec) = (base.sec.get(), base.nsec.get());
        // One word is tested on the usual way: it is hardly ever 0 in a published slot.
        if nsec == 0 {
            core::hint::cold_path();
            if sec == 0 {
                return None;
            }
        }
        let counter = if let Some(counter) = read_counter(mode) {
            counter
        } else if mode == ClockMode::MEMORY {
            core::hint::cold_path();
            self.memory_counter.get_moving()
        } else {
            core::hint::cold_path();
            return None;
        };
        // The difference is taken here, where it ends the life of three registers; it is harmless on
        // a mixture of updates, as every value of it is.
        let cycles = cycles::distance(counter, self.cycle_last.get(), scale.mask.get());
        let (mult, shift) = (scale.mult.get(), scale.shift.get());
        Some(Precise { cycles, mult, shift, sec, nsec })
    }

    /// One attempt at a coarse clock.
    #[inline(always)] // the hot path: four loads
    #[must_use]
    pub fn try_coarse(&self, slot: Slot) -> Attempt<Coarse> {
        self.seq.attempt(|| Some(self.load_coarse(slot)))
    }

    /// What stands in the slot of a coarse clock, or `None` if the page cannot be read.
    #[inline]
    #[must_use]
    pub fn coarse(&self, slot: Slot) -> Option<Coarse> {
        self.seq.read(|| Some(self.load_coarse(slot)))
    }

    #[inline(always)] // two loads
    fn load_coarse(&self, slot: Slot) -> Coarse {
        let base = self.base(slot);
        Coarse { sec: base.sec.get(), nsec: base.nsec.get() }
    }

    /// One attempt at the resolution of a clock.
    ///
    /// Both resolutions are loaded and one is chosen, so that there is one way for all clocks.
    #[inline(always)] // the hot path: five loads
    #[must_use]
    pub fn try_resolution(&self, slot: Slot) -> Attempt<Resolution> {
        self.seq.attempt(|| {
            let (precise, coarse) = (self.hrtimer_res.get(), self.coarse_res.get());
            let nanos = core::hint::select_unpredictable(
                slot.is_coarse(),
                u64::from(coarse),
                u64::from(precise),
            );
            Some(Resolution { nanos, nsec: self.base(slot).nsec.get() })
        })
    }

    /// The resolution of a clock in nanoseconds, or `None` if the page does not serve the clock.
    #[inline]
    #[must_use]
    pub fn resolution(&self, slot: Slot) -> Option<u32> {
        let coarse = ClockSet::COARSE.contains(slot.clock().set());
        let resolution = if coarse { &self.coarse_res } else { &self.hrtimer_res };
        self.seq.read(|| self.load_resolution(resolution, slot))
    }

    #[inline(always)] // three loads
    fn load_resolution(&self, resolution: &C::U32, slot: Slot) -> Option<u32> {
        let base = self.base(slot);
        let resolution = resolution.get();
        if resolution == 0 {
            core::hint::cold_path();
            return None;
        }
        if base.sec.get() | base.nsec.get() == 0 {
            core::hint::cold_path();
            return None;
        }
        Some(resolution)
    }

    /// The timezone, or `None` if the page does not serve it.
    #[inline]
    #[must_use]
    pub fn timezone(&self) -> Option<TimeZone> {
        self.seq.read(|| self.load_timezone())
    }

    /// A precise clock with the counter, and the timezone of the same update if it is served.
    #[inline]
    pub fn precise_with_timezone(
        &self,
        slot: Slot,
        read_counter: impl Fn(ClockMode) -> Option<u64>,
    ) -> Option<(Precise, Option<TimeZone>)> {
        let (scale, base) = (self.scale(slot), self.base(slot));
        self.seq.read(|| {
            let timezone = self.load_timezone();
            Some((self.load_precise(scale, base, &read_counter)?, timezone))
        })
    }

    #[inline(always)] // three loads
    fn load_timezone(&self) -> Option<TimeZone> {
        let timezone = TimeZone {
            minutes_west: self.tz_minuteswest.get().cast_signed(),
            dst_time: self.tz_dsttime.get().cast_signed(),
        };
        (self.hrtimer_res.get() != 0).then_some(timezone)
    }

    /// Seconds of the wall clock as of the last update from a single word, where that is enough;
    /// `None` sends the caller to [`realtime_seconds`](Self::realtime_seconds).
    #[inline(always)] // one load
    #[must_use]
    pub fn try_realtime_seconds(&self) -> Option<i64> {
        if cfg!(not(target_pointer_width = "64")) {
            return None;
        }
        // One word is one update. Only 0 needs a second look (is the slot unpublished?), and -1 (is
        // it the writer's way to write 0?).
        let sec = self.base(Slot::REALTIME).sec.get();
        if sec.wrapping_add(1) > 1 { Some(sec.cast_signed()) } else { None }
    }

    /// Seconds of the wall clock as of the last update, without the counter, in any clock mode.
    #[inline]
    #[must_use]
    pub fn realtime_seconds(&self) -> Option<i64> {
        let (sec, nsec, shift) = self.seq.read(|| {
            let base = self.base(Slot::REALTIME);
            Some((base.sec.get(), base.nsec.get(), self.scale(Slot::REALTIME).shift.get()))
        })?;
        if shift > MAX_SHIFT || (sec | nsec) == 0 {
            return None;
        }
        if nsec >> shift < u64::from(NANOS_PER_SEC) {
            return Some(sec.cast_signed());
        }
        Some(cycles::carry(sec.cast_signed(), nsec.into(), shift)?.secs)
    }

    /// Which ways of `getcpu` the kernel maintains, among others.
    #[inline(always)] // one load
    #[must_use]
    pub fn features(&self) -> Features {
        Features::from_bits_retain(self.features.get())
    }

    /// The clocks that have a published slot, for tools that show a page.
    #[must_use]
    pub fn published(&self) -> ClockSet {
        (0..12)
            .filter_map(|id| ClockId(id).slot())
            .filter(|&slot| self.coarse(slot).is_some_and(|base| base.standing_still().is_some()))
            .map(|slot| slot.clock().set())
            .collect()
    }

    /// Where a clock's base lies.
    #[inline(always)] // an address
    #[allow(clippy::indexing_slicing, reason = "a Slot is below 12, and the choice proves it")]
    pub(crate) fn base(&self, slot: Slot) -> &BaseTime<C> {
        const { assert!(crate::layout::BASES == 12) };
        &self.basetime[if slot.index() < 12 { slot.index() } else { 0 }]
    }

    /// Which scale a clock uses.
    #[inline(always)] // an address
    fn scale(&self, slot: Slot) -> &ClockScale<C> {
        let [steered, raw] = &self.cs;
        if slot.clock() == ClockId::MONOTONIC_RAW { raw } else { steered }
    }
}

/// Splits a resolution in nanoseconds into a time.
#[inline(always)] // a comparison
#[must_use]
#[allow(clippy::arithmetic_side_effects, reason = "a division and a remainder by a constant")]
pub const fn resolution_time(nanos: u32) -> Time {
    if nanos < NANOS_PER_SEC {
        return Time { secs: 0, nanos };
    }
    core::hint::cold_path();
    Time { secs: (nanos / NANOS_PER_SEC) as i64, nanos: nanos % NANOS_PER_SEC }
}

#[cfg(test)]
mod tests;
