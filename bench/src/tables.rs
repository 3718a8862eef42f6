//! The tables that the project promises, each in the form of the document that asked for it.

mod clocks;
mod getns;
mod getres;
mod layout;
mod limit;
mod peers;
mod scale;
mod vdsotest;
mod vdsotest_rate;

use std::fmt;
use std::str::FromStr;

use crate::report::{Effort, Progress, Report};
use crate::rounds::{Measured, Plan, interleave};
use crate::setup::Setup;
use crate::subject::Subject;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Nanoseconds per call of vdsotest's sixteen calls.
    Vdsotest,
    /// Calls per second and speedup, with a counter and without.
    VdsotestRate,
    /// `clock_getres` through a libc, before and after it knew the vDSO's.
    Getres,
    /// A hundred million reads in nanoseconds, in two ways.
    Getns,
    /// Four clocks through three ways, with the time that each told.
    Clocks,
    /// Four layouts of the page under the same reader.
    Layout,
    /// Other ways for a Rust program to get a time.
    Peers,
    /// Readers beside a writer that publishes ever faster.
    Scale,
    /// The image beside hand-written readers.
    Limit,
}

/// There is no table of this name.
#[derive(Debug, thiserror::Error)]
#[error("no table is called `{found}`; tables are {}", names())]
pub struct UnknownTable {
    found: String,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Vdsotest,
        Self::VdsotestRate,
        Self::Getres,
        Self::Getns,
        Self::Clocks,
        Self::Layout,
        Self::Peers,
        Self::Scale,
        Self::Limit,
    ];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vdsotest => "vdsotest",
            Self::VdsotestRate => "vdsotest-rate",
            Self::Getres => "getres",
            Self::Getns => "getns",
            Self::Clocks => "clocks",
            Self::Layout => "layout",
            Self::Peers => "peers",
            Self::Scale => "scale",
            Self::Limit => "limit",
        }
    }

    /// Measures it.
    #[must_use]
    pub fn measure(self, setup: &Setup<'_>, effort: Effort, progress: &dyn Progress) -> Report {
        let bench = Bench { setup, effort, progress };
        match self {
            Self::Vdsotest => vdsotest::measure(&bench),
            Self::VdsotestRate => vdsotest_rate::measure(&bench),
            Self::Getres => getres::measure(&bench),
            Self::Getns => getns::measure(&bench),
            Self::Clocks => clocks::measure(&bench),
            Self::Layout => layout::measure(&bench),
            Self::Peers => peers::measure(&bench),
            Self::Scale => scale::measure(&bench),
            Self::Limit => limit::measure(&bench),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Table {
    type Err = UnknownTable;

    fn from_str(name: &str) -> Result<Self, UnknownTable> {
        let found = Self::ALL.into_iter().find(|table| table.name() == name);
        found.ok_or_else(|| UnknownTable { found: name.to_owned() })
    }
}

fn names() -> String {
    Table::ALL.map(Table::name).join(", ")
}

/// What every table's measurement needs.
struct Bench<'b, 'm> {
    setup: &'b Setup<'m>,
    effort: Effort,
    progress: &'b dyn Progress,
}

impl Bench<'_, '_> {
    /// Rounds and samples for this effort.
    fn plan(&self) -> Plan {
        match self.effort {
            Effort::Quick => Plan { rounds: 9, samples: 3, sample_nanos: 10_000.0 },
            Effort::Full => Plan { rounds: 101, samples: 5, sample_nanos: 20_000.0 },
        }
    }

    /// Measures all of `subjects`, interleaved, and says how far it has come.
    fn interleave(&self, what: &str, subjects: &mut [Subject<'_>], plan: &Plan) -> Measured {
        // The loops are calibrated once before the first round.
        self.progress.begin(what, plan.rounds + 1);
        let measured = interleave(subjects, plan, || {
            self.setup.tick();
            self.progress.step();
        });
        self.progress.end();
        measured
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_found_by_its_name_and_others_are_refused() {
        for table in Table::ALL {
            assert_eq!(table.to_string().parse::<Table>().unwrap(), table);
        }
        let error = "vdso".parse::<Table>().unwrap_err().to_string();
        assert!(error.contains("`vdso`") && error.contains("vdsotest-rate"), "{error}");
    }

    #[test]
    fn every_table_has_rows_text_and_finite_numbers() {
        let reports =
            Setup::with(|setup| Table::ALL.map(|table| table.measure(setup, Effort::Quick, &())))
                .unwrap();
        for report in reports {
            assert!(!report.rows.is_empty() && !report.text.is_empty(), "{}", report.table);
            let text = serde_json::to_string(&report).unwrap();
            assert!(!text.contains("null"), "{}: a number is missing: {text}", report.table);
            assert!(!report.charts.is_empty(), "{} has no drawing", report.table);
        }
    }
}
