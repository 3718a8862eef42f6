//! arm (ARMv7-A, 32 bits): the generic timer's CNTVCT through CP15, `svc #0`.

use core::arch::asm;

use datapage::{ClockMode, Features};

use crate::fallback::Call;

/// The address of the data page, four slots below the image.
#[inline(always)] // three instructions
#[must_use]
pub fn data_page() -> *const u8 {
    unsafe extern "C" {
        /// Defined by the linker script.
        static vdso_u_time_data: u8;
    }
    let page: *const u8;
    // An `extern static` would be addressed through a GOT, which an image has none of. `pc` reads
    // as the address of its instruction and 8 more.
    // SAFETY: computes an address; reads no memory, leaves the stack and the flags alone. `nomem`
    // because it loads nothing, `pure` because the address never changes.
    unsafe {
        asm!("movw {page}, :lower16:({data} - (2f + 8))",
             "movt {page}, :upper16:({data} - (2f + 8))",
             "2: add {page}, {page}, pc",
             page = out(reg) page, data = sym vdso_u_time_data,
             options(pure, nomem, nostack, preserves_flags));
    }
    page
}

/// An ordered read of the counter that `mode` names.
///
/// Many ARMv7 CPUs have no generic timer (Cortex-A8, A9), and firmware of some others leaves it
/// closed to programs; the read is an undefined instruction there. So it is only ever reached
/// through [`ClockMode::COUNTER`], which the writer of such a machine never publishes.
///
/// Before: `isb`, behind the branches on `seq` and on the mode, keeps the read behind those loads
/// (Arm ARM for ARMv7-A, "The Generic Timer"). After: a second `isb` keeps the closing check behind
/// the read; the protocol's fence (`dmb ish`) orders loads only.
#[inline(always)] // three instructions in the retry loop
#[must_use]
pub fn counter(mode: ClockMode) -> Option<u64> {
    (mode == ClockMode::COUNTER).then(isb_cntvct)
}

#[inline(always)] // as `counter`
fn isb_cntvct() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: none of the three touches memory, the stack or the flags. Not `nomem`: the compiler
    // must not move a load of the page across. Not `pure`: each read counts.
    unsafe {
        asm!("isb", "mrrc p15, 1, {low}, {high}, c14", "isb",
             low = out(reg) low, high = out(reg) high,
             options(nostack, preserves_flags));
    }
    u64::from(low) | (u64::from(high) << 32)
}

/// Linux has no `getcpu` in this architecture's image, nor a register to serve it from.
#[inline(always)] // no instruction
#[must_use]
pub fn cpu_and_node(_: Features) -> Option<u32> {
    None
}

/// Makes a system call (numbers: `arch/arm/tools/syscall.tbl`, EABI).
#[inline(always)] // one instruction
#[must_use]
pub fn syscall(call: Call, [first, second, third]: [usize; 3]) -> isize {
    let number: usize = match call {
        Call::ClockGettime => 403,
        Call::ClockGetres => 406,
        Call::ClockGettime32 => 263,
        Call::ClockGetres32 => 264,
        Call::Gettimeofday => 78,
        Call::Getcpu => 345,
        Call::Time => return -ENOSYS,
    };
    let answer: isize;
    // SAFETY: these calls only write through pointers that the caller passed for that. The kernel
    // keeps all registers but R0. Not `nomem`: it writes the caller's memory.
    unsafe {
        asm!("svc #0", in("r7") number, inlateout("r0") first => answer,
             in("r1") second, in("r2") third,
             options(nostack, preserves_flags));
    }
    answer
}

/// The EABI has no `time`.
const ENOSYS: isize = 38;
