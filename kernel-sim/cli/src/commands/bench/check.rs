//! `kernel-sim bench --check`: the promises, and an exit code that says whether they are kept.

mod launcher;
mod ratios;

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use bench::check::{self, Verdict};
use bench::setup::Setup;

/// Too noisy to say.
const NOISY: u8 = 3;

/// Measures the rows, and prints what each came to and which could not be measured.
pub(super) fn run(arguments: &super::Arguments) -> anyhow::Result<ExitCode> {
    let pattern = arguments.rows.as_deref().unwrap_or_default();
    let cpus = bench::clock::cpus().context("asking for the CPUs")?.len();
    let mut launches = check::launcher::all(cpus);
    let ratios = Setup::with(|setup| {
        let mut rows = check::rows::all(setup);
        let names = rows.iter().map(|row| full_name(&row.name, &row.against));
        let launches_names = launches.iter().map(|row| full_name(&row.name, &row.against));
        let names: Vec<String> = names.chain(launches_names).collect();
        rows.retain(|row| full_name(&row.name, &row.against).contains(pattern));
        launches.retain(|row| full_name(&row.name, &row.against).contains(pattern));
        if rows.is_empty() && launches.is_empty() {
            bail!("no row contains `{pattern}`; rows are:\n  {}", names.join("\n  "));
        }
        if !arguments.json {
            println!("{}\n", super::machine(setup));
        }
        Ok(ratios::run(&rows, arguments))
    });
    let ratios = ratios.context("preparing to measure")??;
    let (launches, left_out) = launcher::run(launches, arguments).context("the launcher")?;
    if arguments.json {
        let found = serde_json::json!({
            "ratios": ratios,
            "launches": launches,
            "left_out": left_out,
        });
        println!("{}", serde_json::to_string_pretty(&found)?);
    }
    let ratios = ratios.iter().map(|row| (row.verdict, full_name(&row.name, &row.against)));
    let launches = launches.iter().map(|row| (row.verdict, full_name(&row.name, &row.against)));
    Ok(exit_code(&ratios.chain(launches).collect::<Vec<_>>()))
}

/// As rows are asked for.
fn full_name(name: &str, against: &str) -> String {
    format!("{name} vs {against}")
}

/// A verdict as it is printed.
fn text(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "FAIL",
        Verdict::Inconclusive => "inconclusive",
        Verdict::Reported => "reported",
    }
}

/// 0 if all promises are kept, 1 if one is broken, 3 if one could not be told.
fn exit_code(verdicts: &[(Verdict, String)]) -> ExitCode {
    let named = |wanted| -> Vec<&str> {
        let of_verdict = verdicts.iter().filter(|(verdict, _)| *verdict == wanted);
        of_verdict.map(|(_, name)| name.as_str()).collect()
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

    use Verdict::{Fail, Inconclusive, Pass, Reported};

    #[test]
    fn a_broken_promise_counts_more_than_noise_and_noise_more_than_none() {
        let code = |verdicts: &[Verdict]| {
            let named: Vec<(Verdict, String)> =
                verdicts.iter().map(|verdict| (*verdict, "a vs b".to_owned())).collect();
            format!("{:?}", exit_code(&named))
        };
        let (kept, broken) = (ExitCode::SUCCESS, ExitCode::FAILURE);

        assert_eq!(code(&[Pass, Reported]), format!("{kept:?}"));
        assert_eq!(code(&[Pass, Inconclusive]), format!("{:?}", ExitCode::from(3)));
        assert_eq!(code(&[Inconclusive, Fail, Pass]), format!("{broken:?}"));
    }
}
