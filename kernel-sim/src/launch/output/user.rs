//! As whom tests and bench launch programs: the two kinds of user differ in what their keeper may do.

use nix::unistd::geteuid;

/// Who launches a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// Root, whose keeper gets real-time priority.
    Root,
    /// Anybody else: who runs this process, or `nobody` where that is root.
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

    /// Whom a process that this one starts has to become for that, if it is another than this one's.
    #[must_use]
    pub fn id(self) -> Option<u32> {
        (self == Self::Ordinary && geteuid().is_root()).then_some(NOBODY)
    }
}
