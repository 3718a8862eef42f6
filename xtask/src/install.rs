//! Installing the tools that tests need.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use xtask::tools::{Package, TOOLS, Tool, python_directory};

/// Installs every tool of the table that is not there.
pub(crate) fn run() -> Result<()> {
    these(TOOLS)
}

/// Installs those of `tools` that are not there.
pub(crate) fn these(tools: impl IntoIterator<Item = &'static Tool>) -> Result<()> {
    let missing: Vec<&Tool> = tools.into_iter().filter(|tool| tool.find().is_none()).collect();
    // Debian's first: pip, for one, comes from there.
    let debian: Vec<&str> = missing
        .iter()
        .filter_map(|tool| match tool.package {
            Package::Debian(packages) => Some(packages.split(' ')),
            Package::Python(_) => None,
        })
        .flatten()
        .collect();
    debian_packages(&debian)?;
    for tool in &missing {
        if let Package::Python(package) = tool.package {
            println!("installing {package}");
            let mut pip = Command::new("/usr/bin/python3");
            pip.args(["-m", "pip", "install", "--quiet", "--upgrade", "--target"])
                .arg(python_directory())
                .arg(package);
            finish(&mut pip)?;
        }
    }
    for tool in missing {
        if let Some(reason) = tool.missing() {
            bail!("after installing, {reason}");
        }
    }
    Ok(())
}

/// Installs Debian packages; none is nothing to do.
pub(crate) fn debian_packages(packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    println!("installing {}", packages.join(" "));
    apt_get(&["update"])?;
    let mut arguments = vec!["install", "-y", "--no-install-recommends"];
    arguments.extend(packages);
    apt_get(&arguments)
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt as _;
        own.uid() == 0
    });
    let mut command = if root {
        Command::new("apt-get")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        sudo
    };
    command
        .args(["-q", "-o", "Dpkg::Use-Pty=0", "-o", "DPkg::Lock::Timeout=300"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null());
    finish(&mut command)
}

fn finish(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_owned();
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("running {}", name.display()))?;
    if !status.success() {
        bail!("{} failed: {status}", name.display());
    }
    Ok(())
}
