//! A reader in the middle of whose read something happens, and a writer in the middle of whose
//! update everything is read.

use std::cell::RefCell;
use std::rc::Rc;

use datapage::protocol::Cells;
use kernel_sim::machine::Event;

use crate::expect;
use crate::judge::{Due, judge};
use crate::preempt::{Access, interrupted};
use crate::report::Exit;
use crate::scenario::Step;
use crate::subject::{Answer, Call};
use crate::world::{Kernel, MEANWHILE_CPU, Series, State, Violation, World, violation};

impl<C: Cells> World<C> {
    /// A call is made on `cpu`, and `inside` happens right before its load number `at`.
    pub(crate) fn interrupted_read(
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
            if fell_back && answer == fallback {
                // What the old page could not serve may be asked of the kernel.
                return Ok(());
            }
        }
        state.check(cpu, call, answer)
    }

    /// `event` happens, and every call is made right before store number `at` of its updates.
    pub(crate) fn interrupted_update(&self, event: Event, at: u32) -> Result<(), Violation> {
        let mut state = self.state.borrow_mut();
        state.move_counter(MEANWHILE_CPU);
        let before = state.answers();
        let series = Rc::new(RefCell::new(Series::new()));
        state.series = Some(Rc::clone(&series));
        let seen = Rc::new(RefCell::new(Seen::default()));
        let meanwhile = {
            let (seen, series) = (Rc::clone(&seen), Rc::clone(&series));
            let (page, subject) = (state.page, Rc::clone(&self.subject));
            let calls = state.calls.clone();
            move || {
                let answers = calls.iter().map(|&call| (call, subject.call(call))).collect();
                let operation = series.borrow().len();
                *seen.borrow_mut() = Seen { was_odd: page.is_odd(), operation, answers };
            }
        };
        let (result, happened) =
            interrupted(Access::Store, at, meanwhile, || state.step(&Step::Event(event)));
        state.series = None;
        result?;
        if !happened {
            return Ok(());
        }
        state.counts.preempted_updates += 1;
        let Seen { was_odd, operation, answers } = seen.take();
        let series = series.take();
        if series.len() > 1 {
            state.counts.preempted_series += 1;
        }
        for ((call, answer), before) in answers.into_iter().zip(before) {
            // One word is one update, so `time` needs no stable page, unless that word is one that
            // has to be looked at twice. Nor does a call without a result.
            let needs_stable =
                !matches!(call, Call::Time | Call::Gettimeofday { tv: false, tz: false });
            let fell_back = answer == state.subject.fallback(call);
            if was_odd && (needs_stable || fell_back) {
                state.counts.exit(Exit::Odd);
                if !fell_back {
                    return Err(Violation {
                        what: format!("{} in the middle of an update", expect::name(call)),
                        read: expect::words(call, answer),
                        due: "a fallback: the page is being written".into(),
                    });
                }
            } else if operation > 0 {
                state.before_or_after(&series, operation, call, answer)?;
            } else if answer != before {
                // Without a machine there is one update, and this is what it leads to.
                state.check(MEANWHILE_CPU, call, answer)?;
            }
        }
        Ok(())
    }
}

/// What was seen in the middle of an update.
#[derive(Default)]
struct Seen {
    was_odd: bool,
    /// Operations of the event that had begun.
    operation: usize,
    answers: Vec<(Call, Answer)>,
}

impl<C: Cells> State<C> {
    /// What every call answers now.
    fn answers(&self) -> Vec<Answer> {
        self.calls.iter().map(|&call| self.subject.call(call)).collect()
    }

    /// An answer of a stable page while an operation (counted from 1) was under way: it is due
    /// before that operation, or after it.
    fn before_or_after(
        &mut self,
        series: &Series,
        operation: usize,
        call: Call,
        answer: Answer,
    ) -> Result<(), Violation> {
        let Some((before, counter)) = series.get(operation - 1) else {
            return Ok(());
        };
        let fallback = self.subject.fallback(call);
        self.counts.reads += 1;
        let mut judged: Result<(), Due> =
            judge(&mut before.clone(), *counter, call, answer, fallback);
        if judged.is_err() {
            let after = series.get(operation).map(|(clocks, _)| clocks);
            let mut after = match (after, &self.kernel) {
                (Some(clocks), _) => clocks.clone(),
                (None, Kernel::Machine(machine)) => machine.clocks.clone(),
                (None, _) => return Ok(()),
            };
            judged = judge(&mut after, *counter, call, answer, fallback);
        }
        let place = "before or after an update";
        judged.map_err(|due| violation(place, *counter, call, answer, due))
    }
}
