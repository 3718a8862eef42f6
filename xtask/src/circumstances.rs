//! What something was measured or tried with, for whoever reads the figures later.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result};
use xtask::tools::root;

use crate::kernel::process::run;

/// The commit, and whether the tree has more than that.
pub(crate) fn commit() -> Result<String> {
    said("git", &["describe", "--always", "--abbrev=7", "--dirty= with changes"])
}

/// The load average of the last minute.
pub(crate) fn load() -> Result<String> {
    let text = fs::read_to_string("/proc/loadavg").context("reading /proc/loadavg")?;
    Ok(text.split(' ').next().unwrap_or_default().to_owned())
}

/// How many CPUs there are.
pub(crate) fn cpus() -> Result<usize> {
    Ok(std::thread::available_parallelism().context("counting CPUs")?.get())
}

/// The first line that a program prints.
pub(crate) fn said(program: &str, arguments: &[&str]) -> Result<String> {
    let text = run(Command::new(program).args(arguments).current_dir(root()))?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}
