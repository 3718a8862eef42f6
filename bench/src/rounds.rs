//! Comparing loops on a machine that is never quiet.
//!
//! A CPU changes its frequency, a hypervisor takes it away, a neighbour fills the cache. So loops
//! that are compared never run one after the other: a round runs a short sample of each in turn,
//! several times over, and every other round in reverse order. What disturbs one disturbs the
//! others as well, and the ratio within a round remains.

use crate::clock;
use crate::statistics::{self, Estimate, Spread};
use crate::subject::Subject;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rounds.
    pub rounds: usize,
    /// Samples of each loop in a round; the round's value is their median.
    pub samples: usize,
    /// Nanoseconds of a sample: long against the stopwatch, short against a time slice.
    pub sample_nanos: f64,
}

/// Nanoseconds per call of each loop: `series[loop][round]`.
#[derive(Clone, Debug)]
pub struct Measured {
    series: Vec<Vec<f64>>,
}

impl Measured {
    /// The nanoseconds per call of one loop, by round.
    #[must_use]
    pub fn series(&self, subject: usize) -> &[f64] {
        &self.series[subject]
    }

    /// The spread of one loop's nanoseconds.
    #[must_use]
    pub fn spread(&self, subject: usize) -> Spread {
        Spread::of(self.series(subject))
    }

    /// The ratio of two loops: the median over the rounds.
    #[must_use]
    pub fn ratio(&self, subject: usize, against: usize) -> Estimate {
        let pairs = self.series(subject).iter().zip(self.series(against));
        let ratios: Vec<f64> = pairs.map(|(a, b)| a / b).collect();
        Estimate::of(&ratios)
    }
}

/// Measures all of `subjects`, interleaved; `between` runs before each round.
pub fn interleave(
    subjects: &mut [Subject<'_>],
    plan: &Plan,
    mut between: impl FnMut(),
) -> Measured {
    let nanos_per_cycle = clock::nanos_per_cycle();
    between();
    let calls: Vec<u32> = subjects
        .iter_mut()
        .map(|subject| calls_for(subject, plan.sample_nanos / nanos_per_cycle))
        .collect();
    let mut series = vec![Vec::with_capacity(plan.rounds); subjects.len()];
    for round in 0..plan.rounds {
        between();
        let mut samples = vec![Vec::with_capacity(plan.samples); subjects.len()];
        for _ in 0..plan.samples {
            for turn in 0..subjects.len() {
                let index = if round % 2 == 0 { turn } else { subjects.len() - 1 - turn };
                let cycles = subjects[index].sample(calls[index]);
                samples[index].push(cycles * nanos_per_cycle / f64::from(calls[index]));
            }
        }
        for (series, samples) in series.iter_mut().zip(&samples) {
            series.push(statistics::median(samples));
        }
    }
    Measured { series }
}

/// Calls that take about `cycles`.
fn calls_for(subject: &mut Subject<'_>, cycles: f64) -> u32 {
    const TRIAL: u32 = 16;
    // The first sample warms the code up; the fastest of the others had no interruption.
    subject.sample(TRIAL);
    let trial = (0..9).map(|_| subject.sample(TRIAL)).fold(f64::INFINITY, f64::min);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to a range of u32"
    )]
    let calls = (cycles * f64::from(TRIAL) / trial.max(1.0)).clamp(1.0, 1e9) as u32;
    calls
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn loops_take_turns_and_every_other_round_is_reversed() {
        let order = RefCell::new(String::new());
        let note = |name: &'static str| {
            let order = &order;
            Subject::timed(name, move |_| {
                order.borrow_mut().push_str(name);
                1000.0
            })
        };
        let mut subjects = [note("a"), note("b")];
        let plan = Plan { rounds: 2, samples: 3, sample_nanos: 1000.0 };
        let starts = RefCell::new(Vec::new());
        interleave(&mut subjects, &plan, || {
            starts.borrow_mut().push(order.borrow().len());
        });
        let trials = 2 * 10;
        assert_eq!(*starts.borrow(), [0, trials, trials + 6]);
        assert_eq!(order.borrow()[trials..], *"abababbababa");
    }

    #[test]
    fn the_ratio_is_of_rounds_not_of_medians() {
        let measured = Measured { series: vec![vec![1.0, 20.0, 3.0], vec![2.0, 40.0, 6.0]] };
        let ratio = measured.ratio(0, 1);
        assert_eq!((ratio.median, ratio.low, ratio.high), (0.5, 0.5, 0.5));
    }

    #[test]
    fn a_sample_is_as_long_as_planned() {
        let mut subject = Subject::timed("ten cycles a call", |calls| 10.0 * f64::from(calls));
        assert_eq!(calls_for(&mut subject, 50_000.0), 5000);
    }
}
