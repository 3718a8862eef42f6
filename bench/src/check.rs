//! What is promised, and does this machine keep it.
//!
//! A row compares two loops. It fails only when the whole 95 % interval of the median ratio lies
//! above the target; it passes when the interval lies below the target, or around it and is
//! narrower than 2 %. Anything else says nothing: the row is measured again, up to three times, and
//! then called inconclusive. The launcher's rows ([`launcher`]) are judged by the same rule, in
//! milliseconds.

pub mod launcher;
pub mod rows;

use std::convert::Infallible;

use serde::Serialize;

use crate::rounds::{Measured, Plan};
use crate::statistics::{Estimate, Spread};

/// The widest interval around a target that still passes, as a share of the median.
pub const PASS_WIDTH: f64 = 0.02;

/// Repetitions of a row that said nothing.
pub const REPEATS: u32 = 3;

/// A promise: one loop against another.
pub struct Row<'m> {
    /// What is measured.
    pub name: String,
    /// What it is compared with.
    pub against: String,
    /// The highest median ratio that keeps the promise; `None` is reported only.
    pub target: Option<f64>,
    measure: Box<dyn Fn(&Plan) -> Measured + 'm>,
}

/// What a row came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The promise is kept.
    Pass,
    /// It is broken.
    Fail,
    /// The machine was too noisy to say.
    Inconclusive,
    /// Nothing was promised.
    Reported,
}

/// A measured row.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What was measured.
    pub name: String,
    /// What it was compared with.
    pub against: String,
    /// Nanoseconds per call.
    pub nanos: Spread,
    /// Nanoseconds per call of what it was compared with.
    pub against_nanos: Spread,
    /// The ratio of the two.
    pub ratio: Estimate,
    /// The highest ratio that was promised.
    pub target: Option<f64>,
    /// What it came to.
    pub verdict: Verdict,
    /// Measurements that it took.
    pub attempts: u32,
}

impl<'m> Row<'m> {
    /// A row that `measure` measures: the first loop of what it returns against the second.
    pub fn new(
        name: impl Into<String>,
        against: impl Into<String>,
        target: Option<f64>,
        measure: impl Fn(&Plan) -> Measured + 'm,
    ) -> Self {
        Self { name: name.into(), against: against.into(), target, measure: Box::new(measure) }
    }

    /// Measures the row, again if it has to be.
    #[must_use]
    pub fn run(&self, plan: &Plan) -> Outcome {
        let measured = settle(self.target, || {
            let measured = (self.measure)(plan);
            let ratio = measured.ratio(0, 1);
            Ok::<_, Infallible>((measured, ratio))
        });
        let Ok(Settled { measured, estimate: ratio, verdict, attempts }) = measured;
        Outcome {
            name: self.name.clone(),
            against: self.against.clone(),
            nanos: measured.spread(0),
            against_nanos: measured.spread(1),
            ratio,
            target: self.target,
            verdict,
            attempts,
        }
    }
}

/// A measurement that was repeated until it said something, or often enough.
struct Settled<T> {
    measured: T,
    estimate: Estimate,
    verdict: Verdict,
    attempts: u32,
}

/// Measures until the verdict is clear, [`REPEATS`] times more at most.
fn settle<T, E>(
    target: Option<f64>,
    mut measure: impl FnMut() -> Result<(T, Estimate), E>,
) -> Result<Settled<T>, E> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let (measured, estimate) = measure()?;
        let verdict = judge(&estimate, target);
        if verdict != Verdict::Inconclusive || attempts > REPEATS {
            return Ok(Settled { measured, estimate, verdict, attempts });
        }
    }
}

/// The rule of this module.
fn judge(found: &Estimate, target: Option<f64>) -> Verdict {
    let Some(target) = target else {
        return Verdict::Reported;
    };
    if found.low > target {
        Verdict::Fail
    } else if found.high <= target || found.width() < PASS_WIDTH {
        Verdict::Pass
    } else {
        Verdict::Inconclusive
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::interleave;
    use crate::subject::Subject;
    use std::cell::Cell;

    fn estimate(low: f64, median: f64, high: f64) -> Estimate {
        Estimate { median, low, high }
    }

    #[test]
    fn a_row_is_judged_by_where_its_interval_lies() {
        let judge = |low, median, high| judge(&estimate(low, median, high), Some(0.87));
        assert_eq!(judge(0.80, 0.82, 0.86), Verdict::Pass);
        assert_eq!(judge(0.50, 0.70, 0.87), Verdict::Pass);
        assert_eq!(judge(0.865, 0.872, 0.88), Verdict::Pass);
        assert_eq!(judge(0.85, 0.88, 0.89), Verdict::Inconclusive);
        assert_eq!(judge(0.871, 0.88, 0.89), Verdict::Fail);
        assert_eq!(judge(0.871, 3.0, 9.0), Verdict::Fail);
        assert_eq!(super::judge(&estimate(9.0, 9.0, 9.0), None), Verdict::Reported);
    }

    #[test]
    fn a_noisy_row_is_measured_four_times_and_a_clear_one_once() {
        let plan = Plan { rounds: 31, samples: 1, sample_nanos: 1.0 };
        let run = |noise: f64| {
            let measurements = Cell::new(0);
            let row = Row::new("a", "b", Some(1.0), |plan| {
                measurements.set(measurements.get() + 1);
                let turn = Cell::new(0);
                let mut subjects = [
                    Subject::timed("a", |_| {
                        turn.set(turn.get() + 1);
                        if turn.get() % 2 == 0 { 100.0 + noise } else { 100.0 - noise }
                    }),
                    Subject::timed("b", |_| 100.0),
                ];
                interleave(&mut subjects, plan, || ())
            });
            let outcome = row.run(&plan);
            assert_eq!(outcome.attempts, measurements.get());
            (outcome.verdict, outcome.attempts)
        };
        assert_eq!(run(50.0), (Verdict::Inconclusive, 4));
        assert_eq!(run(0.1), (Verdict::Pass, 1));
    }
}
