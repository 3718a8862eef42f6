//! Faults seeded into the writer and its shim, each of which a judge in the guest must catch.
//!
//! A judge that never fails proves nothing. Each mutant changes one place in a copy of the sources,
//! is linked into the kernel and booted; it is caught if the judge that is named counts something
//! bad. The sources as they are go through the same first, and must come out clean.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use xtask::tools::root;

use super::boot::Boot;
use super::derive::once;
use super::judge::{Subject, Verdict};
use super::machine::Arch;
use super::tree::Tree;
use super::{Version, board, guest, image, object};

/// One fault.
struct Mutant {
    name: &'static str,
    file: &'static str,
    find: &'static str,
    replace: &'static str,
    /// The judge that runs, and must catch it; `selftests` are the kernel's own.
    judge: &'static str,
}

const TIMEKEEPER: &str = "kernel/writer/src/timekeeper.rs";
const WRITER: &str = "kernel/writer/src/lib.rs";
const SHIM: &str = "kernel/shim/vsyscall.c";

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "TAI a second ahead",
        file: TIMEKEEPER,
        find: "i64::from(self.tai_offset)",
        replace: "i64::from(self.tai_offset).wrapping_add(1)",
        judge: "bracket",
    },
    Mutant {
        name: "a counter that was read too late",
        file: TIMEKEEPER,
        find: "            cycle_last: self.cycle_last,",
        replace: "            cycle_last: self.cycle_last.wrapping_add(3_000_000),",
        judge: "bracket",
    },
    Mutant {
        name: "BOOTTIME without the time in suspend",
        file: TIMEKEEPER,
        find: "self.monotonic_to_boot_sec,",
        replace: "0,",
        judge: "suspend",
    },
    Mutant {
        name: "a resolution of the coarse clocks of one nanosecond",
        file: TIMEKEEPER,
        find: "coarse_res: self.tick_nsec,",
        replace: "coarse_res: 1,",
        judge: "selftests",
    },
    Mutant {
        name: "a timezone of which half is published",
        file: WRITER,
        find: "    writer.set_timezone(TimeZone { minutes_west, dst_time });",
        replace: "    let _ = dst_time;\n    \
                  writer.set_timezone(TimeZone { minutes_west, dst_time: 0 });",
        judge: "timezone",
    },
    Mutant {
        name: "a namespace whose BOOTTIME has the offset of MONOTONIC",
        file: WRITER,
        find: "let offsets = Offsets { monotonic, boottime };",
        replace: "let _ = boottime;\n        \
                  let offsets = Offsets { monotonic, boottime: monotonic };",
        judge: "timens",
    },
    Mutant {
        name: "a mode that programs cannot read, called a counter",
        file: SHIM,
        find: "\t\treturn UVDSO_MODE_NONE;",
        replace: "\t\treturn UVDSO_MODE_COUNTER;",
        judge: "clocksource",
    },
    Mutant {
        name: "an update during which the sequence stays even",
        file: "datapage/src/protocol.rs",
        find: "        let odd = self.0.get() | 1;\n        self.0.store(odd, Ordering::Relaxed);",
        replace: "        let odd = self.0.get() | 1;",
        judge: "race",
    },
];

/// Long enough that a torn update is met: each of two runs of eight seconds met one or none.
const RACE_SECONDS: u32 = 30;

/// What became of one fault.
pub(crate) struct Trial {
    pub(crate) name: &'static str,
    /// The judge that had to catch it.
    pub(crate) judge: &'static str,
    pub(crate) caught: bool,
    /// What the judge counted.
    pub(crate) says: String,
    /// How long the guest ran.
    pub(crate) after: Duration,
}

/// The names of all faults; an error if one cannot be made.
pub(crate) fn names() -> Result<Vec<&'static str>> {
    let name = |mutant: &Mutant| {
        mutant.apply()?;
        Ok(mutant.name)
    };
    MUTANTS.iter().map(name).collect()
}

/// Runs all and prints a table; whether every mutant is caught.
pub(crate) fn run(arch: Arch, version: Version) -> Result<bool> {
    let mut good = true;
    let (version_name, machine) = (version.name(), arch.machine().name);
    println!("### Faults seeded into the writer, Linux {version_name} on {machine}\n");
    println!("| fault | caught by | what it counted | guest ran |\n|---|---|---|---|");
    try_those(
        arch,
        version,
        |_| true,
        |trial| {
            let Trial { name, judge, caught, says, after } = &trial;
            let caught_by = if *caught { judge } else { "NOT CAUGHT" };
            println!("| {name} | {caught_by} | {says} | {after:.0?} |");
            good &= caught;
        },
    )?;
    println!();
    Ok(good)
}

/// Boots the sources as they are, and with each fault whose name is `chosen`.
///
/// # Errors
/// If a judge complains without any fault, too.
pub(crate) fn try_those(
    arch: Arch,
    version: Version,
    chosen: impl Fn(&str) -> bool,
    mut report: impl FnMut(Trial),
) -> Result<()> {
    let tree = Tree::prepare(arch.machine(), version)?;
    let programs = guest::compile(&tree)?;
    tree.stock()?;
    let guest = Guest { initrd: &programs.initrd, board: board::describe(&tree)? };

    let is_judged = |mutant: &Mutant| !tree.machine.without.contains(&mutant.judge);
    let mutants = MUTANTS.iter().filter(|mutant| is_judged(mutant) && chosen(mutant.name));
    let mutants: Vec<_> = mutants.collect();
    let judges: Vec<&str> = mutants.iter().map(|mutant| mutant.judge).collect();
    let (clean, _) = boot(&tree, &root(), &guest, &judges.join(","))?;
    if !clean.complaints.is_empty() {
        bail!("without any fault: {}", clean.complaints.join("; "));
    }
    for mutant in mutants {
        let sources = seed(&tree, mutant).with_context(|| mutant.name)?;
        let (verdict, after) = boot(&tree, &sources, &guest, mutant.judge)?;
        let bad: u64 = verdict.judges.values().map(|count| count.bad).sum();
        let failed = verdict.selftests.iter().filter(|(_, totals)| totals.exit != 0);
        let failed: Vec<&str> = failed.map(|(name, _)| name.as_str()).collect();
        let mut says = format!("{bad} bad checks");
        if !failed.is_empty() {
            says = format!("{says}, failed: {}", failed.join(" "));
        }
        let Mutant { name, judge, .. } = *mutant;
        report(Trial { name, judge, caught: bad > 0 || !failed.is_empty(), says, after });
    }
    Ok(())
}

/// What every guest boots with, beside its kernel.
struct Guest<'a> {
    initrd: &'a Path,
    board: Option<PathBuf>,
}

fn boot(
    tree: &Tree,
    sources: &Path,
    guest: &Guest<'_>,
    judges: &str,
) -> Result<(Verdict, Duration)> {
    let object = object::compile(sources, tree)?;
    let machine = tree.machine;
    let kernel = tree.ours(sources, &object, &image::of(machine)?)?;
    let init = format!("race={RACE_SECONDS} only={judges}");
    let begin = Instant::now();
    let Guest { initrd, board } = guest;
    let boot = Boot { machine, kernel: &kernel, initrd, board: board.as_deref(), init };
    let log = boot.run(&tree.log(Subject::Ours))?;
    Ok((Verdict::read(machine, &log), begin.elapsed()))
}

/// A copy of the sources with the fault in it.
fn seed(tree: &Tree, mutant: &Mutant) -> Result<PathBuf> {
    let copy = tree.own.join("mutant");
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    copy_sources(&root(), &copy)?;
    fs::write(copy.join(mutant.file), mutant.apply()?)?;
    Ok(copy)
}

impl Mutant {
    /// The text of its file with the fault in it.
    fn apply(&self) -> Result<String> {
        let file = root().join(self.file);
        let text = fs::read_to_string(&file);
        let text = text.with_context(|| format!("reading {}", file.display()))?;
        once(&text, self.find, self.replace).with_context(|| self.name)
    }
}

/// Copies all but what builds leave behind and what the version control keeps.
fn copy_sources(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == "target" || name == ".git" {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copy_sources(&entry.path(), &to.join(name))?;
        } else {
            fs::copy(entry.path(), to.join(name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mutant whose place moved is found here, and not after the kernel was built.
    #[test]
    fn every_mutant_has_its_one_place() {
        assert_eq!(names().unwrap().len(), MUTANTS.len());
    }
}
