//! What a reader takes out of the page: plain values of one update.
//!
//! No reference to a word of the page leaves this crate. A function of the image takes one of
//! these snapshots, and everything after that is arithmetic on a copy.

use crate::clocks::{ClockId, ClockMode, ClockSet, Features, Slot};
use crate::cycles::{self, MAX_SHIFT, NANOS_PER_SEC, Time};
use crate::layout::{BaseTime, ClockScale, Page};
use crate::protocol::{Cell, Cells};
use crate::update::TimeZone;

/// A precise clock and the counter, taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precise {
    /// The counter, read after every word of the page.
    pub counter: u64,
    /// The counter at the update.
    pub cycle_last: u64,
    /// The counter's width, as a mask.
    pub mask: u64,
    /// Nanoseconds a cycle, times 2^shift.
    pub mult: u32,
    /// See `mult`.
    pub shift: u32,
    /// Two's complement seconds at the update.
    pub sec: u64,
    /// Nanoseconds at the update, shifted.
    pub nsec: u64,
}

impl Precise {
    /// The time; `None` if the clock is unpublished, the shift is none that a page may hold, or
    /// the seconds do not fit.
    #[inline(always)] // the critical path behind the counter
    #[must_use]
    pub fn time(&self) -> Option<Time> {
        if !self.is_served() {
            core::hint::cold_path();
            return None;
        }
        cycles::carry(self.sec.cast_signed(), self.shifted(), self.shift)
    }

    /// Nanoseconds since zero: `Ok(None)` if an `i64` cannot hold them.
    ///
    /// # Errors
    /// [`NotServed`] as [`time`](Self::time) has `None`, except for seconds that do not fit.
    #[inline(always)] // the critical path behind the counter
    pub fn total_nanos(&self) -> Result<Option<i64>, NotServed> {
        if !self.is_served() {
            core::hint::cold_path();
            return Err(NotServed);
        }
        Ok(cycles::total_nanos(
            self.sec.cast_signed(),
            self.shifted(),
            self.shift,
        ))
    }

    #[inline(always)] // two tests
    fn is_served(&self) -> bool {
        self.shift <= MAX_SHIFT && (self.sec | self.nsec) != 0
    }

    #[inline(always)] // a multiplication and an addition
    fn shifted(&self) -> u128 {
        let cycles = cycles::elapsed_cycles(self.counter, self.cycle_last, self.mask);
        cycles::scaled(self.nsec, cycles, self.mult)
    }
}

/// A coarse clock, as of the last tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coarse {
    /// Two's complement seconds.
    pub sec: u64,
    /// Plain nanoseconds.
    pub nsec: u64,
}

impl Coarse {
    /// The time; `None` if the clock is unpublished or the seconds do not fit.
    #[inline(always)] // two tests
    #[must_use]
    pub fn time(&self) -> Option<Time> {
        if (self.sec | self.nsec) == 0 {
            core::hint::cold_path();
            return None;
        }
        cycles::carry(self.sec.cast_signed(), u128::from(self.nsec), 0)
    }

    /// Nanoseconds since zero: `Ok(None)` if an `i64` cannot hold them.
    ///
    /// # Errors
    /// [`NotServed`] if the clock is unpublished.
    #[inline(always)] // two tests
    pub fn total_nanos(&self) -> Result<Option<i64>, NotServed> {
        if (self.sec | self.nsec) == 0 {
            core::hint::cold_path();
            return Err(NotServed);
        }
        Ok(cycles::total_nanos(
            self.sec.cast_signed(),
            u128::from(self.nsec),
            0,
        ))
    }
}

/// The page does not serve this: the caller falls back to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotServed;

impl<C: Cells> Page<C> {
    /// A precise clock with the counter, or `None` if it cannot be served.
    ///
    /// `read_counter` gets the page's clock mode and returns an ordered read of that counter, or
    /// `None` for a mode that is not its own. It is called after every load from the page: a
    /// clock whose line is not cached would otherwise be fetched behind the serialising
    /// instruction, instead of together with the others.
    #[inline(always)] // the one hot loop
    pub fn precise(
        &self,
        slot: Slot,
        read_counter: impl Fn(ClockMode) -> Option<u64>,
    ) -> Option<Precise> {
        self.precise_and(slot, || Some(()), read_counter)
            .map(|(precise, ())| precise)
    }

    /// [`precise`](Self::precise), and what `load` loads, from one update.
    #[inline(always)] // the one hot loop
    fn precise_and<T>(
        &self,
        slot: Slot,
        load: impl Fn() -> Option<T>,
        read_counter: impl Fn(ClockMode) -> Option<u64>,
    ) -> Option<(Precise, T)> {
        let scale = self.scale(slot);
        let base = self.base(slot);
        self.seq.read(|| {
            let mode = ClockMode(self.clock_mode.get().cast_signed());
            let cycle_last = self.cycle_last.get();
            let mask = scale.mask.get();
            let mult = scale.mult.get();
            let shift = scale.shift.get();
            let sec = base.sec.get();
            let nsec = base.nsec.get();
            let more = load()?;
            let counter = if mode == ClockMode::MEMORY {
                core::hint::cold_path();
                self.memory_counter.get_moving()
            } else {
                read_counter(mode)?
            };
            Some((
                Precise {
                    counter,
                    cycle_last,
                    mask,
                    mult,
                    shift,
                    sec,
                    nsec,
                },
                more,
            ))
        })?
    }

    /// A coarse clock, or `None` if it cannot be served.
    #[inline(always)] // four loads
    #[must_use]
    pub fn coarse(&self, slot: Slot) -> Option<Coarse> {
        let base = self.base(slot);
        self.seq.read(|| Coarse {
            sec: base.sec.get(),
            nsec: base.nsec.get(),
        })
    }

    /// The resolution of a clock in nanoseconds, or `None` if the page does not serve the clock.
    #[inline(always)] // five loads
    #[must_use]
    pub fn resolution(&self, slot: Slot) -> Option<u32> {
        let base = self.base(slot);
        let resolution = if ClockSet::COARSE.contains(slot.clock().set()) {
            &self.coarse_res
        } else {
            &self.hrtimer_res
        };
        let (resolution, slot) = self
            .seq
            .read(|| (resolution.get(), base.sec.get() | base.nsec.get()))?;
        (resolution != 0 && slot != 0).then_some(resolution)
    }

    /// The timezone, or `None` if the page does not serve it.
    #[inline]
    #[must_use]
    pub fn timezone(&self) -> Option<TimeZone> {
        self.seq.read(|| self.load_timezone())?
    }

    /// The wall clock with the counter and the timezone, from one update.
    #[inline(always)] // as `precise`
    pub fn precise_with_timezone(
        &self,
        read_counter: impl Fn(ClockMode) -> Option<u64>,
    ) -> Option<(Precise, TimeZone)> {
        self.precise_and(Slot::REALTIME, || self.load_timezone(), read_counter)
    }

    #[inline(always)] // three loads
    fn load_timezone(&self) -> Option<TimeZone> {
        let tz = TimeZone {
            minutes_west: self.tz_minuteswest.get().cast_signed(),
            dst_time: self.tz_dsttime.get().cast_signed(),
        };
        (self.hrtimer_res.get() != 0).then_some(tz)
    }

    /// Seconds of the wall clock as of the last update, without the counter, in any clock mode.
    #[inline(always)] // one load, on 64-bit machines
    #[must_use]
    pub fn realtime_seconds(&self) -> Option<i64> {
        let base = self.base(Slot::REALTIME);
        if cfg!(target_pointer_width = "64") {
            // One word is one update. Only 0 needs a second look (is the slot unpublished?), and
            // -1 (is it the writer's way to write 0?).
            let sec = base.sec.get();
            if sec.wrapping_add(1) > 1 {
                return Some(sec.cast_signed());
            }
            core::hint::cold_path();
        }
        let shift = &self.scale(Slot::REALTIME).shift;
        let (sec, nsec, shift) = self
            .seq
            .read(|| (base.sec.get(), base.nsec.get(), shift.get()))?;
        if shift > MAX_SHIFT || (sec | nsec) == 0 {
            return None;
        }
        Some(cycles::carry(sec.cast_signed(), u128::from(nsec), shift)?.secs)
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
            .filter(|&slot| {
                self.coarse(slot)
                    .is_some_and(|base| base.sec | base.nsec != 0)
            })
            .map(|slot| slot.clock().set())
            .collect()
    }

    /// Where a clock's base lies.
    #[inline(always)] // an address
    #[allow(
        clippy::indexing_slicing,
        reason = "a Slot is below 12, and the mask proves it"
    )]
    fn base(&self, slot: Slot) -> &BaseTime<C> {
        const { assert!(crate::layout::BASES == 12) };
        &self.basetime[if slot.index() < 12 { slot.index() } else { 0 }]
    }

    /// Which scale a clock uses.
    #[inline(always)] // an address
    fn scale(&self, slot: Slot) -> &ClockScale<C> {
        let [steered, raw] = &self.cs;
        if slot.clock() == ClockId::MONOTONIC_RAW {
            raw
        } else {
            steered
        }
    }
}

/// Splits a resolution in nanoseconds into a time.
#[inline(always)] // a comparison
#[must_use]
#[allow(
    clippy::arithmetic_side_effects,
    reason = "a division and a remainder by a constant"
)]
pub const fn resolution_time(nanos: u32) -> Time {
    if nanos < NANOS_PER_SEC {
        return Time { secs: 0, nanos };
    }
    core::hint::cold_path();
    Time {
        secs: (nanos / NANOS_PER_SEC) as i64,
        nanos: nanos % NANOS_PER_SEC,
    }
}
