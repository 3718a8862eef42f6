//! The code of the shipped images, instruction by instruction.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "a test fails by panicking, and registers are 64 bits wide here"
)]

use std::collections::BTreeSet;

use iced_x86::{Instruction, Mnemonic, Register};
use linker::Policy;
use object::elf;
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _};
use tests::code::{IMAGES, instructions, successors};

type Header = elf::FileHeader64<object::LittleEndian>;

#[test]
fn every_counter_read_is_ordered() {
    for (name, image) in IMAGES {
        let all = instructions(image);
        let mut reads = 0;
        for pair in all.windows(2) {
            if pair[1].mnemonic() == Mnemonic::Rdtsc {
                reads += 1;
                assert_eq!(pair[0].mnemonic(), Mnemonic::Lfence, "{name} at {:#x}", pair[1].ip());
                assert_eq!(pair[0].next_ip(), pair[1].ip());
            }
        }
        assert!(reads >= 2, "{name}: a loop that reads no counter is none ({reads})");
        assert!(all.iter().any(|read| read.mnemonic() == Mnemonic::Rdtscp), "{name}: mode RDTSCP");
    }
}

#[test]
fn control_flows_only_to_instructions_of_the_image() {
    for (name, image) in IMAGES {
        let all = instructions(image);
        let starts: BTreeSet<u64> = all.iter().map(Instruction::ip).collect();
        for instruction in &all {
            let at = instruction.ip();
            let successors = successors(instruction).unwrap_or_else(|no| panic!("{name}: {no}"));
            for next in successors {
                assert!(starts.contains(&next), "{name}: {at:#x} goes to {next:#x}");
            }
        }
        for symbol in image.symbols {
            assert!(starts.contains(&(symbol.offset as u64)), "{name}: {}", symbol.name);
        }
    }
}

#[test]
fn the_kernel_is_entered_by_one_policy_and_not_by_the_other() {
    for (name, image) in IMAGES {
        let all = instructions(image);
        let enters = all.iter().filter(|enter| enter.mnemonic() == Mnemonic::Syscall).count();
        match image.policy {
            Policy::Syscall => assert!(enters >= 5, "{name}: {enters}"),
            Policy::Enosys => assert_eq!(enters, 0, "{name}"),
        }
    }
}

#[test]
fn the_image_refers_to_its_page_slots_and_to_nothing_else() {
    for (name, image) in IMAGES {
        let slots = u64::from(image.slots) * u64::from(image.slot_bytes);
        let mut references = 0;
        for instruction in instructions(image) {
            let at = instruction.ip();
            if instruction.is_ip_rel_memory_operand() {
                references += 1;
                let below = instruction.ip_rel_memory_address().wrapping_neg();
                let page = below.div_ceil(u64::from(image.slot_bytes));
                assert!(
                    (1..=slots).contains(&below) && (page == 4 || page == 3),
                    "{name}: {at:#x} refers to -{below:#x}"
                );
            }
            // Padding inside a function is made of long `nop`s, whose prefixes mean nothing.
            let is_padding = instruction.mnemonic() == Mnemonic::Nop;
            assert!(
                is_padding || instruction.segment_prefix() == Register::None,
                "{name}: {at:#x} uses a segment"
            );
            assert!(!instruction.is_privileged() || instruction.mnemonic() == Mnemonic::Rdtsc);
            assert!(!instruction.has_lock_prefix(), "{name}: {at:#x} writes shared memory");
        }
        assert!(references >= 5, "{name}: {references}");
    }
}

#[test]
fn no_access_wants_a_stack_aligned_to_16_bytes() {
    for (name, image) in IMAGES {
        for instruction in instructions(image) {
            let vector = (0..instruction.op_count())
                .any(|operand| instruction.op_register(operand).is_vector_register());
            assert!(!vector, "{name}: {:#x} uses a vector register", instruction.ip());
        }
    }
}

#[test]
fn nothing_is_left_to_a_loader() {
    const FORBIDDEN: [u32; 12] = [
        elf::DT_NEEDED,
        elf::DT_REL,
        elf::DT_RELA,
        36, // DT_RELR
        elf::DT_JMPREL,
        elf::DT_PLTGOT,
        elf::DT_TEXTREL,
        elf::DT_RUNPATH,
        elf::DT_RPATH,
        elf::DT_INIT,
        elf::DT_INIT_ARRAY,
        elf::DT_FINI,
    ];
    for (name, image) in IMAGES {
        let header = Header::parse(image.bytes).unwrap();
        let endian = header.endian().unwrap();
        let segments = header.program_headers(endian, image.bytes).unwrap();
        let loads: Vec<_> =
            segments.iter().filter(|segment| segment.p_type(endian) == elf::PT_LOAD).collect();
        assert_eq!(loads.len(), 1, "{name}");
        assert_eq!(loads[0].p_flags(endian), elf::PF_R | elf::PF_X, "{name}");
        let entries =
            segments.iter().find_map(|segment| segment.dynamic(endian, image.bytes).unwrap());
        let entries = entries.unwrap();
        assert!(entries.len() > 8, "{name}: {} entries", entries.len());
        for entry in entries {
            let tag = entry.tag32(endian).unwrap();
            assert!(!FORBIDDEN.contains(&tag), "{name}: dynamic entry {tag}");
        }
    }
}
