//! Bad images of each architecture: what `linker/tests/judge` shows of x86_64's and i386's rules, of
//! the others' own.

use std::fs;

use anyhow::{Context as _, Result, bail, ensure};
use linker::judge::{Arch, ImageFile, Outcome, judge};
use object::{Object as _, ObjectSection as _};

use crate::cross::image::Image;

/// A rule and a change that breaks it; `None` where it is not for the architecture.
type Case = (&'static str, fn(Arch, &mut Vec<u8>) -> Result<Option<()>>);

const CASES: &[Case] = &[
    ("unwind-every-path", |arch, bytes| match arch {
        Arch::Arm => Ok(None),
        _ => code_in_the_padding(arch, bytes).map(Some),
    }),
    ("names", |arch, bytes| {
        let (name, _) = arch.functions().first().context("an architecture has functions")?;
        rename(bytes, name).map(Some)
    }),
    ("late-names", |arch, bytes| match arch.late_functions() {
        [] => Ok(None),
        [(name, _), ..] => rename(bytes, name).map(Some),
    }),
    ("system-call", |arch, bytes| {
        for (instruction, _) in arch.system_calls() {
            while let Some(at) = bytes.windows(instruction.len()).position(|w| w == *instruction) {
                bytes[at..at + instruction.len()].fill(0);
            }
        }
        Ok(Some(()))
    }),
    ("soname", |arch, bytes| rename(bytes, arch.soname()).map(Some)),
];

/// Each change to the image is refused by its rule, and each rule held before.
pub(crate) fn check(image: &Image) -> Result<String> {
    let good = fs::read(&image.path)?;
    let arch = ImageFile::read(&good)?.arch;
    let mut refused = 0;
    for (rule, change) in CASES {
        let mut bytes = good.clone();
        if change(arch, &mut bytes)?.is_none() || image.policy == "enosys" && *rule == "system-call"
        {
            continue;
        }
        ensure!(outcome(&good, rule)? == Outcome::Holds, "{rule} does not hold");
        let found = outcome(&bytes, rule)?;
        ensure!(matches!(found, Outcome::Broken(_)), "{rule} says {found:?} of a bad image");
        refused += 1;
    }
    ensure!(refused > 0, "no bad image was made");
    Ok(format!("{refused} bad ones are refused"))
}

fn outcome(bytes: &[u8], rule: &str) -> Result<Outcome> {
    let findings = judge(&ImageFile::read(bytes)?).findings;
    let finding = findings.into_iter().find(|finding| finding.rule.name == rule);
    Ok(finding.with_context(|| format!("no rule {rule}"))?.outcome)
}

/// Writes an instruction wherever there is room between functions, and inside of short ones.
fn code_in_the_padding(arch: Arch, bytes: &mut [u8]) -> Result<()> {
    let (fill, code): (u8, &[u8]) = match arch {
        Arch::X86_64 | Arch::I386 => (0xcc, &[0xc3]),
        Arch::Aarch64 => (0, &[0xc0, 0x03, 0x5f, 0xd6]),
        Arch::Riscv64 => (0, &[0x82, 0x80]),
        other => bail!("no padding is known on {}", other.name()),
    };
    let file = object::File::parse(&*bytes)?;
    let text = file.section_by_name(".text").context("the image has no .text")?;
    let (start, size) = text.file_range().context("the code is in the file")?;
    let text = usize::try_from(start)?..usize::try_from(start + size)?;
    // Instructions have 4 bytes at most where zeros are padding: the middle of 12 belongs to none.
    let rooms = bytes[text].chunks_exact_mut(12);
    let rooms = rooms.filter(|room| room.iter().all(|byte| *byte == fill));
    let count = rooms.map(|room| room[4..4 + code.len()].copy_from_slice(code)).count();
    ensure!(count > 0, "there is no padding");
    Ok(())
}

/// Changes the first letter of a name in the table of strings.
fn rename(bytes: &mut [u8], name: &str) -> Result<()> {
    let whole = [&[0], name.as_bytes(), &[0]].concat();
    let at = bytes.windows(whole.len()).position(|window| window == whole);
    bytes[at.with_context(|| format!("no {name}"))? + 1] = b'X';
    Ok(())
}
