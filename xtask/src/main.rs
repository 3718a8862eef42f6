//! The project's chores: each subcommand is one file.

mod bless;
mod circumstances;
mod cross;
mod install;
mod kernel;
mod measure;
mod mutants;
mod no_std;
mod stage;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The project's chores.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run everything that must pass before a change lands.
    Test(test::Arguments),
    /// Install what the tests need.
    Install,
    /// Build the images of all architectures and run them, emulated.
    Cross(cross::Arguments),
    /// Build what a kernel takes with `core` alone.
    NoStd,
    /// Seed faults into shipped code, one by one, and show which test catches each.
    Mutants(mutants::Arguments),
    /// Rewrite golden files and generated documents from what the tests find.
    Bless(bless::Arguments),
    /// Measure what docs/measurements.md says, and write it there.
    Measure(measure::Arguments),
    /// Put our writer, page and image into a real Linux, boot it and judge it there.
    Kernel(kernel::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Test(arguments) => test::run(&arguments),
        Command::Install => install::run().map(|()| ExitCode::SUCCESS),
        Command::Cross(arguments) => cross::run(&arguments),
        Command::NoStd => no_std::run(),
        Command::Mutants(arguments) => mutants::run(&arguments),
        Command::Bless(arguments) => bless::run(&arguments),
        Command::Measure(arguments) => measure::run(&arguments),
        Command::Kernel(arguments) => kernel::run(&arguments),
    };
    result.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}
