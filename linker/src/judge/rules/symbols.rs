//! The exported names and where they lead.

use object::elf;

use super::segments::load;
use super::versions::stands_under;
use super::{Arch, Broken, ImageFile, Level, Rule, Scope, broken};
use crate::judge::tables::Symbol;

pub(crate) const NAMES: Rule = Rule {
    name: "names",
    level: Level::Must,
    scope: Scope::Every,
    demand: "every name that the architecture's vDSO has, with the architecture's prefix",
    consumers: "glibc, musl, Go, Chromium; rustix panics without clock_gettime and getcpu",
    check: |file| {
        for (name, _) in file.arch.functions() {
            if !file.tables.symbols.iter().any(|s| s.name == *name && s.is_code()) {
                broken!("there is no {name}");
            }
        }
        Ok(())
    },
};

pub(crate) const LATE_NAMES: Rule = Rule {
    name: "late-names",
    level: Level::Should,
    scope: Scope::On(&[Arch::Arm, Arch::I386]),
    demand: "the names that Linux's image got later, clock_getres_time64 and i386's getcpu, under \
             the architecture's version, not hidden",
    consumers: "32-bit libcs, whose call is a system call without the name",
    check: |file| {
        for (name, wanted) in file.arch.late_functions() {
            let mut symbols = file.tables.symbols.iter();
            let Some(symbol) = symbols.find(|s| s.name == *name && s.is_code()) else {
                broken!("there is no {name}");
            };
            stands_under(file, symbol, wanted)?;
        }
        Ok(())
    },
};

pub(crate) const ALIASES: Rule = Rule {
    name: "aliases",
    level: Level::Should,
    scope: Scope::On(&[Arch::X86_64]),
    demand: "each function also under its name without the prefix: weak, same place, size and \
             version, not hidden",
    consumers: "parsers that look for clock_gettime and the like, as in Linux's image",
    check: |file| {
        for (name, version) in file.arch.functions() {
            let Some(short) = name.strip_prefix("__vdso_") else {
                continue;
            };
            let find = |name| file.tables.symbols.iter().find(|s| s.name == name);
            let (Some(alias), Some(function)) = (find(short), find(name)) else {
                broken!("{name} or {short} is missing");
            };
            if alias.binding != elf::STB_WEAK {
                broken!("{short} is not weak");
            }
            if (alias.value, alias.size) != (function.value, function.size) {
                broken!("{short} is not where {name} is");
            }
            stands_under(file, alias, version)?;
        }
        Ok(())
    },
};

pub(crate) const SYMBOL_TYPES: Rule = Rule {
    name: "symbol-types",
    level: Level::Must,
    scope: Scope::Every,
    demand: "exported functions are STT_FUNC (a signal trampoline may have no type)",
    consumers: "abseil, Linux's parse_vdso, glibc's IFUNCs",
    check: |file| {
        for symbol in exported(file)? {
            let may_be_untyped = symbol.is_trampoline();
            if symbol.section != elf::SHN_ABS && symbol.kind != elf::STT_FUNC && !may_be_untyped {
                broken!(
                    "{} has type {}, a function has {}",
                    symbol.name,
                    symbol.kind,
                    elf::STT_FUNC
                );
            }
        }
        Ok(())
    },
};

pub(crate) const SYMBOL_BINDING: Rule = Rule {
    name: "symbol-binding",
    level: Level::Must,
    scope: Scope::Every,
    demand: "the architecture's names are global, other exported symbols global or weak, all with \
             default visibility",
    consumers: "CRIU 3.17 (finds global functions alone), rr, zsim, musl",
    check: |file| {
        let names = file.arch.functions().iter().chain(file.arch.late_functions());
        let names: Vec<_> = names.map(|(name, _)| *name).collect();
        for symbol in exported(file)? {
            // Linux's images have weak aliases, and none among the names with the prefix.
            if symbol.binding == elf::STB_WEAK && names.contains(&symbol.name) {
                broken!("{} is weak", symbol.name);
            }
            if !matches!(symbol.binding, elf::STB_GLOBAL | elf::STB_WEAK) {
                broken!("{} has binding {}", symbol.name, symbol.binding);
            }
            if symbol.visibility != elf::STV_DEFAULT {
                broken!("{} has visibility {}", symbol.name, symbol.visibility);
            }
        }
        Ok(())
    },
};

pub(crate) const SYMBOL_VALUES: Rule = Rule {
    name: "symbol-values",
    level: Level::Must,
    scope: Scope::Every,
    demand: "functions are relative to the image, behind its first byte and inside the load segment",
    consumers: "rr, zsim, abseil, glibc (adds no base to an absolute symbol: a jump to nowhere)",
    check: |file| {
        let load = load(file)?;
        let end = load.address.saturating_add(load.memory_bytes);
        for symbol in exported(file)?.filter(|s| s.kind != elf::STT_OBJECT) {
            let is_node = file.tables.definitions.iter().any(|d| d.name == symbol.name);
            if symbol.section == elf::SHN_ABS {
                if is_node {
                    continue;
                }
                broken!("{} is an absolute symbol", symbol.name);
            }
            let last = symbol.value.saturating_add(symbol.size);
            if symbol.value <= load.address || last > end {
                broken!(
                    "{} reaches from {:#x} to {last:#x}, the load segment from {:#x} to {end:#x}",
                    symbol.name,
                    symbol.value,
                    load.address
                );
            }
        }
        Ok(())
    },
};

pub(crate) const SYMBOL_SECTIONS: Rule = Rule {
    name: "symbol-sections",
    level: Level::Must,
    scope: Scope::Every,
    demand: "the st_shndx of a function is the section of code that holds it",
    consumers: "gdb (a common symbol is none, one of a section that is not there is absolute), perf \
                (looks for text sections)",
    check: |file| {
        let mut functions = exported(file)?.filter(|s| s.is_code()).peekable();
        if functions.peek().is_none() {
            broken!("there is no function");
        }
        for function in functions {
            let (name, index) = (function.name, function.section);
            let Some(section) = file.sections.get(usize::from(index)) else {
                broken!("{name} is in section {index:#x}, there are {}", file.sections.len());
            };
            if !section.is_code() {
                broken!("{name} is in section {}, which is not executable", section.name);
            }
            let end = section.address.saturating_add(section.size);
            if !(section.address..end).contains(&function.value) {
                broken!(
                    "{name} is at {:#x}, its section {} from {:#x} to {end:#x}",
                    function.value,
                    section.name,
                    section.address
                );
            }
        }
        Ok(())
    },
};

pub(crate) const NO_UNDEFINED_SYMBOLS: Rule = Rule {
    name: "no-undefined-symbols",
    level: Level::Must,
    scope: Scope::Every,
    demand: "no symbol that somebody else would have to define",
    consumers: "every program; Linux's build",
    check: |file| {
        let mut symbols = exported_or_not(file)?;
        match symbols.find(|symbol| symbol.is_undefined()) {
            Some(symbol) => broken!("{:?} is undefined", symbol.name),
            None => Ok(()),
        }
    },
};

/// All symbols but the null one, of which there has to be at least one.
fn exported_or_not<'f, 'a>(
    file: &'f ImageFile<'a>,
) -> Result<impl Iterator<Item = &'f Symbol<'a>>, Broken> {
    if file.tables.symbols.len() < 2 {
        broken!("there is no symbol");
    }
    Ok(file.tables.symbols.iter().skip(1))
}

fn exported<'f, 'a>(
    file: &'f ImageFile<'a>,
) -> Result<impl Iterator<Item = &'f Symbol<'a>>, Broken> {
    // What the linker notes of a section, as in Linux's image for riscv64, is no name.
    let is_exported = |s: &&Symbol<'_>| !s.is_undefined() && s.kind != elf::STT_SECTION;
    Ok(exported_or_not(file)?.filter(is_exported))
}
