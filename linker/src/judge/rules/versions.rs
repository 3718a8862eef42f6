//! Symbol versions.

use std::mem::size_of;

use object::{Endianness, elf};

use super::{Broken, ImageFile, Level, Rule, Scope, broken};
use crate::judge::tables::Symbol;

pub(crate) const VERSION_TABLES: Rule = Rule {
    name: "version-tables",
    level: Level::Must,
    scope: Scope::Every,
    demand: "DT_VERSYM, DT_VERDEF, DT_VERDEFNUM: sound, ascending, each name hashed and right behind",
    consumers: "Go (dereferences them unasked, compares the hash), abseil, rustix, CRIU",
    check: |file| {
        let dynamic = super::dynamic::entries(file)?;
        for (tag, name) in [
            (elf::DT_VERSYM, "DT_VERSYM"),
            (elf::DT_VERDEF, "DT_VERDEF"),
            (elf::DT_VERDEFNUM, "DT_VERDEFNUM"),
        ] {
            if dynamic.get(tag).is_none() {
                broken!("there is no {name}");
            }
        }
        let definitions = &file.tables.definitions;
        let number = dynamic.get(elf::DT_VERDEFNUM).unwrap_or(0);
        if definitions.len() as u64 != number {
            broken!("DT_VERDEFNUM is {number}, the chain has {}", definitions.len());
        }
        // Go follows the chain, CRIU and abseil count.
        if definitions.last().is_some_and(|last| last.next_distance != 0) {
            broken!("DT_VERDEFNUM is {number}, and the chain goes on");
        }
        let Some(base) = definitions.first() else {
            broken!("there is no definition");
        };
        if base.flags & elf::VER_FLG_BASE == 0 {
            broken!("the first definition, {}, is not the file's own", base.name);
        }
        let mut last = 0;
        for definition in definitions {
            let name = definition.name;
            if definition.revision != 1 {
                broken!("{name} has vd_version {}", definition.revision);
            }
            if !matches!(definition.names, 1 | 2) {
                broken!("{name} has {} names, abseil wants one or two", definition.names);
            }
            if definition.name_distance as usize != size_of::<elf::Verdef<Endianness>>() {
                broken!("{name} stands {} bytes behind its definition", definition.name_distance);
            }
            if definition.index <= last {
                broken!("{name} has index {}, after {last}", definition.index);
            }
            let wanted = elf::hash(name.as_bytes());
            if definition.hash != wanted {
                broken!("{name} has vd_hash {:#x}, its hash is {wanted:#x}", definition.hash);
            }
            last = definition.index;
        }
        Ok(())
    },
};

pub(crate) const SYMBOL_VERSIONS: Rule = Rule {
    name: "symbol-versions",
    level: Level::Must,
    scope: Scope::Every,
    demand: "each name under the architecture's version node, not hidden",
    consumers: "glibc, musl, Go, rustix (panics); plain dlsym ignores hidden ones",
    check: |file| {
        for (name, wanted) in file.arch.functions() {
            let Some(symbol) = file.tables.symbols.iter().find(|s| s.name == *name) else {
                broken!("there is no {name} that could have a version");
            };
            stands_under(file, symbol, wanted)?;
        }
        Ok(())
    },
};

/// Whoever asks for the symbol under version `wanted` finds it, and so does who asks for none.
pub(crate) fn stands_under(
    file: &ImageFile<'_>,
    symbol: &Symbol<'_>,
    wanted: &str,
) -> Result<(), Broken> {
    let name = symbol.name;
    match file.tables.definition(symbol) {
        Some(found) if found.name == wanted => {}
        Some(found) => broken!("{name} has version {}, wanted {wanted}", found.name),
        None => broken!("{name} has no version, wanted {wanted}"),
    }
    if symbol.version.is_some_and(|version| version & elf::VERSYM_HIDDEN != 0) {
        broken!("{name} is hidden");
    }
    Ok(())
}

pub(crate) const EXTENSION_VERSIONS: Rule = Rule {
    name: "extension-versions",
    level: Level::Should,
    scope: Scope::Every,
    demand: "names that Linux does not have stand under a version node that Linux does not have",
    consumers: "whoever probes Linux's node for a function of a later kernel",
    check: |file| {
        let functions = file.tables.functions();
        if functions.is_empty() {
            broken!("there is no function");
        }
        let arch = file.arch;
        let is_known = |name: &str| {
            let full =
                arch.functions().iter().chain(arch.late_functions()).map(|(known, _)| *known);
            let mut known = full.chain(arch.other_functions().iter().copied());
            known.any(|known| {
                known == name || (arch.has_aliases() && known.strip_prefix("__vdso_") == Some(name))
            })
        };
        for function in functions.iter().filter(|function| !is_known(function.name)) {
            match file.tables.definition(function) {
                Some(version) if !version.name.starts_with("LINUX_") => {}
                Some(version) => broken!("{} stands under {}", function.name, version.name),
                None => broken!("{} has no version", function.name),
            }
        }
        Ok(())
    },
};

pub(crate) const VERSION_NODE_SYMBOLS: Rule = Rule {
    name: "version-node-symbols",
    level: Level::Should,
    scope: Scope::Every,
    demand: "each version node is also an absolute object symbol of its own name",
    consumers: "none that was seen; Linux's image has them",
    check: |file| {
        let base = |flags: u16| flags & elf::VER_FLG_BASE != 0;
        let mut nodes = 0;
        for node in file.tables.definitions.iter().filter(|d| !base(d.flags)) {
            nodes += 1;
            let Some(symbol) = file.tables.symbols.iter().find(|s| s.name == node.name) else {
                broken!("there is no symbol {}", node.name);
            };
            if (symbol.section, symbol.kind, symbol.value) != (elf::SHN_ABS, elf::STT_OBJECT, 0) {
                broken!(
                    "{} has type {} in section {:#x}, value {:#x}",
                    node.name,
                    symbol.kind,
                    symbol.section,
                    symbol.value
                );
            }
        }
        if nodes == 0 {
            broken!("there is no version node");
        }
        Ok(())
    },
};
