//! Makes a scenario that goes wrong as short as it can be.
//!
//! Steps are taken out in ever smaller pieces, as long as what is left still goes wrong (Zeller's
//! delta debugging, 2002). Any violation counts: a shorter way into another fault is as welcome.

use crate::run::Stage;
use crate::scenario::{Scenario, Step};
use crate::world::{Unusable, Violation};

/// Runs that are tried at most; long before, hardly anything is left to take out.
const TRIES: u32 = 5_000;

/// The shortest scenario found that goes wrong as `scenario` does, and how it does. `None` if
/// `scenario` holds.
///
/// # Errors
/// A setup that no machine can have.
pub fn minimise(scenario: &Scenario) -> Result<Option<(Scenario, Violation)>, Unusable> {
    let mut search = Search { stage: Stage::new(), tries: 0 };
    let Some(mut best) = search.attempt(scenario.clone())? else {
        return Ok(None);
    };
    loop {
        let before = best.0.len();
        search.without_pieces(&mut best)?;
        search.without_insides(&mut best)?;
        if best.0.len() == before || search.tries >= TRIES {
            return Ok(Some(best));
        }
    }
}

struct Search {
    stage: Stage,
    tries: u32,
}

impl Search {
    /// The scenario up to where it goes wrong, if it does.
    fn attempt(
        &mut self,
        mut scenario: Scenario,
    ) -> Result<Option<(Scenario, Violation)>, Unusable> {
        self.tries += 1;
        let outcome = self.stage.run(&scenario)?;
        Ok(outcome.violation.map(|(step, violation)| {
            scenario.steps.truncate(step + 1);
            (scenario, violation)
        }))
    }

    fn without_pieces(&mut self, best: &mut (Scenario, Violation)) -> Result<(), Unusable> {
        let mut piece = best.0.steps.len().div_ceil(2);
        while piece > 0 {
            let mut start = 0;
            while start < best.0.steps.len() && self.tries < TRIES {
                let mut shorter = best.0.clone();
                let end = (start + piece).min(shorter.steps.len());
                shorter.steps.drain(start..end);
                match self.attempt(shorter)? {
                    Some(better) => *best = better,
                    None => start += piece,
                }
            }
            piece /= 2;
        }
        Ok(())
    }

    /// Takes out what happens in the middle of a read, and then the preemption itself.
    fn without_insides(&mut self, best: &mut (Scenario, Violation)) -> Result<(), Unusable> {
        let mut index = 0;
        while index < best.0.steps.len() {
            let simpler = match &best.0.steps[index] {
                Step::InterruptedRead { cpu, call, at, inside } => {
                    let mut simpler: Vec<Step> = (0..inside.len())
                        .map(|gone| {
                            let mut inside = inside.clone();
                            inside.remove(gone);
                            Step::InterruptedRead { cpu: *cpu, call: *call, at: *at, inside }
                        })
                        .collect();
                    simpler
                        .push(Step::Read { cpu: *cpu, which: crate::scenario::Which::One(*call) });
                    simpler
                }
                Step::InterruptedUpdate { event, .. } => vec![Step::Event(*event)],
                _ => Vec::new(),
            };
            for step in simpler {
                let mut shorter = best.0.clone();
                shorter.steps[index] = step;
                if let Some(better) = self.attempt(shorter)? {
                    *best = better;
                    break;
                }
            }
            index += 1;
        }
        Ok(())
    }
}
