//! Where an architecture's `core` comes from.
//!
//! Rust's own toolchains bring one for the host alone. Debian packages a compiler together with the
//! source of its library, and `core` by itself is one compiler call. The image needs nothing else:
//! `compiler_builtins` is an empty crate here, so that a call of a builtin cannot be linked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use xtask::tools::root;

use crate::cross::machine::Machine;

/// Debian's compiler (package rustc-web), which is not the one that builds the workspace.
pub(crate) const RUSTC: &str = "/usr/bin/rustc";
const CORE: &str = "/usr/lib/rustlib/src/rust/library/core/src/lib.rs";
const EMPTY: &str = "#![allow(internal_features)]\n#![feature(compiler_builtins)]\n\
                     #![compiler_builtins]\n#![no_std]\n";

/// The sysroot with the `core` of the machine, made if it is not there; `None` where the workspace's
/// own toolchain has one.
pub(crate) fn make(machine: &Machine) -> Result<Option<PathBuf>> {
    if machine.arch() == "x86_64" {
        return Ok(None);
    }
    make_for(machine.target.triple, &machine.target.flags()).map(Some)
}

/// The sysroot with the `core` of a compiler's target, compiled with `flags`.
pub(crate) fn make_for(triple: &str, flags: &[&str]) -> Result<PathBuf> {
    let sysroot = root().join("target/cross/sysroot");
    let libraries = sysroot.join("lib/rustlib").join(triple).join("lib");
    let stamp = libraries.join("made-with");
    let wanted = stamp_of(flags)?;
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(sysroot);
    }
    println!("building core for {triple}");
    fs::create_dir_all(&libraries).context("creating the sysroot")?;
    let empty = libraries.join("compiler_builtins.rs");
    fs::write(&empty, EMPTY)?;
    let target = (triple, flags);
    compile("core", Path::new(CORE), target, &libraries, &sysroot)?;
    compile("compiler_builtins", &empty, target, &libraries, &sysroot)?;
    fs::write(stamp, wanted)?;
    Ok(sysroot)
}

/// Another compiler or other flags need another `core`.
fn stamp_of(flags: &[&str]) -> Result<String> {
    let version = Command::new(RUSTC).arg("-vV").output().context("running rustc")?;
    Ok(format!("{}{flags:?}\n", String::from_utf8(version.stdout)?))
}

fn compile(
    name: &str,
    source: &Path,
    (triple, flags): (&str, &[&str]),
    libraries: &Path,
    sysroot: &Path,
) -> Result<()> {
    let output = Command::new(RUSTC)
        // Building core needs features that only core may use.
        .env("RUSTC_BOOTSTRAP", "1")
        .args(["--edition", "2024", "--crate-type", "rlib", "--crate-name", name])
        .args(["--cap-lints", "allow", "-Copt-level=3", "-Cpanic=abort"])
        .args(["-Ccodegen-units=1", "-Cembed-bitcode=no"])
        .args(flags)
        .args(["--target", triple, "--sysroot"])
        .arg(sysroot)
        .arg("--out-dir")
        .arg(libraries)
        .arg(source)
        .output()
        .with_context(|| format!("running {RUSTC}"))?;
    if !output.status.success() {
        bail!("compiling {name} for {triple} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
