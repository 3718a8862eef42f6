//! The images of this build.

use linker::judge::{ImageFile, Level, Outcome, RULES};
use object::elf;

use super::patch::{Patch, field::*};
use super::{broken, outcome, verdict};

#[test]
fn both_images_hold_every_rule_that_is_for_them() {
    for image in [&linker::SYSCALL, &linker::ENOSYS] {
        let verdict = verdict(image.bytes);
        if let Some((rule, broken)) = verdict.broken().next() {
            panic!("{:?}: {}: {broken}", image.policy, rule.name);
        }
        assert!(verdict.is_accepted());
        let (holds, applicable) = verdict.score();
        assert_eq!(holds, applicable);
        let other_policy = match image.policy {
            linker::Policy::Syscall => "no-system-call",
            linker::Policy::Enosys => "system-call",
        };
        let findings = verdict.findings.iter();
        let not_for_it: Vec<_> = findings
            .filter(|f| matches!(f.outcome, Outcome::NotApplicable(_)))
            .map(|f| f.rule.name)
            .collect();
        assert_eq!(not_for_it, ["entry-point", "late-names", other_policy, "signal-frames"]);
        assert_eq!(applicable, RULES.len() - not_for_it.len());
    }
}

#[test]
fn the_policies_get_opposite_rules_about_system_calls() {
    for (image, holds, not) in [
        (&linker::SYSCALL, "system-call", "no-system-call"),
        (&linker::ENOSYS, "no-system-call", "system-call"),
    ] {
        assert_eq!(outcome(image.bytes, holds), Outcome::Holds);
        assert!(matches!(outcome(image.bytes, not), Outcome::NotApplicable(_)));
    }
}

#[test]
fn the_constants_say_what_the_files_say() {
    for image in [&linker::SYSCALL, &linker::ENOSYS] {
        let file = ImageFile::read(image.bytes).unwrap();
        let note = file.own_note().unwrap();
        assert_eq!(note.policy, image.policy as u32);
        assert_eq!(
            (note.page_abi, note.slots, note.slot_bytes),
            (image.page_abi, image.slots, image.slot_bytes)
        );
        assert_eq!(file.build_id().unwrap(), image.build_id);
        let mut named: Vec<_> = file.tables.functions();
        named.sort_by_key(|symbol| symbol.name);
        let named: Vec<_> = named.iter().map(|s| (s.name, s.value, s.size)).collect();
        let constants = image.symbols.iter();
        let constants: Vec<_> =
            constants.map(|s| (s.name, s.offset as u64, s.size as u64)).collect();
        assert_eq!(named, constants);
    }
}

#[test]
fn rules_have_distinct_names_and_say_who_needs_them() {
    for (index, rule) in RULES.iter().enumerate() {
        assert!(RULES[..index].iter().all(|other| other.name != rule.name), "{}", rule.name);
        assert!(rule.name.len() <= 21, "{} breaks the table of `image check`", rule.name);
        assert!(!rule.demand.is_empty() && !rule.consumers.is_empty(), "{}", rule.name);
    }
}

#[test]
fn a_should_does_not_refuse_an_image_and_a_must_does() {
    let mut bytes = linker::SYSCALL.bytes.to_vec();
    bytes.resize(8183, 0);
    assert_eq!(verdict(&bytes).broken().count(), 0);
    bytes.extend(*b"\0/usr/lib");
    assert_eq!(broken(&bytes, Level::Should), ["no-builder-paths"]);
    assert!(verdict(&bytes).is_accepted());
    assert_eq!(bytes.len(), 8192);
    bytes.push(0);
    assert_eq!(broken(&bytes, Level::Must), ["two-pages"]);
    assert!(!verdict(&bytes).is_accepted());
}

#[test]
fn what_a_linker_leaves_that_means_nothing_breaks_nothing() {
    // As in Linux's image for riscv64: a table of no relocations, and a section's own symbol.
    let mut patch = Patch::of(&linker::SYSCALL);
    patch.retag(elf::DT_SONAME, elf::DT_RELA);
    patch.retag(elf::DT_FLAGS, elf::DT_RELASZ);
    let size = patch.dynamic(elf::DT_RELASZ);
    patch.u64(size + D_VALUE, 0);
    let symbol = patch.symbol("getcpu");
    patch.u32(symbol + ST_NAME, 0);
    patch.put(symbol + ST_INFO, [elf::STB_LOCAL << 4 | elf::STT_SECTION]);
    for rule in ["no-relocations", "symbol-types", "symbol-binding", "symbol-sections", "gnu-hash"]
    {
        assert_eq!(outcome(&patch.bytes, rule), Outcome::Holds, "{rule}");
    }
}
