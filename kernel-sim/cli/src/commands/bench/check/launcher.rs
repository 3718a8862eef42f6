//! The rows that launch programs.

use bench::check::launcher::{LeftOut, Millis, Outcome, Plan, Row, possible};
use bench::launching::{Launching, LaunchingError};
use bench::report::Progress as _;

use super::text;
use crate::commands::bench::Arguments;
use crate::commands::bench::progress::Bars;

/// Measures the rows that this machine can measure, prints what each came to, and says which are
/// left out.
pub(super) fn run(
    rows: Vec<Row>,
    arguments: &Arguments,
) -> Result<(Vec<Outcome>, Vec<LeftOut>), LaunchingError> {
    if rows.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let plan = if arguments.quick {
        Plan { execs: 60, kills: 20 }
    } else {
        Plan { execs: 500, kills: 100 }
    };
    let launching = Launching::new()?;
    let (rows, left_out) = possible(rows, &launching)?;
    if !arguments.json && !rows.is_empty() {
        println!(
            "\n{:<58} {:<14} {:>28} {:>28} {:<18} {:>7} {:>15} {:>6}  verdict",
            "measured",
            "against",
            "ms (min, p99, most)",
            "ms (min, p99, most)",
            "judged",
            "ms",
            "95 % interval",
            "target"
        );
    }
    let mut outcomes = Vec::new();
    let bars = Bars::new();
    for row in rows {
        bars.begin(&row.name, row.steps(&plan));
        let outcome = row.run(&launching, &plan, || bars.step());
        bars.end();
        let outcome = outcome?;
        if !arguments.json {
            print(&outcome);
        }
        outcomes.push(outcome);
    }
    for LeftOut { name, why } in &left_out {
        eprintln!("kernel-sim: left out: {name}: {why}");
    }
    Ok((outcomes, left_out))
}

fn print(outcome: &Outcome) {
    let Outcome { name, against, millis, against_millis, judged, found, target, verdict, .. } =
        outcome;
    println!(
        "{name:<58} {against:<14} {:>28} {:>28} {judged:<18} {:>7.2} {:>15} {target:>6.0}  {}",
        spread(millis),
        spread(against_millis),
        found.value,
        format!("{:.2} - {:.2}", found.low, found.high),
        text(*verdict),
    );
}

fn spread(Millis { min, median, p99, most }: &Millis) -> String {
    format!("{median:.2} ({min:.2}, {p99:.2}, {most:.2})")
}
