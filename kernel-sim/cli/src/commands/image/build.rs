//! `kernel-sim image build`.

use std::path::PathBuf;
use std::process::ExitCode;

use super::Policy;
use crate::output;

/// Options of `image build`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The file to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// What the image does about a call that its page cannot serve.
    #[arg(long, value_enum, default_value_t)]
    policy: Policy,
}

/// Writes the image that this program was built with.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let image = arguments.policy.image();
    output::write(&arguments.out, image.bytes)?;
    println!("{}: {} bytes", arguments.out.display(), image.bytes.len());
    Ok(ExitCode::SUCCESS)
}
