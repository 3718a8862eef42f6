//! The judge's verdict on the vDSOs of the machine that runs the tests, rule by rule.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use gimli::UnwindSection as _;
use kernel_sim::functions::host_image;
use linker::judge::{ImageFile, Outcome, RULES, judge};
use object::read::elf::{
    Dyn as _, FileHeader, SectionHeader as _, SectionTable, Sym as _, SymbolTable,
};
use object::{LittleEndian, elf};
use tests::skip::missing;
use tests::workshop::Workshop;
use xtask::tools::required;

/// A rule that Linux's own image breaks, what there is in an image that breaks it, and why no
/// program stumbles over it.
struct Expected<H: FileHeader<Endian = LittleEndian>> {
    rule: &'static str,
    why: &'static str,
    /// Read by another reader than the judge's.
    is_there: fn(&Elf<'_, H>) -> bool,
}

/// Kernels differ in these, each by something that can be seen. Every other rule holds for every
/// kernel's image, or it is not a fact about consumers.
const fn both<H: FileHeader<Endian = LittleEndian>>() -> [Expected<H>; 2] {
    [
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
    ]
}

#[test]
fn the_hosts_image_breaks_exactly_the_rules_that_it_is_known_to_break() {
    let Some(bytes) = host_image() else {
        return skip("this machine's kernel maps no vDSO (vdso=0, or an emulator)");
    };
    let [paths, alternatives] = both();
    let expected = [
        paths,
        alternatives,
        Expected {
            rule: "unwind-every-path",
            why: "the ChaCha20 rounds behind getrandom have no unwind entry",
            is_there: |elf| elf.has_symbol("__vdso_getrandom"),
        },
    ];
    assert_verdict::<elf::FileHeader64<LittleEndian>>(
        bytes,
        &expected,
        &["entry-point", "late-names", "no-system-call", "own-note", "signal-frames", "two-pages"],
    );
}

#[test]
fn so_does_its_image_for_programs_of_32_bits() {
    if let Some(reason) = missing(&["i386 gcc", "i386 libc"]) {
        return skip(&reason);
    }
    let shop = Workshop::new();
    let made = shop.compile("image", "c/image.c", "i686-linux-gnu-gcc -O2 -static -o OUT SRC");
    let output = Command::new(&made.unwrap()[0]).output();
    shop.clear();
    let bytes = match output {
        Ok(output) if output.status.success() => output.stdout,
        other => return skip(&format!("this machine's kernel gives no image to i386: {other:?}")),
    };
    let [paths, alternatives] = both();
    let expected = [
        paths,
        alternatives,
        Expected {
            rule: "late-names",
            why: "what has no name is a system call",
            is_there: |elf| {
                let late = ["__vdso_getcpu", "__vdso_clock_getres_time64"];
                !late.iter().all(|name| elf.has_symbol(name))
            },
        },
        Expected {
            rule: "unwind-tables",
            why: "Linux compiles it without, so debuggers guess",
            is_there: |elf| !elf.has_row("__vdso_clock_gettime"),
        },
        Expected {
            rule: "unwind-every-path",
            why: "Linux compiles it without, so debuggers guess",
            is_there: |elf| !elf.has_row("__vdso_clock_gettime"),
        },
    ];
    assert_verdict::<elf::FileHeader32<LittleEndian>>(
        &bytes,
        &expected,
        &["aliases", "no-system-call", "own-note", "two-pages"],
    );
}

fn skip(reason: &str) {
    assert!(!required(), "{reason}");
    println!("skip: {reason}");
}

/// Each rule holds, is not for the image, or is broken where what breaks it is there.
fn assert_verdict<H: FileHeader<Endian = LittleEndian>>(
    bytes: &[u8],
    expected: &[Expected<H>],
    not_for_it: &[&str],
) {
    let verdict = judge(&ImageFile::read(bytes).unwrap());
    assert_eq!(verdict.findings.len(), RULES.len());
    let elf = Elf::<H>::read(bytes);
    let mut not_applicable = Vec::new();
    for finding in &verdict.findings {
        let name = finding.rule.name;
        let expected = expected.iter().find(|expected| expected.rule == name);
        let is_expected = expected.is_some_and(|expected| (expected.is_there)(&elf));
        match &finding.outcome {
            Outcome::Holds => {
                assert!(!is_expected, "{name} holds, and what breaks it is there");
                println!("{name}: holds");
            }
            Outcome::NotApplicable(reason) => {
                println!("{name}: {reason}");
                not_applicable.push(name);
            }
            Outcome::Broken(broken) => {
                assert!(is_expected, "{name}: {broken}");
                println!("{name}: {broken} (expected: {})", expected.map_or("", |e| e.why));
            }
        }
    }
    assert_eq!(not_applicable, not_for_it);
    for expected in expected {
        let is_rule = RULES.iter().any(|known| known.name == expected.rule);
        assert!(is_rule, "{} is no rule", expected.rule);
    }
}

/// An image as the crate `object` reads it.
struct Elf<'a, H: FileHeader<Endian = LittleEndian>> {
    sections: SectionTable<'a, H>,
    symbols: SymbolTable<'a, H>,
    tags: Vec<u64>,
    bytes: &'a [u8],
}

impl<'a, H: FileHeader<Endian = LittleEndian>> Elf<'a, H> {
    fn read(bytes: &'a [u8]) -> Self {
        let header = H::parse(bytes).unwrap();
        let sections = header.sections(LittleEndian, bytes).unwrap();
        let symbols = sections.symbols(LittleEndian, bytes, elf::SHT_DYNSYM).unwrap();
        let (entries, _) = sections.dynamic(LittleEndian, bytes).unwrap().unwrap();
        let tags = entries.iter().map(|entry| entry.d_tag(LittleEndian).into()).collect();
        Self { sections, symbols, tags, bytes }
    }

    fn has_tag(&self, tag: u32) -> bool {
        self.tags.contains(&u64::from(tag))
    }

    /// The address and the bytes of a section.
    fn section(&self, name: &str) -> Option<(u64, &'a [u8])> {
        let (_, section) = self.sections.section_by_name(LittleEndian, name.as_bytes())?;
        let bytes = section.data(LittleEndian, self.bytes).unwrap();
        Some((section.sh_addr(LittleEndian).into(), bytes))
    }

    fn has_section(&self, name: &str) -> bool {
        self.section(name).is_some_and(|(_, bytes)| !bytes.is_empty())
    }

    /// The address of a symbol.
    fn symbol(&self, name: &str) -> Option<u64> {
        let mut symbols = self.symbols.iter();
        let strings = self.symbols.strings();
        let found = symbols.find(|s| s.name(LittleEndian, strings).unwrap() == name.as_bytes());
        found.map(|symbol| symbol.st_value(LittleEndian).into())
    }

    fn has_symbol(&self, name: &str) -> bool {
        self.symbol(name).is_some()
    }

    /// Whether the unwind table has an entry for a function.
    fn has_row(&self, name: &str) -> bool {
        let (address, bytes) = self.section(".eh_frame").unwrap();
        let mut frames = gimli::EhFrame::new(bytes, gimli::LittleEndian);
        frames.set_address_size(if std::mem::size_of::<H::Word>() == 8 { 8 } else { 4 });
        let bases = gimli::BaseAddresses::default().set_eh_frame(address);
        let function = self.symbol(name).unwrap();
        frames.fde_for_address(&bases, function, gimli::EhFrame::cie_from_offset).is_ok()
    }
}
