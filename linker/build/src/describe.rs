//! What the build says of an image: its note, its build id, its functions.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use object::elf;

use crate::judge::{ImageFile, OwnNote};

/// The constants of one image.
#[derive(Debug)]
pub struct Description {
    build_id: [u8; 20],
    note: OwnNote,
    symbols: Vec<(String, u64, u64)>,
}

/// Reads an image of any architecture.
///
/// # Errors
/// What is missing in it: a build id, the note, a function.
pub fn describe(bytes: &[u8]) -> Result<Description> {
    let file = ImageFile::read(bytes)?;
    let build_id = file.build_id().context("the image has no build id")?;
    let functions = file.tables.functions();
    let mut symbols: Vec<_> = functions
        .iter()
        .filter(|symbol| symbol.kind == elf::STT_FUNC || symbol.name.ends_with("sigreturn"))
        .map(|symbol| (symbol.name.to_owned(), symbol.value, symbol.size))
        .collect();
    symbols.sort();
    if symbols.is_empty() {
        bail!("the image exports no function");
    }
    Ok(Description {
        build_id: build_id.try_into().context("the build id is no SHA-1")?,
        note: file.own_note().context("the image has no uVDSO note")?,
        symbols,
    })
}

impl Description {
    /// The constant that `linker` offers for this image.
    #[must_use]
    pub fn to_rust(&self, policy: &str, image: &Path) -> String {
        let name = policy.to_uppercase();
        let variant = format!("{}{}", &name[..1], policy[1..].to_lowercase());
        let OwnNote { page_abi, slots, slot_bytes, .. } = self.note;
        let mut text = String::new();
        let _ = write!(
            text,
            "/// The image whose fallback policy is `{policy}`.\n\
             pub static {name}: Image = Image {{\n    \
             bytes: &Aligned(*include_bytes!({image:?})).0,\n    \
             policy: Policy::{variant},\n    page_abi: {page_abi},\n    slots: {slots},\n    \
             slot_bytes: {slot_bytes},\n    build_id: &{:?},\n    symbols: &[\n",
            self.build_id,
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
