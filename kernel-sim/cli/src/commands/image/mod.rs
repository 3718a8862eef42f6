//! `kernel-sim image`: make, show, judge and export images.

mod build;
mod check;
mod drive;
mod driven;
mod export;
mod own;
mod show;
mod ward;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use linker::Image;
use linker::judge::LIMIT;

/// Options of `image`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Write an image to a file.
    Build(build::Arguments),
    /// Show what an image holds and how large each part is.
    Show(show::Arguments),
    /// Judge a vDSO image by what its consumers demand.
    ///
    /// Exit code 1: a consumer breaks on it, or it was driven and gave a wrong answer. 2: it cannot
    /// be read as an image at all, or not be driven. What breaks a "should" alone is accepted.
    Check(check::Arguments),
    /// Write an image in a form that another source tree can hold.
    Export(export::Arguments),
}

/// What an image does about a call that its page cannot serve.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum Policy {
    /// Enter the kernel.
    #[default]
    Syscall,
    /// Return -ENOSYS.
    Enosys,
}

impl Policy {
    fn image(self) -> &'static Image {
        match self {
            Self::Syscall => &linker::SYSCALL,
            Self::Enosys => &linker::ENOSYS,
        }
    }
}

/// What cannot be read or judged.
const UNREADABLE: u8 = 2;

/// Runs `image`.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        Command::Build(arguments) => build::run(arguments),
        Command::Show(arguments) => show::run(arguments),
        // 1 is for verdicts: whatever keeps it from one is 2.
        Command::Check(arguments) => check::run(arguments).or_else(|error| Ok(unreadable(&error))),
        Command::Export(arguments) => export::run(arguments),
    }
}

/// The bytes of `file`; of one that has no end, or is far too long, enough to be refused.
fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    let read = || {
        let mut bytes = Vec::new();
        File::open(file)?.take(LIMIT as u64 + 1).read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(bytes)
    };
    read().with_context(|| format!("reading {}", file.display()))
}

/// Says why a file cannot be read; the exit code for it.
fn unreadable(error: &anyhow::Error) -> ExitCode {
    eprintln!("kernel-sim: {error:#}");
    ExitCode::from(UNREADABLE)
}

/// Two columns of fixed width and text that is broken between words at 80 columns.
fn print_wrapped(mark: &str, name: &str, text: &str) {
    const WIDTH: usize = 80 - 31;
    let mut line = String::new();
    let mut columns = (mark, name);
    let mut flush = |line: &mut String| {
        println!("{:<6}  {:<21}  {line}", columns.0, columns.1);
        columns = ("", "");
        line.clear();
    };
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            flush(&mut line);
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    flush(&mut line);
}
