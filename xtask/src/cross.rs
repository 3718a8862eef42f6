//! `cargo xtask cross`: the images of all architectures, built and run.
//!
//! | file | answers |
//! |---|---|
//! | `machine.rs` | with which programs is an architecture compiled, run and disassembled |
//! | `sysroot.rs` | where does its `core` come from |
//! | `image.rs` | which images are made, and what must be true of each as a file |
//! | `bad.rs` | does the judge refuse what is wrong with an image of that architecture |
//! | `export.rs` | does another tree get the image that was made, and what the file says of it |
//! | `code.rs` | is every counter read ordered, and the hot path what was reviewed |
//! | `vector.rs` | what is the exact answer to a given page |
//! | `host.rs` | does a C program of that architecture get those answers from the image |
//! | `trace.rs` | which system calls does each function fall back to |
//! | `full.rs` | do the Rust tests of the reader pass on the architecture itself |

mod bad;
mod code;
mod export;
mod full;
mod host;
mod image;
mod machine;
mod sysroot;
mod trace;
mod vector;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use image_build::Tools;
use xtask::tools::{required, root};

use machine::{MACHINES, Machine};
pub(crate) use sysroot::{RUSTC, make_for as sysroot_for};

use crate::install;

/// Options of `cross`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only these architectures: x86_64, aarch64, riscv64, arm, i386.
    targets: Vec<String>,
    /// Install what is missing first.
    #[arg(long)]
    install: bool,
    /// Also run the Rust tests of page and reader there; builds std from source, minutes each.
    #[arg(long)]
    full: bool,
    /// Make the images and stop.
    #[arg(long)]
    build_only: bool,
    /// Rewrite the golden disassembly in `abi/` from what the compiler makes now.
    #[arg(long)]
    bless: bool,
}

/// Makes the images below `target/cross` and runs everything on them.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut report = Report::default();
    let tools = Tools::find()?;
    let machines = chosen(&arguments.targets)?;
    if arguments.install {
        install::these(machines.iter().flat_map(|machine| machine.tools()))?;
    }
    for machine in machines {
        println!("== {}", machine.arch());
        if let Some(reason) = machine.missing() {
            report.skip(machine.arch(), &reason);
            continue;
        }
        if let Err(error) = one(machine, &tools, arguments, &mut report) {
            report.fail(&format!("{}: {error:#}", machine.arch()));
        }
    }
    Ok(report.finish())
}

fn one(
    machine: &'static Machine,
    tools: &Tools,
    arguments: &Arguments,
    report: &mut Report,
) -> Result<()> {
    let directory = directory(machine);
    let sysroot = sysroot::make(machine)?;
    let images = image::make(machine, &directory, sysroot.as_deref(), tools)?;
    for image in &images {
        report.check(&format!("{}: {}", machine.arch(), image.name()), || image.check());
    }
    if arguments.build_only {
        return Ok(());
    }
    for image in &images {
        report.check(&format!("{}: {} judged", machine.arch(), image.name()), || bad::check(image));
        report.check(&format!("{}: {} exported", machine.arch(), image.name()), || {
            export::check(image, &directory)
        });
        report.check(&format!("{}: {} code", machine.arch(), image.name()), || code::check(image));
    }
    if let Some(golden) = code::Golden::of(machine) {
        report.check(&format!("{}: hot path", machine.arch()), || {
            golden.check(&images[0], arguments.bless)
        });
    }
    let host = host::Host::compile(machine, &directory)?;
    for image in &images {
        for runner in image.runners() {
            host.run(image, runner, report);
        }
        trace::check(&host, image, report);
    }
    if arguments.full && machine.arch() != "x86_64" {
        report.check(&format!("{}: Rust tests", machine.arch()), || full::check(machine));
    }
    Ok(())
}

/// Makes the image of `arch` that asks the kernel for what its page cannot serve, with slots of
/// 4 KiB; returns its file.
pub(crate) fn syscall_image(arch: &str) -> Result<PathBuf> {
    let [machine] = chosen(&[arch.to_owned()])?[..] else { bail!("no one architecture {arch}") };
    let sysroot = sysroot::make(machine)?;
    let images = image::make(machine, &directory(machine), sysroot.as_deref(), &Tools::find()?)?;
    let image = images.iter().find(|image| image.policy == "syscall" && image.slot_bytes == 4096);
    Ok(image.context("no image of 4 KiB slots was made")?.path.clone())
}

/// Where the images of an architecture lie.
fn directory(machine: &Machine) -> PathBuf {
    root().join("target/cross").join(machine.arch())
}

fn chosen(names: &[String]) -> Result<Vec<&'static Machine>> {
    if names.is_empty() {
        return Ok(MACHINES.iter().collect());
    }
    let of = |name: &String| {
        let Some(machine) = MACHINES.iter().find(|machine| machine.arch() == name) else {
            let known: Vec<&str> = MACHINES.iter().map(Machine::arch).collect();
            bail!("no architecture {name:?}; there are {}", known.join(", "));
        };
        Ok(machine)
    };
    names.iter().map(of).collect()
}

/// What was found, counted as a test binary counts it.
#[derive(Debug, Default)]
struct Report {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Report {
    fn check(&mut self, name: &str, check: impl FnOnce() -> Result<String>) {
        match check() {
            Ok(found) => self.pass(&format!("{name}: {found}")),
            Err(error) => self.fail(&format!("{name}: {error:#}")),
        }
    }

    fn pass(&mut self, what: &str) {
        println!("ok: {what}");
        self.passed += 1;
    }

    fn fail(&mut self, what: &str) {
        println!("FAILED: {what}");
        self.failed += 1;
    }

    fn skip(&mut self, what: &str, reason: &str) {
        if required() {
            self.fail(&format!("{what}: {reason}"));
        } else {
            println!("skip: {what}: {reason}");
            self.skipped += 1;
        }
    }

    /// The line that `cargo xtask test` counts.
    fn finish(self) -> ExitCode {
        let Self { passed, failed, skipped } = self;
        let word = if failed == 0 { "ok" } else { "FAILED" };
        println!("test result: {word}. {passed} passed; {failed} failed; {skipped} ignored");
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
