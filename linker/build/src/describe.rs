//! What the build says of an image: its note, its build id, its functions.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use object::elf;
use object::read::elf::{FileHeader as _, SectionHeader as _, Sym as _};

type Header = elf::FileHeader64<object::LittleEndian>;

/// The constants of one image.
#[derive(Debug)]
pub struct Description {
    build_id: Vec<u8>,
    note: [u32; 4],
    symbols: Vec<(String, u64, u64)>,
}

/// Reads an image of a 64-bit architecture.
///
/// # Errors
/// What is missing in it: a build id, the note, a function.
pub fn describe(bytes: &[u8]) -> Result<Description> {
    let header = Header::parse(bytes)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, bytes)?;
    let mut build_id = None;
    let mut note = None;
    for section in sections.iter() {
        let Some(mut notes) = section.notes(endian, bytes)? else {
            continue;
        };
        while let Some(found) = notes.next()? {
            match (found.name(), found.n_type(endian)) {
                (b"GNU", elf::NT_GNU_BUILD_ID) => build_id = Some(found.desc().to_vec()),
                (b"uVDSO", 1) => {
                    let (words, _) = found.desc().as_chunks::<4>();
                    let words: Vec<u32> = words.iter().map(|w| u32::from_le_bytes(*w)).collect();
                    note = Some(words.try_into().ok().context("the note has four words")?);
                }
                _ => {}
            }
        }
    }
    let table = sections.symbols(endian, bytes, elf::SHT_DYNSYM)?;
    let mut symbols = Vec::new();
    for symbol in table.iter() {
        if symbol.st_type() == elf::STT_FUNC {
            let name = std::str::from_utf8(symbol.name(endian, table.strings())?)?.to_owned();
            symbols.push((name, symbol.st_value(endian), symbol.st_size(endian)));
        }
    }
    symbols.sort();
    if symbols.is_empty() {
        bail!("the image exports no function");
    }
    Ok(Description {
        build_id: build_id.context("the image has no build id")?,
        note: note.context("the image has no uVDSO note")?,
        symbols,
    })
}

impl Description {
    /// The constant that `linker` offers for this image.
    #[must_use]
    pub fn to_rust(&self, policy: &str, image: &Path) -> String {
        let name = policy.to_uppercase();
        let variant = format!("{}{}", &name[..1], policy[1..].to_lowercase());
        let [_, abi, slots, slot_bytes] = self.note;
        let mut text = String::new();
        let _ = write!(
            text,
            "/// The image whose fallback policy is `{policy}`.\n\
             pub static {name}: Image = Image {{\n    \
             bytes: &Aligned(*include_bytes!({image:?})).0,\n    \
             policy: Policy::{variant},\n    page_abi: {abi},\n    slots: {slots},\n    \
             slot_bytes: {slot_bytes},\n    build_id: {:?},\n    symbols: &[\n",
            self.build_id.as_slice(),
        );
        for (symbol, offset, size) in &self.symbols {
            let _ = writeln!(
                text,
                "        Symbol {{ name: {symbol:?}, offset: {offset:#x}, size: {size:#x} }},"
            );
        }
        text.push_str("    ],\n};\n");
        text
    }
}
