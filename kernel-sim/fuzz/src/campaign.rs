//! Runs many scenarios, on any number of threads, up to the first that goes wrong.
//!
//! A seed names the scenarios and their order; threads only share them out. So a run finds the same
//! on any number of threads: of several scenarios that go wrong, the first is reported.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::generate::{EPISODE, scenario};
use crate::minimise::minimise;
use crate::report::Counts;
use crate::run::Stage;
use crate::scenario::Scenario;
use crate::world::{Unusable, Violation};

/// How much is to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Updates, at least.
    pub updates: u64,
    /// Which.
    pub seed: u64,
    /// On how many threads.
    pub threads: usize,
}

/// A scenario that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its number in the run.
    pub number: u64,
    /// How long it was at first, in steps.
    pub steps: usize,
    /// As short as it could be made.
    pub scenario: Scenario,
    /// What goes wrong in it.
    pub violation: Violation,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What was done and read.
    pub counts: Counts,
    /// How long it took.
    pub elapsed: Duration,
    /// The first scenario that goes wrong.
    pub finding: Option<Finding>,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoFar {
    /// Updates of finished scenarios.
    pub updates: u64,
    /// Their reads.
    pub reads: u64,
    /// Whether one has gone wrong: the run ends soon, and then the scenario is made shorter.
    pub has_finding: bool,
}

/// Runs scenarios until `options` are met or one goes wrong. `on_progress` is told how far it has
/// come, some times a second.
///
/// # Errors
/// A scenario that cannot be run, which the generator does not write, or an image that cannot be
/// mapped.
pub fn run(options: &Options, on_progress: impl Fn(SoFar) + Sync) -> Result<Outcome, Unusable> {
    let begin = Instant::now();
    let shared = Shared {
        next: AtomicU64::new(0),
        // Each has as many updates as this, or a few more.
        end: AtomicU64::new(options.updates.div_ceil(EPISODE)),
        updates: AtomicU64::new(0),
        reads: AtomicU64::new(0),
        done: AtomicBool::new(false),
        found: Mutex::new(None),
    };
    let totals = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..options.threads.max(1))
            .map(|_| scope.spawn(|| shared.work(options.seed)))
            .collect();
        scope.spawn(|| {
            while !shared.done.load(Ordering::Acquire) {
                on_progress(SoFar {
                    updates: shared.updates.load(Ordering::Relaxed),
                    reads: shared.reads.load(Ordering::Relaxed),
                    has_finding: shared.found.lock().is_ok_and(|found| found.is_some()),
                });
                std::thread::park_timeout(Duration::from_millis(100));
            }
        });
        let totals: Vec<_> = workers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        shared.done.store(true, Ordering::Release);
        totals
    });
    let mut counts = Counts::default();
    for total in totals {
        counts.add(&total.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
    }
    let found = shared.found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let finding = match found {
        None => None,
        Some((number, violation)) => {
            let whole = scenario(options.seed, number);
            let shortest = minimise(&whole)?;
            let steps = whole.len();
            let (scenario, violation) = shortest.unwrap_or((whole, violation));
            Some(Finding { number, steps, scenario, violation })
        }
    };
    Ok(Outcome { counts, elapsed: begin.elapsed(), finding })
}

struct Shared {
    next: AtomicU64,
    /// The first number that is not run: the number of what went wrong, once something did.
    end: AtomicU64,
    updates: AtomicU64,
    reads: AtomicU64,
    done: AtomicBool,
    found: Mutex<Option<(u64, Violation)>>,
}

impl Shared {
    fn work(&self, seed: u64) -> Result<Counts, Unusable> {
        let mut stage = Stage::new();
        let mut total = Counts::default();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.end.load(Ordering::Acquire) {
                return Ok(total);
            }
            let outcome = stage.run(&scenario(seed, number))?;
            self.updates.fetch_add(outcome.counts.updates, Ordering::Relaxed);
            self.reads.fetch_add(outcome.counts.reads, Ordering::Relaxed);
            total.add(&outcome.counts);
            if let Some((_, violation)) = outcome.violation {
                self.end.fetch_min(number, Ordering::AcqRel);
                let mut found =
                    self.found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                if found.as_ref().is_none_or(|&(earlier, _)| number < earlier) {
                    *found = Some((number, violation));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_one_run_on_any_number_of_threads() {
        let run = |threads| {
            let options = Options { updates: 600_000, seed: 1, threads };
            super::run(&options, |_| ()).unwrap()
        };
        let (one, two) = (run(1), run(2));
        assert_eq!(one.finding, None, "{:?}", one.finding);
        assert_eq!(one.counts, two.counts);
        assert!(one.counts.updates >= 600_000);
    }
}
