//! `kernel-sim image build`.

use std::path::PathBuf;
use std::process::ExitCode;

use super::own::Choice;
use crate::output;

/// Options of `image build`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The file to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    choice: Choice,
}

/// Writes the chosen image.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (_, bytes) = arguments.choice.read()?;
    output::write(&arguments.out, &bytes)?;
    println!("{}: {} bytes", arguments.out.display(), bytes.len());
    Ok(ExitCode::SUCCESS)
}
