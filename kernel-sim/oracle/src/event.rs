//! What the oracle is told: what the kernel was asked, and what the counter showed.

use crate::published::{Scale, Timestamp};
use crate::watchdog::Verdict;

/// A counter, as the kernel was told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Which one, since two may be alike.
    pub number: usize,
    /// Width and unsteered scale.
    pub scale: Scale,
    /// Cycles a second.
    pub hz: u64,
    /// Whether programs can read it.
    pub is_readable: bool,
    /// Whether it goes on counting in suspend.
    pub is_nonstop: bool,
}

/// A request to the kernel; `now` is the counter's value that came with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The timer interrupt.
    Tick {
        /// The counter.
        now: u64,
    },
    /// REALTIME is set.
    Set {
        /// The counter.
        now: u64,
        /// To this; nanoseconds may be out of range.
        secs: i64,
        /// See `secs`.
        nanos: u32,
    },
    /// REALTIME is moved.
    Inject {
        /// The counter.
        now: u64,
        /// By this many nanoseconds.
        nanos: i128,
    },
    /// The timezone is set.
    Timezone {
        /// Minutes west of Greenwich.
        minutes_west: i32,
        /// Type of DST.
        dst_time: i32,
    },
    /// The frequency is set.
    Frequency {
        /// The counter.
        now: u64,
        /// In 2^-16 ppm.
        scaled_ppm: i64,
    },
    /// The length of a tick is set.
    TickLength {
        /// The counter.
        now: u64,
        /// Microseconds for each hundredth of a second.
        micros: u32,
    },
    /// A phase correction, which leaves the frequency alone.
    Phase {
        /// The counter.
        now: u64,
        /// Nanoseconds to be gained.
        nanos: i64,
        /// The loop's time constant.
        time_constant: u32,
    },
    /// A slew.
    Slew {
        /// The counter.
        now: u64,
        /// Nanoseconds to be gained.
        nanos: i64,
    },
    /// TAI - REALTIME is set.
    Tai {
        /// In seconds.
        secs: i32,
    },
    /// A leap second at the end of the UTC day is requested, or the request withdrawn.
    Leap {
        /// The counter.
        now: u64,
        /// +1: insert, -1: delete, 0: none.
        seconds: i8,
    },
    /// The machine is going to sleep.
    Suspend {
        /// The counter.
        now: u64,
        /// The persistent clock in nanoseconds, if there is one.
        persistent: Option<i128>,
    },
    /// It woke up.
    Resume {
        /// The counter.
        now: u64,
        /// The persistent clock in nanoseconds, if there is one.
        persistent: Option<i128>,
    },
    /// It becomes known how long the machine had slept.
    Slept {
        /// The counter.
        now: u64,
        /// Nanoseconds.
        nanos: i128,
    },
    /// No interrupt will come for a while: the counter may go around meanwhile.
    Idle {
        /// The counter.
        now: u64,
        /// For how long, in nanoseconds.
        expected_ns: u64,
    },
    /// The counter means nothing any more: go on from `now`.
    Rebase {
        /// The counter.
        now: u64,
        /// Nanoseconds since the last update, as another clock has measured them.
        elapsed: i128,
    },
    /// Another counter is taken.
    Switch {
        /// The old counter.
        now: u64,
        /// The new counter.
        source: Source,
        /// The new counter's value at the same moment.
        new_now: u64,
    },
    /// Timers fire between ticks, or only at them.
    HighResolution {
        /// Whether they do.
        on: bool,
    },
    /// The watchdog compared the counter in use with another.
    Watchdog {
        /// The counter.
        now: u64,
        /// The other one.
        reference: Source,
        /// The other one's value at the same moment.
        reference_now: u64,
        /// Time since the last comparison, by the kernel's timers.
        interval_ns: u64,
        /// How much the two may differ.
        margin_ns: u32,
        /// What the kernel says.
        verdict: Verdict,
    },
    /// The observers are in a time namespace from now on.
    Namespace {
        /// What that adds to MONOTONIC, its coarse clock and MONOTONIC_RAW, in nanoseconds.
        monotonic: i128,
        /// What it adds to BOOTTIME.
        boottime: i128,
    },
}

/// The latest and earliest date that the clocks hold: 64 bits of nanoseconds around 1970.
pub(crate) const DATES: std::ops::RangeInclusive<i128> = i64::MIN as i128..=i64::MAX as i128;

impl Event {
    /// Whether a kernel has to refuse it, whatever its state.
    #[must_use]
    pub(crate) fn is_out_of_range(&self) -> bool {
        match *self {
            Self::Set { secs, nanos, .. } => {
                nanos > 999_999_999 || !DATES.contains(&Timestamp { secs, nanos }.nanos())
            }
            Self::Frequency { scaled_ppm, .. } => scaled_ppm.unsigned_abs() > 500 << 16,
            Self::TickLength { micros, .. } => !(9_000..=11_000).contains(&micros),
            Self::Phase { nanos, time_constant, .. } => {
                nanos.unsigned_abs() > 500_000_000 || time_constant > 10
            }
            Self::Slew { nanos, .. } => nanos.unsigned_abs() > 2_147_000_000_000,
            Self::Tai { secs } => secs.unsigned_abs() > 100_000,
            Self::Timezone { minutes_west, .. } => minutes_west.unsigned_abs() > 900,
            Self::Slept { nanos, .. } => nanos < 0,
            Self::Rebase { elapsed, .. } => elapsed < 0,
            _ => false,
        }
    }
}
