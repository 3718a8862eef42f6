//! The timekeeper's state, and how it moves with the counter.
//!
//! REALTIME is kept as a line: its position at the counter value `cycle_last`, in the unit of the
//! page, and the multiplier at which it goes on. MONOTONIC, BOOTTIME and TAI are the same line at a
//! distance of whole nanoseconds or seconds, so all four share the bits below the nanosecond, and
//! setting one cannot move another by a fraction. RAW is a line of its own, because it has another
//! multiplier.
//!
//! Each call first moves both lines to the counter value that it is given, with one exact product,
//! however long that is, and at the multipliers that the page has shown meanwhile: what readers have
//! seen is what happened. Only then does it change what it is to change. The account of NTP's
//! wishes, its corrections, and a leap second follow from the same product and from the seconds of
//! REALTIME that have begun; none of them needs a loop over ticks or seconds
//! (`docs/decisions/0011-one-step-accumulation.md`).

use datapage::{ClockId, Time, TimeZone, cycles::elapsed_cycles};

use crate::clocksource::Clocksource;
use crate::error::Error;
use crate::leap::LeapState;
use crate::line::Line;
use crate::ntp::{Ntp, NtpState, Rates};
use crate::set::date;
use crate::sleep::Persistent;

/// Highest tick rate, in hertz.
pub const MAX_HZ: u32 = 10_000;
/// Longest publication delay that may be asked for, in nanoseconds.
pub const MAX_PUBLICATION_DELAY_NS: u32 = 100_000_000;
/// Publication delay of [`Config::default`], in nanoseconds: an interrupt handler's, with room for
/// interrupts that mask it not.
pub const DEFAULT_PUBLICATION_DELAY_NS: u32 = 50_000;

/// What a timekeeper must know of its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Ticks a second: the resolution of the coarse clocks.
    pub hz: u32,
    /// Whether timers fire between ticks: the precise clocks' resolution is then 1 ns, else a tick.
    pub high_resolution: bool,
    /// Within how many nanoseconds of the counter value that a call is given its result is in the
    /// page. As long as this holds, a change of rate never makes a clock step back; see
    /// [`steer`](crate::steer).
    pub publication_delay_ns: u32,
}

impl Default for Config {
    /// 250 Hz, high resolution, a publication within 50 microseconds.
    fn default() -> Self {
        Self { hz: 250, high_resolution: true, publication_delay_ns: DEFAULT_PUBLICATION_DELAY_NS }
    }
}

/// Whether the counter's distance from `cycle_last` means anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// It does.
    Running,
    /// It may have gone around before anybody looks again.
    Withdrawn {
        /// By how much the clocks were stopped ahead of the counter.
        ahead: Time,
    },
    /// The machine sleeps.
    Suspended,
}

/// A machine's clocks.
///
/// Plain values and arithmetic: no lock, no allocation, no access to the page or to a counter.
/// Each call that depends on the time is given the counter's value, read as late as possible, and
/// either does all that it is asked or nothing. [`update_vsyscall`](crate::update_vsyscall)
/// publishes the outcome, and [`Published`](crate::Published) does so after each change.
///
/// # Invariants
/// `xtime` and `raw` are lines in the clocksource's shift, at the counter value `cycle_last`;
/// `wall_to_monotonic` and `monotonic_to_boot` are normalised; `mult` is within 11 % of the
/// clocksource's.
#[doc(alias = "tk_core")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timekeeper {
    pub(crate) clocksource: Clocksource,
    pub(crate) cycle_last: u64,
    /// The steered multiplier.
    pub(crate) mult: u32,
    /// REALTIME.
    pub(crate) xtime: Line,
    /// MONOTONIC_RAW.
    pub(crate) raw: Line,
    /// MONOTONIC - REALTIME.
    pub(crate) wall_to_monotonic: Time,
    /// BOOTTIME - MONOTONIC: the time spent in suspend.
    pub(crate) monotonic_to_boot: Time,
    /// TAI - REALTIME, in seconds.
    pub(crate) tai_offset: i32,
    pub(crate) ntp: Ntp,
    /// The rates of `ntp` for this clocksource.
    pub(crate) rates: Rates,
    /// By how much the clock is behind what `ntp` wants, in 2^-66 ns.
    pub(crate) error: i128,
    pub(crate) leap: LeapState,
    pub(crate) trust: Trust,
    pub(crate) persistent: Persistent,
    /// The publication delay in cycles.
    pub(crate) delay_cycles: u64,
    pub(crate) config: Config,
    pub(crate) timezone: TimeZone,
}

/// What a tick did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tick {
    /// The clocks moved forward.
    Advanced {
        /// By this many cycles.
        cycles: u64,
    },
    /// The counter is behind the last update (another CPU's is ahead, or it stepped back), or has
    /// moved by more than half of its range; the clocks stand still. If it stays so, the kernel
    /// says with [`Timekeeper::rebase`] how much time went by.
    Behind {
        /// By this many cycles, if it is behind.
        cycles: u64,
    },
    /// The counter is withdrawn or the machine suspended; nothing was done.
    Stopped,
}

impl Timekeeper {
    /// Clocks that start now: REALTIME at `realtime`, all others at 0, TAI equal to REALTIME.
    ///
    /// # Errors
    /// [`Error::Nanos`], [`Error::Date`], [`Error::TickRate`], [`Error::PublicationDelay`].
    pub fn new(
        clocksource: Clocksource,
        now_cycles: u64,
        realtime: Time,
        config: Config,
    ) -> Result<Self, Error> {
        let realtime = date(realtime)?;
        check(config)?;
        let zero = Time { secs: 0, nanos: 0 };
        let shift = clocksource.scale().shift;
        let mult = clocksource.scale().mult;
        let ntp = Ntp::new();
        Ok(Self {
            clocksource,
            cycle_last: now_cycles & clocksource.mask(),
            mult,
            xtime: Line::at(realtime, shift),
            raw: Line::at(zero, shift),
            wall_to_monotonic: crate::set::minus(zero, realtime),
            monotonic_to_boot: zero,
            tai_offset: 0,
            ntp,
            rates: ntp.rates(mult),
            error: 0,
            leap: LeapState::None,
            trust: Trust::Running,
            persistent: Persistent::default(),
            delay_cycles: delay_cycles(&clocksource, config),
            config,
            timezone: TimeZone::default(),
        })
    }

    /// Moves the clocks to `now_cycles`, and steers them.
    ///
    /// Ticks may come late, in bursts, or not at all: each one accounts for all the time since the
    /// last, exactly and in a fixed number of steps.
    #[doc(alias = "timekeeping_advance")]
    #[doc(alias = "update_wall_time")]
    pub fn tick(&mut self, now_cycles: u64) -> Tick {
        if self.trust != Trust::Running {
            return Tick::Stopped;
        }
        let cycles = self.forward(now_cycles);
        if cycles == 0 {
            let behind = self.cycle_last.wrapping_sub(now_cycles) & self.clocksource.mask();
            return if behind == 0 {
                Tick::Advanced { cycles: 0 }
            } else {
                Tick::Behind { cycles: behind }
            };
        }
        self.steer();
        Tick::Advanced { cycles }
    }

    /// What `clock` shows at `now_cycles`: what the kernel answers to a system call. `None` for a
    /// clock that a timekeeper does not keep.
    ///
    /// It is what a read of the page gives, to the nanosecond, if the page is up to date. While the
    /// counter is withdrawn or the machine suspended, the page's precise clocks fall back, and here
    /// they stand.
    #[must_use]
    pub fn read(&self, clock: ClockId, now_cycles: u64) -> Option<Time> {
        let scale = self.clocksource.scale();
        let (line, mult) = match clock {
            ClockId::REALTIME => (self.xtime, self.mult),
            ClockId::MONOTONIC => (self.monotonic(), self.mult),
            ClockId::BOOTTIME => (self.boottime(), self.mult),
            ClockId::TAI => (self.tai(), self.mult),
            ClockId::MONOTONIC_RAW => (self.raw, scale.mult),
            ClockId::REALTIME_COARSE => return Some(self.xtime.time(scale.shift)),
            ClockId::MONOTONIC_COARSE => return Some(self.monotonic().time(scale.shift)),
            _ => return None,
        };
        let cycles = if self.trust == Trust::Running {
            elapsed_cycles(now_cycles, self.cycle_last, scale.mask)
        } else {
            0
        };
        Some(line.plus(product(cycles, mult), scale.shift).time(scale.shift))
    }

    /// What NTP currently does.
    #[must_use]
    pub fn ntp(&self) -> NtpState {
        self.ntp.state()
    }

    /// TAI - REALTIME, in seconds.
    #[must_use]
    pub const fn tai_offset(&self) -> i32 {
        self.tai_offset
    }

    /// The counter.
    #[must_use]
    pub const fn clocksource(&self) -> &Clocksource {
        &self.clocksource
    }

    /// The counter at the last update.
    #[must_use]
    pub const fn cycle_last(&self) -> u64 {
        self.cycle_last
    }

    /// The steered multiplier.
    #[must_use]
    pub const fn mult(&self) -> u32 {
        self.mult
    }

    /// What was configured, with the changes since.
    #[must_use]
    pub const fn config(&self) -> Config {
        self.config
    }

    /// The timezone.
    #[must_use]
    pub const fn timezone(&self) -> TimeZone {
        self.timezone
    }

    pub(crate) fn monotonic(&self) -> Line {
        self.xtime.offset(self.wall_to_monotonic, self.clocksource.scale().shift)
    }

    pub(crate) fn boottime(&self) -> Line {
        self.monotonic().offset(self.monotonic_to_boot, self.clocksource.scale().shift)
    }

    pub(crate) fn tai(&self) -> Line {
        Line { secs: self.xtime.secs.saturating_add(i64::from(self.tai_offset)), ..self.xtime }
    }

    /// Moves the clocks to `now_cycles` at the rates that the page has; how many cycles that was.
    #[doc(alias = "timekeeping_forward_now")]
    pub(crate) fn forward(&mut self, now_cycles: u64) -> u64 {
        let cycles = elapsed_cycles(now_cycles, self.cycle_last, self.clocksource.mask());
        self.pass(cycles);
        cycles
    }

    /// Lets `cycles` go by, at the rates that the page has.
    pub(crate) fn pass(&mut self, cycles: u64) {
        if cycles == 0 {
            return;
        }
        let scale = self.clocksource.scale();
        self.cycle_last = self.cycle_last.wrapping_add(cycles) & scale.mask;
        self.raw = self.raw.plus(product(cycles, scale.mult), scale.shift);
        self.ntp.elapsed(cycles, self.rates, scale.shift);
        self.account(cycles, self.mult);
        self.advance_xtime(product(cycles, self.mult));
    }

    /// Moves REALTIME, and with it the clocks that follow it, by `by` units of 2^-shift ns.
    pub(crate) fn advance_xtime(&mut self, by: u128) {
        let before = self.xtime.secs;
        self.xtime = self.xtime.plus(by, self.clocksource.scale().shift);
        if self.xtime.secs != before {
            self.seconds_began();
        }
    }

    /// One or more seconds of REALTIME have begun.
    fn seconds_began(&mut self) {
        if let Some(leap) = self.leap.passed(self.xtime.secs) {
            let step = i64::from(leap.step());
            self.xtime.secs = self.xtime.secs.saturating_add(step);
            self.wall_to_monotonic.secs = self.wall_to_monotonic.secs.saturating_sub(step);
            self.tai_offset = self.tai_offset.saturating_sub(leap.step());
        }
        self.ntp.second();
        self.rates = self.ntp.rates(self.clocksource.scale().mult);
    }

    /// The counter can be used, and `self` changed.
    pub(crate) const fn running(&self) -> Result<(), Error> {
        match self.trust {
            Trust::Running => Ok(()),
            Trust::Withdrawn { .. } => Err(Error::Withdrawn),
            Trust::Suspended => Err(Error::Suspended),
        }
    }
}

/// Cycles in units of 2^-shift ns.
pub(crate) fn product(cycles: u64, mult: u32) -> u128 {
    u128::from(cycles).wrapping_mul(u128::from(mult)) // below 2^96
}

/// Refuses what no timekeeper can be configured to.
pub(crate) const fn check(config: Config) -> Result<(), Error> {
    if config.hz == 0 || config.hz > MAX_HZ {
        return Err(Error::TickRate { found: config.hz });
    }
    if config.publication_delay_ns > MAX_PUBLICATION_DELAY_NS {
        return Err(Error::PublicationDelay { found: config.publication_delay_ns });
    }
    Ok(())
}

/// The publication delay in cycles, rounded up.
pub(crate) fn delay_cycles(clocksource: &Clocksource, config: Config) -> u64 {
    // At most 10^12 * 10^8 / 10^9.
    let cycles = u128::from(clocksource.hz())
        .wrapping_mul(u128::from(config.publication_delay_ns))
        .div_ceil(u128::from(datapage::NANOS_PER_SEC));
    u64::try_from(cycles).unwrap_or(u64::MAX)
}
