//! The instructions that an object for the kernel may have: straight code on general registers.
//!
//! A kernel saves no vector register when a system call enters it, so one that is used there is a
//! program's, damaged. A call would leave the object. Without unwinding, a panic that was inlined
//! away ends in a trap.

use anyhow::{Result, bail};

use super::machine::Arch;

/// Fewer are no writer.
const FEWEST: usize = 100;

/// The rules of an architecture.
pub(crate) struct Code {
    forbidden: fn(&Instruction<'_>) -> Option<&'static str>,
}

/// As `objdump` writes it.
struct Instruction<'a> {
    mnemonic: &'a str,
    operands: &'a str,
}

impl Code {
    /// Those of `arch`.
    pub(crate) fn of(arch: Arch) -> Self {
        Self {
            forbidden: match arch {
                Arch::X86_64 => x86_64,
                Arch::Aarch64 => aarch64,
            },
        }
    }

    /// Judges what `objdump -d --no-show-raw-insn` printed.
    pub(crate) fn judge(&self, text: &str) -> Result<()> {
        let mut seen = 0;
        for line in text.lines() {
            let Some((_, text)) = line.split_once(":\t") else { continue };
            seen += 1;
            let (mnemonic, operands) =
                text.split_once(|c: char| c.is_whitespace()).unwrap_or((text, ""));
            let instruction = Instruction { mnemonic, operands };
            if let Some(reason) = (self.forbidden)(&instruction) {
                bail!("the object {reason}: {text}");
            }
        }
        if seen < FEWEST {
            bail!("only {seen} instructions were found in the object");
        }
        Ok(())
    }
}

const UNSAVED: &str = "uses a register that the kernel does not save";
const LEAVES: &str = "calls or traps";
const WANDERS: &str = "jumps through a register or memory";

fn x86_64(instruction: &Instruction<'_>) -> Option<&'static str> {
    let Instruction { mnemonic, operands } = instruction;
    let vector = ["%xmm", "%ymm", "%zmm", "%mm", "%st"];
    // x87 instructions begin with f and may name no register; `fence` ones do not begin so.
    if mnemonic.starts_with('f') || vector.iter().any(|register| operands.contains(register)) {
        return Some(UNSAVED);
    }
    if mnemonic.starts_with("call") || mnemonic.starts_with("ud") || *mnemonic == "int3" {
        return Some(LEAVES);
    }
    (mnemonic.starts_with("jmp") && operands.contains('*')).then_some(WANDERS)
}

fn aarch64(instruction: &Instruction<'_>) -> Option<&'static str> {
    let Instruction { mnemonic, operands } = instruction;
    match *mnemonic {
        "bl" | "blr" | "brk" | "udf" | "hlt" | "svc" | ".inst" => return Some(LEAVES),
        "br" => return Some(WANDERS),
        _ => {}
    }
    // The target of a branch is written as a hexadecimal number, which may look like a register.
    let jumps =
        mnemonic.starts_with("b.") || ["b", "cbz", "cbnz", "tbz", "tbnz"].contains(mnemonic);
    let operands = match operands.rsplit_once(',') {
        Some((before, _)) if jumps => before,
        None if jumps => "",
        _ => operands,
    };
    let words = operands.split(|c: char| !c.is_ascii_alphanumeric() && c != '#');
    for word in words {
        let (kind, number) = word.split_at_checked(1).unwrap_or((word, ""));
        if !number.parse::<u32>().is_ok_and(|number| number < 32) {
            continue;
        }
        if ["v", "q", "d", "s", "h", "b", "z", "p"].contains(&kind) {
            return Some(UNSAVED);
        }
        if ["x", "w"].contains(&kind) && number == "18" {
            return Some("uses x18, which may hold the kernel's shadow call stack");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(arch: Arch, last: &str) -> Result<()> {
        let plain = match arch {
            Arch::X86_64 => "   0:\tmov    %rax,%rbx\n",
            Arch::Aarch64 => "   0:\tmov\tx0, x1\n",
        };
        Code::of(arch).judge(&format!("{}   1:\t{last}\n", plain.repeat(FEWEST)))
    }

    #[test]
    fn straight_code_passes() {
        for good in ["jmp    5d <uvdso_format+0x5d>", "ret", "lfence"] {
            judge(Arch::X86_64, good).unwrap();
        }
        for good in [
            "b\td0 <uvdso_format+0xd0>",
            "b.ne\tb8 <uvdso_format+0xb8>  // b.any",
            "tbnz\tw8, #0, d0 <uvdso_update+0xd0>",
            "mov\tx17, #0xd8                 \t// #216",
            "stlr\tw8, [x19]",
            "dmb\tishst",
            "ret",
        ] {
            judge(Arch::Aarch64, good).unwrap();
        }
    }

    #[test]
    fn one_bad_instruction_is_refused() {
        for bad in [
            "movups %xmm1,0x1e8(%rsp)",
            "fldl   (%rax)",
            "call   1d8 <uvdso_update+0x1d8>",
            "ud2",
            "jmp    *0x0(%rip)",
            "jmp    *%rax",
        ] {
            assert!(judge(Arch::X86_64, bad).is_err(), "{bad}");
        }
        for bad in [
            "stp\tq0, q1, [x0]",
            "movi\tv0.2d, #0x0",
            "fmov\td8, x0",
            "ldr\ts3, [x1]",
            "bl\td0 <uvdso_update+0xd0>",
            "blr\tx8",
            "br\tx16",
            "brk\t#0x1",
            "udf\t#0",
            "str\tx30, [x18], #8",
            "mov\tw18, w0",
        ] {
            assert!(judge(Arch::Aarch64, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_object_without_code_is_refused() {
        let text = "   0:\tret\n";
        assert!(Code::of(Arch::X86_64).judge(text).unwrap_err().to_string().contains("only 1"));
    }
}
