//! The auxiliary vector of a program that has not run yet: on its stack, and the kernel's copy.
//!
//! A C library reads it from its stack. Debuggers and a few runtimes ask the kernel instead
//! (`/proc/PID/auxv`, `PR_GET_AUXV`), so both have to say the same.

use std::fs;
use std::io;

use libc::pid_t;

use crate::launch::ptrace::read_memory;

/// The entry that says where the vDSO is.
const SYSINFO_EHDR: u64 = libc::AT_SYSINFO_EHDR;

const WORD: u64 = size_of::<u64>() as u64;

/// Where the entry stands, and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VdsoEntry {
    /// Address of the value, on the program's stack.
    pub(crate) slot: u64,
    /// Where the kernel's vDSO begins.
    pub(crate) base: u64,
}

/// The entry on the stack of a program whose stack pointer is as the kernel set it at exec.
pub(crate) fn find_on_stack(pid: pid_t, stack_pointer: u64) -> io::Result<Option<VdsoEntry>> {
    let mut words = Words::new(pid, stack_pointer);
    let arguments = words.next()?;
    // The arguments and a null, the environment and a null.
    words.skip(arguments.saturating_add(1));
    while words.next()? != 0 {}
    loop {
        match words.next()? {
            0 => return Ok(None),
            SYSINFO_EHDR => {
                let slot = words.address();
                let base = words.next()?;
                return Ok(Some(VdsoEntry { slot, base }));
            }
            _ => words.skip(1),
        }
    }
}

/// The kernel's copy, with the entry changed to `base`.
pub(crate) fn saved_with(pid: pid_t, base: u64) -> io::Result<Vec<u8>> {
    let mut saved = saved(pid)?;
    let (words, _) = saved.as_chunks_mut::<8>();
    for pair in words.chunks_exact_mut(2) {
        if let [tag, value] = pair
            && u64::from_ne_bytes(*tag) == SYSINFO_EHDR
        {
            *value = base.to_ne_bytes();
        }
    }
    Ok(saved)
}

/// The kernel's copy.
pub(crate) fn saved(pid: pid_t) -> io::Result<Vec<u8>> {
    fs::read(format!("/proc/{pid}/auxv"))
}

/// Words of a program's memory, read in blocks.
struct Words {
    pid: pid_t,
    next: u64,
    block: [u8; BLOCK],
    /// Bytes of the block that hold what lies at `next` and after.
    left: usize,
}

const BLOCK: usize = 512;

impl Words {
    fn new(pid: pid_t, address: u64) -> Self {
        Self { pid, next: address, block: [0; BLOCK], left: 0 }
    }

    fn address(&self) -> u64 {
        self.next
    }

    fn skip(&mut self, words: u64) {
        self.next = self.next.saturating_add(words.saturating_mul(WORD));
        let bytes = usize::try_from(words.saturating_mul(WORD)).unwrap_or(usize::MAX);
        self.left = self.left.saturating_sub(bytes);
    }

    fn next(&mut self) -> io::Result<u64> {
        if self.left < 8 {
            // Up to a multiple of the block's size, which never crosses into another page.
            let within = usize::try_from(self.next).unwrap_or(0) % BLOCK;
            let wanted = BLOCK - within;
            let block = self.block.get_mut(within..).unwrap_or_default();
            read_memory(self.pid, self.next, block)?;
            self.left = wanted;
        }
        let at = BLOCK - self.left;
        let word = self.block.get(at..at + 8);
        let word = word.and_then(|word| word.try_into().ok());
        self.next += WORD;
        self.left -= 8;
        Ok(u64::from_ne_bytes(word.unwrap_or_default()))
    }
}
