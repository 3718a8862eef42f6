//! The dynamic entries.

use object::elf;

use super::{Broken, ImageFile, Level, Rule, Scope, broken};
use crate::judge::names::NAME_LIMIT;
use crate::judge::tables::Dynamic;

pub(crate) const DYNAMIC_ENTRIES: Rule = Rule {
    name: "dynamic-entries",
    level: Level::Must,
    scope: Scope::Every,
    demand: "DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT of the format's size, each once",
    consumers: "CRIU (\"Not all dynamic entries are present\"), abseil, rustix",
    check: |file| {
        let dynamic = entries(file)?;
        for (tag, name) in [
            (elf::DT_STRTAB, "DT_STRTAB"),
            (elf::DT_SYMTAB, "DT_SYMTAB"),
            (elf::DT_STRSZ, "DT_STRSZ"),
            (elf::DT_SYMENT, "DT_SYMENT"),
        ] {
            let mut tags = dynamic.entries.iter();
            let count = tags.by_ref().filter(|(found, _)| *found == u64::from(tag)).count();
            if count != 1 {
                broken!("{count} {name} entries");
            }
        }
        let wanted = if file.is_64 { 24 } else { 16 };
        match dynamic.get(elf::DT_SYMENT) {
            Some(found) if found != wanted => {
                broken!("DT_SYMENT is {found}, the format has {wanted}")
            }
            _ => Ok(()),
        }
    },
};

/// The order in Linux's image; `linker/build/src/finish.rs` sorts ours by it.
pub(crate) const LINUX_ORDER: [(u32, &str); 9] = [
    (elf::DT_HASH, "DT_HASH"),
    (elf::DT_GNU_HASH, "DT_GNU_HASH"),
    (elf::DT_STRTAB, "DT_STRTAB"),
    (elf::DT_SYMTAB, "DT_SYMTAB"),
    (elf::DT_STRSZ, "DT_STRSZ"),
    (elf::DT_SYMENT, "DT_SYMENT"),
    (elf::DT_VERDEF, "DT_VERDEF"),
    (elf::DT_VERDEFNUM, "DT_VERDEFNUM"),
    (elf::DT_VERSYM, "DT_VERSYM"),
];

pub(crate) const DYNAMIC_ORDER: Rule = Rule {
    name: "dynamic-order",
    level: Level::Should,
    scope: Scope::Every,
    demand: "the dynamic entries stand in the order of Linux's image: hash tables, strings, symbols",
    consumers: "stress-ng (handles each entry as it comes, symbols with the strings seen so far)",
    check: |file| {
        let dynamic = entries(file)?;
        let position = |tag: u32| {
            let mut tags = dynamic.entries.iter();
            tags.position(|(found, _)| *found == u64::from(tag))
        };
        let places = LINUX_ORDER.map(|(tag, name)| (position(tag), name));
        let mut present = places.iter().filter_map(|(place, name)| Some(((*place)?, *name)));
        let Some(mut last) = present.next() else {
            broken!("none of the entries that have an order is there");
        };
        for next in present {
            if next.0 < last.0 {
                broken!("{} stands before {}", next.1, last.1);
            }
            last = next;
        }
        Ok(())
    },
};

pub(crate) const SONAME: Rule = Rule {
    name: "soname",
    level: Level::Must,
    scope: Scope::Every,
    demand: "DT_SONAME is the architecture's",
    consumers: "programs that dlopen the image by its name",
    check: |file| {
        let wanted = file.arch.soname();
        match file.tables.soname {
            Some(found) if found == wanted => Ok(()),
            Some(found) => broken!("it is {found:?}, on {} it is {wanted:?}", file.arch.name()),
            None => broken!("there is none; on {} it is {wanted:?}", file.arch.name()),
        }
    },
};

pub(crate) const NO_RELOCATIONS: Rule = Rule {
    name: "no-relocations",
    level: Level::Must,
    scope: Scope::Every,
    demand: "no relocations: nobody would apply them",
    consumers: "every program (glibc marks the image as relocated), gVisor's check_vdso, Linux's build",
    check: |file| {
        let dynamic = entries(file)?;
        for (table, size, name) in [
            (elf::DT_REL, elf::DT_RELSZ, "DT_REL"),
            (elf::DT_RELA, elf::DT_RELASZ, "DT_RELA"),
            (DT_RELR, DT_RELRSZ, "DT_RELR"),
            (elf::DT_JMPREL, elf::DT_PLTRELSZ, "DT_JMPREL"),
        ] {
            match (dynamic.get(table), dynamic.get(size)) {
                // An empty table is none: linkers leave one in Linux's image for riscv64.
                (None, None) | (_, Some(0)) => {}
                (_, Some(size)) => broken!("there is a {name} of {size:#x} bytes"),
                (Some(_), None) => broken!("there is a {name} of no stated size"),
            }
        }
        if dynamic.get(elf::DT_TEXTREL).is_some() {
            broken!("there is a DT_TEXTREL");
        }
        if let Some(flags) = dynamic.get(elf::DT_FLAGS)
            && flags & u64::from(elf::DF_TEXTREL) != 0
        {
            broken!("DT_FLAGS has DF_TEXTREL");
        }
        for section in &file.sections {
            if matches!(section.kind, elf::SHT_REL | elf::SHT_RELA | SHT_RELR) && section.size != 0
            {
                broken!("section {} holds {:#x} bytes of them", section.name, section.size);
            }
        }
        Ok(())
    },
};

/// Relative relocations, compressed (gABI draft).
const DT_RELR: u32 = 36;
const DT_RELRSZ: u32 = 35;
const SHT_RELR: u32 = 19;

pub(crate) const NO_DEPENDENCIES: Rule = Rule {
    name: "no-dependencies",
    level: Level::Must,
    scope: Scope::Every,
    demand: "no DT_NEEDED, no initialisers: nobody would load or run them",
    consumers: "gVisor's check_vdso, Linux's build",
    check: |file| {
        for (tag, name) in [
            (elf::DT_NEEDED, "DT_NEEDED"),
            (elf::DT_INIT, "DT_INIT"),
            (elf::DT_FINI, "DT_FINI"),
            (elf::DT_INIT_ARRAY, "DT_INIT_ARRAY"),
            (elf::DT_FINI_ARRAY, "DT_FINI_ARRAY"),
            (elf::DT_VERNEED, "DT_VERNEED"),
        ] {
            if entries(file)?.get(tag).is_some() {
                broken!("there is a {name}");
            }
        }
        Ok(())
    },
};

pub(crate) const NO_BUILDER_PATHS: Rule = Rule {
    name: "no-builder-paths",
    level: Level::Should,
    scope: Scope::Every,
    demand: "no DT_RUNPATH, no DT_RPATH, no absolute path anywhere",
    consumers: "reproducible builds; whoever reads the path of somebody's machine in every process",
    check: |file| {
        for (tag, name) in [(elf::DT_RUNPATH, "DT_RUNPATH"), (elf::DT_RPATH, "DT_RPATH")] {
            if entries(file)?.get(tag).is_some() {
                broken!("there is a {name}");
            }
        }
        if let Some((offset, path)) = absolute_path(file.bytes) {
            broken!("{path:?} stands at {offset:#x}");
        }
        Ok(())
    },
};

/// The first thing that looks like `/one/two`, each part of two or more name characters.
fn absolute_path(bytes: &[u8]) -> Option<(usize, String)> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-+@".contains(byte);
    let mut rest = bytes;
    while let Some(slash) = rest.iter().position(|&byte| byte == b'/') {
        let candidate = rest.get(slash..)?;
        let run = candidate.iter().take_while(|byte| **byte == b'/' || is_name(byte)).count();
        let text = candidate.get(..run)?;
        let mut parts = text.split(|&byte| byte == b'/').skip(1);
        if parts.by_ref().take_while(|part| part.len() >= 2).take(2).count() == 2 {
            let offset = bytes.len() - candidate.len();
            // As much of it as fits a line.
            let start = text.get(..NAME_LIMIT).unwrap_or(text);
            return Some((offset, String::from_utf8_lossy(start).into_owned()));
        }
        rest = candidate.get(run..)?;
    }
    None
}

/// The dynamic entries, of which another rule demands that there are any.
pub(crate) fn entries<'f>(file: &'f ImageFile<'_>) -> Result<&'f Dynamic, Broken> {
    match &file.dynamic {
        Some(dynamic) if !dynamic.entries.is_empty() => Ok(dynamic),
        _ => broken!("there are no dynamic entries"),
    }
}
