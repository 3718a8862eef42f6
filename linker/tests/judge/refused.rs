//! One crafted bad image for each rule, at least: that rule, by name, refuses it.

use linker::judge::{Outcome, RULES};
use object::elf;

use super::patch::{Patch, field::*};
use super::{outcome, verdict};

/// A rule, what is wrong with the image, and the change that makes it so.
type Case = (&'static str, &'static str, fn(&mut Patch));

const CASES: &[Case] = &[
    ("elf-header", "an executable", |p| p.u16(E_TYPE, elf::ET_EXEC)),
    ("elf-header", "ident version 0", |p| p.put(E_IDENT_VERSION, [0])),
    ("elf-header", "version 2", |p| p.u32(E_VERSION, 2)),
    ("elf-header", "a header of another size", |p| p.u16(E_EHSIZE, 63)),
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
    ("dynamic-place", "inside the header", |p| {
        let dynamic = p.segment(elf::PT_DYNAMIC);
        p.u64(dynamic + P_OFFSET, 16);
        p.u64(dynamic + P_FILESZ, 16);
    }),
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
    ("soname", "another name", |p| {
        let symbol = p.symbol("time");
        let name = p.get(symbol + ST_NAME) & 0xffff_ffff;
        let at = p.dynamic(elf::DT_SONAME);
        p.u64(at + D_VALUE, name);
    }),
    ("soname", "none", |p| p.forget(elf::DT_SONAME)),
    ("no-relocations", "DT_RELA", |p| p.retag(elf::DT_FLAGS, elf::DT_RELA)),
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
    ("gnu-hash", "no DT_GNU_HASH", |p| p.forget(elf::DT_GNU_HASH)),
    ("gnu-hash", "a filter that lets nothing pass", |p| {
        let at = p.table(elf::DT_GNU_HASH);
        p.u64(at + 16, 0);
    }),
    ("gnu-hash", "a filter of no words", |p| {
        let at = p.table(elf::DT_GNU_HASH);
        p.u32(at + 8, 0);
    }),
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
    ("first-string-table", "not at DT_STRTAB", |p| {
        let at = p.section(".dynstr");
        p.add(at + SH_ADDR, 1);
    }),
    ("dynsym-section", "none", |p| set_section(p, ".dynsym", elf::SHT_PROGBITS)),
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
    ("no-alternatives", "code to be patched", |p| {
        p.rename_section(".gnu.version_d", ".alternative");
    }),
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
    ("build-id", "none", |p| {
        let note = p.note(b"GNU");
        p.u32(note - 8, 99);
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
    ("two-pages", "a byte more", |p| p.bytes.resize(8193, 0)),
];

/// Rules for another architecture, whose bad images are made in `i386.rs`.
const ELSEWHERE: [&str; 3] = ["entry-point", "late-names", "signal-frames"];

/// Where even the mildest bad image breaks more than its rule: what else, and why.
const ALSO: &[(&str, &[&str], &str)] = &[
    ("one-load-segment", &["build-id"], "the second one was the notes"),
    ("no-loader-segments", &["build-id"], "it was the notes"),
    ("one-dynamic-segment", &["build-id"], "the second one was the notes"),
    (
        "load-segment-origin",
        &["offsets-are-addresses", "first-string-table", "dynsym-section", "symbol-values"],
        "all of these relate addresses to the segment's",
    ),
    (
        "section-headers",
        &["first-string-table", "dynsym-section", "unwind-tables", "unwind-every-path"],
        "sections are found by their names",
    ),
    ("sections-visible", &["two-pages"], "what lies behind two pages makes the file longer"),
    ("names", &["aliases", "symbol-versions"], "a name that is missing has neither"),
    ("symbol-values", &["names"], "an absolute symbol is no function of that name"),
    (
        "function-alignment",
        &["aliases", "function-size", "function-room", "unwind-tables"],
        "the symbol moved, and its code did not",
    ),
    ("function-size", &["aliases"], "the alias kept the size"),
    ("function-room", &["aliases", "function-size"], "the symbol moved into another function"),
    ("no-system-call", &["unwind-every-path"], "it stands where padding was"),
];

#[test]
fn each_bad_image_is_refused_by_its_rule() {
    let mut failures = Vec::new();
    for (rule, what, change) in CASES {
        let mut patch = Patch::of(&linker::SYSCALL);
        change(&mut patch);
        let outcome = outcome(&patch.bytes, rule);
        if !matches!(outcome, Outcome::Broken(_)) {
            failures.push(format!("{rule}: {what}: {outcome:?}"));
        }
    }
    assert!(failures.is_empty(), "not refused:\n{}", failures.join("\n"));
}

#[test]
fn each_rule_has_a_bad_image_that_no_other_rule_refuses() {
    for rule in RULES.iter().filter(|rule| !ELSEWHERE.contains(&rule.name)) {
        let refused_by = |change: &fn(&mut Patch)| {
            let mut patch = Patch::of(&linker::SYSCALL);
            change(&mut patch);
            let verdict = verdict(&patch.bytes);
            verdict.broken().map(|(rule, _)| rule.name).collect::<Vec<_>>()
        };
        let cases = CASES.iter().filter(|(name, ..)| *name == rule.name);
        let mildest = cases.map(|(.., change)| refused_by(change)).min_by_key(Vec::len);
        let mildest = mildest.unwrap_or_default();
        let others: Vec<_> = mildest.into_iter().filter(|name| *name != rule.name).collect();
        let also = ALSO.iter().find(|(name, ..)| *name == rule.name);
        let expected = also.map_or(&[][..], |(_, others, _)| others);
        let both = |name: &&str| others.contains(name) == expected.contains(name);
        assert!(RULES.iter().all(|rule| both(&rule.name)), "{}: {others:?}", rule.name);
    }
}

#[test]
fn each_rule_has_a_bad_image() {
    for rule in RULES {
        let has_case = CASES.iter().any(|(name, ..)| *name == rule.name);
        assert!(has_case || ELSEWHERE.contains(&rule.name), "no bad image for {}", rule.name);
    }
    for (name, ..) in CASES {
        assert!(RULES.iter().any(|rule| rule.name == *name), "{name} is no rule");
    }
}

fn set_flags(patch: &mut Patch, kind: u32, flags: u32) {
    let segment = patch.segment(kind);
    patch.u32(segment + P_FLAGS, flags);
}

/// Makes the notes a segment of another kind.
fn set_type(patch: &mut Patch, kind: u32) {
    let note = patch.segment(elf::PT_NOTE);
    patch.u32(note + P_TYPE, kind);
}

fn set_section(patch: &mut Patch, name: &str, kind: u32) {
    let section = patch.section(name);
    patch.u32(section + SH_TYPE, kind);
}
