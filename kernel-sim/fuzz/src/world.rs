//! Runs a scenario, and judges every answer.

use std::cell::RefCell;
use std::rc::Rc;

use datapage::protocol::Cells;
use datapage::{Page, TimeZone, Writer};
use kernel_sim::machine::{Event, Machine};
use oracle::Clocks;
use oracle::publication::SERVED;

use crate::bare::{self, Bare};
use crate::expect;
use crate::judge::judge;
use crate::report::{Counts, Exit};
use crate::scenario::{Setup, Step, Which};
use crate::simulated::{Misjudged, Simulated, When};
use crate::subject::{Answer, Call, Subject};

/// A page, what writes it, and what reads it.
pub(crate) struct World<C: Cells> {
    pub(crate) subject: Rc<Subject<'static, C>>,
    pub(crate) state: Rc<RefCell<State<C>>>,
}

pub(crate) struct State<C: Cells> {
    pub(crate) subject: Rc<Subject<'static, C>>,
    pub(crate) page: &'static Page<C>,
    pub(crate) kernel: Kernel<C>,
    pub(crate) counts: Counts,
    pub(crate) calls: Vec<Call>,
    in_namespace: bool,
    /// What is kept of each operation of an event whose updates are interrupted.
    pub(crate) series: Option<Rc<RefCell<Series>>>,
}

/// The clocks before each operation of an event, and the counter that programs read at that time.
pub(crate) type Series = Vec<(Clocks, u64)>;

pub(crate) enum Kernel<C: Cells> {
    Bare(Box<Bare<C>>),
    Machine(Box<Simulated<'static, C>>),
    Gone,
}

/// Something went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}\n  read:    {read}\n  was due: {due}")]
pub struct Violation {
    /// Which call, or which operation of the kernel.
    pub what: String,
    /// What came out.
    pub read: String,
    /// What should have.
    pub due: String,
}

/// A scenario that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(pub String);

impl<C: Cells> World<C> {
    /// A world around a page that `writer` writes and `subject` reads.
    pub(crate) fn new(
        setup: &Setup,
        writer: Writer<'static, C>,
        subject: Rc<Subject<'static, C>>,
    ) -> Result<Self, Unusable> {
        let page = writer.page();
        let is_image = matches!(*subject, Subject::Image(_));
        let mut kernel = match &setup.machine {
            None => Kernel::Bare(Box::new(Bare::new(writer, is_image))),
            Some(machine) => Kernel::Machine(Box::new(
                Simulated::new(machine, writer, is_image)
                    .map_err(|error| Unusable(error.to_string()))?,
            )),
        };
        if let Some(namespace) = &setup.namespace {
            match &mut kernel {
                Kernel::Bare(bare) => bare.enter(namespace),
                Kernel::Machine(machine) => machine.enter(namespace),
                Kernel::Gone => {}
            }
        }
        let state = State {
            subject: Rc::clone(&subject),
            page,
            kernel,
            counts: Counts::default(),
            calls: every_call(),
            in_namespace: setup.namespace.is_some(),
            series: None,
        };
        Ok(Self { subject, state: Rc::new(RefCell::new(state)) })
    }

    /// The page's writer and what has been counted; the world is gone.
    pub(crate) fn into_parts(self) -> (Option<Writer<'static, C>>, Counts) {
        let mut state = self.state.borrow_mut();
        let writer = match std::mem::replace(&mut state.kernel, Kernel::Gone) {
            Kernel::Bare(bare) => Some(bare.into_writer()),
            Kernel::Machine(machine) => Some(machine.into_writer()),
            Kernel::Gone => None,
        };
        (writer, state.counts.clone())
    }

    /// Runs one step.
    pub(crate) fn step(&self, step: &Step) -> Result<(), Violation> {
        match step {
            Step::InterruptedRead { cpu, call, at, inside } => {
                self.interrupted_read(*cpu, *call, *at, inside)
            }
            Step::InterruptedUpdate { event, at } => self.interrupted_update(*event, *at),
            _ => self.state.borrow_mut().step(step),
        }
    }
}

/// Every call, with every argument that makes a difference.
fn every_call() -> Vec<Call> {
    let ids = SERVED.into_iter().chain([2, -6]);
    let by_clock = ids
        .flat_map(|id| [Call::ClockGettime(id), Call::ClockGettimeNs(id), Call::ClockGetres(id)]);
    let pointers = [(true, false), (true, true), (false, true), (false, false)];
    let day = pointers.map(|(tv, tz)| Call::Gettimeofday { tv, tz });
    by_clock.chain(day).chain([Call::Time]).collect()
}

impl<C: Cells> State<C> {
    pub(crate) fn step(&mut self, step: &Step) -> Result<(), Violation> {
        match step {
            Step::Pass(ns) => {
                if let Kernel::Machine(machine) = &mut self.kernel {
                    machine.machine.pass(*ns);
                }
                Ok(())
            }
            Step::Event(event) => self.event(*event),
            Step::Run { ns, every } => {
                let mut left = *ns;
                while left > 0 {
                    let passing = left.min(*every);
                    left -= passing;
                    self.step(&Step::Pass(passing))?;
                    self.event(Event::Tick { cpu: 0 })?;
                    self.step(&Step::Pass(passing / 3))?;
                    left = left.saturating_sub(passing / 3);
                    self.read(0, Which::Clocks)?;
                }
                Ok(())
            }
            Step::Read { cpu, which } => self.read(*cpu, *which),
            Step::Publish(values) => {
                if let Kernel::Bare(bare) = &mut self.kernel {
                    match bare.publish(values) {
                        Ok(()) => {
                            self.counts.updates += 1;
                            self.counts.width(values.steered.mask);
                        }
                        Err(_) => self.counts.refused += 1,
                    }
                }
                Ok(())
            }
            Step::Counter(value) => {
                if let Kernel::Bare(bare) = &mut self.kernel {
                    bare.set_counter(*value);
                }
                Ok(())
            }
            // Inside of an interruption nothing is interrupted again.
            Step::InterruptedRead { cpu, call, .. } => self.read(*cpu, Which::One(*call)),
            Step::InterruptedUpdate { event, .. } => self.event(*event),
        }
    }

    fn event(&mut self, event: Event) -> Result<(), Violation> {
        self.counts.events[event.kind()] += 1;
        match &mut self.kernel {
            Kernel::Bare(bare) => {
                if let Event::Timezone { minutes_west, dst_time } = event {
                    bare.set_timezone(TimeZone { minutes_west, dst_time });
                    self.counts.updates += 1;
                }
            }
            Kernel::Machine(machine) => {
                let (subject, counts) = (&*self.subject, &mut self.counts);
                let series = self.series.as_deref();
                let mut operations = 0;
                // A migration moves the counter, but no program that is still on the old page runs.
                let mut counter = machine.machine.counter(MEANWHILE_CPU);
                let mut between = Ok(());
                let outcome = machine.happens(event, |when, machine, clocks| {
                    if when == When::After {
                        return;
                    }
                    operations += 1;
                    if operations > 1 {
                        counter = machine.counter(MEANWHILE_CPU);
                        set_counter(subject, machine, MEANWHILE_CPU);
                    }
                    if let Some(series) = series {
                        series.borrow_mut().push((clocks.clone(), counter));
                    }
                    if operations > 1 && between.is_ok() {
                        between = read_between(subject, counts, counter, clocks);
                    }
                });
                let outcome = outcome.map_err(|wrong| misjudged(&wrong))?;
                between?;
                self.counts.updates += outcome.updates;
                self.counts.kernel_updates += outcome.updates;
                self.counts.refused += outcome.refused;
                if let Some(verdict) = outcome.verdict {
                    self.counts.verdict(verdict);
                }
                self.counts.width(machine.clocks.last().1);
            }
            Kernel::Gone => {}
        }
        Ok(())
    }

    fn read(&mut self, cpu: usize, which: Which) -> Result<(), Violation> {
        self.move_counter(cpu);
        match which {
            Which::One(call) => self.call(cpu, call),
            Which::Clocks => {
                // From the coarse ones, which tell where the last update was, to the precise ones.
                for id in CLOCKS {
                    self.call(cpu, Call::ClockGettime(id))?;
                }
                Ok(())
            }
            Which::All => {
                for index in 0..self.calls.len() {
                    self.call(cpu, self.calls[index])?;
                }
                Ok(())
            }
        }
    }

    #[inline]
    fn call(&mut self, cpu: usize, call: Call) -> Result<(), Violation> {
        let answer = self.subject.call(call);
        self.check(cpu, call, answer)
    }

    /// The counter that programs read becomes that of `cpu`.
    #[inline]
    pub(crate) fn move_counter(&mut self, cpu: usize) {
        match &mut self.kernel {
            Kernel::Bare(bare) => {
                if let Subject::Code(code) = &*self.subject {
                    code.set_counter(bare.counter);
                }
            }
            Kernel::Machine(machine) => set_counter(&self.subject, &mut machine.machine, cpu),
            Kernel::Gone => {}
        }
    }

    /// Judges the answer to a call that was made on `cpu` just now.
    #[inline]
    pub(crate) fn check(
        &mut self,
        cpu: usize,
        call: Call,
        answer: Answer,
    ) -> Result<(), Violation> {
        let fallback = self.subject.fallback(call);
        self.counts.reads += 1;
        if matches!(*self.subject, Subject::Image(_)) {
            self.counts.image_reads += 1;
        }
        if self.in_namespace {
            self.counts.namespace_reads += 1;
        }
        let (due, counter) = match &mut self.kernel {
            Kernel::Bare(bare) => {
                let counter = bare.counter;
                if let Call::ClockGettime(id) | Call::ClockGettimeNs(id) = call {
                    self.counts.clock(id);
                    self.counts.exit(bare::exit(&bare.publication, id, counter));
                    if let (Call::ClockGettimeNs(_), -75) = (call, answer.returned) {
                        self.counts.exit(Exit::Overflow);
                    }
                }
                let due = expect::answer(&bare.publication, counter, call, fallback);
                let due = if answer == due { Ok(()) } else { Err(expect::words(call, due)) };
                (due, counter)
            }
            Kernel::Machine(machine) => {
                let counter = machine.machine.counter(cpu);
                if let Call::ClockGettime(id) | Call::ClockGettimeNs(id) = call {
                    self.counts.clock(id);
                    if answer == fallback {
                        self.counts.exit(Exit::Fallback);
                    }
                }
                (judge(&mut machine.clocks, counter, call, answer, fallback), counter)
            }
            Kernel::Gone => (Ok(()), 0),
        };
        due.map_err(|due| violation(&format!("on CPU {cpu}"), counter, call, answer, due))
    }
}

/// The CPU on which programs read while the kernel is busy with an event.
pub(crate) const MEANWHILE_CPU: usize = 0;

/// The clocks, from the coarse ones, which tell where the last update was, to the precise ones.
const CLOCKS: [i32; 7] = [5, 6, 4, 1, 0, 7, 11];

/// The counter that programs read becomes that of `cpu`.
#[inline]
fn set_counter<C: Cells>(subject: &Subject<'_, C>, machine: &mut Machine<'_, C>, cpu: usize) {
    let counter = machine.counter(cpu);
    if let Subject::Code(code) = subject {
        code.set_counter(counter);
    }
    machine.writer().set_memory_counter(counter);
}

/// Reads every clock between two updates of one event.
fn read_between<C: Cells>(
    subject: &Subject<'_, C>,
    counts: &mut Counts,
    counter: u64,
    clocks: &mut Clocks,
) -> Result<(), Violation> {
    for call in CLOCKS.map(Call::ClockGettime).into_iter().chain([Call::Time]) {
        let answer = subject.call(call);
        counts.reads += 1;
        counts.reads_between += 1;
        judge(clocks, counter, call, answer, subject.fallback(call)).map_err(|due| {
            violation("between two updates of an event", counter, call, answer, due)
        })?;
    }
    Ok(())
}

/// What was read where, and what was due.
pub(crate) fn violation(
    place: &str,
    counter: u64,
    call: Call,
    answer: Answer,
    due: String,
) -> Violation {
    Violation {
        what: format!("{} {place}, counter {counter:#x}", expect::name(call)),
        read: expect::words(call, answer),
        due,
    }
}

pub(crate) fn misjudged(wrong: &Misjudged) -> Violation {
    match wrong {
        Misjudged::Accepted(operation) => Violation {
            what: format!("{operation:?}"),
            read: "accepted".into(),
            due: "an error: the rules refuse it".into(),
        },
        Misjudged::Refused(operation, error) => Violation {
            what: format!("{operation:?}"),
            read: format!("refused: {error}"),
            due: "the rules allow it".into(),
        },
    }
}
