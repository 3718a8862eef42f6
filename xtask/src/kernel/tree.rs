//! The kernel's sources and its one build tree.
//!
//! Sources come from Debian's package and stay outside the repository. There is one build tree for
//! a version and a machine: a copy of one is stale as a whole in the eyes of the kernel's build, so the stock
//! kernel is built first and set aside, and ours is linked in the same place within seconds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use linker::Image;
use xtask::tools::{KERNEL, TOOLS, root, tool};

use super::Version;
use super::derive;
use super::image;
use super::judge::Subject;
use super::machine::Machine;
use super::process::run;
use crate::install::{self, debian_packages};

/// Where a version for a machine lives.
pub(crate) struct Tree {
    pub(crate) machine: &'static Machine,
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
    /// Unpacks the sources, where that is not done yet.
    pub(crate) fn prepare(machine: &'static Machine, version: Version) -> Result<Self> {
        let name = version.name();
        let package = format!("linux-source-{name}");
        let tarball = PathBuf::from(format!("/usr/src/{package}.tar.xz"));
        let of_any_kernel = TOOLS.iter().filter(|tool| tool.used_by == KERNEL);
        install::these(of_any_kernel.chain(machine.tools.iter().map(|name| tool(name))))?;
        if !tarball.exists() {
            debian_packages(&[&package])?;
        }
        let installed = run(Command::new("dpkg-query").args(["-W", "-f=${Version}", &package]))?;
        let directory = root().join("target/kernel");
        fs::create_dir_all(&directory)?;
        // The sources serve every machine: unpacking them again would make all build trees stale.
        let (source, stamp) =
            (directory.join(&package), directory.join(format!("{package}.unpacked")));
        if fs::read_to_string(&stamp).ok().as_ref() != Some(&installed) {
            eprintln!("kernel: unpacking {package} {installed}");
            if source.exists() {
                fs::remove_dir_all(&source)?;
            }
            run(Command::new("tar").arg("-C").arg(&directory).arg("-xf").arg(&tarball))?;
            fs::write(&stamp, &installed).context("writing a stamp")?;
        }
        let build = directory.join(format!("{}-{name}", machine.name));
        let own = directory.join(format!("{}-{name}-own", machine.name));
        fs::create_dir_all(&own)?;
        Ok(Self { machine, version, package: installed, source, build, own })
    }

    /// For people: version and package.
    pub(crate) fn describe(&self) -> String {
        format!("Linux {} on {} ({})", self.version.name(), self.machine.name, self.package)
    }

    /// The stock kernel, built if it is not there yet.
    pub(crate) fn stock(&self) -> Result<PathBuf> {
        let stock = self.own.join("stock.kernel");
        let fragment = fragment(self.machine, self.version)?;
        let wanted = format!("{}\n{fragment}", self.package);
        if stock.exists() && self.stamp("stock").as_ref() == Some(&wanted) {
            return Ok(stock);
        }
        derive::restore(self)?;
        self.configure(&fragment)?;
        eprintln!("kernel: building {}; this takes minutes", self.describe());
        self.make()?;
        fs::copy(self.build.join(self.machine.kernel), &stock)?;
        self.set_stamp("stock", &wanted)?;
        Ok(stock)
    }

    /// The kernel with the shim of `sources`, the writer (an object file) and `image`.
    pub(crate) fn ours(&self, sources: &Path, writer: &Path, image: &Image) -> Result<PathBuf> {
        let ours = self.own.join("ours.kernel");
        derive::exchange(self, sources, writer)?;
        image::exchange(self, image)?;
        self.make()?;
        if !image::is_built_in(self, image)? {
            // Something that the kernel's image is made from was out of date, so the build made it
            // again over ours. Now nothing is.
            image::exchange(self, image)?;
            self.make()?;
        }
        ensure!(image::is_built_in(self, image)?, "the kernel was built with another image");
        fs::copy(self.build.join(self.machine.kernel), &ours)?;
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
        let build = format!("O={}", self.build.display());
        run(self.kbuild(&self.source).arg(build).arg("tinyconfig"))?;
        let merge = self.source.join("scripts/kconfig/merge_config.sh");
        run(Command::new(merge).current_dir(&self.build).args(["-m", ".config"]).arg(&file))?;
        run(self.kbuild(&self.build).arg("olddefconfig"))?;
        let taken = fs::read_to_string(self.build.join(".config"))?;
        all_taken(fragment, &taken)
    }

    /// Builds whatever is out of date, below the priority of a person's work.
    fn make(&self) -> Result<()> {
        let cpus = std::thread::available_parallelism()?;
        run(self.kbuild(&self.build).arg(format!("-j{cpus}")).arg(self.machine.goal))?;
        Ok(())
    }

    /// The kernel's build system in `directory`.
    fn kbuild(&self, directory: &Path) -> Command {
        let mut make = Command::new("nice");
        make.current_dir(directory)
            .args(["-n", "10", "make", "-s"])
            .arg(format!("ARCH={}", self.machine.linux))
            .arg(format!("CROSS_COMPILE={}", self.machine.prefix));
        make
    }

    fn stamp(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.own.join(format!("{name}.stamp"))).ok()
    }

    fn set_stamp(&self, name: &str, text: &str) -> Result<()> {
        fs::write(self.own.join(format!("{name}.stamp")), text).context("writing a stamp")
    }
}

/// The configuration beyond `tinyconfig`: a machine's for all versions, and what one of them has
/// alone.
fn fragment(machine: &Machine, version: Version) -> Result<String> {
    let directory = root().join("kernel/config");
    let mut text = fs::read_to_string(directory.join(format!("{}.config", machine.name)))?;
    let extra = directory.join(format!("{}-{}.config", machine.name, version.name()));
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
