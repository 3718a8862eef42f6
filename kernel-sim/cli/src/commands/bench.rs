//! `kernel-sim bench`: the measurements of the library `bench`, printed.

mod check;
mod progress;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use bench::launching::Guest;
use bench::report::{Effort, Report};
use bench::setup::Setup;
use bench::tables::Table;

use self::progress::Bars;

/// Options of `bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Measure what is promised; exit 1 if a promise is broken, 3 if the machine is too noisy to say.
    #[arg(long)]
    check: bool,
    /// With --check: only rows whose name, as in `getcpu vs host vDSO`, contains this text.
    #[arg(long, value_name = "TEXT", requires = "check")]
    rows: Option<String>,
    /// Measure one table: vdsotest, vdsotest-rate, getres, getns, clocks, layout, peers, scale or
    /// limit; without it, all of them.
    #[arg(long, value_name = "NAME", conflicts_with = "check")]
    table: Option<Table>,
    /// Fewer and shorter samples.
    #[arg(long)]
    quick: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Draw each table into this directory as SVG.
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    svg: Option<PathBuf>,
    /// Be a program that --check measures the launcher with.
    #[arg(long, value_name = "NAME", hide = true)]
    guest: Option<Guest>,
}

/// Runs the measurements that were asked for.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(guest) = arguments.guest {
        guest.run().context("measuring from inside")?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(directory) = &arguments.svg {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("creating the directory {}", directory.display()))?;
    }
    if arguments.check {
        return check::run(arguments);
    }
    Setup::with(|setup| tables(setup, arguments)).context("preparing to measure")?
}

/// Measures tables and prints each as soon as it is done.
fn tables(setup: &Setup<'_>, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let effort = if arguments.quick { Effort::Quick } else { Effort::Full };
    let tables = arguments.table.map_or_else(|| Table::ALL.to_vec(), |table| vec![table]);
    if !arguments.json {
        println!("{}\n", machine(setup));
    }
    let mut reports = Vec::new();
    for table in tables {
        let report = table.measure(setup, effort, &Bars::new());
        if !arguments.json {
            print(&report);
        }
        if let Some(directory) = &arguments.svg {
            for chart in &report.charts {
                let path = chart.draw(directory)?;
                eprintln!("drawn: {}", path.display());
            }
        }
        reports.push(report);
    }
    if arguments.json {
        let output = serde_json::json!({ "machine": machine(setup), "tables": reports });
        println!("{}", serde_json::to_string_pretty(&output)?);
    }
    if reports.is_empty() {
        bail!("nothing was measured");
    }
    Ok(ExitCode::SUCCESS)
}

fn print(report: &Report) {
    println!("{}\n", report.title);
    print!("{}", report.text);
    for note in &report.notes {
        println!("note: {note}");
    }
    println!();
}

/// What the numbers depend on.
fn machine(setup: &Setup<'_>) -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("an unknown CPU", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mode = if setup.chosen().mode() == setup.counter.mode() {
        "COUNTER (lfence; rdtsc)"
    } else {
        "RDTSCP"
    };
    format!(
        "{model}, Linux {}, measured on CPU {}, counter {:.0} MHz, page in mode {mode}",
        release.trim(),
        setup.cpu,
        1e3 / bench::clock::nanos_per_cycle(),
    )
}
