//! The tables that `PT_DYNAMIC` leads to: symbols, both hash tables, versions.

use std::mem::size_of;

use object::read::elf::{Dyn as _, FileHeader, Sym as _};
use object::{Endianness, U16, U32, elf, pod};

use super::file::{Section, Segment, TABLE_LIMIT, slice, table};
use super::names;
use super::unreadable::Unreadable;

/// The entries of `PT_DYNAMIC`.
#[derive(Clone, Debug)]
pub struct Dynamic {
    /// Tag and value of each, up to `DT_NULL`.
    pub entries: Vec<(u64, u64)>,
    /// Whether a `DT_NULL` ends them inside the segment.
    pub is_terminated: bool,
}

impl Dynamic {
    pub(crate) fn read<E: FileHeader<Endian = Endianness>>(
        segments: &[Segment],
        endian: Endianness,
        bytes: &[u8],
    ) -> Result<Option<Self>, Unreadable> {
        let Some(segment) = segments.iter().find(|s| s.kind == elf::PT_DYNAMIC) else {
            return Ok(None);
        };
        let entry_bytes = size_of::<E::Dyn>() as u64;
        let records = table::<E::Dyn>(
            bytes,
            "dynamic entries",
            segment.offset,
            segment.file_bytes / entry_bytes,
            entry_bytes,
        )?;
        let all = records.iter().map(|record| {
            let tag: u64 = record.d_tag(endian).into();
            (tag, record.d_val(endian).into())
        });
        let entries: Vec<_> = all.take_while(|(tag, _)| *tag != 0).collect();
        Ok(Some(Self { is_terminated: entries.len() < records.len(), entries }))
    }

    /// The value of the first entry with this tag.
    #[must_use]
    pub fn get(&self, tag: u32) -> Option<u64> {
        let mut entries = self.entries.iter();
        entries.find(|(found, _)| *found == u64::from(tag)).map(|(_, value)| *value)
    }
}

/// An entry of `DT_SYMTAB`.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "each is the field of that name in a symbol")]
pub struct Symbol<'a> {
    pub name: &'a str,
    pub kind: u8,
    pub binding: u8,
    pub visibility: u8,
    pub section: u16,
    pub value: u64,
    pub size: u64,
    /// Its entry of `DT_VERSYM`, with the hidden bit; `None` without that table.
    pub version: Option<u16>,
}

impl Symbol<'_> {
    /// Whether it is a name that is defined nowhere.
    #[must_use]
    pub fn is_undefined(&self) -> bool {
        self.section == elf::SHN_UNDEF
    }

    /// Whether a program that looks it up finds code: a function, or on some architectures a
    /// trampoline without a type.
    #[must_use]
    pub fn is_code(&self) -> bool {
        !self.is_undefined()
            && self.section != elf::SHN_ABS
            && matches!(self.kind, elf::STT_FUNC | elf::STT_NOTYPE)
            && !self.name.is_empty()
    }

    /// Whether the kernel leads a program there at the end of a signal handler.
    #[must_use]
    pub fn is_trampoline(&self) -> bool {
        self.name.ends_with("sigreturn")
    }
}

/// An entry of `DT_VERDEF` with its first name.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "each is the field of that name in a version definition")]
pub struct Definition<'a> {
    pub revision: u16,
    pub flags: u16,
    pub index: u16,
    pub names: u16,
    pub hash: u32,
    pub name: &'a str,
    /// Bytes from the definition to its first name.
    pub name_distance: u32,
    /// Bytes to the next definition; 0 in the last.
    pub next_distance: u32,
}

/// A `DT_HASH` table.
#[derive(Clone, Debug)]
pub struct SysvHash {
    /// First symbol of each bucket.
    pub buckets: Vec<u32>,
    /// Next symbol of each symbol.
    pub chains: Vec<u32>,
}

/// A `DT_GNU_HASH` table.
#[derive(Clone, Debug)]
pub struct GnuHash {
    /// The first symbol that the table knows.
    pub first: u32,
    /// Words of the filter.
    pub bloom: Vec<u64>,
    /// By how much the second bit's hash is shifted.
    pub bloom_shift: u32,
    /// First symbol of each bucket.
    pub buckets: Vec<u32>,
    /// Hash of each symbol from `first` on; the lowest bit ends a chain.
    pub hashes: Vec<u32>,
}

/// What the dynamic entries lead to; each part is empty or `None` where its entry is missing.
#[derive(Clone, Debug, Default)]
pub struct Tables<'a> {
    /// `DT_STRTAB`, `DT_STRSZ` bytes of it.
    pub strings: Option<&'a [u8]>,
    /// `DT_SONAME`.
    pub soname: Option<&'a str>,
    /// `DT_SYMTAB`, with the null symbol.
    pub symbols: Vec<Symbol<'a>>,
    /// `DT_HASH`.
    pub hash: Option<SysvHash>,
    /// `DT_GNU_HASH`.
    pub gnu_hash: Option<GnuHash>,
    /// `DT_VERDEF`.
    pub definitions: Vec<Definition<'a>>,
}

impl<'a> Tables<'a> {
    pub(crate) fn read<E: FileHeader<Endian = Endianness>>(
        dynamic: Option<&Dynamic>,
        segments: &[Segment],
        sections: &[Section<'a>],
        endian: Endianness,
        bytes: &'a [u8],
    ) -> Result<Self, Unreadable> {
        let Some(dynamic) = dynamic else {
            return Ok(Self::default());
        };
        let place = |tag, what| match dynamic.get(tag) {
            Some(address) => offset_of(segments, what, address).map(Some),
            None => Ok(None),
        };
        let strings = match (place(elf::DT_STRTAB, "DT_STRTAB")?, dynamic.get(elf::DT_STRSZ)) {
            (Some(offset), Some(size)) => Some(slice(bytes, "DT_STRTAB", offset, size)?),
            // A table without a length ends where the file does.
            (Some(offset), None) => {
                let rest = (bytes.len() as u64).saturating_sub(offset);
                Some(slice(bytes, "DT_STRTAB", offset, rest)?)
            }
            (None, _) => None,
        };
        let name = |what, index, offset: u64| {
            names::name(strings.unwrap_or_default(), what, index, offset)
        };
        let soname = match dynamic.get(elf::DT_SONAME) {
            Some(offset) => Some(name("DT_SONAME", 0, offset)?),
            None => None,
        };
        let words = Words { bytes, endian };
        let hash = match place(elf::DT_HASH, "DT_HASH")? {
            Some(offset) => Some(words.sysv_hash(offset)?),
            None => None,
        };
        let symbol_bytes = size_of::<E::Sym>() as u64;
        let section_count = || {
            let section = sections.iter().find(|s| s.kind == elf::SHT_DYNSYM)?;
            Some(section.size / symbol_bytes)
        };
        // Readers that know no sections count by DT_HASH; the others by the section.
        let count = match &hash {
            Some(hash) => hash.chains.len() as u64,
            None => section_count().unwrap_or(0),
        };
        let gnu_hash = match place(elf::DT_GNU_HASH, "DT_GNU_HASH")? {
            Some(offset) => Some(words.gnu_hash(offset, count, size_of::<E::Word>())?),
            None => None,
        };
        let versions = match place(elf::DT_VERSYM, "DT_VERSYM")? {
            Some(offset) => {
                Some(table::<U16<Endianness>>(bytes, "DT_VERSYM entries", offset, count, 2)?)
            }
            None => None,
        };
        let symbols = match place(elf::DT_SYMTAB, "DT_SYMTAB")? {
            Some(offset) => {
                table::<E::Sym>(bytes, "DT_SYMTAB entries", offset, count, symbol_bytes)?
            }
            None => &[],
        };
        let symbols = symbols.iter().enumerate().map(|(index, symbol)| {
            Ok(Symbol {
                name: match (strings, symbol.st_name(endian)) {
                    (None, _) => "",
                    (Some(_), offset) => name("symbol", index, u64::from(offset))?,
                },
                kind: symbol.st_type(),
                binding: symbol.st_bind(),
                visibility: symbol.st_visibility(),
                section: symbol.st_shndx(endian),
                value: symbol.st_value(endian).into(),
                size: symbol.st_size(endian).into(),
                version: versions
                    .and_then(|versions| versions.get(index))
                    .map(|version| version.get(endian)),
            })
        });
        let symbols = symbols.collect::<Result<_, _>>()?;
        let definitions = match place(elf::DT_VERDEF, "DT_VERDEF")? {
            Some(offset) => words.definitions(offset, dynamic.get(elf::DT_VERDEFNUM), name)?,
            None => Vec::new(),
        };
        Ok(Self { strings, soname, symbols, hash, gnu_hash, definitions })
    }

    /// The definition that a symbol's version index means.
    #[must_use]
    pub fn definition(&self, symbol: &Symbol<'_>) -> Option<&Definition<'a>> {
        let index = symbol.version? & elf::VERSYM_VERSION;
        let mut definitions = self.definitions.iter();
        definitions.find(|d| d.index == index && d.flags & elf::VER_FLG_BASE == 0)
    }

    /// The exported code, by address and then name: at least one entry for each function.
    #[must_use]
    pub fn functions(&self) -> Vec<&Symbol<'a>> {
        let mut functions: Vec<_> = self.symbols.iter().filter(|s| s.is_code()).collect();
        functions.sort_by_key(|symbol| (symbol.value, symbol.name));
        functions
    }
}

/// Where in the file an address lies.
fn offset_of(segments: &[Segment], what: &'static str, address: u64) -> Result<u64, Unreadable> {
    segments
        .iter()
        .filter(|segment| segment.kind == elf::PT_LOAD)
        .find_map(|segment| {
            let inside = address.checked_sub(segment.address)?;
            (inside < segment.file_bytes).then(|| segment.offset.checked_add(inside))?
        })
        .ok_or(Unreadable::Unmapped { what, address })
}

/// Tables whose lengths stand in their first words.
#[derive(Clone, Copy)]
struct Words<'a> {
    bytes: &'a [u8],
    endian: Endianness,
}

impl<'a> Words<'a> {
    fn u32s(self, what: &'static str, offset: u64, count: u64) -> Result<Vec<u32>, Unreadable> {
        let words = table::<U32<Endianness>>(self.bytes, what, offset, count, 4)?;
        Ok(words.iter().map(|word| word.get(self.endian)).collect())
    }

    fn header<const N: usize>(
        self,
        what: &'static str,
        offset: u64,
    ) -> Result<[u64; N], Unreadable> {
        let words = self.u32s(what, offset, N as u64)?;
        let mut header = [0; N];
        for (place, word) in header.iter_mut().zip(words) {
            *place = u64::from(word);
        }
        Ok(header)
    }

    fn sysv_hash(self, offset: u64) -> Result<SysvHash, Unreadable> {
        let [buckets, chains] = self.header("DT_HASH", offset)?;
        Ok(SysvHash {
            buckets: self.u32s("DT_HASH buckets", offset + 8, buckets)?,
            chains: self.u32s("DT_HASH chains", offset + 8 + 4 * buckets, chains)?,
        })
    }

    fn gnu_hash(self, offset: u64, symbols: u64, word: usize) -> Result<GnuHash, Unreadable> {
        let [buckets, first, bloom_words, bloom_shift] = self.header("DT_GNU_HASH", offset)?;
        let bloom_at = offset + 16;
        let halves =
            self.u32s("DT_GNU_HASH filter words", bloom_at, bloom_words * word as u64 / 4)?;
        let bloom = halves
            .chunks(word / 4)
            .map(|halves| {
                let ordered = halves.iter().map(|half| u64::from(*half));
                match self.endian {
                    Endianness::Little => ordered.rev().fold(0, |value, half| value << 32 | half),
                    Endianness::Big => ordered.fold(0, |value, half| value << 32 | half),
                }
            })
            .collect();
        let buckets_at = bloom_at + bloom_words * word as u64;
        let hashes_at = buckets_at + 4 * buckets;
        Ok(GnuHash {
            #[allow(clippy::cast_possible_truncation, reason = "both came from 32 bits")]
            first: first as u32,
            #[allow(clippy::cast_possible_truncation, reason = "both came from 32 bits")]
            bloom_shift: bloom_shift as u32,
            bloom,
            buckets: self.u32s("DT_GNU_HASH buckets", buckets_at, buckets)?,
            hashes: self.u32s("DT_GNU_HASH hashes", hashes_at, symbols.saturating_sub(first))?,
        })
    }

    fn definitions(
        self,
        mut offset: u64,
        number: Option<u64>,
        name: impl Fn(&'static str, usize, u64) -> Result<&'a str, Unreadable>,
    ) -> Result<Vec<Definition<'a>>, Unreadable> {
        let mut definitions = Vec::new();
        // Without a number the chain ends where its last link is 0.
        let number = number.unwrap_or(TABLE_LIMIT as u64);
        if number > TABLE_LIMIT as u64 {
            return Err(Unreadable::Count {
                what: "version definitions",
                found: number,
                limit: TABLE_LIMIT,
            });
        }
        for index in 0..usize::try_from(number).unwrap_or(0) {
            let record = self.record::<elf::Verdef<Endianness>>("a version definition", offset)?;
            let name_distance = record.vd_aux.get(self.endian);
            let next_distance = record.vd_next.get(self.endian);
            let first = self.record::<elf::Verdaux<Endianness>>(
                "a version's name",
                offset + u64::from(name_distance),
            )?;
            definitions.push(Definition {
                revision: record.vd_version.get(self.endian),
                flags: record.vd_flags.get(self.endian),
                index: record.vd_ndx.get(self.endian),
                names: record.vd_cnt.get(self.endian),
                hash: record.vd_hash.get(self.endian),
                name: name(
                    "version definition",
                    index,
                    u64::from(first.vda_name.get(self.endian)),
                )?,
                name_distance,
                next_distance,
            });
            match next_distance {
                0 => break,
                next => offset += u64::from(next),
            }
        }
        Ok(definitions)
    }

    fn record<T: pod::Pod>(self, what: &'static str, offset: u64) -> Result<&'a T, Unreadable> {
        let bytes = slice(self.bytes, what, offset, size_of::<T>() as u64)?;
        let (record, _) = pod::from_bytes(bytes).map_err(|()| Unreadable::Outside {
            what,
            offset,
            bytes: size_of::<T>() as u64,
            limit: self.bytes.len(),
        })?;
        Ok(record)
    }
}
