//! x86_64: TSC, RDPID, `syscall`.

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
    // An `extern static` would be addressed through a GOT, which an image has none of, and rust-lld
    // does not relax that load. `sym` in a `lea` is a plain 32-bit relative relocation.
    // SAFETY: computes an address; reads no memory, leaves the stack and the flags alone. `nomem`
    // because it loads nothing, `pure` because the address never changes.
    unsafe {
        asm!("lea {page}, [rip + {data}]", page = out(reg) page, data = sym vdso_u_time_data,
             options(pure, nomem, nostack, preserves_flags));
    }
    page
}

/// An ordered read of the counter that `mode` names.
///
/// Before: `lfence` waits until every earlier load has its value (Intel SDM volume 2, LFENCE; on
/// AMD once `DE_CFG[1]` is set, which Linux does); `rdtscp` itself waits for earlier loads. After: a
/// load behind `rdtsc` may run before it. The only such load is the closing check of `seq`, and a
/// counter that is a few nanoseconds younger than the check is the time that it says.
#[inline(always)] // two instructions in the retry loop
#[must_use]
pub fn counter(mode: ClockMode) -> Option<u64> {
    if mode == ClockMode::RDTSCP {
        return Some(rdtscp());
    }
    core::hint::cold_path();
    if mode == ClockMode::COUNTER {
        return Some(lfence_rdtsc());
    }
    if mode == ClockMode::COUNTER_64BIT_ONLY { Some(lfence_rdtsc()) } else { None }
}

#[inline(always)] // two instructions in the retry loop
fn lfence_rdtsc() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: neither instruction touches memory, the stack or the flags. Not `nomem`: the compiler
    // must not move a load of the page across. Not `pure`: each read counts.
    unsafe {
        asm!("lfence", "rdtsc", out("rax") low, out("rdx") high,
             options(nostack, preserves_flags));
    }
    // Both halves are zero-extended; an `or` of the two is the whole.
    low | (high << 32)
}

#[inline(always)] // one instruction in the retry loop
fn rdtscp() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: as `lfence_rdtsc`; RCX gets the CPU's number, which is not needed.
    unsafe {
        asm!("rdtscp", out("rax") low, out("rdx") high, out("rcx") _,
             options(nostack, preserves_flags));
    }
    low | (high << 32)
}

/// `node << 12 | cpu`, in a way that the page promises.
#[inline(always)] // one instruction
#[must_use]
pub fn cpu_and_node(features: Features) -> Option<u32> {
    if features.contains(Features::GETCPU_RDPID) {
        let both: u64;
        // SAFETY: reads TSC_AUX, which the feature bit says exists and is maintained. `nomem`: no
        // memory is involved; not `pure`, since the thread may move.
        unsafe {
            asm!("rdpid {both}", both = out(reg) both, options(nomem, nostack, preserves_flags));
        }
        #[allow(clippy::cast_possible_truncation, reason = "TSC_AUX has 32 bits")]
        return Some(both as u32);
    }
    core::hint::cold_path();
    if features.contains(Features::GETCPU_SEGMENT_LIMIT) {
        let both: u32;
        // SAFETY: reads the limit of a segment that the feature bit says exists. It changes the
        // flags and nothing else.
        unsafe {
            asm!("lsl {both:e}, {segment:e}", segment = in(reg) SEGMENT, both = out(reg) both,
                 options(nomem, nostack));
        }
        return Some(both);
    }
    core::hint::cold_path();
    None
}

/// Selector of the segment whose limit Linux sets to `node << 12 | cpu` on each CPU
/// (`arch/x86/include/asm/segment.h`: GDT entry 15, privilege level 3).
const SEGMENT: u32 = 0x7b;

/// No program of this architecture has structures with 32-bit seconds.
const ENOSYS: isize = 38;

/// Makes a system call (numbers: `arch/x86/entry/syscalls/syscall_64.tbl`).
#[inline(always)] // one instruction
#[must_use]
pub fn syscall(call: Call, [first, second, third]: [usize; 3]) -> isize {
    let number: usize = match call {
        Call::ClockGettime => 228,
        Call::ClockGetres => 229,
        Call::Gettimeofday => 96,
        Call::Time => 201,
        Call::Getcpu => 309,
        Call::ClockGettime32 | Call::ClockGetres32 => return -ENOSYS,
    };
    let answer: isize;
    // SAFETY: these calls only write through pointers that the caller passed for that. The kernel
    // keeps all registers but RAX, RCX and R11. Not `nomem`: it writes the caller's memory.
    unsafe {
        asm!("syscall", inlateout("rax") number => answer,
             in("rdi") first, in("rsi") second, in("rdx") third,
             lateout("rcx") _, lateout("r11") _,
             options(nostack, preserves_flags));
    }
    answer
}
