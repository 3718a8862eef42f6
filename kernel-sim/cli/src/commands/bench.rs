//! `kernel-sim bench`.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use bench::check::{self, Outcome, Verdict};
use bench::rounds::Plan;
use bench::setup::Setup;

/// Options of `bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Measure the promised ratios; exit 1 if one is broken, 3 if the machine is too noisy to say.
    #[arg(long)]
    check: bool,
    /// Only rows whose name, as in `getcpu vs host vDSO`, contains this text.
    #[arg(long, value_name = "TEXT", requires = "check")]
    rows: Option<String>,
    /// Fewer and shorter samples.
    #[arg(long)]
    quick: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Too noisy to say.
const NOISY: u8 = 3;

/// Runs the measurements that were asked for.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if cfg!(debug_assertions) && !arguments.json {
        eprintln!("kernel-sim: this is a debug build; the measured loops are slow, use --release");
    }
    if !arguments.check {
        bail!("nothing to measure; say --check");
    }
    Setup::with(|setup| check(setup, arguments)).context("preparing to measure")?
}

fn check(setup: &Setup<'_>, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let plan = if arguments.quick {
        Plan { rounds: 31, samples: 5, sample_nanos: 10_000.0 }
    } else {
        Plan { rounds: 201, samples: 7, sample_nanos: 20_000.0 }
    };
    let pattern = arguments.rows.as_deref().unwrap_or("");
    let mut rows = check::rows::all(setup);
    let full_name = |row: &check::Row<'_>| format!("{} vs {}", row.name, row.against);
    let names: Vec<String> = rows.iter().map(full_name).collect();
    rows.retain(|row| full_name(row).contains(pattern));
    if rows.is_empty() {
        bail!("no row contains `{pattern}`; rows are:\n  {}", names.join("\n  "));
    }
    let mut outcomes = Vec::new();
    if !arguments.json {
        println!(
            "{:<58} {:<28} {:>7} {:>8} {:>7} {:>15} {:>7}  verdict",
            "measured", "against", "ns", "ns", "ratio", "95 % interval", "target"
        );
    }
    for row in rows {
        let outcome = row.run(&plan);
        if !arguments.json {
            print_row(&outcome);
        }
        outcomes.push(outcome);
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&outcomes)?);
    }
    let named = |verdict| -> Vec<&str> {
        let of_verdict = outcomes.iter().filter(|outcome| outcome.verdict == verdict);
        of_verdict.map(|outcome| &*outcome.name).collect()
    };
    let (failed, noisy) = (named(Verdict::Fail), named(Verdict::Inconclusive));
    if !noisy.is_empty() {
        eprintln!("kernel-sim: too noisy to say: {}", noisy.join(", "));
    }
    if !failed.is_empty() {
        eprintln!("kernel-sim: above the target: {}", failed.join(", "));
        return Ok(ExitCode::FAILURE);
    }
    if noisy.is_empty() { Ok(ExitCode::SUCCESS) } else { Ok(ExitCode::from(NOISY)) }
}

fn print_row(outcome: &Outcome) {
    let Outcome { name, against, nanos, against_nanos, ratio, target, verdict, .. } = outcome;
    let target = target.map_or_else(|| "-".to_owned(), |target| format!("{target:.2}"));
    let verdict = match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "FAIL",
        Verdict::Inconclusive => "inconclusive",
        Verdict::Reported => "reported",
    };
    println!(
        "{name:<58} {against:<28} {:>7.2} {:>8.2} {:>7.3} {:>15} {target:>7}  {verdict}",
        nanos.median,
        against_nanos.median,
        ratio.median,
        format!("{:.3} - {:.3}", ratio.low, ratio.high),
    );
}
