//! The machine's kernel: the shipped timekeeper, called as a kernel calls it.
//!
//! Each event becomes one or more [`Operation`]s, a request to the timekeeper with the counter value
//! that goes with it. Whoever watches is told of each before it is carried out and after, and may
//! then look at the machine as it stands.

use datapage::protocol::Cells;
use datapage::{NANOS_PER_SEC, Time, TimeZone, Writer};
use timekeeper::ntp::Loop;
use timekeeper::sleep::{Idle, SleepClock};
use timekeeper::{Clocksource, Config, Error, Published, Tick, Timekeeper, Verdict, watchdog};

use super::event::{Event, Leap, Sleep};
use super::hardware::{Hardware, Oscillator};
use super::setup::Setup;
use super::watch::{self, Watch};

/// A request to the timekeeper; `now` is the counter that comes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of the timekeeper's calls")]
pub enum Operation {
    /// [`Timekeeper::tick`].
    Tick { now: u64 },
    /// [`Timekeeper::set_time`].
    SetTime { now: u64, time: Time },
    /// [`Timekeeper::inject_offset`].
    InjectOffset { now: u64, nanos: i64 },
    /// [`Timekeeper::set_timezone`].
    SetTimezone(TimeZone),
    /// [`Timekeeper::set_frequency`].
    SetFrequency { now: u64, scaled_ppm: i64 },
    /// [`Timekeeper::set_tick_length`].
    SetTickLength { now: u64, micros: u32 },
    /// [`Timekeeper::adjust_phase`].
    AdjustPhase { now: u64, nanos: i64, time_constant: u32 },
    /// [`Timekeeper::slew`].
    Slew { now: u64, nanos: i64 },
    /// [`Timekeeper::set_tai_offset`].
    SetTai { secs: i32 },
    /// [`Timekeeper::set_leap`].
    SetLeap { now: u64, leap: Leap },
    /// [`Timekeeper::suspend`].
    Suspend { now: u64, persistent: Option<Time> },
    /// [`Timekeeper::resume`].
    Resume { now: u64, persistent: Option<Time> },
    /// [`Timekeeper::inject_sleep`].
    InjectSleep { now: u64, slept: Time },
    /// [`Timekeeper::enter_idle`].
    EnterIdle { now: u64, expected_ns: u64 },
    /// [`Timekeeper::rebase`].
    Rebase { now: u64, elapsed: Time },
    /// [`Timekeeper::set_clocksource`].
    SetClocksource { now: u64, source: usize, new_now: u64 },
    /// [`Timekeeper::set_high_resolution`].
    SetHighResolution { on: bool },
    /// [`Watchdog::check`](timekeeper::Watchdog::check), which publishes nothing: the counter in use
    /// and that of number `reference`, read together, and what the kernel makes of them.
    Check { now: u64, reference: usize, reference_now: u64, interval_ns: u64, verdict: Verdict },
}

/// A machine whose timekeeper publishes on a page.
pub struct Machine<'p, C: Cells> {
    hardware: Hardware,
    published: Published<'p, C>,
    sources: Vec<Clocksource>,
    /// The counter that the kernel uses.
    source: usize,
    /// CPU of the last tick: it answers for the kernel where an event names no CPU.
    cpu: usize,
    /// True time of the last update, which another clock of the machine has measured.
    updated_ns: u64,
    /// A time slept that the kernel will learn at the next tick.
    to_learn_ns: u64,
    /// Ticks in a row that found the counter behind.
    behind: u32,
    /// Whether the counter is withdrawn.
    withdrawn: bool,
    /// The watchdog, since its first check of the counter in use.
    watch: Option<Watch>,
}

/// Names for counters, since a clocksource wants one.
const NAMES: [&str; 4] = ["counter0", "counter1", "counter2", "counter3"];

/// The largest frequency correction that a kernel accepts, in 2^-16 ppm.
pub const MAX_SCALED_PPM: i64 = timekeeper::ntp::MAX_FREQUENCY;

/// Ticks that find the counter behind before the kernel gives up and goes on from where it is.
///
/// One such tick may be another CPU's skew. Three in a row mean that the counter itself was moved.
const PATIENCE: u32 = 3;

/// The machine's kernel cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A machine without a counter.
    #[error("a machine needs a counter; write a `counter` line")]
    NoCounter,
    /// More counters than a machine has room for.
    #[error("{found} counters; {limit} is the limit")]
    Counters {
        /// How many.
        found: usize,
        /// How many there may be.
        limit: usize,
    },
    /// What the timekeeper refuses.
    #[error("the timekeeper refuses the machine: {0}")]
    Timekeeper(Error),
}

/// The clocksource that a kernel makes of a counter.
///
/// # Errors
/// What the timekeeper refuses.
pub fn clocksource(setup: &Setup, index: usize) -> Result<Clocksource, SetupError> {
    let limit = NAMES.len();
    let counter = setup.counters.get(index).ok_or(SetupError::NoCounter)?;
    let name = NAMES.get(index).ok_or(SetupError::Counters { found: index + 1, limit })?;
    let Oscillator { hz, .. } = counter.oscillator;
    let source = Clocksource::new(name, hz, counter.oscillator.mask(), counter.mode)
        .map_err(SetupError::Timekeeper)?;
    Ok(if counter.is_nonstop { source.nonstop() } else { source })
}

impl<'p, C: Cells> Machine<'p, C> {
    /// Switches the machine on.
    ///
    /// # Errors
    /// What is wrong with the setup.
    pub fn new(setup: &Setup, writer: Writer<'p, C>) -> Result<Self, SetupError> {
        let sources = (0..setup.counters.len().max(1)).map(|index| clocksource(setup, index));
        let sources = sources.collect::<Result<Vec<_>, _>>()?;
        let counters = setup.counters.iter().map(|counter| (counter.oscillator, counter.start));
        let hardware = Hardware::new(setup.cpus, &counters.collect::<Vec<_>>());
        let config = Config { hz: setup.hz, ..Config::default() };
        let realtime = Time { secs: setup.realtime_secs, nanos: 0 };
        let first = *sources.first().ok_or(SetupError::NoCounter)?;
        let timekeeper = Timekeeper::new(first, hardware.read(0, 0), realtime, config)
            .map_err(SetupError::Timekeeper)?;
        Ok(Self {
            hardware,
            published: Published::new(timekeeper, writer).map_err(SetupError::Timekeeper)?,
            sources,
            source: 0,
            cpu: 0,
            updated_ns: 0,
            to_learn_ns: 0,
            behind: 0,
            withdrawn: false,
            watch: None,
        })
    }

    /// The page's writer; the machine is gone.
    pub fn into_writer(self) -> Writer<'p, C> {
        self.published.into_parts().1
    }

    /// The hardware.
    #[must_use]
    pub fn hardware(&self) -> &Hardware {
        &self.hardware
    }

    /// The timekeeper.
    #[must_use]
    pub fn timekeeper(&self) -> &Timekeeper {
        self.published.timekeeper()
    }

    /// The page's writer, for the counter of mode MEMORY.
    pub fn writer(&mut self) -> &mut Writer<'p, C> {
        self.published.writer()
    }

    /// Number of the counter that the kernel uses.
    #[must_use]
    pub fn source(&self) -> usize {
        self.source
    }

    /// What a program on `cpu` reads from the counter that the kernel uses.
    #[must_use]
    pub fn counter(&self, cpu: usize) -> u64 {
        self.hardware.read(self.source, cpu)
    }

    /// CPU that answers for the kernel.
    #[must_use]
    pub fn kernel_cpu(&self) -> usize {
        self.cpu
    }

    /// True time passes.
    #[inline]
    pub fn pass(&mut self, ns: u64) {
        self.hardware.pass(ns);
    }

    /// Something happens. `watch` is told of each operation before it is carried out, and of its
    /// outcome after, with the machine as it stands.
    ///
    /// # Errors
    /// The first error of `watch`.
    pub fn happens<E>(
        &mut self,
        event: Event,
        watch: &mut impl FnMut(&mut Self, Operation, Option<Result<(), Error>>) -> Result<(), E>,
    ) -> Result<(), E> {
        match event {
            Event::Tick { cpu } => {
                self.cpu = cpu.min(self.hardware.cpus() - 1);
                self.tick(watch)
            }
            Event::SetRealtime { secs, nanos } => {
                let nanos = u32::try_from(nanos).unwrap_or(u32::MAX);
                let now = self.now();
                self.run(Operation::SetTime { now, time: Time { secs, nanos } }, watch)
            }
            Event::Inject { nanos } => {
                let now = self.now();
                self.run(Operation::InjectOffset { now, nanos }, watch)
            }
            Event::Timezone { minutes_west, dst_time } => {
                self.run(Operation::SetTimezone(TimeZone { minutes_west, dst_time }), watch)
            }
            Event::Frequency { scaled_ppm } => {
                let now = self.now();
                self.run(Operation::SetFrequency { now, scaled_ppm }, watch)
            }
            Event::TickLength { micros } => {
                let now = self.now();
                let micros = u32::try_from(micros).unwrap_or(u32::MAX);
                self.run(Operation::SetTickLength { now, micros }, watch)
            }
            Event::Offset { nanos, time_constant } => {
                let now = self.now();
                self.run(Operation::AdjustPhase { now, nanos, time_constant }, watch)
            }
            Event::Slew { nanos } => {
                let now = self.now();
                self.run(Operation::Slew { now, nanos }, watch)
            }
            Event::Tai { secs } => self.run(Operation::SetTai { secs }, watch),
            Event::Leap(leap) => {
                let now = self.now();
                self.run(Operation::SetLeap { now, leap }, watch)
            }
            Event::Sleep { ns, how } => self.sleep(ns, how, watch),
            Event::Idle { ns } => self.idle(ns, watch),
            Event::Switch { source } => self.switch(source, watch),
            Event::Watchdog => self.check(watch),
            Event::HighResolution { on } => self.run(Operation::SetHighResolution { on }, watch),
            Event::Skew { cpu, cycles } => {
                self.hardware.shift(self.source, cpu, cycles);
                Ok(())
            }
            Event::Step { cycles } => {
                self.hardware.shift_all(self.source, cycles);
                Ok(())
            }
            Event::Drift { cpu, ppb } => {
                self.hardware.drift(self.source, cpu, ppb);
                Ok(())
            }
            Event::Migrate { cycles } => {
                // A hypervisor tells its guest: the time that went by is known from elsewhere.
                self.hardware.reset(self.source, cycles);
                self.rebase(watch)
            }
            Event::Agree => {
                self.hardware.agree();
                Ok(())
            }
        }
    }

    fn now(&self) -> u64 {
        self.counter(self.cpu)
    }

    fn tick<E>(
        &mut self,
        watch: &mut impl FnMut(&mut Self, Operation, Option<Result<(), Error>>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.withdrawn || self.behind >= PATIENCE {
            return self.rebase(watch);
        }
        self.run(Operation::Tick { now: self.now() }, watch)?;
        if self.to_learn_ns != 0 {
            let slept = time_of(std::mem::take(&mut self.to_learn_ns));
            self.run(Operation::InjectSleep { now: self.now(), slept }, watch)?;
        }
        Ok(())
    }

    fn rebase<E>(
        &mut self,
        watch: &mut impl FnMut(&mut Self, Operation, Option<Result<(), Error>>) -> Result<(), E>,
    ) -> Result<(), E> {
        let elapsed = time_of(self.hardware.now_ns() - self.updated_ns);
        self.run(Operation::Rebase { now: self.now(), elapsed }, watch)
    }

    fn sleep<E>(
        &mut self,
        ns: u64,
        how: Sleep,
        watch: &mut impl FnMut(&mut Self, Operation, Option<Result<(), Error>>) -> Result<(), E>,
    ) -> Result<(), E> {
        let persistent = |machine: &Self| {
            (how == Sleep::Persistent).then(|| {
                // A clock that began with the machine, and knows seconds and milliseconds.
                time_of(machine.hardware.now_ns() / 1_000_000 * 1_000_000)
            })
        };
        if self.withdrawn {
            self.rebase(watch)?;
        }
        self.run(Operation::Suspend { now: self.now(), persistent: persistent(self) }, watch)?;
        let nonstop = self.sources.get(self.source).is_some_and(Clocksource::is_nonstop);
        let (source, cpu) = (self.source, self.cpu);
        self.hardware.pass_with(ns, |counter| counter != source || nonstop);
        if !nonstop {
            // The firmware starts it from anywhere.
            self.hardware.reset(source, ns ^ self.hardware.read(source, cpu).rotate_left(17));
        }
        let now = self.now();
        self.run(Operation::Resume { now, persistent: persistent(self) }, watch)?;
        if how == Sleep::Unknown && !nonstop {
            self.to_learn_ns = ns;
        }
        Ok(())
    }

    fn idle<E>(
        &mut self,
        ns: u64,
        watch: &mut impl FnMut(&mut Self, Operation, Option<Result<(), Error>>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.withdrawn {
            self.run(Operation::EnterIdle { now: self.now(), expected_ns: ns }, watch)?;
        }
        self.hardware.pass(ns);
        Ok(())
    }

    fn switch<E>(
        &mut self,
        source: usize,
        watch: &mut impl FnMut(&mut Self, Operation, Option<Result<(), Error>>) -> Result<(), E>,
    ) -> Result<(), E> {
        // Nobody takes a counter that is not there, or that was found unstable.
        if self.sources.get(source).is_none_or(|source| source.rating() == 0) {
            return Ok(());
        }
        let new_now = self.hardware.read(source, self.cpu);
        self.run(Operation::SetClocksource { now: self.now(), source, new_now }, watch)
    }

    /// The watchdog's timer fires. It does not while the counter is withdrawn, and a machine with
    /// one good counter has nothing to compare that with.
    fn check<E>(
        &mut self,
        watch: &mut impl FnMut(&mut Self, Operation, Option<Result<(), Error>>) -> Result<(), E>,
    ) -> Result<(), E> {
        let reference = watch::reference(&self.sources, self.source);
        let Some(reference) = reference.filter(|_| !self.withdrawn) else {
            return Ok(());
        };
        self.watch = Watch::over(self.watch, &self.sources, self.source, reference);
        let (now, reference_now) = (self.now(), self.hardware.read(reference, self.cpu));
        let true_ns = self.hardware.now_ns();
        let Some((verdict, interval_ns)) =
            self.watch.as_mut().map(|watch| watch.check(now, reference_now, true_ns))
        else {
            return Ok(());
        };
        self.run(Operation::Check { now, reference, reference_now, interval_ns, verdict }, watch)?;
        if !matches!(verdict, Verdict::Unstable { .. }) {
            return Ok(());
        }
        if let Some(unstable) = self.sources.get_mut(self.source) {
            *unstable = unstable.unstable();
        }
        let best = watchdog::best(&self.sources).map(Clocksource::name);
        let best = self.sources.iter().position(|source| Some(source.name()) == best);
        self.switch(best.unwrap_or(reference), watch)
    }

    fn run<E>(
        &mut self,
        operation: Operation,
        watch: &mut impl FnMut(&mut Self, Operation, Option<Result<(), Error>>) -> Result<(), E>,
    ) -> Result<(), E> {
        watch(self, operation, None)?;
        let outcome = self.carry_out(operation);
        watch(self, operation, Some(outcome))
    }

    fn carry_out(&mut self, operation: Operation) -> Result<(), Error> {
        let true_ns = self.hardware.now_ns();
        match operation {
            Operation::Tick { now } => {
                match self.published.tick(now)? {
                    Tick::Behind { .. } => self.behind += 1,
                    Tick::Advanced { .. } => {
                        self.behind = 0;
                        self.updated_ns = true_ns;
                    }
                    _ => {}
                }
                return Ok(());
            }
            Operation::SetTime { now, time } => {
                self.published.update(|clocks| clocks.set_time(now, time))?;
            }
            Operation::InjectOffset { now, nanos } => {
                let offset = time_of_signed(nanos);
                self.published.update(|clocks| clocks.inject_offset(now, offset))?;
            }
            Operation::SetTimezone(zone) => {
                return self.published.update(|clocks| clocks.set_timezone(zone));
            }
            Operation::SetFrequency { now, scaled_ppm } => {
                self.published.update(|clocks| clocks.set_frequency(now, scaled_ppm))?;
            }
            Operation::SetTickLength { now, micros } => {
                self.published.update(|clocks| clocks.set_tick_length(now, micros))?;
            }
            Operation::AdjustPhase { now, nanos, time_constant } => {
                self.published
                    .update(|clocks| clocks.adjust_phase(now, nanos, time_constant, Loop::Phase))?;
            }
            Operation::Slew { now, nanos } => {
                self.published.update(|clocks| clocks.slew(now, nanos))?;
            }
            Operation::SetTai { secs } => {
                return self.published.update(|clocks| clocks.set_tai_offset(secs));
            }
            Operation::SetLeap { now, leap } => {
                let request = match leap {
                    Leap::None => None,
                    Leap::Insert => Some(timekeeper::Leap::Insert),
                    Leap::Delete => Some(timekeeper::Leap::Delete),
                };
                self.published.update(|clocks| clocks.set_leap(now, request))?;
            }
            Operation::Suspend { now, persistent } => {
                self.published.update(|clocks| clocks.suspend(now, persistent))?;
            }
            Operation::Resume { now, persistent } => {
                let slept = self.published.update(|clocks| clocks.resume(now, persistent))?;
                debug_assert!(slept.time.secs >= 0 || slept.clock == SleepClock::None);
                self.behind = 0;
                self.watch = None;
            }
            Operation::InjectSleep { now, slept } => {
                self.published.update(|clocks| clocks.inject_sleep(now, slept))?;
            }
            Operation::EnterIdle { now, expected_ns } => {
                let idle =
                    self.published.update(|clocks| clocks.enter_idle(now, Some(expected_ns)))?;
                self.withdrawn = idle == Idle::Withdrawn;
            }
            Operation::Rebase { now, elapsed } => {
                self.published.update(|clocks| clocks.rebase(now, elapsed))?;
                self.withdrawn = false;
                self.behind = 0;
                self.watch = None;
            }
            Operation::SetClocksource { now, source, new_now } => {
                let Some(&clocksource) = self.sources.get(source) else {
                    return Ok(());
                };
                self.published
                    .update(|clocks| clocks.set_clocksource(now, clocksource, new_now))?;
                self.source = source;
                self.behind = 0;
                self.watch = None;
            }
            Operation::Check { .. } => return Ok(()),
            Operation::SetHighResolution { on } => {
                return self.published.update(|clocks| {
                    clocks.set_high_resolution(on);
                    Ok(())
                });
            }
        }
        self.updated_ns = true_ns;
        Ok(())
    }
}

fn time_of(ns: u64) -> Time {
    let second = u64::from(NANOS_PER_SEC);
    Time {
        secs: i64::try_from(ns / second).unwrap_or(i64::MAX),
        nanos: u32::try_from(ns % second).unwrap_or(0),
    }
}

fn time_of_signed(ns: i64) -> Time {
    let second = i64::from(NANOS_PER_SEC);
    Time { secs: ns.div_euclid(second), nanos: u32::try_from(ns.rem_euclid(second)).unwrap_or(0) }
}
