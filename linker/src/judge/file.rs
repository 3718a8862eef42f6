//! What an image says, in plain values: header, segments, sections, notes, and the tables behind
//! `PT_DYNAMIC`.
//!
//! Reading checks bounds and nothing else. Values are widened, so that the rules see no difference
//! between 32-bit and 64-bit files.

use std::mem::size_of;

use object::read::elf::{FileHeader, ProgramHeader as _, SectionHeader as _};
use object::{Endianness, elf, pod};

use super::arch::Arch;
use super::names::name;
use super::notes::{Note, OwnNote, notes};
use super::tables::{Dynamic, Tables};
use super::unreadable::Unreadable;

/// The largest file that is read. Real images have one or two pages; consumers were seen to take one
/// of a megabyte.
pub const LIMIT: usize = 2 << 20;

/// The most entries of a table that are read; it bounds the work of rules that compare entries.
pub(crate) const TABLE_LIMIT: usize = 4096;

/// A file that could be read as a vDSO image.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ImageFile<'a> {
    /// All of it.
    pub bytes: &'a [u8],
    /// The machine it is for.
    pub arch: Arch,
    /// 64-bit or 32-bit records.
    pub is_64: bool,
    /// Byte order of its words.
    pub endian: Endianness,
    /// The header.
    pub header: Header,
    /// The program headers.
    pub segments: Vec<Segment>,
    /// The section headers, with the null one; empty if the file has none.
    pub sections: Vec<Section<'a>>,
    /// `PT_DYNAMIC`, if there is one.
    pub dynamic: Option<Dynamic>,
    /// What it leads to.
    pub tables: Tables<'a>,
    /// The notes of all `PT_NOTE` segments.
    pub notes: Vec<Note<'a>>,
}

/// The fields of the ELF header that rules look at.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "each is the field of that name in the ELF header")]
pub struct Header {
    pub os_abi: u8,
    pub abi_version: u8,
    pub ident_version: u8,
    pub ident_padding: [u8; 7],
    pub kind: u16,
    pub version: u32,
    pub entry: u64,
    pub program_headers_offset: u64,
    pub section_headers_offset: u64,
    pub header_bytes: u64,
    pub section_names_index: u16,
}

/// A program header.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "each is the field of that name in a program header")]
pub struct Segment {
    pub kind: u32,
    pub flags: u32,
    pub offset: u64,
    pub address: u64,
    pub file_bytes: u64,
    pub memory_bytes: u64,
    pub align: u64,
}

/// A section header.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "each is the field of that name in a section header")]
pub struct Section<'a> {
    pub name: &'a str,
    pub kind: u32,
    pub flags: u64,
    pub address: u64,
    pub offset: u64,
    pub size: u64,
    pub link: u32,
    pub entry_bytes: u64,
}

impl Section<'_> {
    /// Whether a program sees it.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.flags & u64::from(elf::SHF_ALLOC) != 0
    }

    /// Whether it says of itself that it is code.
    #[must_use]
    pub fn is_code(&self) -> bool {
        self.flags & u64::from(elf::SHF_EXECINSTR) != 0
    }

    /// Whether the file holds it.
    fn has_bytes(&self) -> bool {
        !matches!(self.kind, elf::SHT_NOBITS | elf::SHT_NULL)
    }
}

impl<'a> ImageFile<'a> {
    /// Reads `bytes`.
    ///
    /// # Errors
    /// What keeps them from being read.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        let ident: [u8; 16] = bytes.get(..16).and_then(|b| b.try_into().ok()).ok_or({
            Unreadable::Short {
                found: bytes.len(),
                wanted: size_of::<elf::FileHeader32<Endianness>>(),
            }
        })?;
        let [m0, m1, m2, m3, class, data, ..] = ident;
        let found = [m0, m1, m2, m3];
        if found != elf::ELFMAG {
            return Err(Unreadable::Magic { found });
        }
        if bytes.len() > LIMIT {
            return Err(Unreadable::Long { found: bytes.len(), limit: LIMIT });
        }
        let endian = match data {
            elf::ELFDATA2LSB => Endianness::Little,
            elf::ELFDATA2MSB => Endianness::Big,
            _ => return Err(Unreadable::Ident { class, data }),
        };
        match class {
            elf::ELFCLASS64 => Self::read_class::<elf::FileHeader64<Endianness>>(bytes, endian),
            elf::ELFCLASS32 => Self::read_class::<elf::FileHeader32<Endianness>>(bytes, endian),
            _ => Err(Unreadable::Ident { class, data }),
        }
    }

    fn read_class<E: FileHeader<Endian = Endianness>>(
        bytes: &'a [u8],
        endian: Endianness,
    ) -> Result<Self, Unreadable> {
        let (elf, _) = pod::from_bytes::<E>(bytes)
            .map_err(|()| Unreadable::Short { found: bytes.len(), wanted: size_of::<E>() })?;
        let machine = elf.e_machine(endian);
        let is_64 = elf.is_class_64();
        let order = if endian == Endianness::Little { "little" } else { "big" };
        let arch = Arch::of(machine, is_64)
            .filter(|arch| order == "little" || matches!(arch, Arch::Aarch64 | Arch::Arm))
            .ok_or(Unreadable::Machine { machine, bits: if is_64 { 64 } else { 32 }, order })?;
        let header = Header {
            os_abi: elf.e_ident().os_abi,
            abi_version: elf.e_ident().abi_version,
            ident_version: elf.e_ident().version,
            ident_padding: elf.e_ident().padding,
            kind: elf.e_type(endian),
            version: elf.e_version(endian),
            entry: elf.e_entry(endian).into(),
            program_headers_offset: elf.e_phoff(endian).into(),
            section_headers_offset: elf.e_shoff(endian).into(),
            header_bytes: elf.e_ehsize(endian).into(),
            section_names_index: elf.e_shstrndx(endian),
        };
        let segments = segments::<E>(elf, endian, bytes)?;
        let sections = sections::<E>(elf, endian, bytes)?;
        let dynamic = Dynamic::read::<E>(&segments, endian, bytes)?;
        let tables = Tables::read::<E>(dynamic.as_ref(), &segments, &sections, endian, bytes)?;
        let notes = notes(&segments, endian, bytes)?;
        Ok(Self { bytes, arch, is_64, endian, header, segments, sections, dynamic, tables, notes })
    }

    /// The segments of a kind.
    pub fn segments_of(&self, kind: u32) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(move |segment| segment.kind == kind)
    }

    /// The section called `name`.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&Section<'a>> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The bytes of a section; `None` for one without bytes in the file.
    #[must_use]
    pub fn section_bytes(&self, section: &Section<'_>) -> Option<&'a [u8]> {
        if section.kind == elf::SHT_NOBITS {
            return None;
        }
        slice(self.bytes, "a section", section.offset, section.size).ok()
    }

    /// The build id.
    #[must_use]
    pub fn build_id(&self) -> Option<&'a [u8]> {
        self.notes
            .iter()
            .find(|note| note.owner == b"GNU" && note.kind == elf::NT_GNU_BUILD_ID)
            .map(|note| note.contents)
    }

    /// The note of this project, if the image has one that can be read.
    #[must_use]
    pub fn own_note(&self) -> Option<OwnNote> {
        let note = self.raw_own_note()?;
        let (words, []) = note.contents.as_chunks::<4>() else {
            return None;
        };
        let &[policy, page_abi, slots, slot_bytes] = words else {
            return None;
        };
        let word = |bytes: [u8; 4]| match self.endian {
            Endianness::Little => u32::from_le_bytes(bytes),
            Endianness::Big => u32::from_be_bytes(bytes),
        };
        Some(OwnNote {
            policy: word(policy),
            page_abi: word(page_abi),
            slots: word(slots),
            slot_bytes: word(slot_bytes),
        })
    }

    pub(crate) fn raw_own_note(&self) -> Option<&Note<'a>> {
        self.notes.iter().find(|note| note.owner == b"uVDSO" && note.kind == 1)
    }

    /// Bytes of a page: what the image's own note says, or what its machine has.
    #[must_use]
    pub fn page_bytes(&self) -> u64 {
        match self.own_note() {
            Some(note) if note.slot_bytes.is_power_of_two() => u64::from(note.slot_bytes),
            _ => 4096,
        }
    }

    /// Where the last whole page ends that a load segment makes visible: what a program may touch
    /// that knows the image from its program headers alone.
    #[must_use]
    pub fn visible_bytes(&self) -> Option<u64> {
        let load = self.segments_of(elf::PT_LOAD).next()?;
        let end = load.offset.checked_add(load.memory_bytes)?;
        end.checked_next_multiple_of(self.page_bytes())
    }
}

fn segments<E: FileHeader<Endian = Endianness>>(
    elf: &E,
    endian: Endianness,
    bytes: &[u8],
) -> Result<Vec<Segment>, Unreadable> {
    let headers = table::<E::ProgramHeader>(
        bytes,
        "program headers",
        elf.e_phoff(endian).into(),
        u64::from(elf.e_phnum(endian)),
        u64::from(elf.e_phentsize(endian)),
    )?;
    let segments = headers.iter().map(|header| {
        let segment = Segment {
            kind: header.p_type(endian),
            flags: header.p_flags(endian),
            offset: header.p_offset(endian).into(),
            address: header.p_vaddr(endian).into(),
            file_bytes: header.p_filesz(endian).into(),
            memory_bytes: header.p_memsz(endian).into(),
            align: header.p_align(endian).into(),
        };
        slice(bytes, "a segment", segment.offset, segment.file_bytes)?;
        Ok(segment)
    });
    segments.collect()
}

fn sections<'a, E: FileHeader<Endian = Endianness>>(
    elf: &E,
    endian: Endianness,
    bytes: &'a [u8],
) -> Result<Vec<Section<'a>>, Unreadable> {
    let headers = table::<E::SectionHeader>(
        bytes,
        "section headers",
        elf.e_shoff(endian).into(),
        u64::from(elf.e_shnum(endian)),
        u64::from(elf.e_shentsize(endian)),
    )?;
    let names = match headers.get(usize::from(elf.e_shstrndx(endian))) {
        Some(header) if header.sh_type(endian) == elf::SHT_STRTAB => {
            let offset = header.sh_offset(endian).into();
            let size = header.sh_size(endian).into();
            slice(bytes, "the section names", offset, size)?
        }
        _ => &[],
    };
    let sections = headers.iter().enumerate().map(|(index, header)| {
        let name = match names {
            // Without a table of names there is nothing that could lie.
            [] => "",
            names => name(names, "section", index, u64::from(header.sh_name(endian)))?,
        };
        let section = Section {
            name,
            kind: header.sh_type(endian),
            flags: header.sh_flags(endian).into(),
            address: header.sh_addr(endian).into(),
            offset: header.sh_offset(endian).into(),
            size: header.sh_size(endian).into(),
            link: header.sh_link(endian),
            entry_bytes: header.sh_entsize(endian).into(),
        };
        if section.has_bytes() {
            slice(bytes, "a section", section.offset, section.size)?;
        }
        Ok(section)
    });
    let sections = sections.collect::<Result<Vec<_>, _>>()?;
    // Rules read sections one after the other, so thousands of the same bytes would be thousands of
    // files to read.
    let in_file = sections.iter().filter(|section| section.has_bytes());
    let together = in_file.map(|section| section.size).sum();
    if together > bytes.len() as u64 {
        return Err(Unreadable::Overlap { bytes: together, limit: bytes.len() });
    }
    Ok(sections)
}

/// `bytes[offset..][..length]`, or the error that names it.
pub(crate) fn slice<'a>(
    bytes: &'a [u8],
    what: &'static str,
    offset: u64,
    length: u64,
) -> Result<&'a [u8], Unreadable> {
    let range = || {
        let start = usize::try_from(offset).ok()?;
        bytes.get(start..start.checked_add(usize::try_from(length).ok()?)?)
    };
    range().ok_or(Unreadable::Outside { what, offset, bytes: length, limit: bytes.len() })
}

/// `count` records at `offset`.
pub(crate) fn table<'a, T: pod::Pod>(
    bytes: &'a [u8],
    what: &'static str,
    offset: u64,
    count: u64,
    entry_bytes: u64,
) -> Result<&'a [T], Unreadable> {
    if count == 0 {
        return Ok(&[]);
    }
    let wanted = size_of::<T>();
    if entry_bytes != wanted as u64 {
        return Err(Unreadable::EntrySize { what, found: entry_bytes, wanted });
    }
    if count > TABLE_LIMIT as u64 {
        return Err(Unreadable::Count { what, found: count, limit: TABLE_LIMIT });
    }
    let records = slice(bytes, what, offset, count * entry_bytes)?;
    pod::slice_from_all_bytes(records).map_err(|()| Unreadable::EntrySize {
        what,
        found: entry_bytes,
        wanted,
    })
}
