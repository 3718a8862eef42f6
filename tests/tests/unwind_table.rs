//! The unwind table of the shipped images, against what each instruction does to the stack.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "a test fails by panicking, and registers are 64 bits wide here"
)]

use std::collections::{BTreeMap, BTreeSet};

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, RegisterRule,
    UnwindContext, UnwindSection as _, X86_64,
};
use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use linker::Image;
use tests::code::{IMAGES, instructions, section};

type Bytes = EndianSlice<'static, LittleEndian>;

fn table_of(image: &Image) -> (EhFrame<Bytes>, BaseAddresses) {
    let (text, _) = section(image, ".text");
    let (frame_at, frame) = section(image, ".eh_frame");
    let (header_at, _) = section(image, ".eh_frame_hdr");
    let bases =
        BaseAddresses::default().set_text(text).set_eh_frame(frame_at).set_eh_frame_hdr(header_at);
    (EhFrame::new(frame, LittleEndian), bases)
}

#[test]
fn every_instruction_has_a_row_in_the_unwind_table() {
    for (name, image) in IMAGES {
        let (frame, bases) = table_of(image);
        let (_, header) = section(image, ".eh_frame_hdr");
        let header = EhFrameHdr::new(header, LittleEndian).parse(&bases, 8).unwrap();
        // What unwinders use: the sorted table of the header, not a walk of the section.
        let table = header.table().expect("a search table");
        let mut context = UnwindContext::new();
        let mut addresses: BTreeSet<u64> =
            instructions(image).iter().map(Instruction::ip).collect();
        for symbol in image.symbols {
            addresses.extend((symbol.offset..symbol.offset + symbol.size).map(|at| at as u64));
        }
        for address in addresses {
            let row = table
                .unwind_info_for_address(
                    &frame,
                    &bases,
                    &mut context,
                    address,
                    EhFrame::cie_from_offset,
                )
                .unwrap_or_else(|error| panic!("{name}: no row for {address:#x}: {error}"));
            assert!(row.contains(address), "{name}: {address:#x}");
        }
    }
}

/// What a function has done to the stack when an instruction is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    /// Bytes from RSP up to the caller's frame: 8 at the entry, the return address.
    depth: i64,
    /// Registers that a push has saved, each with the depth at which it lies.
    saved: BTreeMap<u16, i64>,
    /// Those of them that have changed since: only on the stack are they what the caller had.
    changed: BTreeSet<u16>,
}

/// The registers that a function has to keep, by DWARF's numbers.
fn kept(register: Register) -> Option<gimli::Register> {
    Some(match register {
        Register::RBX => X86_64::RBX,
        Register::RBP => X86_64::RBP,
        Register::R12 => X86_64::R12,
        Register::R13 => X86_64::R13,
        Register::R14 => X86_64::R14,
        Register::R15 => X86_64::R15,
        _ => return None,
    })
}

impl State {
    fn after(&self, instruction: &Instruction) -> Self {
        let mut next = self.clone();
        for used in InstructionInfoFactory::new().info(instruction).used_registers() {
            let reads = matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
            if let Some(register) = kept(used.register().full_register())
                && !reads
            {
                next.changed.insert(register.0);
            }
        }
        if instruction.is_stack_instruction() && instruction.flow_control() == FlowControl::Next {
            next.depth -= i64::from(instruction.stack_pointer_increment());
            let register = kept(instruction.op0_register()).map(|register| register.0);
            match (instruction.mnemonic(), register) {
                (Mnemonic::Push, Some(register)) => {
                    next.saved.entry(register).or_insert(next.depth);
                }
                (Mnemonic::Pop, Some(register)) => {
                    next.saved.remove(&register);
                    next.changed.remove(&register);
                }
                _ => {}
            }
        } else if instruction.op0_kind() == OpKind::Register
            && instruction.op0_register() == Register::RSP
        {
            let by = instruction.immediate(1) as i64;
            match instruction.mnemonic() {
                Mnemonic::Sub => next.depth += by,
                Mnemonic::Add => next.depth -= by,
                Mnemonic::Cmp | Mnemonic::Test => {}
                other => panic!("{other:?} changes RSP at {:#x}", instruction.ip()),
            }
        }
        next
    }
}

/// The state before each instruction of a function, along every path through it.
fn states(code: &BTreeMap<u64, Instruction>, range: std::ops::Range<u64>) -> BTreeMap<u64, State> {
    let mut states: BTreeMap<u64, State> = BTreeMap::new();
    let start = State { depth: 8, saved: BTreeMap::new(), changed: BTreeSet::new() };
    let mut todo = vec![(range.start, start)];
    while let Some((at, mut state)) = todo.pop() {
        if let Some(known) = states.get(&at) {
            let (ours, theirs) = ((state.depth, &state.saved), (known.depth, &known.saved));
            assert_eq!(ours, theirs, "two ways to {at:#x} differ");
            // What one way has changed may have changed.
            state.changed.extend(&known.changed);
            if state == *known {
                continue;
            }
        }
        states.insert(at, state.clone());
        let instruction = &code[&at];
        let next = state.after(instruction);
        let target = instruction.near_branch_target();
        let leaves = |target: u64| {
            // A jump out of the function is its last act: the stack is the caller's again.
            assert_eq!(state.depth, 8, "{at:#x} leaves for {target:#x} with a frame");
            assert!(state.changed.is_empty(), "{at:#x} leaves with {state:?}");
        };
        match instruction.flow_control() {
            FlowControl::Return => leaves(0),
            FlowControl::UnconditionalBranch if range.contains(&target) => {
                todo.push((target, next))
            }
            FlowControl::UnconditionalBranch => leaves(target),
            FlowControl::ConditionalBranch => {
                if range.contains(&target) {
                    todo.push((target, next.clone()));
                } else {
                    leaves(target);
                }
                todo.push((instruction.next_ip(), next));
            }
            _ => todo.push((instruction.next_ip(), next)),
        }
    }
    states
}

#[test]
fn every_row_is_what_the_code_does_to_the_stack() {
    for (name, image) in IMAGES {
        let (frame, bases) = table_of(image);
        let code: BTreeMap<u64, Instruction> = instructions(image)
            .into_iter()
            .map(|instruction| (instruction.ip(), instruction))
            .collect();
        let mut covered = BTreeSet::new();
        let mut context = UnwindContext::new();
        let mut entries = frame.entries(&bases);
        while let Some(entry) = entries.next().unwrap() {
            let CieOrFde::Fde(partial) = entry else { continue };
            let fde = partial.parse(EhFrame::cie_from_offset).unwrap();
            let range = fde.initial_address()..fde.end_address();
            for (at, state) in states(&code, range) {
                let row = fde.unwind_info_for_address(&frame, &bases, &mut context, at).unwrap();
                let cfa = CfaRule::RegisterAndOffset { register: X86_64::RSP, offset: state.depth };
                assert_eq!(*row.cfa(), cfa, "{name}: the frame at {at:#x}");
                let returns = RegisterRule::Offset(-8);
                assert_eq!(row.register(X86_64::RA), returns, "{name}: the return from {at:#x}");
                for register in state.changed {
                    // Not in the map, it was changed and never saved.
                    let depth = state.saved[&register];
                    let rule = row.register(gimli::Register(register));
                    let saved = RegisterRule::Offset(-depth);
                    assert_eq!(rule, saved, "{name}: register {register} at {at:#x}");
                }
                covered.insert(at);
            }
        }
        // Padding behind a jump is never reached.
        let missed: Vec<_> = code
            .iter()
            .filter(|(at, found)| !covered.contains(at) && found.mnemonic() != Mnemonic::Nop)
            .map(|(at, _)| at)
            .collect();
        assert!(missed.is_empty(), "{name}: no path leads to {missed:x?}");
    }
}
