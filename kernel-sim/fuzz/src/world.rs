//! Runs a scenario, and judges every answer.

use std::cell::RefCell;
use std::rc::Rc;

use datapage::protocol::Cells;
use datapage::{Page, TimeZone, Writer};
use kernel_sim::machine::Event;
use oracle::publication::{Publication, SERVED};

use crate::bare::{self, Bare};
use crate::expect;
use crate::judge::judge;
use crate::preempt::{Access, interrupted};
use crate::report::{Counts, Exit};
use crate::scenario::{Setup, Step, Which};
use crate::simulated::{Misjudged, Simulated};
use crate::subject::{Answer, Call, Subject};

/// A page, what writes it, and what reads it.
pub(crate) struct World<C: Cells> {
    subject: Rc<Subject<'static, C>>,
    state: Rc<RefCell<State<C>>>,
}

struct State<C: Cells> {
    subject: Rc<Subject<'static, C>>,
    page: &'static Page<C>,
    kernel: Kernel<C>,
    counts: Counts,
    calls: Vec<Call>,
}

enum Kernel<C: Cells> {
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
        let kernel = match &setup.machine {
            None => Kernel::Bare(Box::new(Bare::new(writer, is_image))),
            Some(machine) => Kernel::Machine(Box::new(
                Simulated::new(machine, writer, is_image)
                    .map_err(|error| Unusable(error.to_string()))?,
            )),
        };
        let state = State {
            subject: Rc::clone(&subject),
            page,
            kernel,
            counts: Counts::default(),
            calls: every_call(),
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

    fn interrupted_read(
        &self,
        cpu: usize,
        call: Call,
        at: u32,
        inside: &[Step],
    ) -> Result<(), Violation> {
        self.state.borrow_mut().move_counter(cpu);
        let state = Rc::clone(&self.state);
        let result = Rc::new(RefCell::new(Ok(())));
        let outcome = Rc::clone(&result);
        let inside = inside.to_vec();
        let before = self.state.borrow().counts.updates;
        let fallback = self.subject.fallback(call);
        let fell_back = self.subject.call(call) == fallback;
        let old = self.state.borrow().publication();
        let meanwhile = move || {
            let mut state = state.borrow_mut();
            *outcome.borrow_mut() = inside.iter().try_for_each(|step| state.step(step));
            state.move_counter(cpu);
        };
        let (answer, happened) =
            interrupted(Access::Load, at, meanwhile, || self.subject.call(call));
        result.replace(Ok(()))?;
        let mut state = self.state.borrow_mut();
        if happened {
            state.counts.preempted_reads += 1;
            if state.counts.updates != before && at > 0 {
                state.counts.exit(Exit::Retry);
            }
            let new = state.publication();
            let mixed = old.zip(new).is_some_and(|(old, new)| bare::may_look_unserved(&old, &new));
            if (fell_back || mixed) && answer == fallback {
                // What the old page could not serve, or what a mixture of both seems not to serve,
                // may be asked of the kernel: a system call is right at any time.
                return Ok(());
            }
        }
        state.check(cpu, call, answer)
    }

    fn interrupted_update(&self, event: Event, at: u32) -> Result<(), Violation> {
        let mut state = self.state.borrow_mut();
        let cpu = 0;
        state.move_counter(cpu);
        let calls = state.calls.clone();
        let seen = Rc::new(RefCell::new((false, Vec::new())));
        let answers = Rc::clone(&seen);
        let subject = Rc::clone(&self.subject);
        let page = state.page;
        let meanwhile = move || {
            let mut answers = answers.borrow_mut();
            answers.0 = page.is_odd();
            answers.1 = calls.iter().map(|&call| (call, subject.call(call))).collect();
        };
        let before = calls_due(&state, cpu);
        let updates = state.counts.updates;
        let (result, happened) =
            interrupted(Access::Store, at, meanwhile, || state.step(&Step::Event(event)));
        result?;
        if !happened {
            return Ok(());
        }
        state.counts.preempted_updates += 1;
        let single = state.counts.updates == updates + 1;
        let (was_odd, answers) = seen.replace((false, Vec::new()));
        for ((call, answer), before) in answers.into_iter().zip(before) {
            let fallback = state.subject.fallback(call);
            // One word is one update: `time` needs no stable page, nor does a call without a result.
            let needs_stable =
                !matches!(call, Call::Time | Call::Gettimeofday { tv: false, tz: false });
            if was_odd && needs_stable {
                state.counts.exit(Exit::Odd);
                if answer != fallback {
                    return Err(Violation {
                        what: format!("{} in the middle of an update", expect::name(call)),
                        read: expect::words(call, answer),
                        due: "a fallback: the page is being written".into(),
                    });
                }
                continue;
            }
            // Before the update or between two of them: the old page or the new one. An event of
            // several updates has pages in between, of which the oracle knows only the last.
            if single && before != Some(answer) && answer != fallback {
                state.check(cpu, call, answer)?;
            }
        }
        Ok(())
    }
}

/// What every call answers now, for comparison with what is answered later.
fn calls_due<C: Cells>(state: &State<C>, _cpu: usize) -> Vec<Option<Answer>> {
    state.calls.iter().map(|&call| Some(state.subject.call(call))).collect()
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
    /// What stands on a page without a machine.
    fn publication(&self) -> Option<Publication> {
        match &self.kernel {
            Kernel::Bare(bare) => Some(bare.publication),
            _ => None,
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), Violation> {
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
                let outcome = machine.happens(event).map_err(|wrong| misjudged(&wrong))?;
                self.counts.updates += outcome.updates;
                self.counts.kernel_updates += outcome.updates;
                self.counts.refused += outcome.refused;
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
                for id in [5, 6, 4, 1, 0, 7, 11] {
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
    fn move_counter(&mut self, cpu: usize) {
        match &mut self.kernel {
            Kernel::Bare(bare) => {
                if let Subject::Code(code) = &*self.subject {
                    code.set_counter(bare.counter);
                }
            }
            Kernel::Machine(machine) => {
                let counter = machine.machine.counter(cpu);
                if let Subject::Code(code) = &*self.subject {
                    code.set_counter(counter);
                }
                machine.machine.writer().set_memory_counter(counter);
            }
            Kernel::Gone => {}
        }
    }

    /// Judges the answer to a call that was made on `cpu` just now.
    #[inline]
    fn check(&mut self, cpu: usize, call: Call, answer: Answer) -> Result<(), Violation> {
        let fallback = self.subject.fallback(call);
        self.counts.reads += 1;
        if matches!(*self.subject, Subject::Image(_)) {
            self.counts.image_reads += 1;
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
        due.map_err(|due| Violation {
            what: format!("{} on CPU {cpu}, counter {counter:#x}", expect::name(call)),
            read: expect::words(call, answer),
            due,
        })
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
