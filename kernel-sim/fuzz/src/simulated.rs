//! A page that a machine's timekeeper writes, and the oracle beside it.

use datapage::protocol::Cells;
use datapage::{ClockMode, Features, Time, Writer};
use kernel_sim::machine::event::{Event, Leap};
use kernel_sim::machine::kernel::SetupError;
use kernel_sim::machine::setup::Setup;
use kernel_sim::machine::{Machine, Operation};
use oracle::published::Scale;
use oracle::{Clocks, Config, Source, Verdict};
use timekeeper::Clocksource;
use timekeeper::watchdog::DEFAULT_MARGIN_NS;

use crate::scenario::Namespace;
use crate::subject::is_readable;

/// A machine under judgement.
pub(crate) struct Simulated<'p, C: Cells> {
    pub(crate) machine: Machine<'p, C>,
    pub(crate) clocks: Clocks,
    sources: Vec<Source>,
}

/// What the kernel did that it must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misjudged {
    /// It accepted what it has to refuse.
    Accepted(Operation),
    /// It refused what it has to accept.
    Refused(Operation, timekeeper::Error),
}

/// Where an operation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// It is about to be carried out.
    Before,
    /// Its outcome is published.
    After,
}

/// What became of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Publications that were made.
    pub(crate) updates: u64,
    /// Operations that the kernel refused, rightly.
    pub(crate) refused: u64,
    /// What the watchdog said, if it was asked.
    pub(crate) verdict: Option<Verdict>,
}

impl<'p, C: Cells> Simulated<'p, C> {
    pub(crate) fn new(
        setup: &Setup,
        mut writer: Writer<'p, C>,
        is_image: bool,
    ) -> Result<Self, SetupError> {
        writer.format(Features::empty(), datapage::SLOT_BYTES);
        let mut setup = setup.clone();
        if is_image {
            // The image would read the real counter; the page's own stands for each.
            for counter in &mut setup.counters {
                if is_readable(counter.mode) {
                    counter.mode = ClockMode::MEMORY;
                }
            }
        }
        let machine = Machine::new(&setup, writer)?;
        let sources = (0..setup.counters.len())
            .map(|index| {
                Ok(source(index, &kernel_sim::machine::kernel::clocksource(&setup, index)?))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let config = machine.timekeeper().config();
        let config = Config { hz: config.hz, publication_delay_ns: config.publication_delay_ns };
        let first = *sources.first().ok_or(SetupError::NoCounter)?;
        let clocks = Clocks::new(first, machine.counter(0), setup.realtime_secs, config);
        Ok(Self { machine, clocks, sources })
    }

    /// The programs that read are in this time namespace.
    pub(crate) fn enter(&mut self, namespace: &Namespace) {
        let nanos =
            |(secs, nanos): (i64, u32)| i128::from(secs) * 1_000_000_000 + i128::from(nanos);
        self.clocks.happens(oracle::Event::Namespace {
            monotonic: nanos(namespace.monotonic),
            boottime: nanos(namespace.boottime),
        });
    }

    pub(crate) fn into_writer(self) -> Writer<'p, C> {
        self.machine.into_writer()
    }

    /// Something happens to the machine, and the oracle is told. `watch` is called right before and
    /// right after each operation that the kernel makes of it.
    pub(crate) fn happens(
        &mut self,
        event: Event,
        mut watch: impl FnMut(When, &mut Machine<'p, C>, &mut Clocks),
    ) -> Result<Outcome, Misjudged> {
        let Self { machine, clocks, sources } = self;
        let mut outcome = Outcome::default();
        let mut must_accept = true;
        machine.happens(event, &mut |machine, operation, result| {
            match result {
                None => {
                    watch(When::Before, machine, clocks);
                    let told = told(operation, sources);
                    if let oracle::Event::Watchdog { verdict, .. } = told {
                        outcome.verdict = Some(verdict);
                    }
                    must_accept = clocks.happens(told);
                    return Ok(());
                }
                Some(Ok(())) if must_accept => {
                    outcome.updates += u64::from(!matches!(operation, Operation::Check { .. }));
                }
                Some(Err(_)) if !must_accept => outcome.refused += 1,
                Some(Ok(())) => return Err(Misjudged::Accepted(operation)),
                Some(Err(error)) => return Err(Misjudged::Refused(operation, error)),
            }
            watch(When::After, machine, clocks);
            Ok(())
        })?;
        Ok(outcome)
    }
}

/// Clocksource number `number` as the oracle knows it.
pub(crate) fn source(number: usize, clocksource: &Clocksource) -> Source {
    let scale = clocksource.scale();
    let mode = clocksource.mode();
    Source {
        number,
        scale: Scale { mask: scale.mask, mult: scale.mult, shift: scale.shift },
        hz: clocksource.hz(),
        is_readable: is_readable(mode) || mode == ClockMode::MEMORY,
        is_nonstop: clocksource.is_nonstop(),
    }
}

/// An operation as the event that the oracle is told.
pub(crate) fn told(operation: Operation, sources: &[Source]) -> oracle::Event {
    let nanos = |time: Time| i128::from(time.secs) * 1_000_000_000 + i128::from(time.nanos);
    match operation {
        Operation::Tick { now } => oracle::Event::Tick { now },
        Operation::SetTime { now, time } => {
            oracle::Event::Set { now, secs: time.secs, nanos: time.nanos }
        }
        Operation::InjectOffset { now, nanos } => {
            oracle::Event::Inject { now, nanos: i128::from(nanos) }
        }
        Operation::SetTimezone(zone) => {
            oracle::Event::Timezone { minutes_west: zone.minutes_west, dst_time: zone.dst_time }
        }
        Operation::SetFrequency { now, scaled_ppm } => oracle::Event::Frequency { now, scaled_ppm },
        Operation::SetTickLength { now, micros } => oracle::Event::TickLength { now, micros },
        Operation::AdjustPhase { now, nanos, time_constant } => {
            oracle::Event::Phase { now, nanos, time_constant }
        }
        Operation::Slew { now, nanos } => oracle::Event::Slew { now, nanos },
        Operation::SetTai { secs } => oracle::Event::Tai { secs },
        Operation::SetLeap { now, leap } => oracle::Event::Leap {
            now,
            seconds: match leap {
                Leap::None => 0,
                Leap::Insert => 1,
                Leap::Delete => -1,
            },
        },
        Operation::Suspend { now, persistent } => {
            oracle::Event::Suspend { now, persistent: persistent.map(nanos) }
        }
        Operation::Resume { now, persistent } => {
            oracle::Event::Resume { now, persistent: persistent.map(nanos) }
        }
        Operation::InjectSleep { now, slept } => oracle::Event::Slept { now, nanos: nanos(slept) },
        Operation::EnterIdle { now, expected_ns } => oracle::Event::Idle { now, expected_ns },
        Operation::Rebase { now, elapsed } => {
            oracle::Event::Rebase { now, elapsed: nanos(elapsed) }
        }
        Operation::SetClocksource { now, source, new_now } => oracle::Event::Switch {
            now,
            // The machine has as many counters as the oracle was told of.
            source: sources[source],
            new_now,
        },
        Operation::SetHighResolution { on } => oracle::Event::HighResolution { on },
        Operation::Check { now, reference, reference_now, interval_ns, verdict } => {
            oracle::Event::Watchdog {
                now,
                reference: sources[reference],
                reference_now,
                interval_ns,
                margin_ns: DEFAULT_MARGIN_NS,
                verdict: match verdict {
                    timekeeper::Verdict::Unknown => Verdict::Unknown,
                    timekeeper::Verdict::Good { .. } => Verdict::Good,
                    timekeeper::Verdict::Unstable { .. } => Verdict::Unstable,
                },
            }
        }
    }
}
