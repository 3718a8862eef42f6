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
        let symbol = p.symbol("gettimeofday");
        p.put(symbol + ST_INFO, [elf::STB_GLOBAL << 4 | elf::STT_FUNC]);
    }),
    ("aliases", "one that leads elsewhere", |p| {
        let symbol = p.symbol("gettimeofday");
        p.add(symbol + ST_VALUE, 64);
    }),
    ("symbol-types", "a function without a type", |p| {
        let symbol = p.symbol("__vdso_time");
        p.put(symbol + ST_INFO, [elf::STB_GLOBAL << 4 | elf::STT_NOTYPE]);
    }),
    ("symbol-binding", "a local one", |p| {
        let symbol = p.symbol("__vdso_time");
        p.put(symbol + ST_INFO, [elf::STB_LOCAL << 4 | elf::STT_FUNC]);
    }),
    ("symbol-binding", "a hidden one", |p| {
        let symbol = p.symbol("__vdso_time");
        p.put(symbol + ST_OTHER, [elf::STV_HIDDEN]);
    }),
    ("symbol-values", "an absolute function", |p| {
        let symbol = p.symbol("__vdso_time");
        p.u16(symbol + ST_SHNDX, elf::SHN_ABS);
    }),
    ("symbol-values", "a function at the ELF header", |p| {
        let symbol = p.symbol("__vdso_time");
        p.u64(symbol + ST_VALUE, 0);
    }),
    ("symbol-values", "a function behind the image", |p| {
        let symbol = p.symbol("__vdso_time");
        p.u64(symbol + ST_VALUE, 0xffff_ffff_ff70_0000);
    }),
    ("no-undefined-symbols", "an undefined one", |p| {
        let symbol = p.symbol("time");
        p.u16(symbol + ST_SHNDX, elf::SHN_UNDEF);
    }),
    ("version-tables", "no DT_VERSYM", |p| p.forget(elf::DT_VERSYM)),
    ("version-tables", "no DT_VERDEF", |p| p.forget(elf::DT_VERDEF)),
    ("version-tables", "no DT_VERDEFNUM", |p| p.forget(elf::DT_VERDEFNUM)),
    ("version-tables", "a wrong number", |p| {
        let at = p.dynamic(elf::DT_VERDEFNUM);
        p.add(at + D_VALUE, 1);
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
    ("version-node-symbols", "one without a type", |p| {
        let symbol = p.symbol("LINUX_2.6");
        p.put(symbol + ST_INFO, [elf::STB_GLOBAL << 4]);
    }),
    ("version-node-symbols", "one that is missing", |p| {
        let symbol = p.symbol("UVDSO_1");
        p.u32(symbol + ST_NAME, 0);
    }),
];
