//! A call with every register of the caller's choice, on a stack of its own.

use std::arch::global_asm;
use std::num::NonZeroUsize;

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, mprotect};

/// What a call of the image finds and leaves.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Frame {
    own_stack: u64,
    pub(crate) stack: u64,
    function: u64,
    arguments: [u64; 3],
    /// RBX, RBP, R12 to R15.
    registers: [u64; 6],
    flags: u64,
    pub(crate) answer: u64,
    pub(crate) registers_after: [u64; 6],
    pub(crate) stack_after: u64,
    pub(crate) flags_after: u64,
}

// Loads registers and flags from a `Frame`, calls its function on its stack, stores what is left.
// Only the frame's own address lies on the foreign stack; every other word of it is the callee's.
global_asm!(
    ".pushsection .text.call_with_frame, \"ax\", @progbits",
    ".type call_with_frame, @function",
    "call_with_frame:",
    "push rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "pushfq",
    "mov [rdi], rsp",
    "push qword ptr [rdi + 96]",
    "popfq",
    "mov rsp, [rdi + 8]",
    "push rdi",
    "mov rax, [rdi + 16]",
    "mov rsi, [rdi + 32]",
    "mov rdx, [rdi + 40]",
    "mov rbx, [rdi + 48]",
    "mov rbp, [rdi + 56]",
    "mov r12, [rdi + 64]",
    "mov r13, [rdi + 72]",
    "mov r14, [rdi + 80]",
    "mov r15, [rdi + 88]",
    "mov rdi, [rdi + 24]",
    "call rax",
    "mov rcx, [rsp]",
    "mov [rcx + 104], rax",
    "mov [rcx + 112], rbx",
    "mov [rcx + 120], rbp",
    "mov [rcx + 128], r12",
    "mov [rcx + 136], r13",
    "mov [rcx + 144], r14",
    "mov [rcx + 152], r15",
    "mov [rcx + 160], rsp",
    "mov rsp, [rcx]",
    "pushfq",
    "pop qword ptr [rcx + 168]",
    "popfq",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    ".popsection",
);

unsafe extern "C" {
    fn call_with_frame(frame: *mut Frame);
}

impl Frame {
    /// Calls `function` on the stack that ends at `stack`, with [`REGISTERS`] and these flags.
    ///
    /// # Safety
    /// The function takes such arguments, and `stack` is the end of writable memory.
    pub(crate) unsafe fn call(function: u64, arguments: [u64; 3], stack: u64, flags: u64) -> Self {
        let mut frame = Self {
            own_stack: 0,
            stack,
            function,
            arguments,
            registers: REGISTERS,
            flags: flags | 0x202,
            answer: 0,
            registers_after: [0; 6],
            stack_after: 0,
            flags_after: 0,
        };
        // SAFETY: the frame is complete, and the caller vouches for the rest.
        unsafe { call_with_frame(&raw mut frame) };
        frame
    }
}

/// Direction and identification: what a function has to keep.
pub(crate) const KEPT_FLAGS: u64 = 1 << 10 | 1 << 21;
pub(crate) const REGISTERS: [u64; 6] = [
    0x1111_1111_1111_1111,
    0x2222_2222_2222_2222,
    0xcccc_cccc_cccc_cccc,
    0xdddd_dddd_dddd_dddd,
    0xeeee_eeee_eeee_eeee,
    0xffff_ffff_ffff_ffff,
];
const FILL: u8 = 0xa5;

/// Stack above a guard page.
pub(crate) struct Stack {
    base: *mut u8,
}

/// Bytes of a guard page, and of stack above it.
const GUARD: usize = 4096;
const ROOM: usize = 4 * 4096;

impl Stack {
    pub(crate) fn new() -> Self {
        let bytes = NonZeroUsize::new(GUARD + ROOM).unwrap();
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a mapping of its own.
        let start = unsafe { mmap_anonymous(None, bytes, access, MapFlags::MAP_PRIVATE) }.unwrap();
        // SAFETY: the lowest page of that mapping.
        unsafe { mprotect(start, GUARD, ProtFlags::PROT_NONE) }.unwrap();
        Self { base: start.as_ptr().cast::<u8>().wrapping_add(GUARD) }
    }

    /// The address `top` bytes above the guard page.
    pub(crate) fn top(&self, top: usize) -> u64 {
        (self.base.addr() + top) as u64
    }

    /// All of it, for a signal handler.
    pub(crate) fn for_signals(&self) -> libc::stack_t {
        libc::stack_t { ss_sp: self.base.cast(), ss_flags: 0, ss_size: ROOM }
    }

    /// Bytes below `top` that a call has written, its return address included.
    pub(crate) fn used(&self, top: usize) -> usize {
        // SAFETY: a part of the mapping's writable pages.
        let stack = unsafe { std::slice::from_raw_parts(self.base, top) };
        stack.iter().position(|byte| *byte != FILL).map_or(0, |lowest| top - lowest)
    }

    /// Fills what lies below `top`.
    pub(crate) fn fill(&self, top: usize) {
        // SAFETY: a part of the mapping's writable pages.
        unsafe { self.base.write_bytes(FILL, top) };
    }
}
