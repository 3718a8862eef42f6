//! What assemblers and linkers fill the room between functions with: instructions that do nothing
//! or trap, and zeros. Nobody runs it, so it needs no unwind entry.

use super::Arch;

/// How many bytes from the start of `gap` on are padding.
pub(crate) fn bytes(arch: Arch, gap: &[u8]) -> usize {
    let mut rest = gap;
    while let Some(after) = match arch {
        Arch::X86_64 => x86(rest),
        Arch::I386 => x86(rest).or_else(|| lea(rest)),
        Arch::Aarch64 => word(rest, &AARCH64),
        Arch::Arm => word(rest, &ARM),
        Arch::Riscv64 => word(rest, &RISCV).or_else(|| halfword(rest, &RISCV_COMPRESSED)),
    } {
        rest = after;
    }
    gap.len() - rest.len()
}

/// `udf #0`, `nop`, `brk #0`.
const AARCH64: [u32; 3] = [0, 0xd503_201f, 0xd420_0000];
/// Zeros, `nop`, `udf #0`.
const ARM: [u32; 3] = [0, 0xe320_f000, 0xe7f0_00f0];
/// `nop`, `ebreak`.
const RISCV: [u32; 2] = [0x13, 0x0010_0073];
/// The instruction that is none, `nop`, `ebreak`.
const RISCV_COMPRESSED: [u16; 3] = [0, 0x0001, 0x9002];

fn word<'a>(bytes: &'a [u8], known: &[u32]) -> Option<&'a [u8]> {
    let (word, rest) = bytes.split_first_chunk()?;
    known.contains(&u32::from_le_bytes(*word)).then_some(rest)
}

fn halfword<'a>(bytes: &'a [u8], known: &[u16]) -> Option<&'a [u8]> {
    let (word, rest) = bytes.split_first_chunk()?;
    known.contains(&u16::from_le_bytes(*word)).then_some(rest)
}

/// Breakpoints, zeros, and no-operations of one to fifteen bytes.
fn x86(bytes: &[u8]) -> Option<&[u8]> {
    match bytes {
        [0xcc | 0x90 | 0x00 | 0x66 | 0x2e, rest @ ..] => Some(rest),
        // `nop` with an operand: the operand's address takes up to five more bytes.
        [0x0f, 0x1f, operand, rest @ ..] => {
            let scaled = usize::from(operand & 7 == 4 && operand >> 6 != 3);
            let displacement = match operand >> 6 {
                1 => 1,
                2 => 4,
                _ => 0,
            };
            Some(rest.get(scaled + displacement..).unwrap_or_default())
        }
        _ => None,
    }
}

/// GNU as on 32 bits: `lea esi, [esi + 0]` in its lengths, which is none of these on 64 bits.
fn lea(bytes: &[u8]) -> Option<&[u8]> {
    match bytes {
        [0x8d, 0x76, 0, rest @ ..]
        | [0x8d, 0x74, 0x26, 0, rest @ ..]
        | [0x8d, 0xb6, 0, 0, 0, 0, rest @ ..]
        | [0x8d, 0xb4, 0x26, 0, 0, 0, 0, rest @ ..] => Some(rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_architectures_padding_ends_where_code_begins() {
        for (arch, padding, code) in [
            (Arch::X86_64, &[0xcc, 0x66, 0x0f, 0x1f, 0x44, 0, 0, 0x90][..], &[0xc3][..]),
            (Arch::I386, &[0x0f, 0x1f, 0x80, 1, 2, 3, 4, 0], &[0xcd, 0x80]),
            (Arch::I386, &[0x8d, 0xb4, 0x26, 0, 0, 0, 0, 0x2e, 0x8d, 0x76, 0], &[0x8d, 0x76, 1]),
            (Arch::X86_64, &[0x90], &[0x8d, 0x76, 0]),
            (Arch::Aarch64, &[0, 0, 0, 0, 0x1f, 0x20, 3, 0xd5], &[0xc0, 3, 0x5f, 0xd6]),
            (Arch::Arm, &[0xf0, 0, 0xf0, 0xe7, 0, 0, 0, 0], &[0x1e, 0xff, 0x2f, 0xe1]),
            (Arch::Riscv64, &[0, 0, 1, 0, 0x13, 0, 0, 0, 2, 0x90], &[0x82, 0x80]),
        ] {
            let both = [padding, code].concat();
            assert_eq!(bytes(arch, &both), padding.len(), "{}", arch.name());
            assert_eq!(bytes(arch, code), 0, "{}", arch.name());
            assert_eq!(bytes(arch, &[]), 0, "{}", arch.name());
        }
    }
}
