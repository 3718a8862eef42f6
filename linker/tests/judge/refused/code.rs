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
    ("function-size", "a jump, and no table to compare it with", |p| {
        p.u64(p.symbol("__vdso_time") + ST_SIZE, 5);
        no_unwind_table(p);
    }),
    ("function-size", "up to the next function, and no table", |p| {
        p.u64(p.symbol("__vdso_clock_getres") + ST_SIZE, 0x1000);
        no_unwind_table(p);
    }),
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
    ("function-room", "32 bytes to code that is not exported", |p| {
        let start = p.get(p.symbol("__vdso_time") + ST_VALUE) + 32;
        let at = unwind_entry(p) + 8;
        p.u32(at, u32::try_from(start - at as u64).unwrap());
    }),
    ("function-room", "34 bytes to the end of its section", |p| {
        let start = p.get(p.symbol("__vdso_time") + ST_VALUE);
        let text = p.contents(".text").start as u64;
        p.u64(p.section(".text") + SH_SIZE, start + 34 - text);
    }),
    ("system-call", "no code", |p| p.u64(p.section(".text") + SH_SIZE, 0)),
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
    ("no-system-call", "no code", |p| {
        *p = Patch::of(&linker::ENOSYS);
        p.u64(p.section(".text") + SH_SIZE, 0);
    }),
    ("unwind-tables", "no PT_GNU_EH_FRAME", no_unwind_table),
    ("unwind-tables", "no .eh_frame", |p| p.rename_section(".eh_frame", ".eh_fram")),
    ("unwind-tables", "a table that finds the wrong entries", |p| {
        // Version, encodings, pointer, count; then pairs of address and entry.
        let table = p.contents(".eh_frame_hdr").start + 12;
        let (first, second) = (p.get(table) >> 32, p.get(table + 8) >> 32);
        p.u32(table + 4, u32::try_from(second).unwrap());
        p.u32(table + 12, u32::try_from(first).unwrap());
    }),
    ("unwind-tables", "no bytes", |p| {
        p.u32(p.section(".eh_frame") + SH_TYPE, elf::SHT_NOBITS);
    }),
    ("unwind-tables", "more entries than are read", |p| {
        p.bytes.resize(0x10000, 0);
        let end = end_of_entries(p);
        p.u32(end, 0);
        let section = p.section(".eh_frame");
        p.u64(section + SH_SIZE, 0x8001);
    }),
    ("unwind-tables", "a table of another version", |p| {
        p.put(p.contents(".eh_frame_hdr").start, [2]);
    }),
    ("unwind-tables", "a table that leads elsewhere", |p| {
        let at = p.contents(".eh_frame_hdr").start + 4;
        p.add(at, 4);
    }),
    ("unwind-tables", "no table in its place", |p| {
        p.put(p.contents(".eh_frame_hdr").start + 3, [0xff]);
    }),
    ("unwind-tables", "a row more than entries", |p| {
        let at = p.contents(".eh_frame_hdr").start + 8;
        p.add(at, 1);
    }),
    ("unwind-tables", "a table that is cut", |p| {
        let segment = p.segment(elf::PT_GNU_EH_FRAME);
        p.u64(segment + P_FILESZ, 14);
    }),
    ("unwind-tables", "no entry", |p| p.u32(p.contents(".eh_frame").start, 0)),
    ("unwind-tables", "an entry more that is longer than the table", |p| {
        add_entry(p, 0x7fff_ffff, 0);
    }),
    ("unwind-tables", "an entry more without a common part", |p| add_entry(p, 12, 5)),
    ("unwind-tables", "rows with another return address", |p| {
        let at = common_entry(p) + 2;
        p.put(at, [3]);
    }),
    ("unwind-tables", "rows with the frame where the stack ends", |p| {
        let at = common_entry(p) + 7;
        p.put(at, [0]);
    }),
    ("unwind-tables", "a common part that is no instruction", |p| {
        let at = common_entry(p) + 5;
        p.put(at, [0x3f]);
    }),
    ("unwind-tables", "rows that are no instruction", |p| p.put(unwind_entry(p) + 17, [0x3f])),
    ("unwind-tables", "rows that go on behind the code", |p| {
        let entry = unwind_entry(p);
        let end = entry + 4 + usize::try_from(p.get(entry) & 0xffff_ffff).unwrap();
        p.bytes[entry + 17..end].fill(0);
        // DW_CFA_advance_loc4, and nothing more.
        p.put(entry + 17, [4, 0, 0, 1, 0]);
    }),
    ("unwind-every-path", "code between the functions", |p| {
        let at = p.padding(4);
        p.put(at + 1, [0xc3]);
    }),
    ("unwind-every-path", "code in another section", |p| {
        p.mark_section(".note", elf::SHF_EXECINSTR);
    }),
    ("unwind-every-path", "no code", |p| p.u64(p.section(".text") + SH_FLAGS, 2)),
];

fn no_unwind_table(patch: &mut Patch) {
    let segment = patch.segment(elf::PT_GNU_EH_FRAME);
    patch.u32(segment + P_TYPE, elf::PT_NULL);
}

/// Where the fields are of the common entry that begin with the factors of code and data and the
/// register of the return address (16 is x86_64's); then come the length and the encoding of its
/// extension, and its instructions: the frame is 8 bytes above register 7.
fn common_entry(patch: &Patch) -> usize {
    let frame = patch.contents(".eh_frame");
    let fields = [1, 0x78, 0x10, 1, 0x1b, 0x0c, 7, 8];
    let mut windows = patch.bytes[frame.clone()].windows(fields.len());
    frame.start + windows.position(|window| window == fields).expect("the common entry")
}

/// Where the first entry is that has room for an instruction of five bytes: its length, the way to
/// its common part, the start and the length of its code, no extension, its instructions.
fn unwind_entry(patch: &Patch) -> usize {
    let mut at = patch.contents(".eh_frame").start;
    loop {
        let words = patch.get(at);
        let (length, common) = (words & 0xffff_ffff, words >> 32);
        assert_ne!(length, 0, "such an entry");
        if common != 0 && length >= 20 {
            return at;
        }
        at += 4 + usize::try_from(length).unwrap();
    }
}

/// Where the entries end, with a zero for those who read on.
fn end_of_entries(patch: &Patch) -> usize {
    let mut frame = patch.contents(".eh_frame");
    while frame.len() >= 8 {
        match usize::try_from(patch.get(frame.start) & 0xffff_ffff).unwrap() {
            0 => break,
            length => frame.start += 4 + length,
        }
    }
    frame.start
}

/// An entry behind the others, over whatever is there, that the sorted table does not know: its
/// length and the way to its common part.
fn add_entry(patch: &mut Patch, length: u32, common: u32) {
    let at = end_of_entries(patch);
    patch.u32(at, length);
    patch.u32(at + 4, common);
    patch.put(at + 8, [0; 8]);
    let start = patch.contents(".eh_frame").start;
    patch.u64(patch.section(".eh_frame") + SH_SIZE, (at + 16 - start) as u64);
}
