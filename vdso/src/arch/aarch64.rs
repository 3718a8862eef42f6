//! aarch64: CNTVCT_EL0, `svc #0`.

use core::arch::asm;

use datapage::{ClockMode, Features};

use crate::fallback::Call;

/// The address of the data page, four slots below the image.
#[inline(always)] // one instruction
#[must_use]
pub fn data_page() -> *const u8 {
    unsafe extern "C" {
        /// Defined by the linker script.
        static vdso_u_time_data: u8;
    }
    let page: *const u8;
    // An `extern static` would be addressed through a GOT, which an image has none of. `adr`
    // reaches 1 MiB, and four slots of 64 KiB are a quarter of it.
    // SAFETY: computes an address; reads no memory, leaves the stack and the flags alone. `nomem`
    // because it loads nothing, `pure` because the address never changes.
    unsafe {
        asm!("adr {page}, {data}", page = out(reg) page, data = sym vdso_u_time_data,
             options(pure, nomem, nostack, preserves_flags));
    }
    page
}

/// An ordered read of the counter that `mode` names.
///
/// On a CPU whose CNTVCT is wrong (there are such errata) the writer publishes
/// [`ClockMode::NONE`], or [`ClockMode::COUNTER_64BIT_ONLY`] where only 32-bit reads are wrong.
#[inline(always)] // a few instructions in the retry loop
#[must_use]
pub fn counter(mode: ClockMode) -> Option<u64> {
    if mode == ClockMode::COUNTER {
        return Some(isb_cntvct());
    }
    core::hint::cold_path();
    if mode == ClockMode::COUNTER_64BIT_ONLY {
        Some(isb_cntvct())
    } else if mode == ClockMode::CNTVCTSS {
        Some(cntvctss())
    } else {
        None
    }
}

/// Before: reads of CNTVCT may run ahead of earlier instructions; an `isb` that is behind a branch
/// on a loaded value keeps the read behind that load (Arm ARM, "The Generic Timer", on reading the
/// counter after a change in memory was seen). The branches are those on `seq` and on the mode.
/// What the other loads got is for the closing check to judge.
///
/// After: [`ordered_before_loads`].
#[inline(always)] // as `counter`
fn isb_cntvct() -> u64 {
    let cycles: u64;
    // SAFETY: neither instruction touches memory, the stack or the flags; a page names this mode
    // only where CNTKCTL_EL1 lets programs read the counter. Not `nomem`: the compiler must not
    // move a load of the page across. Not `pure`: each read counts.
    unsafe {
        asm!("isb", "mrs {cycles}, cntvct_el0", cycles = out(reg) cycles,
             options(nostack, preserves_flags));
    }
    ordered_before_loads(cycles)
}

/// Before: the register synchronises itself; its read is never ahead of an earlier instruction
/// (FEAT_ECV). After: [`ordered_before_loads`].
#[inline(always)] // as `counter`
fn cntvctss() -> u64 {
    let cycles: u64;
    // SAFETY: as `isb_cntvct`; a page names this mode only where every CPU has FEAT_ECV. The
    // register has no name in assemblers that target the base architecture.
    unsafe {
        asm!("mrs {cycles}, s3_3_c14_c0_6", cycles = out(reg) cycles,
             options(nostack, preserves_flags));
    }
    ordered_before_loads(cycles)
}

/// Keeps the counter's read before the closing check of `seq`.
///
/// A second `isb` would do and drains the pipeline once more. Instead a load takes its address from
/// the counter (which it does not change: x ^ x is 0), so it cannot run before the counter is read;
/// and the protocol's fence R2 (`dmb ishld`) keeps the check behind that load.
#[inline(always)] // three instructions, none of which anything waits for but the check
fn ordered_before_loads(cycles: u64) -> u64 {
    // SAFETY: loads from the stack pointer's own address, which every thread can read, into the
    // zero register. Not `readonly`, so that the compiler too keeps loads on their side of it; not
    // `pure`: the result is not what it is for.
    unsafe {
        asm!("eor {zero}, {cycles}, {cycles}", "add {zero}, sp, {zero}", "ldr xzr, [{zero}]",
             cycles = in(reg) cycles, zero = out(reg) _,
             options(nostack, preserves_flags));
    }
    cycles
}

/// Linux has no `getcpu` in this architecture's image, nor a register to serve it from.
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
    // keeps all registers but X0 (and, where it uses SVE, what the C ABI lets a call change). Not
    // `nomem`: it writes the caller's memory.
    unsafe {
        asm!("svc #0", in("x8") number, inlateout("x0") first => answer,
             in("x1") second, in("x2") third,
             options(nostack, preserves_flags));
    }
    answer
}

/// No program of this architecture has such a call.
const ENOSYS: isize = 38;
