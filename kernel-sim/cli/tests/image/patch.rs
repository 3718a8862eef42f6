//! Changes to the bytes of an image.

use object::read::elf::FileHeader as _;
use object::{LittleEndian, elf};

/// Where the dynamic entry with this tag is.
pub(super) fn entry(image: &[u8], tag: u32) -> usize {
    let header = elf::FileHeader64::<LittleEndian>::parse(image).unwrap();
    let segments = header.program_headers(LittleEndian, image).unwrap();
    let dynamic = segments.iter().find(|s| s.p_type.get(LittleEndian) == elf::PT_DYNAMIC).unwrap();
    let start = usize::try_from(dynamic.p_offset.get(LittleEndian)).unwrap();
    let mut places = (start..).step_by(16);
    places.find(|&at| image[at..at + 8] == u64::from(tag).to_le_bytes()).unwrap()
}

pub(super) fn dynamic(image: &[u8], tag: u32) -> u64 {
    let at = entry(image, tag) + 8;
    u64::from_le_bytes(image[at..at + 8].try_into().unwrap())
}

pub(super) fn replace(image: &mut [u8], tag: u32, value: u64) {
    put(image, entry(image, tag) + 8, value.to_le_bytes());
}

pub(super) fn put<const N: usize>(image: &mut [u8], at: usize, value: [u8; N]) {
    image[at..at + N].copy_from_slice(&value);
}

/// Where the entry of a name in the table of symbols is.
pub(super) fn symbol(image: &[u8], name: &str) -> usize {
    let table = |tag| usize::try_from(dynamic(image, tag)).unwrap();
    let (symbols, strings) = (table(elf::DT_SYMTAB), table(elf::DT_STRTAB));
    let is_named = |at: &usize| {
        let offset = u32::from_le_bytes(image[*at..at + 4].try_into().unwrap());
        let name_at = strings + usize::try_from(offset).unwrap();
        image[name_at..].strip_prefix(name.as_bytes()).is_some_and(|rest| rest[0] == 0)
    };
    (symbols..).step_by(24).skip(1).find(is_named).unwrap()
}

/// Where the contents of the note of an owner begin.
pub(super) fn note(image: &[u8], owner: &[u8]) -> usize {
    let at = image.windows(owner.len()).position(|window| window == owner).unwrap();
    at + (owner.len() + 1).next_multiple_of(4)
}

/// Where the program header of a kind is.
pub(super) fn segment(image: &[u8], kind: u32) -> usize {
    let header = elf::FileHeader64::<LittleEndian>::parse(image).unwrap();
    let segments = header.program_headers(LittleEndian, image).unwrap();
    let index = segments.iter().position(|s| s.p_type.get(LittleEndian) == kind).unwrap();
    let start = usize::try_from(header.e_phoff.get(LittleEndian)).unwrap();
    start + index * size_of_val(&segments[0])
}
