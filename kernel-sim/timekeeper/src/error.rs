//! What a timekeeper refuses, with the limit that holds.
//!
//! Whatever is refused, the timekeeper's state and the page are as they were before the call.

use core::fmt;

use datapage::{Time, UpdateError, cycles::MAX_SHIFT};

use crate::clocksource::{MAX_COUNTER_HZ, MAX_MULT, MIN_COUNTER_HZ, MIN_MULT};
use crate::ntp::{
    MAX_ADJUST_NS, MAX_FREQUENCY, MAX_PHASE_NS, MAX_TICK_USEC, MAX_TIME_CONSTANT, MIN_TICK_USEC,
};
use crate::set::{MAX_MINUTES_WEST, MAX_TAI_OFFSET};
use crate::timekeeper::{MAX_HZ, MAX_PUBLICATION_DELAY_NS};

/// Why a call was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A time whose nanoseconds make a whole second or more.
    Nanos {
        /// The nanoseconds.
        found: u32,
    },
    /// A date that 64 bits of nanoseconds around 1970 cannot hold.
    Date {
        /// The date, in seconds since 1970 (saturated).
        found_secs: i64,
    },
    /// Time spent that is negative.
    Negative {
        /// Its seconds.
        found_secs: i64,
    },
    /// An NTP frequency beyond 500 ppm.
    Frequency {
        /// The frequency, in 2^-16 ppm.
        found: i64,
    },
    /// An NTP tick length beyond 10 %.
    TickLength {
        /// The length, in microseconds for each hundredth of a second.
        found: u32,
    },
    /// An NTP phase offset beyond half a second.
    Phase {
        /// The offset in nanoseconds.
        found: i64,
    },
    /// An NTP time constant above 10.
    TimeConstant {
        /// The time constant.
        found: u32,
    },
    /// A slew that is too long.
    Adjust {
        /// The slew in nanoseconds.
        found: i64,
    },
    /// A distance from UTC to TAI that never was and never will be.
    TaiOffset {
        /// The distance in seconds.
        found: i32,
    },
    /// A timezone more than 15 hours from Greenwich.
    Timezone {
        /// Its minutes west.
        found: i32,
    },
    /// A tick rate that is zero or too high.
    TickRate {
        /// The rate in hertz.
        found: u32,
    },
    /// A publication delay that would make each change of rate visible.
    PublicationDelay {
        /// The delay in nanoseconds.
        found: u32,
    },
    /// A counter that is too slow or too fast.
    CounterRate {
        /// The rate in hertz.
        found: u64,
    },
    /// A counter mask that is not 2^n - 1, or leaves no range.
    Mask {
        /// The mask.
        found: u64,
    },
    /// A scale that a page cannot hold, or that NTP cannot steer by 11 % within 32 bits.
    Scale {
        /// The multiplier.
        mult: u32,
        /// The shift.
        shift: u32,
    },
    /// The machine is suspended: only [`resume`](crate::Timekeeper::resume) makes sense now.
    Suspended,
    /// The machine is not suspended.
    NotSuspended,
    /// The counter was withdrawn for a long idle period: only
    /// [`rebase`](crate::Timekeeper::rebase) makes sense now.
    Withdrawn,
    /// The page refuses the values: a defect of this crate.
    Page(UpdateError),
}

impl From<UpdateError> for Error {
    fn from(error: UpdateError) -> Self {
        Self::Page(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Nanos { found } => {
                write!(f, "nanoseconds {found} are not below 1000000000, a whole second")
            }
            Self::Date { found_secs } => write!(
                f,
                "the date {found_secs} s from 1970 is outside 1677-09-21T00:12:44Z to \
                 2262-04-11T23:47:16Z, what 64 bits of nanoseconds hold"
            ),
            Self::Negative { found_secs } => {
                write!(f, "a time of {found_secs} s cannot have gone by")
            }
            Self::Frequency { found } => write!(
                f,
                "frequency {found} is outside -{MAX_FREQUENCY} to {MAX_FREQUENCY} (2^-16 ppm), \
                 that is 500 ppm"
            ),
            Self::TickLength { found } => {
                write!(f, "tick length {found} us is outside {MIN_TICK_USEC} to {MAX_TICK_USEC}")
            }
            Self::Phase { found } => {
                write!(f, "phase offset {found} ns is outside -{MAX_PHASE_NS} to {MAX_PHASE_NS}")
            }
            Self::TimeConstant { found } => {
                write!(f, "time constant {found} is above {MAX_TIME_CONSTANT}")
            }
            Self::Adjust { found } => {
                write!(f, "slew {found} ns is outside -{MAX_ADJUST_NS} to {MAX_ADJUST_NS}")
            }
            Self::TaiOffset { found } => {
                write!(f, "TAI offset {found} s is outside -{MAX_TAI_OFFSET} to {MAX_TAI_OFFSET}")
            }
            Self::Timezone { found } => write!(
                f,
                "timezone {found} minutes west is outside -{MAX_MINUTES_WEST} to \
                 {MAX_MINUTES_WEST}"
            ),
            Self::TickRate { found } => write!(f, "tick rate {found} Hz is outside 1 to {MAX_HZ}"),
            Self::PublicationDelay { found } => {
                write!(f, "publication delay {found} ns is above {MAX_PUBLICATION_DELAY_NS}")
            }
            Self::CounterRate { found } => {
                write!(f, "counter rate {found} Hz is outside {MIN_COUNTER_HZ} to {MAX_COUNTER_HZ}")
            }
            Self::Mask { found } => {
                write!(f, "mask {found:#x} is not 2^n - 1 with n from 8 to 64")
            }
            Self::Scale { mult, shift } => write!(
                f,
                "scale {mult} / 2^{shift} needs a shift of at most {MAX_SHIFT} and a multiplier from \
                 {MIN_MULT} to {MAX_MULT}"
            ),
            Self::Suspended => f.write_str("the machine is suspended"),
            Self::NotSuspended => f.write_str("the machine is not suspended"),
            Self::Withdrawn => f.write_str("the counter is withdrawn for a long idle period"),
            Self::Page(error) => write!(f, "the page refuses an update: {error}"),
        }
    }
}

// No source: what the page says is part of the text already, and a report of the chain would say it
// twice.
impl core::error::Error for Error {}

/// `time`, if its nanoseconds are those of one second.
pub(crate) const fn checked(time: Time) -> Result<Time, Error> {
    if time.nanos >= datapage::NANOS_PER_SEC {
        return Err(Error::Nanos { found: time.nanos });
    }
    Ok(time)
}
