//! `kernel-sim sandwich`: how well the clocks of a running program agree with the kernel's.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use kernel_sim::launch::{Command, Remark, Status};
use kernel_sim::sandwich::{Tally, compare};

/// Options of `sandwich`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Seconds on each CPU
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u64,
    /// This is the program that runs on the image.
    #[arg(long, hide = true)]
    inside: bool,
}

/// Compares; fails if a read was outside of its sandwich.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.inside {
        return inside(arguments);
    }
    let this = std::env::current_exe().context("finding this command's own file")?;
    let seconds = arguments.seconds.to_string();
    let command = Command::new(this).args(["sandwich", "--inside", "--seconds", &seconds]);
    let outcome = command.run(&mut |remark| {
        if let Remark::Warning(text) = remark {
            eprintln!("kernel-sim: {text}");
        }
    })?;
    Ok(match outcome.status {
        Status::Exited(0) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

fn inside(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    println!(
        "{:>3} {:<14} {:>10} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9}",
        "CPU", "clock", "reads", "below", "above", "worst-", "worst+", "backwards", "narrowest"
    );
    let mut holds = true;
    let mut report = |cpu: usize, name: &str, tally: &Tally| {
        holds &= tally.holds();
        println!(
            "{cpu:>3} {name:<14} {:>10} {:>8} {:>8} {:>5} ns {:>5} ns {:>9} {:>6} ns",
            tally.reads,
            tally.below,
            tally.above,
            tally.most_below_ns,
            tally.most_above_ns,
            tally.backwards,
            tally.narrowest_ns,
        );
    };
    let time = Duration::from_secs(arguments.seconds);
    anyhow::ensure!(compare(time, &mut report), "this program is not on our image");
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
