//! As whom programs are run.

use std::process::Command;

use nix::unistd::geteuid;

/// Who runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// Root.
    Root,
    /// Anybody else: who runs the tests, or `nobody` where that is root.
    Ordinary,
}

/// What `nobody` has on Debian, and who owns nothing.
const NOBODY: u32 = 65534;

impl User {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Root, Self::Ordinary];

    /// As it is said.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Ordinary => "an ordinary user",
        }
    }

    /// Whom a process of the tests has to become for that, if it is another than it is.
    #[must_use]
    pub fn id(self) -> Option<u32> {
        (self == Self::Ordinary && geteuid().is_root()).then_some(NOBODY)
    }

    /// Why a test cannot run as this user.
    #[must_use]
    pub fn missing(self) -> Option<String> {
        match self {
            Self::Root => needs_root(),
            Self::Ordinary => None,
        }
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
