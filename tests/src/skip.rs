//! A test whose tool is missing: a skip with its reason, or a failure where tools are required.

use kernel_sim::launch::Command;
use libtest_mimic::{Completion, Failed};
use xtask::tools::{required, tool};

/// Why a test that needs these tools (by their names in xtask's table) cannot run.
#[must_use]
pub fn missing(needs: &[&str]) -> Option<String> {
    needs.iter().find_map(|name| tool(name).missing())
}

/// Why no program can be launched on this machine: it gives none a vDSO, or lets none be traced.
///
/// Any other failure to launch is for the tests to find.
#[must_use]
pub fn cannot_launch() -> Option<String> {
    let error = Command::new("true").output(None).err()?;
    (error.exit_code() == 3).then(|| error.to_string())
}

/// Skips a test.
///
/// # Errors
/// The reason, where `UVDSO_REQUIRE_TOOLS` is 1.
pub fn skip(reason: &str) -> Result<Completion, Failed> {
    if required() {
        return Err(reason.into());
    }
    Ok(Completion::ignored_with(reason))
}
