//! The disassembly of each exported function is the golden one.
//!
//! Addresses are replaced by what they mean, so that a change of one function leaves the others'
//! goldens alone: labels inside the function, the data page by field, everything else numbered.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

use iced_x86::{
    Decoder, DecoderOptions, FastFormatter, FlowControl, Instruction, Mnemonic, OpKind,
};
use libtest_mimic::{Arguments, Failed, Trial};
use linker::{Image, SYSCALL, Symbol};
use tests::golden;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    // An alias is its function under another name.
    let exported = SYSCALL.symbols.iter().filter(|symbol| symbol.name.starts_with("__vdso_"));
    let mut trials: Vec<Trial> = exported
        .map(|symbol| {
            Trial::ignorable_test(symbol.name, move || {
                let file = format!("asm-x86_64/{}.txt", symbol.name);
                let title = format!("{} of the image `syscall` for x86_64", symbol.name);
                golden::compare(&file, &title, &listing(&SYSCALL, symbol)?)
            })
        })
        .collect();
    trials.push(Trial::test("every export has an alias or is covered", || {
        for symbol in SYSCALL.symbols {
            let covered = symbol.name.starts_with("__vdso_")
                || SYSCALL.symbols.iter().any(|other| {
                    other.name.starts_with("__vdso_") && other.offset == symbol.offset
                });
            if !covered {
                return Err(format!("{} has no golden", symbol.name).into());
            }
        }
        Ok(())
    }));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The function's instructions, one a line.
fn listing(image: &Image, symbol: &Symbol) -> Result<String, Failed> {
    let start = symbol.offset as u64;
    let end = start + symbol.size as u64;
    let code = image
        .bytes
        .get(symbol.offset..symbol.offset + symbol.size)
        .ok_or("the function lies outside of the image")?;
    let decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let instructions: Vec<Instruction> = decoder.into_iter().collect();
    let mut labels = BTreeMap::new();
    for instruction in &instructions {
        if let Some(target) = branch_target(instruction)
            && (start..end).contains(&target)
        {
            labels.insert(target, String::new());
        }
    }
    for (number, label) in labels.values_mut().enumerate() {
        *label = format!(".{}", number + 1);
    }
    let mut outside = Vec::new();
    let mut formatter = FastFormatter::new();
    let mut text = String::new();
    for instruction in &instructions {
        if instruction.is_invalid() {
            return Err(format!("no instruction at {:#x}", instruction.ip()).into());
        }
        if let Some(label) = labels.get(&instruction.ip()) {
            let _ = writeln!(text, "{label}:");
        }
        let mut line = String::new();
        if let Some(target) = branch_target(instruction) {
            let place = labels.get(&target).cloned().unwrap_or_else(|| {
                let known = outside.iter().position(|&other| other == target);
                let number = known.unwrap_or_else(|| {
                    outside.push(target);
                    outside.len() - 1
                });
                format!("(out of line {})", number + 1)
            });
            let mnemonic = format!("{:?}", instruction.mnemonic()).to_lowercase();
            line = format!("{mnemonic} {place}");
        } else {
            formatter.format(instruction, &mut line);
            if instruction.is_ip_rel_memory_operand() {
                line = name_page(image, instruction, &line)?;
            }
        }
        let _ = writeln!(text, "    {line}");
    }
    let count = instructions.len();
    let _ = writeln!(text, "\n# {count} instructions, {} bytes", symbol.size);
    // What a CPU keeps in one line of decoded instructions, if the function begins one.
    let first_return =
        instructions.iter().find(|instruction| instruction.mnemonic() == Mnemonic::Ret);
    if let Some(first) = first_return
        && start.is_multiple_of(64)
    {
        let _ = writeln!(
            text,
            "# {} bytes from a multiple of 64 to the first return",
            first.next_ip() - start
        );
    }
    Ok(text)
}

fn branch_target(instruction: &Instruction) -> Option<u64> {
    let near = matches!(
        instruction.flow_control(),
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch | FlowControl::Call
    );
    let direct = instruction.op_count() > 0
        && matches!(instruction.op0_kind(), OpKind::NearBranch64 | OpKind::NearBranch32);
    (near && direct && instruction.mnemonic() != Mnemonic::Syscall)
        .then(|| instruction.near_branch_target())
}

/// The line with the address relative to RIP as an offset into a page slot.
fn name_page(image: &Image, instruction: &Instruction, line: &str) -> Result<String, Failed> {
    let address = instruction.ip_rel_memory_address();
    let page = 0_u64.wrapping_sub(image.data_offset() as u64);
    let offset = address.wrapping_sub(page);
    if offset >= image.data_offset() as u64 {
        return Err(format!("{line} addresses no page slot").into());
    }
    let open = line.find('[').ok_or("no memory operand")?;
    let close = line.find(']').ok_or("no memory operand")?;
    let slot = offset / u64::from(image.slot_bytes);
    let within = offset % u64::from(image.slot_bytes);
    let place = match slot {
        0 => format!("data page + {within:#x}"),
        slot => format!("slot {slot} + {within:#x}"),
    };
    Ok(format!("{}[{place}]{}", &line[..open], &line[close + 1..]))
}
