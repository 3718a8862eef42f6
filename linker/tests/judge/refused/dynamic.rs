//! Bad dynamic entries and hash tables.

use object::elf;

use super::Case;
use crate::patch::{Patch, field::*};

pub(super) const CASES: &[Case] = &[
    ("dynamic-entries", "no DT_STRSZ", |p| p.forget(elf::DT_STRSZ)),
    ("dynamic-entries", "no DT_SYMTAB", |p| p.forget(elf::DT_SYMTAB)),
    ("dynamic-entries", "no DT_STRTAB", |p| {
        p.forget(elf::DT_STRTAB);
        p.forget(elf::DT_SONAME);
        p.forget(elf::DT_VERDEF);
    }),
    ("dynamic-entries", "two DT_STRSZ", |p| p.retag(elf::DT_FLAGS, elf::DT_STRSZ)),
    ("dynamic-entries", "symbols of 16 bytes", |p| {
        let at = p.dynamic(elf::DT_SYMENT);
        p.u64(at + D_VALUE, 16);
    }),
    ("dynamic-order", "symbols before strings, as rust-lld writes them", |p| {
        let (strings, symbols) = (p.dynamic(elf::DT_STRTAB), p.dynamic(elf::DT_SYMTAB));
        for word in [0, 8] {
            let (string, symbol) = (p.get(strings + word), p.get(symbols + word));
            p.u64(strings + word, symbol);
            p.u64(symbols + word, string);
        }
    }),
    ("dynamic-order", "nothing that has an order", |p| {
        for tag in [
            elf::DT_HASH,
            elf::DT_GNU_HASH,
            elf::DT_STRTAB,
            elf::DT_SYMTAB,
            elf::DT_STRSZ,
            elf::DT_SYMENT,
            elf::DT_VERDEF,
            elf::DT_VERDEFNUM,
            elf::DT_VERSYM,
            // Which would lead into the strings.
            elf::DT_SONAME,
        ] {
            p.forget(tag);
        }
    }),
    ("soname", "another name", |p| {
        let symbol = p.symbol("time");
        let name = p.get(symbol + ST_NAME) & 0xffff_ffff;
        let at = p.dynamic(elf::DT_SONAME);
        p.u64(at + D_VALUE, name);
    }),
    ("soname", "none", |p| p.forget(elf::DT_SONAME)),
    ("no-relocations", "DT_RELA", |p| p.retag(elf::DT_FLAGS, elf::DT_RELA)),
    ("no-relocations", "a table of one", |p| {
        p.retag(elf::DT_FLAGS, elf::DT_RELASZ);
        p.u64(p.dynamic(elf::DT_RELASZ) + D_VALUE, 24);
    }),
    ("no-relocations", "DT_RELR", |p| p.retag(elf::DT_FLAGS, 36)),
    ("no-relocations", "DT_TEXTREL", |p| p.retag(elf::DT_FLAGS, elf::DT_TEXTREL)),
    ("no-relocations", "DF_TEXTREL", |p| {
        let at = p.dynamic(elf::DT_FLAGS);
        p.u64(at + D_VALUE, elf::DF_TEXTREL.into());
    }),
    ("no-relocations", "a section of them", |p| set_section(p, ".note", elf::SHT_RELA)),
    ("no-dependencies", "DT_NEEDED", |p| p.retag(elf::DT_FLAGS, elf::DT_NEEDED)),
    ("no-dependencies", "an initialiser", |p| p.retag(elf::DT_FLAGS, elf::DT_INIT)),
    ("no-builder-paths", "DT_RUNPATH", |p| p.retag(elf::DT_FLAGS, elf::DT_RUNPATH)),
    ("no-builder-paths", "a path in the code", |p| {
        let at = p.padding(16);
        p.put(at, *b"/home/me/kernel\0");
    }),
    ("sysv-hash", "no DT_HASH", |p| p.forget(elf::DT_HASH)),
    ("sysv-hash", "empty buckets", |p| {
        let at = p.table(elf::DT_HASH);
        let buckets = usize::try_from(p.get(at) & 0xffff_ffff).unwrap();
        for index in 0..buckets {
            p.u32(at + 8 + 4 * index, 0);
        }
    }),
    ("sysv-hash", "chains that are circles", |p| {
        let at = p.table(elf::DT_HASH);
        let sizes = p.get(at);
        let (buckets, chains) = (sizes & 0xffff_ffff, sizes >> 32);
        for index in 1..u32::try_from(chains).unwrap() {
            let chain = at + 8 + 4 * usize::try_from(buckets).unwrap();
            p.u32(chain + 4 * index as usize, index);
        }
    }),
    ("sysv-hash", "two symbols of one name", |p| same_name(p)),
    ("gnu-hash", "two symbols of one name", |p| same_name(p)),
    ("gnu-hash", "a filter of three words, which lets everything pass", |p| {
        let table = p.contents(".gnu.hash");
        let words = usize::try_from(p.get(table.start + 8) & 0xffff_ffff).unwrap();
        let behind_filter = table.start + 16 + 8 * words..table.end;
        let mut grown = p.bytes[table.start..table.start + 16].to_vec();
        grown[8] = 3;
        grown.extend([0xff; 8 * 3]);
        grown.extend(&p.bytes[behind_filter]);
        let at = p.append(&grown) as u64;
        p.u64(p.dynamic(elf::DT_GNU_HASH) + D_VALUE, at);
        let load = p.segment(elf::PT_LOAD);
        let end = p.bytes.len() as u64;
        p.u64(load + P_FILESZ, end);
        p.u64(load + P_MEMSZ, end);
    }),
    ("gnu-hash", "no DT_GNU_HASH", |p| p.forget(elf::DT_GNU_HASH)),
    ("gnu-hash", "a filter that lets nothing pass", |p| {
        let at = p.table(elf::DT_GNU_HASH);
        p.u64(at + 16, 0);
    }),
    ("gnu-hash", "a filter of no words", |p| {
        let at = p.table(elf::DT_GNU_HASH);
        p.u32(at + 8, 0);
    }),
];

fn set_section(patch: &mut Patch, name: &str, kind: u32) {
    let section = patch.section(name);
    patch.u32(section + SH_TYPE, kind);
}

fn same_name(patch: &mut Patch) {
    let (one, other) = (patch.symbol("time"), patch.symbol("getcpu"));
    let name = patch.get(one + ST_NAME).to_le_bytes();
    patch.put(other + ST_NAME, [name[0], name[1], name[2], name[3]]);
}
