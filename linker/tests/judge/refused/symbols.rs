//! Bad symbols and versions.

use object::elf;

use super::Case;
use crate::patch::field::*;

pub(super) const CASES: &[Case] = &[
    ("names", "no clock_gettime", |p| {
        let symbol = p.symbol("__vdso_clock_gettime");
        p.u32(symbol + ST_NAME, 0);
    }),
    ("names", "the prefix of another architecture", |p| {
        let strings = p.contents(".dynstr");
        for at in strings {
            if p.bytes[at..].starts_with(b"__vdso_") {
                p.put(at, *b"__krnl_");
            }
        }
    }),
    ("aliases", "a strong one", |p| {
        p.bind("gettimeofday", elf::STB_GLOBAL, elf::STT_FUNC);
    }),
    ("aliases", "one that leads elsewhere", |p| {
        let symbol = p.symbol("gettimeofday");
        p.add(symbol + ST_VALUE, 64);
    }),
    ("aliases", "one that is missing", |p| {
        let symbol = p.symbol("gettimeofday");
        p.u32(symbol + ST_NAME, 0);
    }),
    ("aliases", "our node", |p| p.u16(p.version("clock_gettime"), 3)),
    ("aliases", "the base version", |p| p.u16(p.version("clock_gettime"), 1)),
    ("aliases", "no version", |p| p.u16(p.version("clock_gettime"), 0)),
    ("aliases", "hidden", |p| p.u16(p.version("clock_gettime"), 0x8002)),
    ("symbol-types", "a function without a type", |p| {
        p.bind("__vdso_time", elf::STB_GLOBAL, elf::STT_NOTYPE);
    }),
    ("symbol-binding", "a weak name", |p| {
        p.bind("__vdso_clock_gettime", elf::STB_WEAK, elf::STT_FUNC);
    }),
    ("symbol-binding", "a local one", |p| {
        p.bind("__vdso_time", elf::STB_LOCAL, elf::STT_FUNC);
    }),
    ("symbol-binding", "a hidden one", |p| {
        let symbol = p.symbol("__vdso_time");
        p.put(symbol + ST_OTHER, [elf::STV_HIDDEN]);
    }),
    ("symbol-values", "an absolute function", |p| {
        p.put_in_section("__vdso_time", elf::SHN_ABS);
    }),
    ("symbol-values", "a function at the ELF header", |p| {
        let symbol = p.symbol("__vdso_time");
        p.u64(symbol + ST_VALUE, 0);
    }),
    ("symbol-values", "a function behind the image", |p| {
        let symbol = p.symbol("__vdso_time");
        p.u64(symbol + ST_VALUE, 0xffff_ffff_ff70_0000);
    }),
    ("symbol-sections", "a common symbol", |p| {
        p.put_in_section("__vdso_time", elf::SHN_COMMON);
    }),
    ("symbol-sections", "a section that is not there", |p| {
        p.put_in_section("__vdso_time", 500);
    }),
    ("symbol-sections", "the hash table", |p| {
        p.put_in_section("__vdso_time", 1);
    }),
    ("symbol-sections", "code that is not executable", |p| {
        p.u64(p.section(".text") + SH_FLAGS, elf::SHF_ALLOC.into());
    }),
    ("symbol-sections", "no function", |p| {
        let symbols = p.contents(".dynsym");
        for symbol in symbols.step_by(24).skip(1) {
            p.put(symbol + ST_INFO, [elf::STB_GLOBAL << 4 | elf::STT_OBJECT]);
        }
    }),
    ("symbol-sections", "other code", |p| {
        p.mark_section(".hash", elf::SHF_EXECINSTR);
        p.put_in_section("__vdso_time", 1);
    }),
    ("no-undefined-symbols", "an undefined one", |p| {
        p.put_in_section("time", elf::SHN_UNDEF);
    }),
    ("version-tables", "no DT_VERSYM", |p| p.forget(elf::DT_VERSYM)),
    ("version-tables", "no DT_VERDEF", |p| p.forget(elf::DT_VERDEF)),
    ("version-tables", "no DT_VERDEFNUM", |p| p.forget(elf::DT_VERDEFNUM)),
    ("version-tables", "a wrong number", |p| {
        let at = p.dynamic(elf::DT_VERDEFNUM);
        p.add(at + D_VALUE, 1);
    }),
    ("version-tables", "a chain that is longer", |p| {
        let at = p.dynamic(elf::DT_VERDEFNUM);
        p.add(at + D_VALUE, -1);
    }),
    ("version-tables", "no definition", |p| {
        let at = p.dynamic(elf::DT_VERDEFNUM);
        p.u64(at + D_VALUE, 0);
    }),
    ("version-tables", "a name behind the file, the same as before", |p| {
        let definition = p.definition(1);
        let name = p.bytes[definition + VDA_NAME..][..8].to_vec();
        let at = p.append(&name);
        p.u32(definition + VD_AUX, u32::try_from(at - definition).unwrap());
    }),
    ("version-tables", "an unknown revision", |p| p.u16(p.definition(1) + VD_VERSION, 2)),
    ("version-tables", "no base definition", |p| p.u16(p.definition(0) + VD_FLAGS, 0)),
    ("version-tables", "indices that descend", |p| p.u16(p.definition(2) + VD_NDX, 2)),
    ("version-tables", "three names", |p| p.u16(p.definition(1) + VD_CNT, 3)),
    ("version-tables", "a hash of 0", |p| p.u32(p.definition(1) + VD_HASH, 0)),
    ("version-tables", "a name elsewhere", |p| p.u32(p.definition(0) + VD_AUX, 20 + 28)),
    ("symbol-versions", "our node", |p| p.u16(p.version("__vdso_getcpu"), 3)),
    ("symbol-versions", "the base version", |p| p.u16(p.version("__vdso_getcpu"), 1)),
    ("symbol-versions", "hidden", |p| p.u16(p.version("__vdso_getcpu"), 0x8002)),
    ("symbol-versions", "none", |p| p.forget(elf::DT_VERSYM)),
    ("extension-versions", "Linux's node", |p| p.u16(p.version("__vdso_clock_gettime_ns"), 2)),
    ("extension-versions", "the base version", |p| {
        p.u16(p.version("__vdso_clock_gettime_ns"), 1);
    }),
    ("version-node-symbols", "one without a type", |p| {
        p.bind("LINUX_2.6", elf::STB_GLOBAL, elf::STT_NOTYPE);
    }),
    ("version-node-symbols", "one that is missing", |p| {
        let symbol = p.symbol("UVDSO_1");
        p.u32(symbol + ST_NAME, 0);
    }),
];
