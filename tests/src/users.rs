//! As whom programs are run.

use std::process::Command;

pub use kernel_sim::launch::output::User;
use nix::unistd::geteuid;

/// Why a test cannot run as this user.
#[must_use]
pub fn missing(user: User) -> Option<String> {
    match user {
        User::Root => needs_root(),
        User::Ordinary => None,
    }
}

/// Why a test that root has to prepare cannot run.
#[must_use]
pub fn needs_root() -> Option<String> {
    (!geteuid().is_root()).then(|| "only root can do that: run the tests as root".to_owned())
}

/// Why a test that gives its programs namespaces of their own cannot run: a container's root may lack
/// the capability.
#[must_use]
pub fn needs_namespaces() -> Option<String> {
    let namespaces = ["--pid", "--fork", "--mount", "--mount-proc", "--ipc", "--time", "true"];
    match Command::new("unshare").args(namespaces).output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(format!("unshare: {error}")),
    }
}
