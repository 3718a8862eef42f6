//! `kernel-sim soak`: real threads and processes, every read judged.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use fuzz::Violation;
use indicatif::{ProgressBar, ProgressStyle};
use kernel_sim::map::MappedImage;
use serde_json::json;

/// Options of `soak`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Seconds for each of the three parts.
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// What happens in which order.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The rate by which oracle and timekeeper are told to count this machine's counter: any will do.
const HZ: u64 = 2_000_000_000;

/// Runs the three parts; fails on the first read that is wrong.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let &Arguments { seconds, seed, json } = arguments;
    if seconds == 0 {
        bail!("--seconds 0 reads nothing; write at least 1");
    }
    let duration = Duration::from_secs(seconds);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    // These images never enter the host's kernel, whose time would be the wrong answer.
    let image = || MappedImage::new(&linker::ENOSYS).context("mapping the image");

    let bar = progress("a simulated machine at full speed", seconds)?;
    let driven = fuzz::demo::drive(&mut image()?, duration, seed, |updates, reads| {
        show(&bar, &format!("{updates} updates, {reads} reads"));
    });
    bar.finish_and_clear();
    let driven = driven.map_err(|violation| wrong("simulated machine", seed, &violation))?;

    let bar = progress("this machine's counter", seconds)?;
    let counted = fuzz::soak::run(&mut image()?, HZ, threads, duration, seed, |updates| {
        show(&bar, &format!("{updates} updates"));
    });
    bar.finish_and_clear();
    let counted = counted.map_err(|violation| wrong("machine's counter", seed, &violation))?;

    let bar = progress("writers that are killed", seconds)?;
    let killed = fuzz::killed::run(&mut image()?, threads, duration, seed, |killed, reads| {
        show(&bar, &format!("{killed} killed, {reads} reads"));
    });
    bar.finish_and_clear();
    let killed = killed.map_err(|violation| wrong("killed writers", seed, &violation))?;

    if json {
        let longest_us = u64::try_from(killed.longest.as_micros())?;
        let parts = json!({
            "seed": seed, "seconds": seconds, "threads": threads,
            "simulated": {
                "updates": driven.updates, "reads": driven.reads,
                "fell_back": driven.gave_up, "not_compared": driven.unchecked,
            },
            "counter": {
                "updates": counted.updates, "reads": counted.reads,
                "fell_back": counted.gave_up, "not_compared": counted.unchecked,
            },
            "killed": {
                "writers": killed.killed, "in_an_update": killed.left_odd,
                "updates": killed.updates, "reads": killed.reads,
                "fell_back": killed.gave_up, "longest_us": longest_us,
            },
        });
        println!("{parts:#}");
        return Ok(ExitCode::SUCCESS);
    }
    println!("seed {seed}, {seconds} s for each part, {threads} threads that read");
    println!("a simulated machine at full speed: {} updates", driven.updates);
    print_reads("exact", driven.reads, driven.gave_up, driven.unchecked);
    println!("this machine's counter: {} updates", counted.updates);
    print_reads("within their bracket", counted.reads, counted.gave_up, counted.unchecked);
    println!(
        "writers that are killed: {}, {} in the middle of an update, after {} updates",
        killed.killed, killed.left_odd, killed.updates
    );
    print_reads("whole and in order", killed.reads, killed.gave_up, 0);
    println!("  the longest took {:.1?}, with whatever else this machine did", killed.longest);
    Ok(ExitCode::SUCCESS)
}

fn print_reads(how: &str, reads: u64, fell_back: u64, not_compared: u64) {
    println!("  {reads} reads {how}, {fell_back} fell back, {not_compared} not compared");
}

fn wrong(part: &str, seed: u64, violation: &Violation) -> anyhow::Error {
    anyhow::anyhow!("{part}, seed {seed}: {violation}")
}

/// A bar of seconds, on a terminal only.
fn progress(title: &'static str, seconds: u64) -> anyhow::Result<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let style = ProgressStyle::with_template("{prefix}: {wide_bar} {msg}")?;
    Ok(ProgressBar::new(seconds.saturating_mul(1000)).with_style(style).with_prefix(title))
}

fn show(bar: &ProgressBar, message: &str) {
    if bar.is_hidden() {
        return;
    }
    bar.set_position(u64::try_from(bar.elapsed().as_millis()).unwrap_or(u64::MAX));
    bar.set_message(message.to_owned());
}
