//! What the code holds.

use object::elf;

use super::segments::load;
use super::{Broken, ImageFile, Level, Rule, Scope, broken};

pub(crate) const SYSTEM_CALL: Rule = Rule {
    name: "system-call",
    level: Level::Must,
    scope: Scope::EntersKernel,
    demand: "at least one instruction that enters the kernel",
    consumers: "rr (asserts it, and makes its own system calls from there)",
    check: |file| match find(file)? {
        Some(_) => Ok(()),
        None => broken!("there is none"),
    },
};

/// A "should", because the bytes may also be part of another instruction.
pub(crate) const NO_SYSTEM_CALL: Rule = Rule {
    name: "no-system-call",
    level: Level::Should,
    scope: Scope::NeverEntersKernel,
    demand: "no instruction that enters the kernel, as the image's policy says",
    consumers: "library OSes that have no kernel to enter",
    check: |file| match find(file)? {
        Some(offset) => broken!("the bytes of one stand at {offset:#x}"),
        None => Ok(()),
    },
};

/// Where the first instruction that enters the kernel stands.
fn find(file: &ImageFile<'_>) -> Result<Option<u64>, Broken> {
    let mut code: Vec<_> = file
        .sections
        .iter()
        .filter(|section| section.flags & u64::from(elf::SHF_EXECINSTR) != 0)
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
    for (instruction, step) in file.arch.system_calls() {
        for (offset, bytes) in &code {
            let mut places = bytes.windows(instruction.len()).step_by(*step);
            if let Some(place) = places.position(|window| window == *instruction) {
                return Ok(Some(offset + (place * step) as u64));
            }
        }
    }
    Ok(None)
}
