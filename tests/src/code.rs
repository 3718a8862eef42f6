//! The shipped images' sections and instructions, and what may follow each.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction};
use linker::Image;
use object::elf;
use object::read::elf::{FileHeader as _, SectionHeader as _};

type Header = elf::FileHeader64<object::LittleEndian>;

/// Both images by the name of their policy.
pub const IMAGES: [(&str, &Image); 2] =
    [("syscall", &linker::SYSCALL), ("enosys", &linker::ENOSYS)];

/// A section's address and bytes.
///
/// # Panics
/// If the image has no such section.
#[must_use]
pub fn section(image: &Image, name: &str) -> (u64, &'static [u8]) {
    let header = Header::parse(image.bytes).expect("a shipped image is well-formed");
    let endian = header.endian().expect("a shipped image is well-formed");
    let sections = header.sections(endian, image.bytes).expect("a shipped image is well-formed");
    let (_, section) = sections
        .section_by_name(endian, name.as_bytes())
        .unwrap_or_else(|| panic!("no section {name}"));
    (section.sh_addr(endian), section.data(endian, image.bytes).expect("it has data"))
}

/// Every instruction of the image, without the padding between functions.
///
/// # Panics
/// If there are few: a test over nothing is none.
#[must_use]
pub fn instructions(image: &Image) -> Vec<Instruction> {
    let (address, bytes) = section(image, ".text");
    let decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let all: Vec<Instruction> =
        decoder.into_iter().filter(|instruction| instruction.code() != Code::Int3).collect();
    assert!(all.len() > 100, "only {} instructions", all.len());
    all
}

/// Where execution may go on after an instruction; after a call also where it returns to.
///
/// # Errors
/// An instruction that the code of an image does not have: one whose target is not written in it.
pub fn successors(instruction: &Instruction) -> Result<Vec<u64>, String> {
    let (target, next) = (instruction.near_branch_target(), instruction.next_ip());
    Ok(match instruction.flow_control() {
        FlowControl::Next => vec![next],
        FlowControl::Return => vec![],
        FlowControl::UnconditionalBranch => vec![target],
        FlowControl::ConditionalBranch => vec![target, next],
        // iced counts a system call among the calls.
        FlowControl::Call if instruction.code() == Code::Syscall => vec![next],
        FlowControl::Call => vec![target, next],
        other => return Err(format!("{other:?} at {:#x}", instruction.ip())),
    })
}
