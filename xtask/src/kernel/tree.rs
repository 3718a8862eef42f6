//! The kernel's sources and its one build tree.
//!
//! Sources come from Debian's package and stay outside the repository. There is one build tree for
//! a version: a copy of one is stale as a whole in the eyes of the kernel's build, so the stock
//! kernel is built first and set aside, and ours is linked in the same place within seconds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use xtask::tools::{KERNEL, Package, TOOLS, root};

use super::Version;
use super::derive;
use super::image;
use super::judge::Subject;
use super::process::run;
use crate::install::debian_packages;

/// Where a version lives.
pub(crate) struct Tree {
    version: Version,
    /// Version of the Debian package.
    package: String,
    /// The sources, unpacked.
    pub(crate) source: PathBuf,
    /// The build tree.
    pub(crate) build: PathBuf,
    /// What we make ourselves.
    pub(crate) own: PathBuf,
}

impl Tree {
    /// Unpacks and configures, where that is not done yet.
    pub(crate) fn prepare(version: Version) -> Result<Self> {
        let name = version.name();
        let package = format!("linux-source-{name}");
        let tarball = PathBuf::from(format!("/usr/src/{package}.tar.xz"));
        install_prerequisites()?;
        if !tarball.exists() {
            debian_packages(&[&package])?;
        }
        let installed = run(Command::new("dpkg-query").args(["-W", "-f=${Version}", &package]))?;
        let directory = root().join("target/kernel");
        fs::create_dir_all(&directory)?;
        let tree = Self {
            version,
            package: installed,
            source: directory.join(&package),
            build: directory.join(format!("x86_64-{name}")),
            own: directory.join(format!("x86_64-{name}-own")),
        };
        fs::create_dir_all(&tree.own)?;
        if tree.stamp("unpacked") != Some(tree.package.clone()) {
            println!("kernel: unpacking {package} {}", tree.package);
            if tree.source.exists() {
                fs::remove_dir_all(&tree.source)?;
            }
            run(Command::new("tar").arg("-C").arg(&directory).arg("-xf").arg(&tarball))?;
            tree.set_stamp("unpacked", &tree.package)?;
        }
        Ok(tree)
    }

    /// For people: version and package.
    pub(crate) fn describe(&self) -> String {
        format!("Linux {} ({})", self.version.name(), self.package)
    }

    /// The stock kernel, built if it is not there yet.
    pub(crate) fn stock(&self) -> Result<PathBuf> {
        let stock = self.own.join("stock.bzImage");
        let fragment = fragment(self.version)?;
        let wanted = format!("{}\n{fragment}", self.package);
        if stock.exists() && self.stamp("stock").as_ref() == Some(&wanted) {
            return Ok(stock);
        }
        derive::restore(self)?;
        self.configure(&fragment)?;
        println!("kernel: building {}; this takes minutes", self.describe());
        self.make()?;
        fs::copy(self.build.join(BZIMAGE), &stock)?;
        self.set_stamp("stock", &wanted)?;
        Ok(stock)
    }

    /// The kernel with the shim of `sources`, the writer (an object file) and our image.
    pub(crate) fn ours(&self, sources: &Path, writer: &Path) -> Result<PathBuf> {
        let ours = self.own.join("ours.bzImage");
        derive::exchange(self, sources, writer)?;
        image::exchange(self)?;
        self.make()?;
        fs::copy(self.build.join(BZIMAGE), &ours)?;
        Ok(ours)
    }

    /// Where the log of a boot goes.
    pub(crate) fn log(&self, subject: Subject) -> PathBuf {
        self.own.join(format!("{subject}.log"))
    }

    fn configure(&self, fragment: &str) -> Result<()> {
        fs::create_dir_all(&self.build)?;
        let file = self.own.join("fragment.config");
        fs::write(&file, fragment)?;
        let mut tiny = Command::new("make");
        run(tiny
            .current_dir(&self.source)
            .arg(format!("O={}", self.build.display()))
            .args(["-s", "tinyconfig"]))?;
        let merge = self.source.join("scripts/kconfig/merge_config.sh");
        run(Command::new(merge).current_dir(&self.build).args(["-m", ".config"]).arg(&file))?;
        run(Command::new("make").current_dir(&self.build).args(["-s", "olddefconfig"]))?;
        let taken = fs::read_to_string(self.build.join(".config"))?;
        all_taken(fragment, &taken)
    }

    /// Builds whatever is out of date, below the priority of a person's work.
    fn make(&self) -> Result<()> {
        let cpus = std::thread::available_parallelism()?;
        run(Command::new("nice")
            .current_dir(&self.build)
            .args(["-n", "10", "make", "-s"])
            .arg(format!("-j{cpus}"))
            .arg("bzImage"))?;
        Ok(())
    }

    fn stamp(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.own.join(format!("{name}.stamp"))).ok()
    }

    fn set_stamp(&self, name: &str, text: &str) -> Result<()> {
        fs::write(self.own.join(format!("{name}.stamp")), text).context("writing a stamp")
    }
}

/// Installs what builds and boots any kernel, where it is missing.
fn install_prerequisites() -> Result<()> {
    let missing = TOOLS.iter().filter(|tool| tool.used_by == KERNEL && tool.find().is_none());
    let mut packages = Vec::new();
    for tool in missing {
        if let Package::Debian(names) = tool.package {
            packages.extend(names.split(' '));
        }
    }
    debian_packages(&packages)
}

const BZIMAGE: &str = "arch/x86/boot/bzImage";

/// The configuration beyond `tinyconfig`: one for all versions, and what only one of them has.
fn fragment(version: Version) -> Result<String> {
    let directory = root().join("kernel/config");
    let mut text = fs::read_to_string(directory.join("x86_64.config"))?;
    let extra = directory.join(format!("x86_64-{}.config", version.name()));
    if extra.exists() {
        text.push_str(&fs::read_to_string(extra)?);
    }
    Ok(text)
}

/// Kconfig drops silently what it cannot set; every line of the fragment must have been taken.
fn all_taken(fragment: &str, config: &str) -> Result<()> {
    let lines: Vec<&str> = config.lines().collect();
    let mut checked = 0;
    for wanted in fragment.lines() {
        let off = wanted.strip_prefix("# ").and_then(|rest| rest.strip_suffix(" is not set"));
        let taken = match off {
            // A symbol whose dependencies are off is absent, which is off too.
            Some(symbol) => !lines.iter().any(|line| line.starts_with(&format!("{symbol}="))),
            None if wanted.starts_with("CONFIG_") => lines.contains(&wanted),
            None => continue,
        };
        if !taken {
            bail!("the kernel's configuration did not take {wanted:?}");
        }
        checked += 1;
    }
    if checked == 0 {
        bail!("the configuration has no line to check");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_not_taken_is_an_error() {
        let config = "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=4\n";
        assert!(
            all_taken("# why\nCONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=4\n", config).is_ok()
        );
        assert!(all_taken("# CONFIG_GONE is not set\n", config).is_ok());
        for wrong in ["CONFIG_B=y", "CONFIG_C=5", "# CONFIG_A is not set", "# nothing to check"] {
            assert!(all_taken(wrong, config).is_err(), "{wrong}");
        }
    }
}
