//! The recipe of a vDSO image: compile `vdso-image` to an object, link it, strip it, judge it,
//! describe it.
//!
//! `linker/build.rs` makes the images of a plain build with it, `cargo xtask cross` those of the
//! other architectures. Everything that could change an image's bytes is set here: the profile
//! `image` of the workspace, the flags, and an environment without what a developer may have set
//! for the rest of the build. So dev and release, tests and documentation hold the same image.

mod compile;
mod describe;
mod finish;
#[allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "the module of `linker`: the recipe uses less of it than it offers"
)]
#[path = "../../src/judge/mod.rs"]
mod judge;
mod link;
mod target;
mod toolchain;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

pub use describe::{Description, describe};
pub use link::Tools;
pub use target::{TARGETS, Target};
pub use toolchain::Toolchain;

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

    /// Makes the image; the unstripped one lies beside it with `.dbg`.
    ///
    /// # Errors
    /// What the compiler or the linker says, what is missing to run them, and the rules that the
    /// image breaks although its consumers need them.
    pub fn make(&self, tools: &Tools) -> Result<Made> {
        let object = compile::object(self)?;
        let path = link::image(self, tools, &object)?;
        let mut bytes =
            std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let warnings = finish::finish(&mut bytes)
            .and_then(|()| refuse_or_warn(&bytes))
            .with_context(|| format!("the image {} is not fit to be used", path.display()))?;
        std::fs::write(&path, &bytes).with_context(|| format!("writing {}", path.display()))?;
        Ok(Made { path, warnings })
    }
}

/// An image that was made.
#[derive(Clone, Debug)]
pub struct Made {
    /// Where it is.
    pub path: PathBuf,
    /// What should be better about it.
    pub warnings: Vec<String>,
}

/// Judges an image: an error names each broken "must", the result each broken "should".
fn refuse_or_warn(bytes: &[u8]) -> Result<Vec<String>> {
    let verdict = judge::judge(&judge::ImageFile::read(bytes)?);
    let mut warnings = Vec::new();
    let mut refusals = Vec::new();
    for (rule, broken) in verdict.broken() {
        let judge::Rule { name, demand, consumers, .. } = rule;
        let line = format!("{name}: {broken} (demanded: {demand}; by: {consumers})");
        match rule.level {
            judge::Level::Must => refusals.push(line),
            judge::Level::Should => warnings.push(line),
        }
    }
    anyhow::ensure!(refusals.is_empty(), "it breaks these rules:\n{}", refusals.join("\n"));
    Ok(warnings)
}
