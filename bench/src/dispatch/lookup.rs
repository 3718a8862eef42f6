//! Finding a function of a mapped image by name and version, without sections: what a libc's
//! `vdso.c` does.

use object::elf::{self, FileHeader64, Sym64, Verdaux, Verdef, Versym};
use object::endian::{LittleEndian, U32};
use object::pod::{from_bytes, slice_from_bytes};
use object::read::StringTable;
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _, Sym as _};

type Header = FileHeader64<LittleEndian>;

/// Bytes from the start of `image` to the function `name` of `version`; without version
/// information in the image, of the name alone.
pub(super) fn function(image: &[u8], name: &str, version: &str) -> Option<usize> {
    let dynamic = Dynamic::parse(image)?;
    let wanted = dynamic.version_index(version);
    let (_, symbol) = dynamic.symbols.iter().enumerate().find(|(index, symbol)| {
        symbol.st_type() == elf::STT_FUNC
            && !symbol.is_undefined(LittleEndian)
            && symbol.name(LittleEndian, dynamic.strings) == Ok(name.as_bytes())
            && dynamic.has_version(*index, wanted)
    })?;
    usize::try_from(symbol.st_value(LittleEndian)).ok()
}

/// What the dynamic segment of an image points to.
struct Dynamic<'i> {
    strings: StringTable<'i>,
    symbols: &'i [Sym64<LittleEndian>],
    versions: Option<Versions<'i>>,
}

/// Version numbers of the symbols, and what the numbers stand for.
struct Versions<'i> {
    of_symbols: &'i [Versym<LittleEndian>],
    /// From the first definition on.
    definitions: &'i [u8],
}

impl<'i> Dynamic<'i> {
    fn parse(image: &'i [u8]) -> Option<Self> {
        let header = Header::parse(image).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, image).ok()?;
        let dynamic = segments.iter().find_map(|segment| segment.dynamic(endian, image).ok()?)?;
        let value = |tag: u32| {
            let of_tag = |entry: &&elf::Dyn64<LittleEndian>| entry.tag32(endian) == Some(tag);
            usize::try_from(dynamic.iter().find(of_tag)?.d_val(endian)).ok()
        };
        let from = |tag: u32| image.get(value(tag)?..);
        let strings = from(elf::DT_STRTAB)?.get(..value(elf::DT_STRSZ)?)?;
        // The second word of the SysV hash table is the number of symbols.
        let count = from(elf::DT_HASH)?.get(4..8)?.try_into().ok()?;
        let count = usize::try_from(u32::from_le_bytes(count)).ok()?;
        let (symbols, _) = slice_from_bytes(from(elf::DT_SYMTAB)?, count).ok()?;
        let versions = || {
            let (of_symbols, _) = slice_from_bytes(from(elf::DT_VERSYM)?, count).ok()?;
            Some(Versions { of_symbols, definitions: from(elf::DT_VERDEF)? })
        };
        Some(Self {
            strings: StringTable::new(strings, 0, strings.len() as u64),
            symbols,
            versions: versions(),
        })
    }

    /// The number of the version `name`; `None` if the image defines no such version.
    fn version_index(&self, name: &str) -> Option<u16> {
        let mut rest = self.versions.as_ref()?.definitions;
        // Each step goes forward in the image, so the walk ends.
        loop {
            let (definition, _) = from_bytes::<Verdef<LittleEndian>>(rest).ok()?;
            let names = rest.get(to_usize(definition.vd_aux)?..)?;
            let (first, _) = from_bytes::<Verdaux<LittleEndian>>(names).ok()?;
            let found = self.strings.get(first.vda_name.get(LittleEndian));
            // The base definition names the image itself.
            let is_base = definition.vd_flags.get(LittleEndian) & elf::VER_FLG_BASE != 0;
            if !is_base && found == Ok(name.as_bytes()) {
                return Some(definition.vd_ndx.get(LittleEndian) & elf::VERSYM_VERSION);
            }
            match to_usize(definition.vd_next)? {
                0 => return None,
                next => rest = rest.get(next..)?,
            }
        }
    }

    /// Whether symbol `index` is of the version numbered `wanted`, or there are no versions.
    fn has_version(&self, index: usize, wanted: Option<u16>) -> bool {
        let Some(versions) = &self.versions else {
            return true;
        };
        let Some(version) = versions.of_symbols.get(index) else {
            return false;
        };
        wanted == Some(version.0.get(LittleEndian) & elf::VERSYM_VERSION)
    }
}

fn to_usize(word: U32<LittleEndian>) -> Option<usize> {
    usize::try_from(word.get(LittleEndian)).ok()
}
