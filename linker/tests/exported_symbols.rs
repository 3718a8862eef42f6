//! What the image exports is what was agreed on: `abi/symbols-x86_64.txt`.
//!
//! A function that is missing from the version map is dropped by the linker without a word.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::Path;

use linker::judge::ImageFile;
use object::elf;

/// Name, version, binding and type of each dynamic symbol, and whose address it shares.
fn listing(bytes: &[u8]) -> String {
    let file = ImageFile::read(bytes).unwrap();
    let mut symbols: Vec<_> = file.tables.symbols.iter().skip(1).collect();
    symbols.sort_by_key(|symbol| symbol.name);
    let mut text = String::new();
    for symbol in &symbols {
        let binding = match symbol.binding {
            elf::STB_GLOBAL => "global",
            elf::STB_WEAK => "weak",
            other => panic!("binding {other}"),
        };
        let kind = match (symbol.kind, symbol.section) {
            (elf::STT_FUNC, _) => "function",
            (elf::STT_OBJECT, elf::SHN_ABS) => "version",
            other => panic!("type and section {other:?}"),
        };
        let version = file.tables.definition(symbol).map_or("none", |version| version.name);
        write!(text, "{:<24} {version:<10} {binding:<7} {kind}", symbol.name).unwrap();
        let is_twin = |other: &&&linker::judge::Symbol<'_>| {
            symbol.binding == elf::STB_WEAK
                && other.binding == elf::STB_GLOBAL
                && (other.value, other.size) == (symbol.value, symbol.size)
        };
        if let Some(twin) = symbols.iter().find(is_twin) {
            write!(text, " = {}", twin.name).unwrap();
        }
        text.push('\n');
    }
    text
}

#[test]
fn the_exported_symbols_are_those_of_the_golden_text() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../abi/symbols-x86_64.txt");
    let found = listing(linker::SYSCALL.bytes);
    assert_eq!(found, listing(linker::ENOSYS.bytes), "both policies export the same");
    if std::env::var_os("UVDSO_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&golden, &found).unwrap();
    }
    let wanted = std::fs::read_to_string(&golden).unwrap();
    assert_eq!(found, wanted, "the exports changed: an ABI change, or `cargo xtask bless`");
}
