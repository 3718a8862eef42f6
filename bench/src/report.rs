//! A measured table: its text in the form of the document that it reproduces, its numbers, its
//! charts, and what has to be said about them.

use serde::Serialize;
use serde_json::Value;

use crate::chart::Chart;
use crate::rounds::Measured;
use crate::statistics::Estimate;
use crate::subject::Subject;

/// How much time may be spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Seconds: to see the table.
    Quick,
    /// A minute or so: to quote it.
    Full,
}

/// Who is told how far a long measurement has come.
pub trait Progress {
    /// A part begins that takes this many steps.
    fn begin(&self, what: &str, steps: usize);
    /// A step is done.
    fn step(&self);
    /// The part is done.
    fn end(&self);
}

/// Tells nobody.
impl Progress for () {
    fn begin(&self, _: &str, _: usize) {}
    fn step(&self) {}
    fn end(&self) {}
}

/// A measured table.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The table's name on the command line.
    pub table: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// The table as it is printed.
    #[serde(skip)]
    pub text: String,
    /// One value for each row.
    pub rows: Vec<Value>,
    /// What a reader of the numbers has to know, noise above all.
    pub notes: Vec<String>,
    /// Drawings.
    #[serde(skip)]
    pub charts: Vec<Chart>,
}

/// The widest 95 % interval of a median that still supports a conclusion, as a share of it.
const QUIET: f64 = 0.05;

/// How many names a note lists.
const NAMED: usize = 3;

/// A note that names the loops whose median this machine was too noisy to tell, the worst first;
/// none if it was quiet.
#[must_use]
pub fn noise(subjects: &[Subject<'_>], measured: &Measured) -> Vec<String> {
    let mut noisy: Vec<(&str, Estimate)> = subjects
        .iter()
        .enumerate()
        .map(|(index, subject)| (subject.name(), Estimate::of(measured.series(index))))
        .filter(|(_, estimate)| estimate.width() > QUIET)
        .collect();
    if noisy.is_empty() {
        return Vec::new();
    }
    noisy.sort_by(|(_, a), (_, b)| b.width().total_cmp(&a.width()));
    let described: Vec<String> = noisy
        .iter()
        .take(NAMED)
        .map(|(name, Estimate { low, high, .. })| format!("{name} ({low:.1} to {high:.1} ns)"))
        .collect();
    let more = noisy.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    vec![format!(
        "too noisy to conclude: the 95 % interval of the median is wider than {:.0} % for {}{more}",
        QUIET * 100.0,
        described.join(", "),
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::{Plan, interleave};
    use std::cell::Cell;

    #[test]
    fn a_noisy_loop_is_named_and_a_quiet_one_is_not() {
        let turn = Cell::new(0_u32);
        let mut subjects = [
            Subject::timed("quiet", |_| 100.0),
            Subject::timed("noisy", |_| {
                turn.set(turn.get() + 1);
                [50.0, 150.0][turn.get() as usize % 2]
            }),
        ];
        let plan = Plan { rounds: 20, samples: 1, sample_nanos: 1.0 };
        let measured = interleave(&mut subjects, &plan, || ());
        let notes = noise(&subjects, &measured);
        assert_eq!(notes.len(), 1);
        assert!(notes[0].contains("for noisy ("), "{notes:?}");
        assert!(!notes[0].contains("quiet"), "{notes:?}");
    }
}
