//! The last step: what Linux's image has and `rust-lld` has no option for.
//!
//! The dynamic entries get Linux's order, since some parsers handle each entry as it comes
//! (`docs/decisions/0030-dynamic-order.md`), and the symbols of version nodes get the type of an
//! object, since those that a linker script defines have none.

use anyhow::{Context as _, Result, ensure};
use object::elf;

use crate::judge::{Arch, ImageFile};

/// The tags of Linux's image, in its order. A tag that is not here keeps its place behind them.
const ORDER: [u32; 11] = [
    elf::DT_SONAME,
    elf::DT_HASH,
    elf::DT_GNU_HASH,
    elf::DT_STRTAB,
    elf::DT_SYMTAB,
    elf::DT_STRSZ,
    elf::DT_SYMENT,
    elf::DT_VERDEF,
    elf::DT_VERDEFNUM,
    elf::DT_FLAGS,
    elf::DT_VERSYM,
];

/// Finishes a little-endian image in place.
pub(crate) fn finish(bytes: &mut [u8]) -> Result<()> {
    sort_dynamic(bytes)?;
    type_version_nodes(bytes)?;
    forget_float_abi(bytes)
}

/// Takes from an Arm image the mark of how floating-point arguments are passed. It has none, so it
/// fits both kinds of programs; Linux's image has no mark either.
fn forget_float_abi(bytes: &mut [u8]) -> Result<()> {
    if ImageFile::read(bytes)?.arch != Arch::Arm {
        return Ok(());
    }
    let flags = bytes.get_mut(36..40).context("the header ends before its flags")?;
    let found = u32::from_le_bytes(flags.try_into()?);
    ensure!(found & elf::EF_ARM_ABI_FLOAT_HARD == 0, "the image passes floats in registers");
    flags.copy_from_slice(&(found & !elf::EF_ARM_ABI_FLOAT_SOFT).to_le_bytes());
    Ok(())
}

fn sort_dynamic(bytes: &mut [u8]) -> Result<()> {
    let file = ImageFile::read(bytes)?;
    ensure!(file.endian == object::Endianness::Little, "only little-endian images are made");
    let Some(segment) = file.segments_of(elf::PT_DYNAMIC).next() else {
        anyhow::bail!("there is no PT_DYNAMIC to sort");
    };
    let Some(dynamic) = &file.dynamic else {
        anyhow::bail!("PT_DYNAMIC is not read");
    };
    ensure!(dynamic.is_terminated, "PT_DYNAMIC does not end with DT_NULL");
    let mut entries = dynamic.entries.clone();
    let rank = |tag: u64| ORDER.iter().position(|known| u64::from(*known) == tag);
    entries.sort_by_key(|(tag, _)| rank(*tag).unwrap_or(ORDER.len()));
    // The entries are moved, never changed: what was there before is there now.
    let mut before = dynamic.entries.clone();
    let mut after = entries.clone();
    before.sort_unstable();
    after.sort_unstable();
    ensure!(before == after, "sorting lost a dynamic entry");

    let word = if file.is_64 { 8 } else { 4 };
    let start = usize::try_from(segment.offset)?;
    let words = entries.iter().flat_map(|(tag, value)| [*tag, *value]);
    let words: Vec<u64> = words.collect();
    for (place, value) in bytes[start..].chunks_exact_mut(word).zip(words) {
        place.copy_from_slice(&value.to_le_bytes()[..word]);
    }
    Ok(())
}

fn type_version_nodes(bytes: &mut [u8]) -> Result<()> {
    let file = ImageFile::read(bytes)?;
    let table = file.dynamic.as_ref().and_then(|dynamic| dynamic.get(elf::DT_SYMTAB));
    let table = usize::try_from(table.context("there is no DT_SYMTAB")?)?;
    // Where `st_info` stands in a symbol, and how long a symbol is.
    let (info, symbol_bytes) = if file.is_64 { (4, 24) } else { (12, 16) };
    let mut places = Vec::new();
    for (index, symbol) in file.tables.symbols.iter().enumerate() {
        if symbol.section == elf::SHN_ABS {
            let is_node = file.tables.definitions.iter().any(|node| node.name == symbol.name);
            ensure!(is_node, "{} is absolute and no version node", symbol.name);
            places.push((table + index * symbol_bytes + info, symbol.binding));
        }
    }
    for (place, binding) in places {
        bytes[place] = binding << 4 | elf::STT_OBJECT;
    }
    Ok(())
}
