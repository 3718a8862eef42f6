//! riscv64: the `time` CSR, `ecall`.

use core::arch::asm;

use datapage::{ClockMode, Features};

use crate::fallback::Call;

/// The address of the data page, four slots below the image.
#[inline(always)] // two instructions
#[must_use]
pub fn data_page() -> *const u8 {
    unsafe extern "C" {
        /// Defined by the linker script.
        static vdso_u_time_data: u8;
    }
    let page: *const u8;
    // An `extern static` would be addressed through a GOT, which an image has none of.
    // SAFETY: computes an address (`auipc`, `addi`); reads no memory, leaves the stack and the
    // flags alone. `nomem` because it loads nothing, `pure` because the address never changes.
    unsafe {
        asm!("lla {page}, {data}", page = out(reg) page, data = sym vdso_u_time_data,
             options(pure, nomem, nostack, preserves_flags));
    }
    page
}

/// An ordered read of the counter that `mode` names.
///
/// A CSR read is ordered with nothing by default; fences treat it as device input (RISC-V ISA
/// manual, Zicsr, "CSR Access Ordering"). Before: `fence r, i` keeps it behind every earlier load.
/// After: `fence i, r` keeps the closing check behind it; the protocol's own fence (`fence r, rw`)
/// orders loads only.
#[inline(always)] // three instructions in the retry loop
#[must_use]
pub fn counter(mode: ClockMode) -> Option<u64> {
    if mode == ClockMode::COUNTER {
        return Some(fence_rdtime());
    }
    core::hint::cold_path();
    (mode == ClockMode::COUNTER_64BIT_ONLY).then(fence_rdtime)
}

#[inline(always)] // as `counter`
fn fence_rdtime() -> u64 {
    let cycles: u64;
    // SAFETY: none of the three touches memory or the stack; a page names this mode only where
    // scounteren lets programs read `time`. Not `nomem`: the compiler must not move a load of the
    // page across. Not `pure`: each read counts.
    unsafe {
        asm!("fence r, i", "rdtime {cycles}", "fence i, r", cycles = out(reg) cycles,
             options(nostack, preserves_flags));
    }
    cycles
}

/// No register tells a program its CPU; Linux's `getcpu` here is a system call too.
#[inline(always)] // no instruction
#[must_use]
pub fn cpu_and_node(_: Features) -> Option<u32> {
    None
}

/// Makes a system call (numbers: `include/uapi/asm-generic/unistd.h`).
#[inline(always)] // one instruction
#[must_use]
pub fn syscall(call: Call, [first, second, third]: [usize; 3]) -> isize {
    let number: usize = match call {
        Call::ClockGettime => 113,
        Call::ClockGetres => 114,
        Call::Gettimeofday => 169,
        Call::Getcpu => 168,
        Call::Time | Call::ClockGettime32 | Call::ClockGetres32 => return -ENOSYS,
    };
    let answer: isize;
    // SAFETY: these calls only write through pointers that the caller passed for that. The kernel
    // keeps all registers but A0; the vector state, which it may discard, is not in use here. Not
    // `nomem`: it writes the caller's memory.
    unsafe {
        asm!("ecall", in("a7") number, inlateout("a0") first => answer,
             in("a1") second, in("a2") third,
             options(nostack, preserves_flags));
    }
    answer
}

/// No program of this architecture has such a call.
const ENOSYS: isize = 38;
