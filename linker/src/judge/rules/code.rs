//! What the code holds.

use std::ops::Range;

use super::segments::load;
use super::{Broken, ImageFile, Level, Rule, Scope, broken};

pub(crate) const SYSTEM_CALL: Rule = Rule {
    name: "system-call",
    level: Level::Must,
    scope: Scope::EntersKernel,
    demand: "at least one instruction that enters the kernel",
    consumers: "rr (asserts it, and makes its own system calls from there)",
    check: |file| match find(file, file.arch.system_calls(), &[])? {
        Some(_) => Ok(()),
        None => broken!("there is none"),
    },
};

/// A "should", because the bytes may also be part of another instruction. For the same reason only
/// the instruction is looked for that this project's images use, the first of its architecture.
pub(crate) const NO_SYSTEM_CALL: Rule = Rule {
    name: "no-system-call",
    level: Level::Should,
    scope: Scope::NeverEntersKernel,
    demand: "no instruction that enters the kernel, as the image's policy says, but in the \
             trampolines that only a kernel leads programs to",
    consumers: "library OSes that have no kernel to enter",
    check: |file| match find(file, &file.arch.system_calls()[..1], &trampolines(file))? {
        Some(offset) => broken!("the bytes of one stand at {offset:#x}"),
        None => Ok(()),
    },
};

/// What the kernel itself points a program to, if there is one: handlers' return addresses, and
/// i386's `AT_SYSINFO`.
fn trampolines(file: &ImageFile<'_>) -> Vec<Range<u64>> {
    let symbols = file.tables.symbols.iter();
    symbols
        .filter(|symbol| symbol.is_trampoline() || symbol.name == "__kernel_vsyscall")
        .map(|symbol| symbol.value..symbol.value.saturating_add(symbol.size))
        .collect()
}

/// Where the first of `instructions` stands, outside of `except`.
fn find(
    file: &ImageFile<'_>,
    instructions: &[(&[u8], usize)],
    except: &[Range<u64>],
) -> Result<Option<u64>, Broken> {
    let mut code: Vec<_> = file
        .sections
        .iter()
        .filter(|section| section.is_code())
        .filter_map(|section| Some((section.offset, file.section_bytes(section)?)))
        .collect();
    if code.is_empty() {
        // Without sections, everything that is mapped executable is code.
        let load = load(file)?;
        let range = usize::try_from(load.offset)
            .ok()
            .zip(usize::try_from(load.offset.saturating_add(load.file_bytes)).ok());
        let bytes = range.and_then(|(start, end)| file.bytes.get(start..end));
        code.push((load.offset, bytes.unwrap_or_default()));
    }
    if code.iter().all(|(_, bytes)| bytes.is_empty()) {
        broken!("there is no code");
    }
    for (instruction, step) in instructions {
        for (offset, bytes) in &code {
            let places = bytes.windows(instruction.len()).step_by(*step).enumerate();
            let found = places
                .filter(|(_, window)| window == instruction)
                .map(|(place, _)| offset + (place * step) as u64)
                .find(|place| !except.iter().any(|range| range.contains(place)));
            if found.is_some() {
                return Ok(found);
            }
        }
    }
    Ok(None)
}
