//! `kernel-sim replay`: a scenario again, every read judged.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use fuzz::{Scenario, Stage};

/// Options of `replay`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Scenarios, such as those in kernel-sim/fuzz/scenarios.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Print JSON, one object a line.
    #[arg(long)]
    json: bool,
}

/// Runs each scenario; fails on the first that goes wrong.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    for file in &arguments.files {
        play(file, arguments.json)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The scenario in a file.
pub(super) fn load(file: &Path) -> anyhow::Result<Scenario> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    Scenario::parse(&text).with_context(|| format!("parsing {}", file.display()))
}

/// Runs the scenario in a file and prints what it came to.
pub(super) fn play(file: &Path, json: bool) -> anyhow::Result<ExitCode> {
    let scenario = load(file)?;
    let outcome =
        Stage::new().run(&scenario).with_context(|| format!("running {}", file.display()))?;
    let shown = file.display();
    if let Some((step, violation)) = outcome.violation {
        let first = step.saturating_sub(7);
        let events = scenario.steps[first..=step].iter().map(|step| format!("    {step}\n"));
        bail!(
            "{shown}: step {} of {} goes wrong: {violation}\n  after these steps:\n{}",
            step + 1,
            scenario.len(),
            events.collect::<String>()
        );
    }
    let counts = outcome.counts;
    if json {
        let cases = counts.cases().into_iter().map(|(name, count)| (name, count.into()));
        let cases = cases.collect::<serde_json::Map<_, _>>();
        println!(
            "{}",
            serde_json::json!({
                "file": file, "updates": counts.updates, "reads": counts.reads, "cases": cases,
            })
        );
    } else {
        println!("{shown}: {} updates, {} reads, all as due", counts.updates, counts.reads);
    }
    Ok(ExitCode::SUCCESS)
}
