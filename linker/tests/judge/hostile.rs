//! Any bytes: an answer or an error that names what is wrong, never a panic, never without end.

use linker::judge::{ImageFile, LIMIT, NAME_LIMIT, Unreadable, judge};
use object::elf;
use proptest::prelude::*;

use super::grown::{Tables, grown};
use super::patch::{Patch, field::*};

/// Reads and judges; what comes out does not matter.
fn look_at(bytes: &[u8]) {
    if let Ok(file) = ImageFile::read(bytes) {
        let names = file.tables.symbols.iter().map(|symbol| symbol.name);
        let mut names = names.chain(file.sections.iter().map(|section| section.name));
        assert!(names.all(|name| name.len() <= NAME_LIMIT));
        let verdict = judge(&file);
        let (holds, applicable) = verdict.score();
        assert!(holds <= applicable);
        for (_, broken) in verdict.broken() {
            let text = broken.to_string();
            // Something, in a line of a bearable length, that a terminal shows as it is.
            assert!(!text.is_empty() && text.len() < 1024, "{} bytes", text.len());
            assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{text:?}");
        }
    }
}

#[test]
fn an_image_cut_anywhere_is_refused_as_unreadable() {
    let whole = linker::SYSCALL.bytes;
    for length in 0..whole.len() {
        let error = ImageFile::read(&whole[..length]).expect_err("a cut image");
        assert!(
            matches!(error, Unreadable::Short { .. } | Unreadable::Outside { .. }),
            "cut at {length}: {error}"
        );
    }
    assert!(ImageFile::read(whole).is_ok());
}

#[test]
fn every_word_of_the_tables_may_lie() {
    let whole = linker::SYSCALL.bytes;
    let tables = Patch::of(&linker::SYSCALL).contents(".text").start;
    let headers = Patch::of(&linker::SYSCALL).contents(".shstrtab").start;
    let places = (0..tables).chain(headers..whole.len());
    for place in places.step_by(4) {
        for lie in [0, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
            let mut patch = Patch::of(&linker::SYSCALL);
            let word = &mut patch.bytes[place..];
            let length = word.len().min(4);
            word[..length].copy_from_slice(&lie.to_le_bytes()[..length]);
            look_at(&patch.bytes);
        }
    }
}

#[test]
fn each_way_to_be_unreadable_is_named() {
    let read = |change: fn(&mut Patch)| {
        let mut patch = Patch::of(&linker::SYSCALL);
        change(&mut patch);
        ImageFile::read(&patch.bytes).expect_err("an unreadable image")
    };
    let huge = vec![0x7f; (2 << 20) + 1];
    assert_eq!(ImageFile::read(&[]).err(), Some(Unreadable::Short { found: 0, wanted: 52 }));
    assert!(matches!(ImageFile::read(&huge), Err(Unreadable::Magic { .. })));
    let long = read(|p| p.bytes.resize((2 << 20) + 1, 0));
    assert!(matches!(long, Unreadable::Long { limit: 0x20_0000, .. }), "{long}");
    let class = read(|p| p.put(4, [3]));
    assert_eq!(class, Unreadable::Ident { class: 3, data: 1 });
    let machine = read(|p| p.u16(18, elf::EM_S390));
    assert_eq!(machine, Unreadable::Machine { machine: elf::EM_S390, bits: 64, order: "little" });
    let order = read(|p| {
        p.put(5, [2]);
        p.put(18, elf::EM_X86_64.to_be_bytes());
    });
    assert_eq!(order, Unreadable::Machine { machine: elf::EM_X86_64, bits: 64, order: "big" });
    let entries = read(|p| p.u16(54, 55));
    assert!(matches!(entries, Unreadable::EntrySize { found: 55, wanted: 56, .. }), "{entries}");
    let many = read(|p| p.u32(p.table(elf::DT_HASH) + 4, 5000));
    assert!(matches!(many, Unreadable::Count { found: 5000, .. }), "{many}");
    let chains = read(|p| p.u32(p.table(elf::DT_HASH) + 4, u32::MAX));
    assert!(matches!(chains, Unreadable::Count { found: 0xffff_ffff, .. }), "{chains}");
    let outside = read(|p| p.u64(E_SHOFF, u64::MAX - 3));
    assert!(matches!(outside, Unreadable::Outside { what: "section headers", .. }), "{outside}");
    let unmapped = read(|p| p.u64(p.dynamic(elf::DT_SYMTAB) + D_VALUE, 0x10_0000));
    assert!(matches!(unmapped, Unreadable::Unmapped { address: 0x10_0000, .. }), "{unmapped}");
    let name = read(|p| p.u32(p.symbol("time") + ST_NAME, 0x7fff_ffff));
    assert!(matches!(name, Unreadable::Name { what: "symbol", .. }), "{name}");
    let foreign = read(|p| {
        let at = p.contents(".dynstr").start + 1;
        p.put(at, [0x1b]);
    });
    assert!(matches!(foreign, Unreadable::NameByte { byte: 0x1b, .. }), "{foreign}");
    let endless = read(|p| {
        let strings = p.dynamic(elf::DT_STRSZ);
        p.u64(strings + D_VALUE, 3);
    });
    assert!(matches!(endless, Unreadable::Name { .. }), "{endless}");
}

/// `PROPTEST_CASES` may ask for more.
fn config() -> ProptestConfig {
    let default = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    ProptestConfig { cases: default.cases.max(2000), ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_bytes_are_looked_at(mut bytes in prop::collection::vec(any::<u8>(), 0..4096), is_elf: bool) {
        // Most random bytes fail at the first four; the others get that far for sure.
        if is_elf && bytes.len() > 64 {
            bytes[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1]);
            bytes[18..20].copy_from_slice(&elf::EM_X86_64.to_le_bytes());
            bytes[54..64].copy_from_slice(&[56, 0, 4, 0, 64, 0, 8, 0, 3, 0]);
        }
        look_at(&bytes);
    }

    #[test]
    fn mutated_images_are_looked_at(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in prop::option::of(any::<prop::sample::Index>()),
        machine in prop::sample::select(vec![
            elf::EM_X86_64, elf::EM_386, elf::EM_AARCH64, elf::EM_ARM, elf::EM_RISCV,
        ]),
    ) {
        let mut bytes = linker::SYSCALL.bytes.to_vec();
        // Each architecture has checks of its own; read as 32-bit records, every field of the same
        // bytes means something else.
        if matches!(machine, elf::EM_386 | elf::EM_ARM) {
            bytes[4] = 1;
        }
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        for (index, value) in changes {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        look_at(&bytes);
    }
}

proptest! {
    // Each is up to two megabytes.
    #![proptest_config(ProptestConfig { cases: config().cases / 50, ..config() })]

    #[test]
    fn grown_images_are_looked_at(
        symbols in 0_usize..5000,
        step in prop_oneof![0_usize..4, 0_usize..600],
        tail in prop_oneof![Just(0_usize), 1_usize..400, 0_usize..LIMIT],
        sections in prop_oneof![Just(0_usize), 0_usize..5000],
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = grown(&Tables { symbols, step, tail, sections });
        for (index, value) in changes {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        look_at(&bytes);
    }
}
