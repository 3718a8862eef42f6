//! The rows that compare two loops.

use bench::check::{Outcome, Row};
use bench::report::Progress as _;
use bench::rounds::Plan;

use super::text;
use crate::commands::bench::Arguments;
use crate::commands::bench::progress::Bars;

/// Measures the rows and prints what each came to.
pub(super) fn run(rows: &[Row<'_>], arguments: &Arguments) -> Vec<Outcome> {
    let plan = if arguments.quick {
        Plan { rounds: 31, samples: 5, sample_nanos: 10_000.0 }
    } else {
        Plan { rounds: 201, samples: 7, sample_nanos: 20_000.0 }
    };
    if !arguments.json && !rows.is_empty() {
        println!(
            "{:<58} {:<28} {:>20} {:>8} {:>7} {:>15} {:>7}  verdict",
            "measured", "against", "ns (min, p99)", "ns", "ratio", "95 % interval", "target"
        );
    }
    let bars = Bars::new();
    let measure = |row: &Row<'_>| {
        bars.begin(&row.name, 1);
        let outcome = row.run(&plan);
        bars.end();
        if !arguments.json {
            print(&outcome);
        }
        outcome
    };
    rows.iter().map(measure).collect()
}

fn print(outcome: &Outcome) {
    let Outcome { name, against, nanos, against_nanos, ratio, target, verdict, .. } = outcome;
    let target = target.map_or_else(|| "-".to_owned(), |target| format!("{target:.2}"));
    println!(
        "{name:<58} {against:<28} {:>20} {:>8.2} {:>7.3} {:>15} {target:>7}  {}",
        format!("{:.2} ({:.1}, {:.1})", nanos.median, nanos.min, nanos.p99),
        against_nanos.median,
        ratio.median,
        format!("{:.3} - {:.3}", ratio.low, ratio.high),
        text(*verdict),
    );
}
