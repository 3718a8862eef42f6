//! Times in which nobody looks at the counter: suspend, and idle periods that are too long for it.
//!
//! | | MONOTONIC, RAW | REALTIME, TAI, BOOTTIME |
//! |---|---|---|
//! | suspend | stand still | move on by the time slept |
//! | idle | move on | move on |
//!
//! While the machine is suspended the page's precise clocks are withdrawn (mode NONE). Programs are
//! frozen then, so on most machines nobody would notice; but a counter that goes on counting would
//! let whoever does read the page see MONOTONIC move on, and step back after the resume.
//!
//! For the same reason the clocks do not stop where the counter was when the kernel read it, but
//! where it will be when nobody reads the old page any more: after the delay that
//! [`steer`](crate::steer) has for a change of rate. A stop is a change of rate to nothing.
//!
//! A counter of `n` bits tells apart a move forward from one backward as long as it moved by less
//! than half of its range. [`Timekeeper::max_idle_ns`] is that time with a margin of an eighth. A
//! kernel that stops its ticks for longer says so with [`Timekeeper::enter_idle`]; the precise
//! clocks are withdrawn, and afterwards [`Timekeeper::rebase`] goes on with the time that another
//! clock has measured.

use datapage::cycles::elapsed_cycles;
use datapage::{NANOS_PER_SEC, Time};

use crate::error::{Error, checked};
use crate::set::{minus, plus};
use crate::timekeeper::{Timekeeper, Trust, product};

/// What measured the time slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepClock {
    /// The clocksource, which went on counting.
    Counter,
    /// A persistent clock that was read before and after.
    Persistent,
    /// Nothing: the clocks go on where they were. Whoever learns the time later injects it with
    /// [`Timekeeper::inject_sleep`].
    None,
}

/// How long the machine was suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slept {
    /// The time by which BOOTTIME, REALTIME and TAI moved on.
    pub time: Time,
    /// What measured it.
    pub clock: SleepClock,
}

/// Whether the page serves precise clocks through an idle period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// It does: the counter can be trusted at its end.
    Served,
    /// It does not: [`Timekeeper::rebase`] has to end the period.
    Withdrawn,
}

/// The persistent clock before a suspend, and the wall clock's distance from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Persistent {
    /// The wall clock minus the persistent clock, as of the first suspend of a series.
    distance: Option<Time>,
    /// The persistent clock at the suspend, corrected so that `distance` holds.
    suspended_at: Option<Time>,
}

impl Timekeeper {
    /// The machine is about to be suspended. `persistent` is a clock that goes on meanwhile, if
    /// there is one; it may be as coarse as a second.
    ///
    /// # Errors
    /// [`Error::Nanos`], [`Error::Suspended`], [`Error::Withdrawn`].
    #[doc(alias = "timekeeping_suspend")]
    pub fn suspend(&mut self, now_cycles: u64, persistent: Option<Time>) -> Result<(), Error> {
        self.running()?;
        let persistent = persistent.map(checked).transpose()?;
        self.forward(now_cycles);
        let wall = self.xtime.time(self.shift());
        let delay = self.stop(|_| Trust::Suspended);
        self.persistent.suspended_at =
            persistent.map(|read| plus(self.persistent.correct(read, wall), delay));
        Ok(())
    }

    /// The machine was resumed. The time slept is what the clocksource says if it is nonstop, or
    /// else `persistent`, the same clock as before.
    ///
    /// # Errors
    /// [`Error::Nanos`], [`Error::NotSuspended`].
    #[doc(alias = "timekeeping_resume")]
    pub fn resume(&mut self, now_cycles: u64, persistent: Option<Time>) -> Result<Slept, Error> {
        if self.trust != Trust::Suspended {
            return Err(Error::NotSuspended);
        }
        let persistent = persistent.map(checked).transpose()?;
        let slept = self.time_slept(now_cycles, persistent);
        self.cycle_last = now_cycles & self.clocksource.mask();
        self.trust = Trust::Running;
        self.add_sleep(slept.time);
        self.steer();
        Ok(slept)
    }

    /// Adds to BOOTTIME, REALTIME and TAI a time in suspend that became known only later.
    ///
    /// # Errors
    /// [`Error::Nanos`], [`Error::Negative`], [`Error::Suspended`], [`Error::Withdrawn`].
    #[doc(alias = "timekeeping_inject_sleeptime64")]
    pub fn inject_sleep(&mut self, now_cycles: u64, slept: Time) -> Result<(), Error> {
        self.running()?;
        let slept = not_negative(slept)?;
        self.forward(now_cycles);
        self.add_sleep(slept);
        self.steer();
        Ok(())
    }

    /// The longest time without a tick after which the counter can be trusted, in nanoseconds.
    #[doc(alias = "timekeeping_max_deferment")]
    #[must_use]
    pub fn max_idle_ns(&self) -> u64 {
        self.clocksource.max_idle_ns()
    }

    /// The next tick is `expected_ns` away, or nobody knows how far (`None`).
    ///
    /// # Errors
    /// [`Error::Suspended`], [`Error::Withdrawn`].
    pub fn enter_idle(&mut self, now_cycles: u64, expected_ns: Option<u64>) -> Result<Idle, Error> {
        self.running()?;
        self.forward(now_cycles);
        if expected_ns.is_some_and(|expected| expected <= self.max_idle_ns()) {
            self.steer();
            return Ok(Idle::Served);
        }
        self.stop(|ahead| Trust::Withdrawn { ahead });
        Ok(Idle::Withdrawn)
    }

    /// Goes on from `now_cycles`, whatever the counter was before: after an idle period for which
    /// it was withdrawn, after a step of the counter, after a gap longer than half of its range.
    ///
    /// All clocks move on by `elapsed`, the time since the last update as another clock has measured
    /// it; 0 if nobody knows. It has to be at least what the old page has shown to readers, or they
    /// see a step back: after [`enter_idle`](Self::enter_idle) withdrew the counter any value will
    /// do, after a gap it is the true time, and after a step back of the counter anything from 0.
    ///
    /// # Errors
    /// [`Error::Nanos`], [`Error::Negative`], [`Error::Suspended`].
    pub fn rebase(&mut self, now_cycles: u64, elapsed: Time) -> Result<(), Error> {
        if self.trust == Trust::Suspended {
            return Err(Error::Suspended);
        }
        let mut elapsed = not_negative(elapsed)?;
        if let Trust::Withdrawn { ahead } = self.trust {
            let zero = Time { secs: 0, nanos: 0 };
            elapsed = minus(elapsed, ahead).max(zero);
        }
        self.trust = Trust::Running;
        self.cycle_last = now_cycles & self.clocksource.mask();
        let shift = self.shift();
        self.raw = self.raw.offset(elapsed, shift);
        self.advance_xtime(shifted(elapsed, shift));
        self.steer();
        Ok(())
    }

    /// Stops the clocks at the last counter value of which a reader of the old page may have made a
    /// time; how much later that is than the counter value that the kernel read.
    fn stop(&mut self, why: impl FnOnce(Time) -> Trust) -> Time {
        let before = self.monotonic().time(self.shift());
        self.pass(self.delay_cycles);
        let delay = minus(self.monotonic().time(self.shift()), before);
        self.trust = why(delay);
        delay
    }

    fn time_slept(&self, now_cycles: u64, persistent: Option<Time>) -> Slept {
        let scale = self.clocksource.scale();
        let by_persistent = match (self.persistent.suspended_at, persistent) {
            (Some(before), Some(after)) if after >= before => Some(minus(after, before)),
            _ => None,
        };
        let longest = nanos_to_time(self.max_idle_ns());
        // A counter that went around while the machine slept says too little.
        if self.clocksource.is_nonstop() && by_persistent.is_none_or(|slept| slept <= longest) {
            let cycles = elapsed_cycles(now_cycles, self.cycle_last, scale.mask);
            let zero = crate::line::Line { secs: 0, shifted: 0 };
            return Slept {
                time: zero.plus(product(cycles, scale.mult), scale.shift).time(scale.shift),
                clock: SleepClock::Counter,
            };
        }
        by_persistent
            .map_or(Slept { time: Time { secs: 0, nanos: 0 }, clock: SleepClock::None }, |time| {
                Slept { time, clock: SleepClock::Persistent }
            })
    }

    fn add_sleep(&mut self, slept: Time) {
        self.monotonic_to_boot = plus(self.monotonic_to_boot, slept);
        self.wall_to_monotonic = minus(self.wall_to_monotonic, slept);
        self.advance_xtime(shifted(slept, self.shift()));
    }
}

impl Persistent {
    /// The persistent clock at a suspend, as it would read if the wall clock had kept its distance.
    ///
    /// A clock of whole seconds is up to a second early at each read, and a machine that sleeps
    /// often would gather those errors. The distance of the first suspend is kept instead, as long
    /// as it is off by less than two seconds: by more, one of the two clocks was set.
    fn correct(&mut self, read: Time, wall: Time) -> Time {
        let distance = minus(wall, read);
        if let Some(kept) = self.distance
            && (-2..2).contains(&minus(distance, kept).secs)
        {
            return minus(wall, kept);
        }
        self.distance = Some(distance);
        read
    }
}

/// A time that is not negative in units of 2^-shift ns.
fn shifted(time: Time, shift: u32) -> u128 {
    // Below 2^63 * 2^30 * 2^34.
    u128::from(time.secs.unsigned_abs())
        .wrapping_mul(u128::from(NANOS_PER_SEC))
        .wrapping_add(u128::from(time.nanos))
        << shift
}

fn nanos_to_time(nanos: u64) -> Time {
    let (secs, nanos) = datapage::cycles::split_seconds(nanos);
    Time { secs: i64::try_from(secs).unwrap_or(i64::MAX), nanos }
}

fn not_negative(time: Time) -> Result<Time, Error> {
    let time = checked(time)?;
    if time.secs < 0 {
        return Err(Error::Negative { found_secs: time.secs });
    }
    Ok(time)
}
