//! The recipe of a vDSO image: compile `vdso-image` to an object, link it, strip it, describe it.
//!
//! `linker/build.rs` makes the images of a plain build with it, `cargo xtask cross` those of the
//! other architectures. Everything that could change an image's bytes is set here: the profile
//! `image` of the workspace, the flags, and an environment without what a developer may have set
//! for the rest of the build. So dev and release, tests and documentation hold the same image.

mod compile;
mod describe;
mod link;
mod target;

use std::path::{Path, PathBuf};

use anyhow::Result;

pub use describe::{Description, describe};
pub use link::Tools;
pub use target::{TARGETS, Target};

/// One image to make.
#[derive(Clone, Copy, Debug)]
pub struct Recipe<'a> {
    /// The workspace's folder.
    pub root: &'a Path,
    /// Where the image goes, and everything on the way to it.
    pub out: &'a Path,
    /// The architecture.
    pub target: &'static Target,
    /// What the image does about a call that its page cannot serve: `syscall` or `enosys`.
    pub policy: &'a str,
    /// Distance between the page slots: 4096, or 65536 where the target has such a build.
    pub slot_bytes: u32,
    /// The compiler, and the sysroot with the target's `core`; `None` for those of the build.
    pub compiler: Option<(&'a Path, &'a Path)>,
}

impl Recipe<'_> {
    /// The image's name, without a suffix: `vdso-syscall`, or `vdso-syscall-64k`.
    #[must_use]
    pub fn name(&self) -> String {
        match self.slot_bytes {
            4096 => format!("vdso-{}", self.policy),
            bytes => format!("vdso-{}-{}k", self.policy, bytes / 1024),
        }
    }

    /// Makes the image and returns its path; the unstripped one lies beside it with `.dbg`.
    ///
    /// # Errors
    /// What the compiler or the linker says, and what is missing to run them.
    pub fn make(&self, tools: &Tools) -> Result<PathBuf> {
        let object = compile::object(self)?;
        link::image(self, tools, &object)
    }
}
