//! A complete update, and which ones are refused.
//!
//! Between the two bumps of `seq` nothing may fail, so everything that can be wrong with an update
//! is found before: [`PageValues`] is what a timekeeper fills in, [`Update`] is one that passed,
//! already in the words that the page will hold.

use core::fmt;

use crate::clocks::{ClockId, ClockMode, ClockSet, Slot};
use crate::cycles::{MAX_SHIFT, NANOS_PER_SEC};
use crate::layout::BASES;

/// A counter's scale: `ns = cycles * mult / 2^shift`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scale {
    /// Width of the counter: 2^bits - 1. Cycles are taken modulo `mask + 1`.
    pub mask: u64,
    /// Nanoseconds a cycle, times 2^shift. 0 freezes the clock.
    pub mult: u32,
    /// 0..=34.
    pub shift: u32,
}

/// A clock's value at the update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instant {
    /// Seconds, rounded towards minus infinity.
    pub secs: i64,
    /// Nanoseconds of the second: for a precise clock shifted left by its scale's `shift` and below
    /// 10^9 << shift, for a coarse one plain and below 10^9.
    pub nanos: u64,
}

/// What `settimeofday` last set; a page hands it through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeZone {
    /// Minutes west of Greenwich.
    pub minutes_west: i32,
    /// Obsolete; programs expect what was set.
    pub dst_time: i32,
}

/// Everything that an update writes, as a timekeeper fills it in.
///
/// The default publishes nothing. Fields may be set freely; [`validate`](Self::validate) judges.
#[doc(alias = "timekeeper")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageValues {
    /// How the counter is read.
    pub clock_mode: ClockMode,
    /// The counter at the instants below, in cycles.
    pub cycle_last: u64,
    /// Scale of REALTIME, MONOTONIC, BOOTTIME and TAI (`cs[0]`).
    pub steered: Scale,
    /// Scale of MONOTONIC_RAW (`cs[1]`).
    pub raw: Scale,
    /// Resolution of the precise clocks in nanoseconds; 0 leaves getres and timezone unserved.
    pub hrtimer_res: u32,
    /// Resolution of the coarse clocks in nanoseconds (the tick); 0 leaves their getres unserved.
    pub coarse_res: u32,
    /// The instant of each clock at `cycle_last`, by clock id; `None` leaves it to the fallback.
    pub instants: [Option<Instant>; BASES],
}

impl Default for PageValues {
    fn default() -> Self {
        Self {
            clock_mode: ClockMode::NONE,
            cycle_last: 0,
            steered: Scale::default(),
            raw: Scale::default(),
            hrtimer_res: 0,
            coarse_res: 0,
            instants: [None; BASES],
        }
    }
}

impl PageValues {
    /// Publishes `clock` at `instant`.
    ///
    /// A clock that no page serves is kept as well, for [`validate`](Self::validate) to refuse.
    #[inline]
    pub fn set(&mut self, clock: ClockId, instant: Instant) {
        if let Some(place) = self.place(clock) {
            *place = Some(instant);
        }
    }

    /// Leaves `clock` to the fallback.
    #[inline]
    pub fn clear(&mut self, clock: ClockId) {
        if let Some(place) = self.place(clock) {
            *place = None;
        }
    }

    /// The instant at which `clock` is published.
    #[must_use]
    pub fn get(&self, clock: ClockId) -> Option<Instant> {
        *self.instants.get(usize::try_from(clock.0).ok()?)?
    }

    #[inline]
    fn place(&mut self, clock: ClockId) -> Option<&mut Option<Instant>> {
        self.instants.get_mut(usize::try_from(clock.0).ok()?)
    }

    /// The update with these values.
    ///
    /// # Errors
    /// The first rule that the values break, with the limit that holds.
    #[inline]
    pub fn validate(&self) -> Result<Update, UpdateError> {
        for scale in [self.steered, self.raw] {
            if scale.shift > MAX_SHIFT {
                return Err(UpdateError::Shift { found: scale.shift });
            }
            if scale.mask & scale.mask.wrapping_add(1) != 0 {
                return Err(UpdateError::Mask { found: scale.mask });
            }
        }
        let mut words = [(0, 0); BASES];
        for ((id, instant), word) in (0..).zip(self.instants).zip(&mut words) {
            if let Some(instant) = instant {
                *word = self.words_of(ClockId(id), instant)?;
            }
        }
        Ok(Update { values: *self, words })
    }

    /// The two words that represent `instant` in the slot of `clock`.
    #[inline]
    fn words_of(&self, clock: ClockId, instant: Instant) -> Result<(u64, u64), UpdateError> {
        let Some(shift) = self.shift_of(clock) else {
            return Err(UpdateError::Clock { found: clock });
        };
        // At most 10^9 << 34, which fits.
        let second = u64::from(NANOS_PER_SEC) << shift;
        if instant.nanos >= second {
            return Err(UpdateError::Nanos { clock, found: instant.nanos, limit: second });
        }
        if (instant.secs, instant.nanos) == (0, 0) {
            // {0, 0} would be read as unpublished; the same instant has one other spelling.
            return Ok((u64::MAX, second));
        }
        Ok((instant.secs.cast_unsigned(), instant.nanos))
    }

    /// By how much the nanoseconds of `clock` are shifted, `None` for a clock that is not served.
    #[inline]
    fn shift_of(&self, clock: ClockId) -> Option<u32> {
        let slot: Slot = clock.slot()?;
        Some(if ClockSet::COARSE.contains(slot.clock().set()) {
            0
        } else if slot.clock() == ClockId::MONOTONIC_RAW {
            self.raw.shift
        } else {
            self.steered.shift
        })
    }
}

/// A complete, validated update: publishing it cannot fail.
///
/// # Invariants
/// Both shifts are at most 34, both masks are of the form 2^n - 1, every published instant belongs
/// to a served clock and lies within its second, or is the writer's spelling of 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    values: PageValues,
    words: [(u64, u64); BASES],
}

impl Default for Update {
    /// An update that publishes nothing.
    fn default() -> Self {
        // INVARIANT: shifts and masks are 0, and no instant is published.
        Self { values: PageValues::default(), words: [(0, 0); BASES] }
    }
}

impl Update {
    /// The values that were validated.
    #[must_use]
    #[inline]
    pub const fn values(&self) -> &PageValues {
        &self.values
    }

    /// The words of `basetime`, in the order of clock ids.
    #[inline]
    pub(crate) const fn words(&self) -> &[(u64, u64); BASES] {
        &self.words
    }
}

/// Why an update was refused. The page and its sequence number are untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpdateError {
    /// A shift above 34.
    Shift {
        /// The shift.
        found: u32,
    },
    /// A mask that is not 2^n - 1.
    Mask {
        /// The mask.
        found: u64,
    },
    /// An instant for a clock that no page serves.
    Clock {
        /// The clock.
        found: ClockId,
    },
    /// Nanoseconds of a whole second or more.
    Nanos {
        /// The clock.
        clock: ClockId,
        /// The nanoseconds, shifted as the clock's are.
        found: u64,
        /// The first value that is too large.
        limit: u64,
    },
}

impl fmt::Display for UpdateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Shift { found } => {
                write!(
                    f,
                    "shift {found} is above {MAX_SHIFT}, the largest for which a second fits in 64 bits"
                )
            }
            Self::Mask { found } => {
                write!(f, "mask {found:#x} is not of the form 2^n - 1")
            }
            Self::Clock { found } => {
                write!(
                    f,
                    "clock {} has no slot in a page; served are 0, 1, 4, 5, 6, 7 and 11",
                    found.0
                )
            }
            Self::Nanos { clock, found, limit } => {
                write!(
                    f,
                    "nanoseconds {found} of clock {} are not below {limit}, one second in its scale",
                    clock.0
                )
            }
        }
    }
}

impl core::error::Error for UpdateError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString as _;

    fn values() -> PageValues {
        let mut values = PageValues {
            clock_mode: ClockMode::COUNTER,
            steered: Scale { mask: u64::MAX, mult: 1, shift: 34 },
            raw: Scale { mask: 0xffff_ffff, mult: 1, shift: 8 },
            ..PageValues::default()
        };
        values.set(ClockId::REALTIME, Instant { secs: -1, nanos: (1_000_000_000 << 34) - 1 });
        values
    }

    #[test]
    fn each_limit_is_the_last_value_that_passes() {
        assert!(values().validate().is_ok());
        let mut shift = values();
        shift.steered.shift = 35;
        assert_eq!(shift.validate(), Err(UpdateError::Shift { found: 35 }));
        let mut mask = values();
        mask.raw.mask = 0xffff_fffe;
        assert_eq!(mask.validate(), Err(UpdateError::Mask { found: 0xffff_fffe }));
        let mut raw = values();
        raw.set(ClockId::MONOTONIC_RAW, Instant { secs: 1, nanos: 1_000_000_000 << 8 });
        assert!(matches!(raw.validate(), Err(UpdateError::Nanos { limit: 256_000_000_000, .. })));
        let mut coarse = values();
        coarse.set(ClockId::MONOTONIC_COARSE, Instant { secs: 1, nanos: 1_000_000_000 });
        assert!(matches!(coarse.validate(), Err(UpdateError::Nanos { limit: 1_000_000_000, .. })));
        for id in [2, 3, 8, 9, 10] {
            let mut values = values();
            values.set(ClockId(id), Instant { secs: 1, nanos: 0 });
            assert_eq!(values.validate(), Err(UpdateError::Clock { found: ClockId(id) }));
        }
    }

    #[test]
    fn zero_is_published_in_the_only_other_way_to_write_it() {
        let mut values = values();
        values.set(ClockId::TAI, Instant { secs: 0, nanos: 0 });
        values.set(ClockId::REALTIME_COARSE, Instant { secs: 0, nanos: 0 });
        let update = values.validate().unwrap();
        assert_eq!(update.words()[11], (u64::MAX, 1_000_000_000 << 34));
        assert_eq!(update.words()[5], (u64::MAX, 1_000_000_000));
        assert_eq!(update.words()[7], (0, 0), "an unpublished clock stays {{0, 0}}");
    }

    #[test]
    fn errors_name_the_limit() {
        let error = UpdateError::Shift { found: 40 }.to_string();
        assert!(error.contains("40") && error.contains("34"), "{error}");
    }
}
