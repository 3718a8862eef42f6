//! `cargo xtask kernel`: our writer, page and image inside a real Linux, judged there.
//!
//! A Debian kernel is built twice from one configuration: as it is, for the control, and with three
//! things exchanged. Both boot under emulation, run the same judges and the kernel's own tests, and
//! must come to the same totals. `kernel/README.md` tells the whole.

mod boot;
mod derive;
mod guest;
mod image;
mod initrd;
mod judge;
pub(crate) mod mutants;
mod object;
mod process;
mod table;
mod tree;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use xtask::tools::root;

use boot::Boot;
use judge::{Subject, Verdict};
use tree::Tree;

/// Options of `kernel`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The machine.
    #[arg(long, value_enum, default_value_t = Arch::X86_64)]
    arch: Arch,
    /// The kernel, a Debian package `linux-source-VERSION`.
    #[arg(long, value_enum, default_value_t = Version::V6_1)]
    version: Version,
    /// Every version, and the mutants.
    #[arg(long, conflicts_with_all = ["version", "mutants"])]
    all: bool,
    /// Instead of the full run: seed faults into the writer, and see that each is caught.
    #[arg(long)]
    mutants: bool,
    /// How long the reader races the writer, in seconds; less than 30 would prove too little.
    #[arg(long, default_value_t = judge::RACE_SECONDS, value_parser = clap::value_parser!(u32).range(30..=600))]
    race: u32,
}

/// The machines whose kernel we know how to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Arch {
    /// A PC, emulated, with two CPUs.
    #[value(name = "x86_64")]
    X86_64,
}

/// The kernels that the substitutions were written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Version {
    /// Debian 12's kernel.
    #[value(name = "6.1")]
    V6_1,
    /// The newer kernel that Debian 12 offers beside it.
    #[value(name = "6.12")]
    V6_12,
}

impl Version {
    /// As in the package's name.
    fn name(self) -> &'static str {
        match self {
            Self::V6_1 => "6.1",
            Self::V6_12 => "6.12",
        }
    }
}

/// Runs what was asked for; the exit code says whether all of it holds.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arch::X86_64 = arguments.arch;
    let good = if arguments.all {
        let mut good = true;
        for version in [Version::V6_1, Version::V6_12] {
            good &= compare(version, arguments.race)?;
        }
        good & mutants::run(Version::V6_1)?
    } else if arguments.mutants {
        mutants::run(arguments.version)?
    } else {
        compare(arguments.version, arguments.race)?
    };
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Stock against ours on one kernel.
fn compare(version: Version, race: u32) -> Result<bool> {
    let start = Instant::now();
    let tree = Tree::prepare(version)?;
    let programs = guest::compile(&tree)?;
    let stock = tree.stock()?;
    println!("kernel: {} built in {:.0?}", tree.describe(), start.elapsed());

    let object = object::compile(&root(), &tree)?;
    let ours = tree.ours(&root(), &object)?;
    println!("kernel: image and writer exchanged at {:.0?}", start.elapsed());

    let verdict = |subject, kernel: &Path| {
        let boot = Boot { kernel, initrd: &programs.initrd, init: format!("race={race} suspend") };
        let log = boot.run(&tree.log(subject)).with_context(|| format!("booting {subject}"))?;
        anyhow::Ok(Verdict::of(subject, race, &log))
    };
    let (stock, ours) = (verdict(Subject::Stock, &stock)?, verdict(Subject::Ours, &ours)?);
    let complaints = table::print(&tree.describe(), &stock, &ours);
    println!(
        "kernel: {} in {:.0?}",
        if complaints == 0 {
            "all equal, nothing bad".to_owned()
        } else {
            format!("{complaints} complaints")
        },
        start.elapsed()
    );
    Ok(complaints == 0)
}
