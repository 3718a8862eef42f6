//! `kernel-sim` without a subcommand: the whole product once, in under ten seconds.
//!
//! It checks the image, draws the page, drives the timekeeper with random updates while readers
//! compare every read with the exact value, shows our clocks beside the host's, and runs a real
//! program on the image. Each part is a file here; each fills in a value that is printed as text or,
//! with `--json`, as data.

mod clocks;
mod drive;
mod image;
mod programs;
mod text;

use std::process::ExitCode;

use serde::Serialize;

/// Options of the demonstration.
#[derive(Debug, Default, clap::Args)]
#[group(skip)] // it is flattened into another `Arguments`
pub(crate) struct Arguments {
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// What the demonstration found.
#[derive(Debug, Serialize)]
struct Report {
    image: image::Image,
    drive: drive::Drive,
    clocks: Vec<clocks::Clock>,
    programs: Vec<programs::Program>,
    /// What went wrong, in words; empty if nothing did.
    failures: Vec<String>,
}

/// Runs all parts. A failure of one is reported at the end and does not keep the others from
/// running.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut failures = Vec::new();
    let say = |text: &dyn Fn() -> String| {
        if !arguments.json {
            print!("{}", text());
        }
    };
    let image = image::check(&mut failures);
    say(&|| text::image(&image));
    say(&text::page);
    let drive = drive::drive(!arguments.json, &mut failures)?;
    say(&|| text::drive(&drive));
    let clocks = clocks::compare(&mut failures)?;
    say(&|| text::clocks(&clocks));
    let programs = programs::run(&mut failures);
    say(&|| text::programs(&programs));
    let report = Report { image, drive, clocks, programs, failures };
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    }
    for failure in &report.failures {
        eprintln!("kernel-sim: {failure}");
    }
    Ok(if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
