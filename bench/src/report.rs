//! A measured table: its text in the form of the document that it reproduces, its numbers, its
//! charts, and what has to be said about them.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use crate::chart::Chart;
use crate::rounds::Measured;
use crate::statistics::{self, Estimate, Spread};
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

/// What the machine did to the loops of a table.
#[derive(Debug, Default)]
pub struct Noise {
    loops: Vec<(String, Spread, Estimate)>,
}

impl Noise {
    /// Takes note of measured loops.
    pub fn add(&mut self, subjects: &[Subject<'_>], measured: &Measured) {
        for (index, subject) in subjects.iter().enumerate() {
            self.add_series(subject.name(), measured.series(index));
        }
    }

    /// Takes note of one loop, by the nanoseconds of its rounds.
    pub fn add_series(&mut self, name: &str, series: &[f64]) {
        self.loops.push((name.to_owned(), Spread::of(series), Estimate::of(series)));
    }

    /// Each loop with its median, its fastest round and its 99th percentile, for a table whose own
    /// form has no room for them.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!(
            "\n{:<58} {:>9} {:>9} {:>9}\n",
            "nanoseconds per call over the rounds", "median", "min", "p99"
        );
        for (name, Spread { min, median, p99 }, _) in &self.loops {
            let _ = writeln!(text, "{name:<58} {median:>9.2} {min:>9.2} {p99:>9.2}");
        }
        text
    }

    /// How much the rounds scattered, and a warning where they did so too much to conclude.
    #[must_use]
    pub fn notes(mut self) -> Vec<String> {
        let over = |spread: &Spread, value: f64| 100.0 * (value / spread.min - 1.0);
        let medians: Vec<f64> = self.loops.iter().map(|(_, s, _)| over(s, s.median)).collect();
        let p99s: Vec<f64> = self.loops.iter().map(|(_, s, _)| over(s, s.p99)).collect();
        let mut notes = vec![format!(
            "noise of {} loops over the rounds: the median lies {:.1} % above the fastest round, \
             the 99th percentile {:.1} % (worst loop {:.0} %)",
            self.loops.len(),
            statistics::median(&medians),
            statistics::median(&p99s),
            statistics::quantile(&p99s, 1.0),
        )];
        self.loops.retain(|(_, _, estimate)| estimate.width() > QUIET);
        self.loops.sort_by(|(_, _, a), (_, _, b)| b.width().total_cmp(&a.width()));
        if self.loops.is_empty() {
            return notes;
        }
        let worst = self.loops.iter().take(NAMED);
        let worst: Vec<String> = worst
            .map(|(name, _, Estimate { low, high, .. })| {
                format!("{name} ({low:.1} to {high:.1} ns)")
            })
            .collect();
        let more = match self.loops.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        notes.push(format!(
            "warning, too noisy to conclude: the 95 % interval of the median is wider than {:.0} % \
             for {}{more}",
            QUIET * 100.0,
            worst.join(", "),
        ));
        notes
    }
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
        let mut noise = Noise::default();
        noise.add(&subjects, &measured);
        let table = noise.table();
        let line = |name| table.lines().find(|line| line.starts_with(name)).unwrap();
        let numbers = |name| -> Vec<&str> { line(name).split_whitespace().skip(1).collect() };
        let (quiet, noisy) = (numbers("quiet"), numbers("noisy"));
        assert_eq!(quiet, [quiet[0]; 3], "{table}");
        assert!(noisy[1] != noisy[2], "{table}");
        let notes = noise.notes();
        assert_eq!(notes.len(), 2);
        assert!(notes[0].contains("2 loops") && notes[0].contains("worst loop 200 %"), "{notes:?}");
        assert!(notes[1].contains("for noisy ("), "{notes:?}");
        assert!(!notes[1].contains("quiet"), "{notes:?}");
    }
}
