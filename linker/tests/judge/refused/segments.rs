//! Bad headers and segments.

use object::elf;

use super::Case;
use crate::patch::{Patch, field::*};

pub(super) const CASES: &[Case] = &[
    ("elf-header", "an executable", |p| p.u16(E_TYPE, elf::ET_EXEC)),
    ("elf-header", "ident version 0", |p| p.put(E_IDENT_VERSION, [0])),
    ("elf-header", "version 2", |p| p.u32(E_VERSION, 2)),
    ("elf-header", "a header of another size", |p| p.u16(E_EHSIZE, 63)),
    ("elf-header", "program headers inside it", |p| {
        // None of them, or they would be made of the header's fields.
        p.u16(E_PHNUM, 0);
        p.u64(E_PHOFF, 16);
    }),
    ("os-abi", "Linux's OS ABI", |p| p.put(E_OS_ABI, [elf::ELFOSABI_LINUX])),
    ("os-abi", "an ABI version", |p| p.put(E_ABI_VERSION, [1])),
    ("os-abi", "something in the last byte of e_ident", |p| p.put(15, [1])),
    ("one-load-segment", "a second PT_LOAD", |p| {
        let note = p.segment(elf::PT_NOTE);
        p.u32(note + P_TYPE, elf::PT_LOAD);
    }),
    ("load-segment-origin", "all addresses moved up", |p| {
        let load = p.segment(elf::PT_LOAD);
        p.u64(load + P_VADDR, 0x10000);
        for tag in [
            elf::DT_HASH,
            elf::DT_GNU_HASH,
            elf::DT_STRTAB,
            elf::DT_SYMTAB,
            elf::DT_VERSYM,
            elf::DT_VERDEF,
        ] {
            let at = p.dynamic(tag);
            p.add(at + D_VALUE, 0x10000);
        }
    }),
    ("load-segment-access", "writable", |p| set_flags(p, elf::PT_LOAD, 7)),
    ("load-segment-access", "not executable", |p| set_flags(p, elf::PT_LOAD, 4)),
    ("load-segment-whole", "zeros behind the file", |p| {
        let load = p.segment(elf::PT_LOAD);
        p.add(load + P_MEMSZ, 16);
    }),
    ("load-segment-whole", "nothing", |p| {
        let (load, dynamic) = (p.segment(elf::PT_LOAD), p.segment(elf::PT_DYNAMIC));
        p.u64(load + P_FILESZ, 0);
        p.u64(load + P_MEMSZ, 0);
        // Or it would lead to tables that no segment holds.
        p.u32(dynamic + P_TYPE, elf::PT_NULL);
    }),
    ("offsets-are-addresses", "a dynamic segment elsewhere in memory", |p| {
        let dynamic = p.segment(elf::PT_DYNAMIC);
        p.add(dynamic + P_VADDR, 8);
    }),
    ("offsets-are-addresses", "a section elsewhere in memory", |p| {
        let text = p.section(".text");
        p.add(text + SH_ADDR, 64);
    }),
    ("segments-inside-load", "notes that end behind the image", |p| {
        let note = p.segment(elf::PT_NOTE);
        p.u64(note + P_MEMSZ, 0x10_0000);
    }),
    ("sections-inside-load", "code behind it", |p| {
        let load = p.segment(elf::PT_LOAD);
        let end = p.contents(".text").end as u64 - 1;
        p.u64(load + P_FILESZ, end);
        p.u64(load + P_MEMSZ, end);
    }),
    ("sections-inside-load", "most functions behind it", |p| {
        let load = p.segment(elf::PT_LOAD);
        let end = p.contents(".text").start as u64 + 0x40;
        p.u64(load + P_FILESZ, end);
        p.u64(load + P_MEMSZ, end);
    }),
    ("sections-inside-load", "no loaded section", |p| p.u16(E_SHNUM, 0)),
    ("no-loader-segments", "an interpreter", |p| set_type(p, elf::PT_INTERP)),
    ("no-loader-segments", "RELRO", |p| set_type(p, elf::PT_GNU_RELRO)),
    ("no-loader-segments", "thread-local data", |p| set_type(p, elf::PT_TLS)),
    ("one-dynamic-segment", "two", |p| set_type(p, elf::PT_DYNAMIC)),
    ("one-dynamic-segment", "none", |p| {
        let dynamic = p.segment(elf::PT_DYNAMIC);
        p.u32(dynamic + P_TYPE, elf::PT_NULL);
    }),
    ("dynamic-read-only", "writable", |p| set_flags(p, elf::PT_DYNAMIC, 6)),
    ("dynamic-place", "no DT_NULL", |p| p.retag(elf::DT_NULL, elf::DT_DEBUG)),
    ("dynamic-place", "inside the header, at its entry point, which is 0 as DT_NULL is", |p| {
        let dynamic = p.segment(elf::PT_DYNAMIC);
        p.u64(dynamic + P_OFFSET, 24);
        p.u64(dynamic + P_FILESZ, 16);
    }),
];

fn set_flags(patch: &mut Patch, kind: u32, flags: u32) {
    let segment = patch.segment(kind);
    patch.u32(segment + P_FLAGS, flags);
}

/// Makes the notes a segment of another kind.
fn set_type(patch: &mut Patch, kind: u32) {
    let note = patch.segment(elf::PT_NOTE);
    patch.u32(note + P_TYPE, kind);
}
