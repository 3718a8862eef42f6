//! `cargo xtask kernel`: our writer, page and image inside a real Linux, judged there.
//!
//! A Debian kernel is built twice from one configuration: as it is, for the control, and with three
//! things exchanged. Both boot under emulation, run the same judges and the kernel's own tests, and
//! must come to the same totals. `kernel/README.md` tells the whole.

mod board;
mod boot;
mod code;
mod derive;
mod guest;
mod image;
mod initrd;
mod judge;
mod machine;
pub(crate) mod mutants;
mod object;
pub(crate) mod process;
mod table;
mod tree;
mod versions;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use xtask::tools::root;

use judge::{Subject, Verdict};
pub(crate) use machine::Arch;
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
    /// Every version on every machine, and the faults in the first version of each.
    #[arg(long, conflicts_with_all = ["arch", "version", "mutants"])]
    all: bool,
    /// Instead of the full run: seed faults into the writer, and see that each is caught.
    #[arg(long)]
    mutants: bool,
    /// How long the reader races the writer, in seconds; less than 30 would prove too little.
    #[arg(long, default_value_t = judge::RACE_SECONDS, value_parser = clap::value_parser!(u32).range(30..=600))]
    race: u32,
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
///
/// The report goes to standard output, what is being done to standard error.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { arch, version, race, .. } = *arguments;
    if arguments.mutants {
        return Ok(code(mutants::run(arch, version)?));
    }
    let mut cases = Vec::new();
    if arguments.all {
        for &arch in Arch::value_variants() {
            for &version in Version::value_variants() {
                cases.push((arch, version));
            }
        }
    } else {
        cases.push((arch, version));
    }
    println!("{}\n", versions::line()?);
    let mut done = Vec::new();
    for (arch, version) in cases {
        done.push(compare(arch, version, race)?);
    }
    let mut good = done.iter().all(|case| case.complaints == 0);
    if arguments.all {
        print!("{}", table::summary(&done));
        for &arch in Arch::value_variants() {
            good &= mutants::run(arch, Version::V6_1)?;
        }
    }
    Ok(code(good))
}

fn code(good: bool) -> ExitCode {
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What a comparison came to.
struct Case {
    title: String,
    stock: Verdict,
    ours: Verdict,
    complaints: usize,
    times: Times,
}

/// How long the parts took.
#[derive(Default)]
struct Times {
    /// Unpacking and building the stock kernel, or finding that nothing is to do.
    built: Duration,
    /// Exchanging image and writer, and linking again.
    exchanged: Duration,
    /// Each boot, to the guest's own end.
    booted: [Duration; 2],
}

/// Stock against ours on one kernel.
fn compare(arch: Arch, version: Version, race: u32) -> Result<Case> {
    let machine = arch.machine();
    let mut start = Instant::now();
    let mut lap = || {
        let passed = start.elapsed();
        start = Instant::now();
        passed
    };
    let mut times = Times::default();
    let tree = Tree::prepare(machine, version)?;
    let title = tree.describe();
    let programs = guest::compile(&tree)?;
    let stock = tree.stock()?;
    times.built = lap();
    eprintln!("kernel: {title} is built");

    let object = object::compile(&root(), &tree)?;
    let image = image::of(machine)?;
    let ours = tree.ours(&root(), &object, &image)?;
    times.exchanged = lap();
    eprintln!("kernel: image and writer are exchanged");

    let board = board::describe(&tree)?;
    let mut verdicts = Vec::new();
    for (at, (subject, kernel)) in
        [(Subject::Stock, &stock), (Subject::Ours, &ours)].into_iter().enumerate()
    {
        let without = machine.without.join(",");
        let init = format!("race={race} without={without}");
        let (initrd, board) = (&*programs.initrd, board.as_deref());
        let boot = boot::Boot { machine, kernel, initrd, board, init };
        let log = boot.run(&tree.log(subject)).with_context(|| format!("booting {subject}"))?;
        times.booted[at] = lap();
        eprintln!("kernel: {title}: {subject} is through");
        let boot = judge::Boot { machine, subject, image: &image, race };
        verdicts.push(Verdict::of(boot, &log));
    }
    let [stock, ours] = <[Verdict; 2]>::try_from(verdicts)
        .map_err(|all| anyhow::anyhow!("{} verdicts, not two", all.len()))?;
    let mut case = Case { title, stock, ours, complaints: 0, times };
    case.complaints = table::print(&case);
    Ok(case)
}
