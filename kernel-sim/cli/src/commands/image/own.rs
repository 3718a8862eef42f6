//! Which of the project's own images a command means.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, bail};

use super::Policy;

/// The choice on the command line.
#[derive(Debug, clap::Args)]
pub(crate) struct Choice {
    /// Which of its own images.
    #[arg(long, value_enum, default_value_t)]
    policy: Policy,
    /// The architecture; what is not this machine's comes from `cargo xtask cross`.
    #[arg(long, value_name = "ARCH", default_value = "x86_64",
          value_parser = ["x86_64", "aarch64", "riscv64", "arm", "i386"])]
    target: String,
    /// Distance between page slots; 64k is there for aarch64.
    #[arg(long, value_name = "BYTES", default_value = "4k", value_parser = ["4k", "64k"])]
    slots: String,
}

impl Choice {
    /// The image's name and bytes.
    pub(crate) fn read(&self) -> anyhow::Result<(String, Vec<u8>)> {
        let Self { policy, target, slots } = self;
        if slots == "64k" && target != "aarch64" {
            bail!("there is no image for {target} with slots of 64k, only for aarch64");
        }
        if target == "x86_64" {
            return Ok(("the image of this build".to_owned(), policy.image().bytes.to_vec()));
        }
        let name = match (policy, slots.as_str()) {
            (Policy::Syscall, "64k") => "vdso-syscall-64k.so",
            (Policy::Enosys, "64k") => "vdso-enosys-64k.so",
            (Policy::Syscall, _) => "vdso-syscall.so",
            (Policy::Enosys, _) => "vdso-enosys.so",
        };
        let Some(path) = find(target, name)? else {
            bail!("there is no image for {target} yet; `cargo xtask cross {target}` makes it");
        };
        let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        Ok((path.display().to_string(), bytes))
    }
}

/// The image below the `target` folder that this program was built into.
fn find(target: &str, name: &str) -> anyhow::Result<Option<PathBuf>> {
    let program = std::env::current_exe().context("asking for this program's own path")?;
    let mut places = program.ancestors().map(|folder| folder.join("cross").join(target).join(name));
    Ok(places.find(|path| path.is_file()))
}
