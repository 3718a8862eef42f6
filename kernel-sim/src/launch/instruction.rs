//! The `syscall` instruction with which a program makes a call for the launcher.
//!
//! When the tracer is killed in the middle of a call, the program runs on behind the instruction. Most
//! functions of a vDSO only return from there: then a return address on the stack is a way back to
//! where the program was.

/// A `syscall` instruction in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) address: u64,
    /// How many bytes the code behind it takes from the stack until it has returned, if that is all it
    /// does.
    pub(crate) taken: Option<u64>,
}

const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// A `syscall` instruction of some code that lies at `start`, if possible one with a way back.
pub(crate) fn find(code: &[u8], start: u64) -> Option<Instruction> {
    let all = || {
        let places = code.windows(2).enumerate().filter(|(_, bytes)| *bytes == SYSCALL);
        places.map(|(at, _)| Instruction {
            address: start + at as u64,
            taken: code.get(at + 2..).and_then(taken_to_return),
        })
    };
    all().find(|found| found.taken.is_some()).or_else(|| all().next())
}

/// What code takes from the stack that does no more than to end a function: give up its frame, clear
/// registers, and return. A frame is taken with `rbp` at its end, where the caller's lies.
fn taken_to_return(code: &[u8]) -> Option<u64> {
    let (mut rest, taken) = match code {
        // `pop %rbp` or `leave`
        [0x5d | 0xc9, rest @ ..] => (rest, 16),
        _ => (code, 8),
    };
    loop {
        rest = match rest {
            [0xc3, ..] => return Some(taken),
            // `xor` of %eax, %ecx, %edx, %esi, %edi, or %r8d to %r11d with itself
            [0x31, 0xc0 | 0xc9 | 0xd2 | 0xf6 | 0xff, rest @ ..]
            | [0x45, 0x31, 0xc0 | 0xc9 | 0xd2 | 0xdb, rest @ ..] => rest,
            _ => return None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_with_a_way_back_is_preferred() {
        let plain = [0x0f, 0x05, 0x89, 0xc3, 0xc3];
        let returns = [0x0f, 0x05, 0x31, 0xd2, 0x45, 0x31, 0xdb, 0xc3];
        let leaves = [0x0f, 0x05, 0xc9, 0x31, 0xc9, 0xc3];
        let pops = [0x0f, 0x05, 0x5d, 0xc3];
        let found =
            |parts: &[&[u8]]| find(&parts.concat(), 100).map(|found| (found.address, found.taken));
        assert_eq!(found(&[&plain, &returns, &leaves]), Some((105, Some(8))));
        assert_eq!(found(&[&leaves, &plain]), Some((100, Some(16))));
        assert_eq!(found(&[&plain, &pops]), Some((105, Some(16))));
        assert_eq!(found(&[&plain, &plain]), Some((100, None)));
        assert_eq!(found(&[&plain[2..]]), None);
        // The code ends, or goes on with another register, or the stack pointer itself.
        for code in [&[0x5d][..], &[0x31, 0xd1, 0xc3], &[0x31, 0xe4, 0xc3], &[0x45, 0xc3]] {
            assert_eq!(taken_to_return(code), None, "{code:x?}");
        }
    }
}
