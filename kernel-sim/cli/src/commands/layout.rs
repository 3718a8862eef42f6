//! `kernel-sim layout`.

use std::process::ExitCode;

/// Options of `layout`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

/// Draws the page.
pub(crate) fn run(_: &Arguments) -> anyhow::Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
