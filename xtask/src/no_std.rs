//! `cargo xtask no-std`: what a kernel takes is built where there is nothing but `core`.
//!
//! A crate that says `#![no_std]` may still bring `std` or an allocator in, by a dependency or by a
//! feature. So the libraries are built with a sysroot that holds the compiler's `core` alone: whoever
//! needs more cannot find it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use image_build::Toolchain;
use xtask::tools::root;

use crate::stage::cargo;

/// The libraries that a kernel may hold; `linker` without features, the stand-in without the machine
/// under it.
const LIBRARIES: [&str; 6] = ["datapage", "vdso", "timekeeper", "linker", "embed", "kernel-writer"];

/// What of the compiler's library there is.
const PRESENT: [&str; 2] = ["libcore-", "libcompiler_builtins-"];

/// Builds the libraries, and shows that what needs `std` is not built.
pub(crate) fn run() -> Result<ExitCode> {
    let toolchain = Toolchain::find()?;
    let (host, sysroot) = (&toolchain.host, sysroot(&toolchain)?);
    for library in LIBRARIES {
        let output = build(&sysroot, host, &["--lib", "--package", library])?;
        ensure!(output.status.success(), "{library}: {}", String::from_utf8_lossy(&output.stderr));
        println!("ok: {library}: needs core alone");
    }
    // The control: the machine under the stand-in is a program of the host.
    let output = build(&sysroot, host, &["--bins", "--package", "embed"])?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        !output.status.success() && said.contains("can't find crate for `std`"),
        "a program that needs std was built without it: {said}"
    );
    println!("ok: what needs std is not built");
    Ok(ExitCode::SUCCESS)
}

fn build(sysroot: &Path, host: &str, what: &[&str]) -> Result<std::process::Output> {
    let mut flags = std::ffi::OsString::from("--sysroot=");
    flags.push(sysroot);
    // With a target named, flags are not for build scripts, which are programs of the host.
    cargo(&["build", "--locked", "--target", host])
        .args(what)
        .current_dir(root())
        .env("CARGO_ENCODED_RUSTFLAGS", flags)
        .env_remove("RUSTFLAGS")
        .output()
        .context("running cargo build")
}

/// A sysroot with the files of the compiler's own that make up `core`.
fn sysroot(toolchain: &Toolchain) -> Result<PathBuf> {
    let libraries = |sysroot: &Path| sysroot.join("lib/rustlib").join(&toolchain.host).join("lib");
    let sysroot = root().join("target/no-std/sysroot");
    let (from, to) = (libraries(&toolchain.sysroot), libraries(&sysroot));
    // Another compiler's would be refused.
    let _ = fs::remove_dir_all(&sysroot);
    fs::create_dir_all(&to).with_context(|| format!("creating {}", to.display()))?;
    let mut count = 0;
    for file in fs::read_dir(&from).with_context(|| format!("reading {}", from.display()))? {
        let name = file?.file_name();
        let text = name.to_string_lossy();
        if PRESENT.iter().any(|present| text.starts_with(present)) {
            symlink(from.join(&name), to.join(&name)).context("linking to core")?;
            count += 1;
        }
    }
    ensure!(count >= PRESENT.len(), "no core in {}", from.display());
    Ok(sysroot)
}
