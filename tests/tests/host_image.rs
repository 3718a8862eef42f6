//! The judge's verdict on the vDSO of the machine that runs the tests, rule by rule.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use kernel_sim::functions::host_image;
use linker::judge::{ImageFile, Outcome, RULES, judge};
use object::read::elf::{FileHeader as _, SectionHeader as _, SectionTable, Sym as _, SymbolTable};
use object::{LittleEndian, elf};

/// A rule that Linux's own image breaks, what there is in an image that breaks it, and why no
/// program stumbles over it.
struct Expected {
    rule: &'static str,
    why: &'static str,
    /// Read by another reader than the judge's.
    is_there: fn(&Elf<'_>) -> bool,
}

/// Kernels differ in these three, each by something that can be seen. Every other rule holds for
/// every kernel's image, or it is not a fact about consumers.
const EXPECTED: [Expected; 3] = [
    Expected {
        rule: "no-builder-paths",
        why: "a toolchain that writes DT_RUNPATH leaves the builder's path",
        is_there: |elf| elf.has_tag(elf::DT_RUNPATH) || elf.has_tag(elf::DT_RPATH),
    },
    Expected {
        rule: "no-alternatives",
        why: "the kernel patches its image at boot, before it maps it",
        is_there: |elf| elf.has_section(".altinstructions"),
    },
    Expected {
        rule: "unwind-every-path",
        why: "the ChaCha20 rounds behind getrandom have no unwind entry",
        is_there: |elf| elf.has_symbol("__vdso_getrandom"),
    },
];

#[test]
fn the_hosts_image_breaks_exactly_the_rules_that_it_is_known_to_break() {
    let Some(bytes) = host_image() else {
        assert!(!xtask::tools::required(), "this machine's kernel maps no vDSO");
        println!("skip: this machine's kernel maps no vDSO (vdso=0, or an emulator)");
        return;
    };
    let verdict = judge(&ImageFile::read(bytes).unwrap());
    assert_eq!(verdict.findings.len(), RULES.len());
    let elf = Elf::read(bytes);
    let mut not_for_it = Vec::new();
    for finding in &verdict.findings {
        let name = finding.rule.name;
        let expected = EXPECTED.iter().find(|expected| expected.rule == name);
        let is_expected = expected.is_some_and(|expected| (expected.is_there)(&elf));
        match &finding.outcome {
            Outcome::Holds => {
                assert!(!is_expected, "{name} holds, and what breaks it is there");
                println!("{name}: holds");
            }
            Outcome::NotApplicable(reason) => {
                println!("{name}: {reason}");
                not_for_it.push(name);
            }
            Outcome::Broken(broken) => {
                assert!(is_expected, "{name}: {broken}");
                println!("{name}: {broken} (expected: {})", expected.map_or("", |e| e.why));
            }
        }
    }
    assert_eq!(
        not_for_it,
        ["entry-point", "late-names", "no-system-call", "own-note", "signal-frames", "two-pages"]
    );
    for expected in EXPECTED {
        let is_rule = RULES.iter().any(|known| known.name == expected.rule);
        assert!(is_rule, "{} is no rule", expected.rule);
    }
}

/// The host's image as the crate `object` reads it.
struct Elf<'a> {
    sections: SectionTable<'a, Header>,
    symbols: SymbolTable<'a, Header>,
    tags: Vec<u64>,
    bytes: &'a [u8],
}

type Header = elf::FileHeader64<LittleEndian>;

impl<'a> Elf<'a> {
    fn read(bytes: &'a [u8]) -> Self {
        let header = Header::parse(bytes).unwrap();
        let sections = header.sections(LittleEndian, bytes).unwrap();
        let symbols = sections.symbols(LittleEndian, bytes, elf::SHT_DYNSYM).unwrap();
        let (entries, _) = sections.dynamic(LittleEndian, bytes).unwrap().unwrap();
        let tags = entries.iter().map(|entry| entry.d_tag.get(LittleEndian)).collect();
        Self { sections, symbols, tags, bytes }
    }

    fn has_tag(&self, tag: u32) -> bool {
        self.tags.contains(&u64::from(tag))
    }

    fn has_section(&self, name: &str) -> bool {
        let found = self.sections.section_by_name(LittleEndian, name.as_bytes());
        found
            .is_some_and(|(_, section)| !section.data(LittleEndian, self.bytes).unwrap().is_empty())
    }

    fn has_symbol(&self, name: &str) -> bool {
        let mut names = self.symbols.iter().map(|s| s.name(LittleEndian, self.symbols.strings()));
        names.any(|found| found.unwrap() == name.as_bytes())
    }
}
