//! Leap seconds at the end of a UTC day.
//!
//! An inserted second is told by showing 23:59:59 twice, a deleted one by leaving 23:59:59 out.
//! REALTIME steps, TAI and the other clocks do not.
//!
//! The step is made by the first update after the boundary, so a page shows up to a tick of the
//! second that should have been repeated. [`Timekeeper::cycles_to_leap`] lets a kernel tick right
//! at the boundary instead.

use crate::error::Error;
use crate::timekeeper::Timekeeper;

const SECS_PER_DAY: i64 = 86_400;

/// What shall happen at the end of the UTC day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leap {
    /// A second is inserted: 23:59:60 is shown as a second 23:59:59.
    Insert,
    /// A second is deleted: 00:00:00 follows 23:59:58.
    Delete,
}

impl Leap {
    /// By how much REALTIME steps, in seconds.
    pub(crate) const fn step(self) -> i32 {
        match self {
            Self::Insert => -1,
            Self::Delete => 1,
        }
    }

    /// The first second after `secs` at whose beginning the step is due.
    fn due_after(self, secs: i64) -> i64 {
        let ahead = match self {
            Self::Insert => 0,
            Self::Delete => 1, // 23:59:59 is what is left out
        };
        // From 1 to a whole day away.
        let into_day = secs.saturating_add(ahead).rem_euclid(SECS_PER_DAY);
        secs.saturating_add(SECS_PER_DAY.wrapping_sub(into_day))
    }
}

/// Where a leap second stands.
#[doc(alias = "time_state")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeapState {
    /// None is due (`TIME_OK`).
    #[default]
    None,
    /// One is due (`TIME_INS`, `TIME_DEL`).
    Due {
        /// Which.
        leap: Leap,
        /// The second of REALTIME at whose beginning the step is due.
        at_secs: i64,
    },
    /// The inserted second is running (`TIME_OOP`).
    Inserted,
    /// One has been made; none is due before the request is withdrawn (`TIME_WAIT`).
    Done,
}

impl LeapState {
    /// The step that fell due, now that the second `secs` of REALTIME has begun.
    pub(crate) fn passed(&mut self, secs: i64) -> Option<Leap> {
        match *self {
            // It was ahead when it was requested, and when REALTIME was last set.
            Self::Due { leap, at_secs } if at_secs <= secs => {
                *self = match leap {
                    Leap::Insert => Self::Inserted,
                    Leap::Delete => Self::Done,
                };
                Some(leap)
            }
            Self::Inserted => {
                *self = Self::Done;
                None
            }
            _ => None,
        }
    }

    /// REALTIME was set to the second `secs`: a leap second that is due moves to that day's end.
    pub(crate) fn moved_to(&mut self, secs: i64) {
        if let Self::Due { leap, .. } = *self {
            *self = Self::Due { leap, at_secs: leap.due_after(secs) };
        }
    }
}

impl Timekeeper {
    /// Requests a leap second at the end of the current UTC day, or withdraws the request.
    ///
    /// The request is a level, as `STA_INS` and `STA_DEL` are: once its leap second has been made,
    /// it has to be withdrawn before another one can be requested.
    ///
    /// # Errors
    /// [`Error::Suspended`] or [`Error::Withdrawn`].
    #[doc(alias = "STA_INS")]
    #[doc(alias = "STA_DEL")]
    pub fn set_leap(&mut self, now_cycles: u64, request: Option<Leap>) -> Result<(), Error> {
        self.running()?;
        self.forward(now_cycles);
        self.steer();
        self.leap = match (request, self.leap) {
            (None, _) => LeapState::None,
            (Some(_), state @ (LeapState::Inserted | LeapState::Done)) => state,
            (Some(leap), LeapState::None | LeapState::Due { .. }) => {
                LeapState::Due { leap, at_secs: leap.due_after(self.xtime.secs) }
            }
        };
        Ok(())
    }

    /// In how many cycles after the last update a leap second's step is due, for a kernel that
    /// ticks right then; `None` if none is due.
    #[must_use]
    pub fn cycles_to_leap(&self) -> Option<u64> {
        let LeapState::Due { at_secs, .. } = self.leap else {
            return None;
        };
        let second = u128::from(datapage::NANOS_PER_SEC) << self.shift();
        // A whole number of seconds, at most two days; the multiplier is not 0.
        let secs = at_secs.saturating_sub(self.xtime.secs).unsigned_abs();
        let units =
            second.saturating_mul(u128::from(secs)).saturating_sub(u128::from(self.xtime.shifted));
        u64::try_from(units.div_ceil(u128::from(self.mult.max(1)))).ok()
    }

    /// Where a leap second stands.
    #[must_use]
    pub const fn leap(&self) -> LeapState {
        self.leap
    }
}
