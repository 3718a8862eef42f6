//! A copy of our image, with the places of its fields.

use object::elf;

/// Offsets of fields in the records of 64-bit ELF files.
pub(crate) mod field {
    pub(crate) const E_OS_ABI: usize = 7;
    pub(crate) const E_ABI_VERSION: usize = 8;
    pub(crate) const E_IDENT_VERSION: usize = 6;
    pub(crate) const E_TYPE: usize = 16;
    pub(crate) const E_VERSION: usize = 20;
    pub(crate) const E_PHOFF: usize = 32;
    pub(crate) const E_SHOFF: usize = 40;
    pub(crate) const E_EHSIZE: usize = 52;
    pub(crate) const E_PHNUM: usize = 56;
    pub(crate) const E_SHNUM: usize = 60;
    pub(crate) const E_SHSTRNDX: usize = 62;
    pub(crate) const P_TYPE: usize = 0;
    pub(crate) const P_FLAGS: usize = 4;
    pub(crate) const P_OFFSET: usize = 8;
    pub(crate) const P_VADDR: usize = 16;
    pub(crate) const P_FILESZ: usize = 32;
    pub(crate) const P_MEMSZ: usize = 40;
    pub(crate) const SH_NAME: usize = 0;
    pub(crate) const SH_TYPE: usize = 4;
    pub(crate) const SH_FLAGS: usize = 8;
    pub(crate) const SH_ADDR: usize = 16;
    pub(crate) const SH_OFFSET: usize = 24;
    pub(crate) const SH_SIZE: usize = 32;
    pub(crate) const SH_LINK: usize = 40;
    pub(crate) const D_VALUE: usize = 8;
    pub(crate) const ST_NAME: usize = 0;
    pub(crate) const ST_INFO: usize = 4;
    pub(crate) const ST_OTHER: usize = 5;
    pub(crate) const ST_SHNDX: usize = 6;
    pub(crate) const ST_VALUE: usize = 8;
    pub(crate) const ST_SIZE: usize = 16;
    pub(crate) const VD_VERSION: usize = 0;
    pub(crate) const VD_FLAGS: usize = 2;
    pub(crate) const VD_NDX: usize = 4;
    pub(crate) const VD_CNT: usize = 6;
    pub(crate) const VD_HASH: usize = 8;
    pub(crate) const VD_AUX: usize = 12;
    pub(crate) const VDA_NAME: usize = 20;
}

/// A tag that no reader knows.
const UNKNOWN_TAG: u64 = 0x6000_1234;

/// The image under change.
pub(crate) struct Patch {
    pub(crate) bytes: Vec<u8>,
}

impl Patch {
    pub(crate) fn of(image: &linker::Image) -> Self {
        Self { bytes: image.bytes.to_vec() }
    }

    pub(crate) fn put<const N: usize>(&mut self, at: usize, value: [u8; N]) {
        self.bytes[at..at + N].copy_from_slice(&value);
    }

    pub(crate) fn u16(&mut self, at: usize, value: u16) {
        self.put(at, value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, at: usize, value: u32) {
        self.put(at, value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, at: usize, value: u64) {
        self.put(at, value.to_le_bytes());
    }

    pub(crate) fn add(&mut self, at: usize, change: i64) {
        let value = self.get(at).wrapping_add_signed(change);
        self.u64(at, value);
    }

    pub(crate) fn get(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap())
    }

    fn get_u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().unwrap())
    }

    pub(crate) fn get_u16(&self, at: usize) -> usize {
        u16::from_le_bytes(self.bytes[at..at + 2].try_into().unwrap()).into()
    }

    pub(crate) fn place(&self, at: usize) -> usize {
        usize::try_from(self.get(at)).unwrap()
    }

    /// Puts a table behind everything else; where it is.
    pub(crate) fn append(&mut self, table: &[u8]) -> usize {
        let at = self.bytes.len().next_multiple_of(8);
        self.bytes.resize(at, 0);
        self.bytes.extend(table);
        at
    }

    /// Where the first program header of a kind is.
    pub(crate) fn segment(&self, kind: u32) -> usize {
        let start = self.place(field::E_PHOFF);
        let mut headers = (0..self.get_u16(field::E_PHNUM)).map(|index| start + 56 * index);
        headers.find(|&at| self.get_u32(at) == kind).expect("such a segment")
    }

    /// Where a section's header is.
    pub(crate) fn section(&self, name: &str) -> usize {
        let start = self.place(field::E_SHOFF);
        let mut headers = (0..self.get_u16(field::E_SHNUM)).map(|index| start + 64 * index);
        headers
            .find(|&at| {
                let tail = &self.bytes[self.section_name(at)..];
                tail.starts_with(name.as_bytes()) && tail[name.len()] == 0
            })
            .expect("such a section")
    }

    fn section_name(&self, header: usize) -> usize {
        let names = self.place(field::E_SHOFF) + 64 * self.get_u16(field::E_SHSTRNDX);
        self.place(names + field::SH_OFFSET) + self.get_u32(header + field::SH_NAME) as usize
    }

    /// Sets a flag of a section.
    pub(crate) fn mark_section(&mut self, name: &str, flag: u32) {
        let at = self.section(name) + field::SH_FLAGS;
        let flags = self.get(at) | u64::from(flag);
        self.u64(at, flags);
    }

    /// Gives a section another name, which is not longer than the old one.
    pub(crate) fn rename_section(&mut self, old: &str, new: &str) {
        assert!(new.len() <= old.len());
        let at = self.section_name(self.section(old));
        self.bytes[at..at + new.len()].copy_from_slice(new.as_bytes());
        self.bytes[at + new.len()] = 0;
    }

    /// The place and the bytes of a section.
    pub(crate) fn contents(&self, name: &str) -> std::ops::Range<usize> {
        let header = self.section(name);
        let start = self.place(header + field::SH_OFFSET);
        start..start + self.place(header + field::SH_SIZE)
    }

    /// Where a dynamic entry is.
    pub(crate) fn dynamic(&self, tag: u32) -> usize {
        let start = self.place(self.segment(elf::PT_DYNAMIC) + field::P_OFFSET);
        let mut entries = (0..).map(|index| start + 16 * index);
        entries.find(|&at| self.get(at) == u64::from(tag)).expect("such an entry")
    }

    /// Makes a dynamic entry one that nobody knows.
    pub(crate) fn forget(&mut self, tag: u32) {
        let at = self.dynamic(tag);
        self.u64(at, UNKNOWN_TAG);
    }

    /// Turns the entry of one tag into one of another.
    pub(crate) fn retag(&mut self, from: u32, to: u32) {
        let at = self.dynamic(from);
        self.u64(at, to.into());
    }

    /// Where the table of a dynamic entry is.
    pub(crate) fn table(&self, tag: u32) -> usize {
        self.place(self.dynamic(tag) + field::D_VALUE)
    }

    fn symbol_index(&self, name: &str) -> usize {
        let (symbols, strings) = (self.table(elf::DT_SYMTAB), self.table(elf::DT_STRTAB));
        let is_named = |index: &usize| {
            let at = strings + self.get_u32(symbols + 24 * index) as usize;
            let tail = &self.bytes[at..];
            tail.starts_with(name.as_bytes()) && tail[name.len()] == 0
        };
        (1..).find(is_named).expect("such a symbol")
    }

    /// Where a symbol is.
    pub(crate) fn symbol(&self, name: &str) -> usize {
        self.table(elf::DT_SYMTAB) + 24 * self.symbol_index(name)
    }

    /// Puts a symbol into the section of an index.
    pub(crate) fn put_in_section(&mut self, symbol: &str, index: u16) {
        let at = self.symbol(symbol);
        self.u16(at + field::ST_SHNDX, index);
    }

    /// Gives a symbol a binding and a type.
    pub(crate) fn bind(&mut self, symbol: &str, binding: u8, kind: u8) {
        let at = self.symbol(symbol);
        self.put(at + field::ST_INFO, [binding << 4 | kind]);
    }

    /// Where a symbol's version index is.
    pub(crate) fn version(&self, name: &str) -> usize {
        self.table(elf::DT_VERSYM) + 2 * self.symbol_index(name)
    }

    /// Where the version definition is that stands at a place in the table: ours have 28 bytes.
    pub(crate) fn definition(&self, index: usize) -> usize {
        self.table(elf::DT_VERDEF) + 28 * index
    }

    /// Where the contents of the note of an owner begin.
    pub(crate) fn note(&self, owner: &[u8]) -> usize {
        let range = self.contents(".note");
        let mut windows = self.bytes[range.clone()].windows(owner.len());
        let at = range.start + windows.position(|window| window == owner).expect("such a note");
        at + (owner.len() + 1).next_multiple_of(4)
    }

    /// The first `length` bytes of padding in the code.
    pub(crate) fn padding(&self, length: usize) -> usize {
        let text = self.contents(".text");
        let code = &self.bytes[text.clone()];
        let padding = vec![0xcc; length];
        text.start + code.windows(length).position(|w| w == padding).expect("padding")
    }
}
