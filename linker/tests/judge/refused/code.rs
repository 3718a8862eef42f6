//! Bad functions, code and unwind tables.

use object::elf;

use super::Case;
use crate::patch::{Patch, field::*};

pub(super) const CASES: &[Case] = &[
    ("function-alignment", "8 bytes off", |p| {
        let symbol = p.symbol("__vdso_time");
        p.add(symbol + ST_VALUE, 8);
    }),
    ("function-size", "0", |p| p.u64(p.symbol("__vdso_time") + ST_SIZE, 0)),
    ("function-size", "a jump", |p| p.u64(p.symbol("__vdso_time") + ST_SIZE, 5)),
    ("function-size", "a byte less than the code", |p| {
        let symbol = p.symbol("__vdso_clock_gettime");
        p.add(symbol + ST_SIZE, -1);
    }),
    ("function-size", "up to the next function", |p| {
        p.u64(p.symbol("__vdso_clock_getres") + ST_SIZE, 0x1000);
    }),
    ("function-room", "32 bytes to the next", |p| {
        let start = p.get(p.symbol("__vdso_clock_gettime") + ST_VALUE);
        p.u64(p.symbol("__vdso_time") + ST_VALUE, start + 32);
    }),
    ("function-room", "32 bytes to the end", |p| {
        let load = p.segment(elf::PT_LOAD);
        let end = p.get(load + P_MEMSZ);
        p.u64(p.symbol("__vdso_time") + ST_VALUE, (end - 32) & !15);
    }),
    ("system-call", "none", |p| {
        for at in p.contents(".text") {
            if p.bytes[at..].starts_with(&[0x0f, 0x05]) {
                p.put(at, [0x90, 0x90]);
            }
        }
    }),
    ("no-system-call", "one", |p| {
        *p = Patch::of(&linker::ENOSYS);
        let at = p.padding(2);
        p.put(at, [0x0f, 0x05]);
    }),
    ("unwind-tables", "no PT_GNU_EH_FRAME", |p| {
        let segment = p.segment(elf::PT_GNU_EH_FRAME);
        p.u32(segment + P_TYPE, elf::PT_NULL);
    }),
    ("unwind-tables", "no .eh_frame", |p| p.rename_section(".eh_frame", ".eh_fram")),
    ("unwind-tables", "a table that finds the wrong entries", |p| {
        // Version, encodings, pointer, count; then pairs of address and entry.
        let table = p.contents(".eh_frame_hdr").start + 12;
        let (first, second) = (p.get(table) >> 32, p.get(table + 8) >> 32);
        p.u32(table + 4, u32::try_from(second).unwrap());
        p.u32(table + 12, u32::try_from(first).unwrap());
    }),
    ("unwind-tables", "rows with another return address", |p| {
        // The register of the return address, in the common entry: 16 is x86_64's.
        let frame = p.contents(".eh_frame");
        let common = &p.bytes[frame.clone()];
        let at = common.windows(3).position(|w| w == [1, 0x78, 0x10]).expect("the common entry");
        p.put(frame.start + at + 2, [3]);
    }),
    ("unwind-every-path", "code between the functions", |p| {
        let at = p.padding(4);
        p.put(at + 1, [0xc3]);
    }),
];
