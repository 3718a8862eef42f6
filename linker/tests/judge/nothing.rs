//! A rule that finds nothing to look at is broken: silence is no proof.

use linker::judge::{Arch, Outcome};
use object::elf;

use super::patch::{Patch, field::*};
use super::verdict;

/// The rules that hold.
fn holding(bytes: &[u8]) -> Vec<&'static str> {
    let findings = verdict(bytes).findings.into_iter();
    findings.filter(|f| f.outcome == Outcome::Holds).map(|f| f.rule.name).collect()
}

/// Neither segments nor sections.
fn bare_header() -> Vec<u8> {
    let mut patch = Patch::of(&linker::SYSCALL);
    patch.u16(E_PHNUM, 0);
    patch.u16(E_SHNUM, 0);
    patch.bytes
}

/// The hash table counts the null symbol alone.
fn without_symbols() -> Vec<u8> {
    let mut patch = Patch::of(&linker::SYSCALL);
    let hash = patch.table(elf::DT_HASH);
    patch.u32(hash + 4, 1);
    patch.bytes
}

fn without_sections() -> Vec<u8> {
    let mut patch = Patch::of(&linker::SYSCALL);
    patch.u16(E_SHNUM, 0);
    patch.bytes
}

/// All of these.
pub(crate) fn images() -> [Vec<u8>; 3] {
    [bare_header(), without_symbols(), without_sections()]
}

#[test]
fn a_bare_header_passes_only_the_rules_about_it() {
    assert_eq!(holding(&bare_header()), ["elf-header", "os-abi"]);
}

#[test]
fn an_image_without_symbols_passes_no_rule_about_symbols() {
    let holding = holding(&without_symbols());
    for rule in [
        "sysv-hash",
        "gnu-hash",
        "dynsym-section",
        "names",
        "aliases",
        "symbol-types",
        "symbol-binding",
        "symbol-values",
        "symbol-sections",
        "no-undefined-symbols",
        "symbol-versions",
        "extension-versions",
        "version-node-symbols",
        "function-alignment",
        "function-size",
        "function-room",
        "unwind-tables",
    ] {
        assert!(!holding.contains(&rule), "{rule} holds for no symbol at all");
    }
}

#[test]
fn an_image_without_sections_passes_no_rule_about_sections() {
    let holding = holding(&without_sections());
    for rule in [
        "sections-inside-load",
        "section-headers",
        "sections-visible",
        "first-string-table",
        "dynsym-section",
        "no-got-or-plt",
        "no-data",
        "no-alternatives",
        "symbol-sections",
        "unwind-tables",
        "unwind-every-path",
    ] {
        assert!(!holding.contains(&rule), "{rule} holds for no section at all");
    }
    // The others do not need them: a parser that knows only PT_DYNAMIC still works.
    assert!(holding.contains(&"system-call") && holding.contains(&"names"));
}

#[test]
fn each_architecture_has_names_to_check() {
    for (machine, is_64) in [
        (elf::EM_X86_64, true),
        (elf::EM_386, false),
        (elf::EM_AARCH64, true),
        (elf::EM_ARM, false),
        (elf::EM_RISCV, true),
    ] {
        let arch = Arch::of(machine, is_64).unwrap();
        assert!(arch.functions().len() >= 4, "{}", arch.name());
        assert!(!arch.system_calls().is_empty(), "{}", arch.name());
        assert_eq!(Arch::of(machine, !is_64), None, "{} with other words", arch.name());
    }
}
