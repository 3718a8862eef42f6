//! Bad sections, notes and sizes.

use object::elf;

use super::Case;
use crate::patch::{Patch, field::*};

pub(super) const CASES: &[Case] = &[
    ("section-headers", "none", |p| p.u16(E_SHNUM, 0)),
    ("section-headers", "no table of names", |p| p.u16(E_SHSTRNDX, 0)),
    ("sections-visible", "headers behind the mapped pages", |p| {
        let start = usize::try_from(p.get(E_SHOFF)).unwrap();
        let headers = p.bytes[start..].to_vec();
        p.bytes.resize(0x4000, 0);
        p.bytes.extend(headers);
        p.u64(E_SHOFF, 0x4000);
    }),
    ("sections-visible", "names behind the mapped pages", |p| {
        let names = p.contents(".shstrtab");
        let names = p.bytes[names].to_vec();
        p.bytes.resize(0x4000, 0);
        p.bytes.extend(names);
        let header = p.section(".shstrtab");
        p.u64(header + SH_OFFSET, 0x4000);
    }),
    ("first-string-table", "another one before it", |p| set_section(p, ".hash", elf::SHT_STRTAB)),
    ("first-string-table", "none", |p| {
        set_section(p, ".dynstr", elf::SHT_PROGBITS);
        set_section(p, ".shstrtab", elf::SHT_PROGBITS);
    }),
    ("first-string-table", "not at DT_STRTAB", |p| {
        let at = p.section(".dynstr");
        p.add(at + SH_ADDR, 1);
    }),
    ("dynsym-section", "none", |p| set_section(p, ".dynsym", elf::SHT_PROGBITS)),
    ("dynsym-section", "another name", |p| p.rename_section(".dynsym", ".dynsy")),
    ("dynsym-section", "not at DT_SYMTAB", |p| {
        let at = p.section(".dynsym");
        p.add(at + SH_ADDR, 24);
    }),
    ("dynsym-section", "no DT_SYMTAB", |p| p.forget(elf::DT_SYMTAB)),
    ("dynsym-section", "a symbol short", |p| {
        let at = p.section(".dynsym");
        p.add(at + SH_SIZE, -24);
    }),
    ("dynsym-section", "names in another section", |p| {
        let at = p.section(".dynsym");
        p.u32(at + SH_LINK, 1);
    }),
    ("no-got-or-plt", "a .got", |p| p.rename_section(".note", ".got")),
    ("no-got-or-plt", "DT_PLTGOT", |p| p.retag(elf::DT_FLAGS, elf::DT_PLTGOT)),
    ("no-data", "a .bss", |p| set_section(p, ".note", elf::SHT_NOBITS)),
    ("no-data", "a .data", |p| p.rename_section(".note", ".data")),
    ("no-data", "something to write, under another name", |p| {
        p.mark_section(".note", elf::SHF_WRITE);
    }),
    ("no-data", "code that writes itself", |p| p.mark_section(".text", elf::SHF_WRITE)),
    ("no-data", "something for each thread", |p| p.mark_section(".note", elf::SHF_TLS)),
    ("no-alternatives", "code to be patched", |p| {
        p.rename_section(".gnu.version_d", ".alternative");
    }),
    ("build-id", "none", |p| {
        let note = p.note(b"GNU");
        p.u32(note - 8, 99);
    }),
    ("build-id", "7 bytes", |p| {
        let note = [&[4, 0, 0, 0, 7, 0, 0, 0, 3, 0, 0, 0][..], b"GNU\0seven b\0"].concat();
        let at = p.append(&note) as u64;
        let segment = p.segment(elf::PT_NOTE);
        p.u64(segment + P_OFFSET, at);
        p.u64(segment + P_FILESZ, note.len() as u64);
    }),
    ("build-id", "all zero", |p| p.put(p.note(b"GNU"), [0; 20])),
    ("own-note", "an unknown policy", |p| p.u32(p.note(b"uVDSO"), 2)),
    ("own-note", "page ABI 0", |p| p.u32(p.note(b"uVDSO") + 4, 0)),
    ("own-note", "no slots", |p| p.u32(p.note(b"uVDSO") + 8, 0)),
    ("own-note", "slots that are no pages", |p| p.u32(p.note(b"uVDSO") + 12, 5000)),
    ("own-note", "three words", |p| {
        // The fourth becomes the head of an empty note of nobody.
        let note = p.note(b"uVDSO");
        p.u32(note - 16, 12);
        p.u32(note + 12, 0);
        let rest = p.contents(".note").end;
        let segment = p.segment(elf::PT_NOTE);
        let start = p.get(segment + P_OFFSET);
        assert!(rest as u64 > start);
        p.u64(segment + P_FILESZ, (note as u64 + 12) - start);
    }),
    ("two-pages", "a byte more", |p| p.bytes.resize(8193, 0)),
];

fn set_section(patch: &mut Patch, name: &str, kind: u32) {
    let section = patch.section(name);
    patch.u32(section + SH_TYPE, kind);
}
