//! The command `kernel-sim`: each subcommand is one file in `commands/`.

mod commands;
mod output;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use nix::sys::signal::{SigHandler, Signal};

/// The unified vDSO: make images, judge them, drive them, run programs on them.
///
/// Without a command, everything is shown once: the image is checked, the page drawn, the timekeeper
/// driven with random updates, our clocks held beside the host's, and a program run on the image.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    demo: commands::demo::Arguments,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure our image beside the host's vDSO, libc and the system call.
    Bench(commands::bench::Arguments),
    /// Drive simulated machines with random events, and judge every read by an exact oracle.
    Fuzz(commands::fuzz::Arguments),
    /// Make, show, judge and export images.
    Image(commands::image::Arguments),
    /// Draw the data page, cache line by cache line.
    Layout(commands::layout::Arguments),
    /// Run scenarios again, and judge every read.
    Replay(commands::replay::Arguments),
    /// Run a program on our image, with the host's time or another.
    Run(commands::run::Arguments),
    /// Compare the clocks of a program on our image with the kernel's, read by read.
    Sandwich(commands::sandwich::Arguments),
    /// Let threads read while a writer is at full speed, or killed, and judge every read.
    Soak(commands::soak::Arguments),
}

fn main() -> ExitCode {
    end_when_nobody_reads();
    let arguments = Arguments::parse();
    let result = match arguments.command {
        None => commands::demo::run(&arguments.demo),
        Some(Command::Bench(arguments)) => commands::bench::run(&arguments),
        Some(Command::Fuzz(arguments)) => commands::fuzz::run(&arguments),
        Some(Command::Image(arguments)) => commands::image::run(&arguments),
        Some(Command::Layout(arguments)) => commands::layout::run(&arguments),
        Some(Command::Replay(arguments)) => commands::replay::run(&arguments),
        Some(Command::Run(arguments)) => commands::run::run(&arguments),
        Some(Command::Sandwich(arguments)) => commands::sandwich::run(&arguments),
        Some(Command::Soak(arguments)) => commands::soak::run(&arguments),
    };
    result.unwrap_or_else(|error| {
        eprintln!("kernel-sim: {error:#}");
        ExitCode::FAILURE
    })
}

/// Lets a write to a pipe that nobody reads any more end the command quietly, as it ends others:
/// `kernel-sim layout | head` is no error. Rust ignores the signal, and `println` then panics.
fn end_when_nobody_reads() {
    // SAFETY: no handler of ours is replaced, and no other thread runs yet.
    let set = unsafe { nix::sys::signal::signal(Signal::SIGPIPE, SigHandler::SigDfl) };
    debug_assert!(set.is_ok(), "SIGPIPE can be set");
}
