//! Images with more in them than any vDSO has: tables of symbols, strings and sections behind ours,
//! up to the largest file that is read.

use linker::judge::{ImageFile, LIMIT, NAME_LIMIT, Unreadable, judge};
use object::elf;

use super::patch::{Patch, field::*};

/// What stands behind the image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tables {
    /// Symbols, ours first; all in one bucket of the hash table.
    pub(crate) symbols: usize,
    /// Bytes from one symbol's name to the next one's.
    pub(crate) step: usize,
    /// Bytes from the first of these to the zero that ends them all; 0 ends each where the next
    /// begins.
    pub(crate) tail: usize,
    /// Sections more, each of them code from one end of the file to the other.
    pub(crate) sections: usize,
}

const OURS: usize = 14;
const SYMBOL: usize = 24;
const SECTION: usize = 64;

/// Our image with these tables; at most [`LIMIT`] bytes of it.
pub(crate) fn grown(tables: &Tables) -> Vec<u8> {
    let Tables { symbols: count, step, tail, sections } = *tables;
    let mut patch = Patch::of(&linker::SYSCALL);
    let symbols = patch.table(elf::DT_SYMTAB);
    let symbols = patch.bytes[symbols..symbols + SYMBOL * OURS.min(count)].to_vec();
    let mut strings = patch.bytes[patch.contents(".dynstr")].to_vec();
    let first_name = strings.len();

    let symbols_at = patch.append(&symbols);
    for index in OURS..count {
        let mut symbol = [0; SYMBOL];
        symbol[..4].copy_from_slice(&number(first_name + (index - OURS) * step).to_le_bytes());
        symbol[4] = elf::STB_GLOBAL << 4 | elf::STT_FUNC;
        symbol[6] = 11;
        patch.bytes.extend(symbol);
        if tail == 0 {
            strings.extend(format!("{index:a>width$}\0", width = step.saturating_sub(1)).bytes());
        }
    }
    strings.resize(strings.len() + tail, b'a');
    strings.push(0);
    // One bucket, whose chain leads from each symbol to the next.
    let last = count.saturating_sub(1);
    let chain = (0..count).map(|at| if (1..last).contains(&at) { at + 1 } else { 0 });
    let hash: Vec<_> = [1, count, 1].into_iter().chain(chain).map(number).collect();
    let hash_at =
        patch.append(&hash.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>());
    let versions_at = patch.append(&[2, 0].repeat(count));
    let headers = patch.place(E_SHOFF);
    let ours = patch.bytes[headers..headers + SECTION * patch.get_u16(E_SHNUM)].to_vec();
    let headers_at = patch.append(&ours);
    let file = (strings.len() + SECTION * (sections + 1)).saturating_add(patch.bytes.len());
    for _ in 0..sections {
        let mut section = [0; SECTION];
        section[SH_TYPE] = 1;
        section[SH_FLAGS] = 6;
        section[SH_SIZE..SH_SIZE + 8].copy_from_slice(&(file.min(LIMIT) as u64).to_le_bytes());
        patch.bytes.extend(section);
    }
    if sections > 0 {
        let all = u16::try_from(ours.len() / SECTION + sections).unwrap();
        patch.u16(E_SHNUM, all);
        patch.u64(E_SHOFF, headers_at as u64);
    }
    let strings_at = patch.append(&strings);
    patch.bytes.truncate(LIMIT);
    let strings_bytes = strings.len().min(patch.bytes.len().saturating_sub(strings_at));
    for (tag, value) in [
        (elf::DT_SYMTAB, symbols_at),
        (elf::DT_HASH, hash_at),
        (elf::DT_VERSYM, versions_at),
        (elf::DT_STRTAB, strings_at),
        (elf::DT_STRSZ, strings_bytes),
    ] {
        let at = patch.dynamic(tag);
        patch.u64(at + D_VALUE, value as u64);
    }
    let load = patch.segment(elf::PT_LOAD);
    let bytes = patch.bytes.len() as u64;
    patch.u64(load + P_FILESZ, bytes);
    patch.u64(load + P_MEMSZ, bytes);
    patch.bytes
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap()
}

/// Few enough for every table that is counted.
const MANY: usize = 4095;

#[test]
fn a_name_that_is_as_long_as_the_file_is_refused() {
    // Each name is the end of the one before: megabytes to walk for each of thousands of names.
    let longest = LIMIT - grown(&Tables { symbols: MANY, step: 1, tail: 0, sections: 0 }).len();
    for (tail, is_read) in [(longest, false), (MANY + NAME_LIMIT, false), (NAME_LIMIT, true)] {
        let count = if is_read { OURS + NAME_LIMIT } else { MANY };
        let bytes = grown(&Tables { symbols: count, step: 1, tail, sections: 0 });
        let index = OURS;
        match ImageFile::read(&bytes) {
            Ok(file) => assert!(is_read && judge(&file).broken().count() > 0),
            Err(Unreadable::LongName {
                what: "symbol", index: found, limit: NAME_LIMIT, ..
            }) => {
                assert!(!is_read && found == index, "{tail}: symbol {found}");
            }
            Err(error) => panic!("{tail}: {error}"),
        }
    }
}

#[test]
fn as_many_names_as_are_read_and_as_long_are_judged() {
    let tables = Tables { symbols: MANY, step: NAME_LIMIT + 1, tail: 0, sections: 0 };
    let bytes = grown(&tables);
    assert!(bytes.len() > 1 << 20);
    let file = ImageFile::read(&bytes).unwrap();
    assert_eq!(file.tables.symbols.len(), MANY);
    assert_eq!(file.tables.symbols[MANY - 1].name.len(), NAME_LIMIT);
    let verdict = judge(&file);
    // What it says of a name fits a few lines.
    assert!(verdict.broken().all(|(_, broken)| broken.to_string().len() < 2 * NAME_LIMIT));
    assert!(!verdict.is_accepted());
}

#[test]
fn thousands_of_sections_of_the_same_code_are_refused() {
    let bytes = grown(&Tables { symbols: OURS, step: 1, tail: LIMIT, sections: 4000 });
    assert_eq!(bytes.len(), LIMIT);
    let error = ImageFile::read(&bytes).unwrap_err();
    assert!(matches!(error, Unreadable::Overlap { limit: LIMIT, .. }), "{error}");
}

#[test]
fn a_path_or_a_note_as_long_as_the_file_prints_no_line_of_that_length() {
    let mut bytes = linker::SYSCALL.bytes.to_vec();
    bytes.extend(b"\0/home/".iter().chain(&[b'a'; 1 << 20]));
    let file = ImageFile::read(&bytes).unwrap();
    assert!(judge(&file).broken().all(|(_, broken)| broken.to_string().len() < 2 * NAME_LIMIT));

    let mut patch = Patch::of(&linker::SYSCALL);
    patch.bytes.resize(1 << 20, 0);
    let note = patch.note(b"GNU");
    patch.u32(note - 12, 0x8000);
    let segment = patch.segment(elf::PT_NOTE);
    patch.u64(segment + P_FILESZ, 0x10000);
    let error = ImageFile::read(&patch.bytes).unwrap_err();
    assert!(matches!(error, Unreadable::Count { what: "bytes in a note", .. }), "{error}");
}
