//! As whom programs are run.

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
