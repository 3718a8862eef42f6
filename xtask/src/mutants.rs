//! `cargo xtask mutants`: seeded faults, each of which some test has to catch.
//!
//! A fault is a piece of shipped source and what stands in its place instead, in
//! `kernel-sim/fuzz/mutants/*.txt`. Pairs of texts survive the edits around them, and one whose text
//! is gone, or no longer unique, is an error and not a fault that is never made.
//!
//! Faults are made one by one in a copy of the working tree below `target/mutants`. The tests that
//! are nearest run first; the first that fails has caught the fault. A fault that does not compile,
//! that no test catches, or that only shows as a test without an end, fails the command. Faults of
//! the kernel's writer follow, which judges in a booted Linux have to catch (`kernel::mutants`).

mod fault;
mod table;
mod trial;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use xtask::tools::{KERNEL, TOOLS, required, root};

use crate::kernel;
use table::{Row, Table};
use trial::TreeCopy;

/// Options of `mutants`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only say whether every fault can still be made.
    #[arg(long)]
    check: bool,
    /// Leave out the faults for which a Linux is built and booted.
    #[arg(long)]
    without_kernel: bool,
    /// Write the table to this file, too, as Markdown.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Only faults whose area/name contains this text.
    #[arg(value_name = "TEXT")]
    only: Option<String>,
}

/// The area of the faults that a booted Linux has to show.
const IN_LINUX: &str = "linux";

/// Makes each fault and runs the tests.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut faults = fault::load(&root())?;
    let mut in_linux = kernel::mutants::names()?;
    println!("{} faults and {} in Linux, each in a place of its own", faults.len(), in_linux.len());
    if arguments.check {
        return Ok(ExitCode::SUCCESS);
    }
    let is_chosen =
        |title: &str| arguments.only.as_ref().is_none_or(|text| title.contains(text.as_str()));
    faults.retain(|fault| is_chosen(&fault.title()));
    in_linux.retain(|name| !arguments.without_kernel && is_chosen(&format!("{IN_LINUX}/{name}")));
    ensure!(
        !faults.is_empty() || !in_linux.is_empty(),
        "no fault's area/name contains {:?}",
        arguments.only.as_deref().unwrap_or_default()
    );
    // Refused now, and not after an hour.
    if let Some(file) = &arguments.markdown {
        let opened = std::fs::File::options().append(true).create(true).open(file);
        opened.with_context(|| format!("writing {}", file.display()))?;
    }

    let begin = Instant::now();
    let mut table = Table::begin()?;
    if !faults.is_empty() {
        try_in_tests(&faults, &mut table)?;
    }
    let skipped = if in_linux.is_empty() { None } else { missing_for_linux() };
    match &skipped {
        Some(reason) => println!("skip: {} faults in Linux ({reason})", in_linux.len()),
        None if !in_linux.is_empty() => try_in_linux(&in_linux, &mut table)?,
        None => {}
    }
    table.end(begin.elapsed());
    if let Some(file) = &arguments.markdown {
        std::fs::write(file, table.markdown(begin.elapsed())?)
            .with_context(|| format!("writing {}", file.display()))?;
    }
    let good = table.all_caught() && (skipped.is_none() || !required());
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Tries faults one by one, after a run without any.
fn try_in_tests(faults: &[fault::Fault], table: &mut Table) -> Result<()> {
    let copy = TreeCopy::of(&root())?;
    let begin = Instant::now();
    let packages: BTreeSet<&str> =
        faults.iter().flat_map(|fault| &fault.tests).map(String::as_str).collect();
    copy.must_pass(&packages)?;
    println!("without any fault all tests pass; built and run in {:.0?}", begin.elapsed());
    for fault in faults {
        let verdict = copy.verdict(fault).with_context(|| fault.title())?;
        table.add(Row::of_fault(fault, &verdict));
    }
    Ok(())
}

/// Tries the named faults in a Linux of the first machine and version.
fn try_in_linux(names: &[&str], table: &mut Table) -> Result<()> {
    kernel::mutants::try_those(
        kernel::Arch::X86_64,
        kernel::Version::V6_1,
        |name| names.contains(&name),
        |trial| table.add(Row::of_trial(IN_LINUX, trial)),
    )
}

/// Why no Linux can be built and booted here; `None` if one can.
fn missing_for_linux() -> Option<String> {
    TOOLS.iter().filter(|tool| tool.used_by == KERNEL).find_map(|tool| tool.missing())
}
