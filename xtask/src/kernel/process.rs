//! Running tools, with their last words in the error.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// Runs a tool to its end and returns what it printed.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let name = Path::new(command.get_program()).display().to_string();
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("starting {name}"))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let mut words = printed;
        words.push_str(&String::from_utf8_lossy(&output.stderr));
        let lines: Vec<&str> = words.lines().collect();
        let last = lines.get(lines.len().saturating_sub(20)..).unwrap_or_default();
        bail!("{name} failed: {}\n{}", output.status, last.join("\n"));
    }
    Ok(printed)
}
