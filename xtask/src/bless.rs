//! `cargo xtask bless`: rewrites what tests compare with, from what they find now.
//!
//! A test that holds a golden file compares it, unless `UVDSO_BLESS` is `1`: then it writes the
//! file instead. Blessing runs those tests that way; the difference is for a reviewer to read.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use xtask::tools::root;

use crate::stage::cargo;

/// Options of `bless`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Arguments for `cargo test`; without any, the whole workspace is blessed.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    test: Vec<String>,
}

/// Runs the tests with blessing on.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut command = cargo(&["test", "--locked"]);
    if arguments.test.is_empty() {
        command.args(["--workspace", "--no-fail-fast"]);
    } else {
        command.args(&arguments.test);
    }
    let status = command
        .current_dir(root())
        .env("UVDSO_BLESS", "1")
        .status()
        .context("running cargo test")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
