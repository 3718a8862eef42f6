//! The Rust tests of the page and the reader, compiled for an architecture and run there.
//!
//! They need the standard library, which is built from source first: minutes for each architecture,
//! so this is asked for (`--full`), as `cargo xtask test --install` does. The model checker's tests are
//! left out: they explore the protocol itself, which is the same text on every machine.

use std::env;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use xtask::tools::root;

use crate::cross::machine::Machine;
use crate::cross::sysroot::RUSTC;

/// Builds and runs them; says how many passed.
pub(crate) fn check(machine: &Machine) -> Result<String> {
    let triple = machine.libc_triple;
    let variable =
        |what: &str| format!("CARGO_TARGET_{}_{what}", triple.to_uppercase().replace('-', "_"));
    // Each cross libc of Debian lies below `/usr` in a folder called like its compiler.
    let libc = format!("/usr/{}", machine.gcc.trim_end_matches("-gcc"));
    let runner = if machine.native {
        format!("{libc}/lib/ld-linux.so.2 --library-path {libc}/lib")
    } else {
        format!("{} -L {libc}", machine.qemu)
    };
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(root())
        .args(["test", "--quiet", "--locked", "-Zbuild-std=std,panic_unwind,test"])
        .args(["--package", "datapage", "--package", "vdso", "--lib", "--tests"])
        .args(["--target", triple, "--target-dir"])
        .arg(root().join("target/cross/full"))
        .args(["--", "--skip", "model"])
        .env("RUSTC", RUSTC)
        .env("RUSTC_BOOTSTRAP", "1")
        .env(variable("LINKER"), machine.gcc)
        // For the assembly of a dependency.
        .env(format!("CC_{}", triple.replace('-', "_")), machine.gcc)
        .env(variable("RUNNER"), runner)
        .stdin(Stdio::null())
        .output()
        .context("running cargo test")?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "{}\n{text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let count = |line: &str| {
        let rest = line.strip_prefix("test result: ok. ")?;
        rest.split(' ').next()?.parse::<u32>().ok()
    };
    let passed: u32 = text.lines().filter_map(count).sum();
    ensure!(passed > 20, "only {passed} tests ran:\n{text}");
    Ok(format!("{passed} Rust tests passed"))
}
