//! `kernel-sim fuzz`: random machines, every read judged by the oracle.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use fuzz::campaign::{self, Finding, Options, Outcome};
use indicatif::{ProgressBar, ProgressStyle};
use nix::time::{ClockId, clock_gettime};

/// Updates from which on a run must have come to every case there is.
const COMPLETE: u64 = 1_000_000;

/// Options of `fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Updates of the page, each followed by reads that are judged.
    #[arg(long, value_name = "N", default_value_t = COMPLETE)]
    updates: u64,
    /// Which run: the same seed is the same run, on any number of threads.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Threads that share the run.
    #[arg(long, value_name = "T", default_value_t = 1)]
    threads: usize,
    /// Judge this scenario instead, and make it as short as it can be if it goes wrong.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["updates", "seed", "threads"])]
    scenario: Option<PathBuf>,
    /// Where a scenario that goes wrong is written.
    #[arg(long, value_name = "FILE", default_value = "finding.scn")]
    finding: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the fuzzer: fails on the first violation, and on a long run that missed a case.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(file) = &arguments.scenario {
        return judge(file, arguments);
    }
    let &Arguments { updates, seed, threads, .. } = arguments;
    if threads == 0 || threads > 1024 {
        bail!("--threads {threads}: a run takes 1 to 1024 threads");
    }
    if updates == 0 {
        bail!("--updates 0 judges nothing; write at least 1");
    }
    let bar = progress(updates)?;
    let before = cpu_time();
    let outcome = campaign::run(&Options { updates, seed, threads }, |so_far| {
        bar.set_position(so_far.updates);
        let findings = if so_far.has_finding { "1 finding" } else { "0 findings" };
        let (updates, rate) = (millions(so_far.updates), bar.per_sec() / 1e6);
        bar.set_message(format!("{updates:.1} M updates, {rate:.2} M/s, {findings}"));
    })
    .context("running a scenario")?;
    let cpu = cpu_time().saturating_sub(before);
    bar.finish_and_clear();
    let missing = if updates >= COMPLETE && outcome.finding.is_none() {
        outcome.counts.missing()
    } else {
        vec![]
    };
    if let Some(finding) = &outcome.finding {
        crate::output::write(&arguments.finding, finding.scenario.to_string().as_bytes())?;
    }
    if arguments.json {
        println!("{:#}", as_json(arguments, &outcome, cpu, &missing));
    } else {
        print_report(arguments, &outcome, cpu);
    }
    if let Some(finding) = &outcome.finding {
        let shown = arguments.finding.display();
        let Finding { number, steps, scenario, violation } = finding;
        bail!(
            "scenario {number} of seed {seed} goes wrong ({} of its {steps} steps are enough):\n\
             {violation}\n  because of these events:\n{}\n\
             kernel-sim replay {shown} shows it again",
            scenario.len(),
            indented(&scenario.to_string())
        );
    }
    if !missing.is_empty() {
        bail!("a run of {updates} updates never came to: {}", missing.join(", "));
    }
    Ok(ExitCode::SUCCESS)
}

/// A bar with rate, findings and the time left, on a terminal only; it fits into 80 columns.
fn progress(updates: u64) -> anyhow::Result<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let style = ProgressStyle::with_template("{wide_bar} {percent}% {msg}, {eta} left")?;
    Ok(ProgressBar::new(updates).with_style(style).with_message("starting"))
}

#[allow(clippy::cast_precision_loss, reason = "a number for people")]
fn millions(updates: u64) -> f64 {
    updates as f64 / 1e6
}

fn judge(file: &Path, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let scenario = super::replay::load(file)?;
    let shortest = fuzz::minimise::minimise(&scenario)
        .with_context(|| format!("running {}", file.display()))?;
    let Some((shortest, violation)) = shortest else {
        return super::replay::play(file, arguments.json);
    };
    crate::output::write(&arguments.finding, shortest.to_string().as_bytes())?;
    bail!(
        "{} goes wrong, and {} of its {} steps are enough (written to {}):\n{violation}\n{}",
        file.display(),
        shortest.len(),
        scenario.len(),
        arguments.finding.display(),
        indented(&shortest.to_string())
    )
}

/// Time that this process has spent on CPUs, which another process cannot make longer by much.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

fn print_report(arguments: &Arguments, outcome: &Outcome, cpu: Duration) {
    let Outcome { counts, elapsed, .. } = outcome;
    println!(
        "seed {}: {} updates ({} by the timekeeper), {} reads judged",
        arguments.seed, counts.updates, counts.kernel_updates, counts.reads
    );
    let rate = |of: Duration| {
        #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
        let updates = counts.updates as f64;
        updates / of.as_secs_f64().max(1e-9) / 1e6
    };
    println!(
        "{elapsed:.2?} on {} thread(s): {:.2} M updates a second, {:.2} M for each of CPU time",
        arguments.threads,
        rate(*elapsed),
        rate(cpu)
    );
    print_cases(&counts.cases());
}

/// Cases with their counts, in two columns.
fn print_cases(cases: &[(String, u64)]) {
    for row in cases.chunks(2) {
        let cells = row.iter().map(|(name, count)| format!("  {name:<20} {count:>12}  "));
        println!("{}", cells.collect::<String>().trim_end());
    }
}

fn as_json(
    arguments: &Arguments,
    outcome: &Outcome,
    cpu: Duration,
    missing: &[String],
) -> serde_json::Value {
    let cases = outcome.counts.cases().into_iter().map(|(name, count)| (name, count.into()));
    serde_json::json!({
        "seed": arguments.seed,
        "threads": arguments.threads,
        "seconds": outcome.elapsed.as_secs_f64(),
        "cpu_seconds": cpu.as_secs_f64(),
        "updates": outcome.counts.updates,
        "timekeeper_updates": outcome.counts.kernel_updates,
        "reads": outcome.counts.reads,
        "cases": cases.collect::<serde_json::Map<_, _>>(),
        "missing": missing,
        "finding": outcome.finding.as_ref().map(|finding| serde_json::json!({
            "number": finding.number,
            "scenario": finding.scenario.to_string(),
            "what": finding.violation.what,
            "read": finding.violation.read,
            "due": finding.violation.due,
        })),
    })
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}
