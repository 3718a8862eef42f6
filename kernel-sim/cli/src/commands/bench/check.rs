//! `kernel-sim bench --check`: the promises, and an exit code that says whether they are kept.

use std::process::ExitCode;

use anyhow::bail;
use bench::check::{self, Outcome, Row, Verdict};
use bench::report::Progress as _;
use bench::rounds::Plan;
use bench::setup::Setup;

use super::progress::Bars;

/// Too noisy to say.
const NOISY: u8 = 3;

/// Measures the rows and prints what each came to.
pub(super) fn run(setup: &Setup<'_>, arguments: &super::Arguments) -> anyhow::Result<ExitCode> {
    let plan = if arguments.quick {
        Plan { rounds: 31, samples: 5, sample_nanos: 10_000.0 }
    } else {
        Plan { rounds: 201, samples: 7, sample_nanos: 20_000.0 }
    };
    let rows = selected(check::rows::all(setup), arguments.rows.as_deref())?;
    if !arguments.json {
        println!("{}\n", super::machine(setup));
        println!(
            "{:<58} {:<28} {:>20} {:>8} {:>7} {:>15} {:>7}  verdict",
            "measured", "against", "ns (min, p99)", "ns", "ratio", "95 % interval", "target"
        );
    }
    let mut outcomes = Vec::new();
    let bars = Bars::new();
    for row in rows {
        bars.begin(&row.name, 1);
        let outcome = row.run(&plan);
        bars.end();
        if !arguments.json {
            print(&outcome);
        }
        outcomes.push(outcome);
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&outcomes)?);
    }
    Ok(exit_code(&outcomes))
}

/// The rows whose full name contains `pattern`.
fn selected<'m>(rows: Vec<Row<'m>>, pattern: Option<&str>) -> anyhow::Result<Vec<Row<'m>>> {
    let Some(pattern) = pattern else {
        return Ok(rows);
    };
    let full_name = |row: &Row<'_>| format!("{} vs {}", row.name, row.against);
    let names: Vec<String> = rows.iter().map(full_name).collect();
    let selected: Vec<Row<'m>> =
        rows.into_iter().filter(|row| full_name(row).contains(pattern)).collect();
    if selected.is_empty() {
        bail!("no row contains `{pattern}`; rows are:\n  {}", names.join("\n  "));
    }
    Ok(selected)
}

fn print(outcome: &Outcome) {
    let Outcome { name, against, nanos, against_nanos, ratio, target, verdict, .. } = outcome;
    let target = target.map_or_else(|| "-".to_owned(), |target| format!("{target:.2}"));
    let verdict = match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "FAIL",
        Verdict::Inconclusive => "inconclusive",
        Verdict::Reported => "reported",
    };
    println!(
        "{name:<58} {against:<28} {:>20} {:>8.2} {:>7.3} {:>15} {target:>7}  {verdict}",
        format!("{:.2} ({:.1}, {:.1})", nanos.median, nanos.min, nanos.p99),
        against_nanos.median,
        ratio.median,
        format!("{:.3} - {:.3}", ratio.low, ratio.high),
    );
}

/// 0 if all promises are kept, 1 if one is broken, 3 if one could not be told.
fn exit_code(outcomes: &[Outcome]) -> ExitCode {
    let named = |verdict| -> Vec<String> {
        let of_verdict = outcomes.iter().filter(|outcome| outcome.verdict == verdict);
        of_verdict.map(|outcome| format!("{} vs {}", outcome.name, outcome.against)).collect()
    };
    let (failed, noisy) = (named(Verdict::Fail), named(Verdict::Inconclusive));
    if !noisy.is_empty() {
        eprintln!("kernel-sim: too noisy to say: {}", noisy.join("; "));
    }
    if !failed.is_empty() {
        eprintln!("kernel-sim: above the target: {}", failed.join("; "));
        return ExitCode::FAILURE;
    }
    if noisy.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(NOISY) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::statistics::{Estimate, Spread};

    use Verdict::{Fail, Inconclusive, Pass, Reported};

    fn outcome(verdict: Verdict) -> Outcome {
        let nanos = Spread { min: 1.0, median: 1.0, p99: 1.0 };
        Outcome {
            name: "a".to_owned(),
            against: "b".to_owned(),
            nanos,
            against_nanos: nanos,
            ratio: Estimate { median: 1.0, low: 1.0, high: 1.0 },
            target: Some(1.0),
            verdict,
            attempts: 1,
        }
    }

    #[test]
    fn a_broken_promise_counts_more_than_noise_and_noise_more_than_none() {
        let code = |verdicts: &[Verdict]| {
            let outcomes: Vec<Outcome> = verdicts.iter().map(|verdict| outcome(*verdict)).collect();
            format!("{:?}", exit_code(&outcomes))
        };
        let (kept, broken) = (ExitCode::SUCCESS, ExitCode::FAILURE);

        assert_eq!(code(&[Pass, Reported]), format!("{kept:?}"));
        assert_eq!(code(&[Pass, Inconclusive]), format!("{:?}", ExitCode::from(3)));
        assert_eq!(code(&[Inconclusive, Fail, Pass]), format!("{broken:?}"));
    }
}
