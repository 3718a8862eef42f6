//! Faults seeded into the writer and its shim, each of which a judge in the guest must catch.
//!
//! A judge that never fails proves nothing. Each mutant changes one place in a copy of the sources,
//! is linked into the kernel and booted; it is caught if the judge that is named counts something
//! bad. The sources as they are go through the same first, and must come out clean.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use xtask::tools::root;

use super::boot::Boot;
use super::derive::once;
use super::judge::{Subject, Verdict};
use super::tree::Tree;
use super::{Version, guest, object};

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

/// Runs all; whether the sources are clean and every mutant is caught.
pub(crate) fn run(version: Version) -> Result<bool> {
    let tree = Tree::prepare(version)?;
    let programs = guest::compile(&tree)?;
    tree.stock()?;
    let mut good = true;

    let judges: Vec<&str> = MUTANTS.iter().map(|mutant| mutant.judge).collect();
    let clean = boot(&tree, &root(), &programs.initrd, &judges.join(","))?;
    for complaint in &clean.complaints {
        println!("mutants: without any: {complaint}");
        good = false;
    }
    for mutant in MUTANTS {
        let sources = seed(&tree, mutant).with_context(|| mutant.name)?;
        let verdict = boot(&tree, &sources, &programs.initrd, mutant.judge)?;
        let bad: u64 = verdict.judges.values().map(|count| count.bad).sum();
        let failed = verdict.selftests.iter().filter(|(_, totals)| totals.exit != 0);
        let failed: Vec<&str> = failed.map(|(name, _)| name.as_str()).collect();
        let caught = bad > 0 || !failed.is_empty();
        println!(
            "mutants: {}: {} by {}: {bad} bad checks{}{}",
            mutant.name,
            if caught { "caught" } else { "NOT CAUGHT" },
            mutant.judge,
            if failed.is_empty() { "" } else { ", failed: " },
            failed.join(" "),
        );
        good &= caught;
    }
    Ok(good)
}

fn boot(tree: &Tree, sources: &Path, initrd: &Path, judges: &str) -> Result<Verdict> {
    let object = object::compile(sources, tree)?;
    let kernel = tree.ours(sources, &object)?;
    let init = format!("race={RACE_SECONDS} suspend only={judges}");
    let log = Boot { kernel: &kernel, initrd, init }.run(&tree.log(Subject::Ours))?;
    Ok(Verdict::read(&log))
}

/// A copy of the sources with the fault in it.
fn seed(tree: &Tree, mutant: &Mutant) -> Result<PathBuf> {
    let copy = tree.own.join("mutant");
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    copy_sources(&root(), &copy)?;
    let file = copy.join(mutant.file);
    let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    fs::write(&file, once(&text, mutant.find, mutant.replace)?)?;
    Ok(copy)
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
        for mutant in MUTANTS {
            let text = fs::read_to_string(root().join(mutant.file)).unwrap();
            let changed = once(&text, mutant.find, mutant.replace);
            assert!(changed.is_ok(), "{}: {:?}", mutant.name, changed.err());
        }
    }
}
