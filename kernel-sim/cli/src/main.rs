//! The command `kernel-sim`: each subcommand is one file in `commands/`.

mod commands;
mod output;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The unified vDSO: make images, judge them, drive them, run programs on them.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure our image beside the host's vDSO, libc and the system call.
    Bench(commands::bench::Arguments),
    /// Make, show, judge and export images.
    Image(commands::image::Arguments),
    /// Draw the data page, cache line by cache line.
    Layout(commands::layout::Arguments),
    /// Run a program on our image, with the host's time or another.
    Run(commands::run::Arguments),
    /// Compare the clocks of a program on our image with the kernel's, read by read.
    Sandwich(commands::sandwich::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        None => Ok(ExitCode::SUCCESS),
        Some(Command::Bench(arguments)) => commands::bench::run(&arguments),
        Some(Command::Image(arguments)) => commands::image::run(&arguments),
        Some(Command::Layout(arguments)) => commands::layout::run(&arguments),
        Some(Command::Run(arguments)) => commands::run::run(&arguments),
        Some(Command::Sandwich(arguments)) => commands::sandwich::run(&arguments),
    };
    result.unwrap_or_else(|error| {
        eprintln!("kernel-sim: {error:#}");
        ExitCode::FAILURE
    })
}
