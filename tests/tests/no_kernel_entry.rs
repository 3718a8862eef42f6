//! The image of policy `enosys` has no way into the kernel: every instruction is decoded.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction};
use linker::Image;
use linker::judge::ImageFile;

/// Instructions of the code that may leave it for a kernel: offset and name.
fn entries(image: &Image) -> Vec<(u64, Code)> {
    let file = ImageFile::read(image.bytes).unwrap();
    let text = file.section(".text").unwrap();
    let code = file.section_bytes(text).unwrap();
    let mut decoder = Decoder::with_ip(64, code, text.address, DecoderOptions::NONE);
    let mut found = Vec::new();
    let mut instruction = Instruction::default();
    let mut decoded = 0;
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        assert!(!instruction.is_invalid(), "no instruction at {:#x}", instruction.ip());
        decoded += 1;
        let leaves = matches!(
            instruction.flow_control(),
            FlowControl::Interrupt | FlowControl::IndirectCall | FlowControl::IndirectBranch
        ) || matches!(instruction.code(), Code::Syscall | Code::Sysenter);
        // The padding between functions traps, and nothing leads to it.
        if leaves && instruction.code() != Code::Int3 {
            found.push((instruction.ip(), instruction.code()));
        }
    }
    assert!(decoded > 300, "{decoded} instructions");
    found
}

#[test]
fn only_the_policy_that_says_so_enters_the_kernel() {
    assert_eq!(entries(&linker::ENOSYS), []);
    let entries = entries(&linker::SYSCALL);
    assert!(!entries.is_empty());
    assert!(entries.iter().all(|(_, code)| *code == Code::Syscall), "{entries:?}");
}
