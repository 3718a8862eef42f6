//! i386: TSC, RDPID, `int 0x80`.

use core::arch::asm;

use datapage::{ClockMode, Features};

use crate::fallback::Call;

/// The address of the data page, four slots below the image.
///
/// There is no addressing relative to the program counter; a function that returns its own return
/// address supplies it. A `call` to the next instruction would do too, and would leave the CPU's
/// stack of return addresses and the unwinder's idea of the frame wrong.
#[inline(always)] // two instructions
#[must_use]
pub fn data_page() -> *const u8 {
    unsafe extern "C" {
        /// Defined by the linker script.
        static vdso_u_time_data: u8;
        /// Returns its return address in EAX, changes nothing else. `vdso-image` defines it.
        fn vdso_return_address();
    }
    let page: *const u8;
    // SAFETY: computes an address. Not `nostack`: the call pushes its return address. `nomem`
    // because it touches no memory but that. (AT&T syntax: only it takes two symbols in one
    // displacement.)
    unsafe {
        asm!("call {here}", "2: leal ({data} - 2b)(%eax), %eax",
             here = sym vdso_return_address, data = sym vdso_u_time_data, out("eax") page,
             options(pure, nomem, preserves_flags, att_syntax));
    }
    page
}

/// An ordered read of the counter that `mode` names.
///
/// Before: `lfence` waits until every earlier load has its value (Intel SDM volume 2, LFENCE);
/// `rdtscp` itself waits for earlier loads. After: a load behind `rdtsc` may run before it. The
/// only such load is the closing check of `seq`, and a counter that is a few nanoseconds younger
/// than the check is the time that it says. A CPU without SSE2 has no `lfence`; the writer of such
/// a machine publishes [`ClockMode::NONE`].
#[inline(always)] // two instructions in the retry loop
#[must_use]
pub fn counter(mode: ClockMode) -> Option<u64> {
    if mode == ClockMode::COUNTER {
        return Some(lfence_rdtsc());
    }
    core::hint::cold_path();
    (mode == ClockMode::RDTSCP).then(rdtscp)
}

#[inline(always)] // two instructions in the retry loop
fn lfence_rdtsc() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: neither instruction touches memory, the stack or the flags. Not `nomem`: the compiler
    // must not move a load of the page across. Not `pure`: each read counts.
    unsafe {
        asm!("lfence", "rdtsc", out("eax") low, out("edx") high,
             options(nostack, preserves_flags));
    }
    u64::from(low) | (u64::from(high) << 32)
}

#[inline(always)] // one instruction in the retry loop
fn rdtscp() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: as `lfence_rdtsc`; ECX gets the CPU's number, which is not needed.
    unsafe {
        asm!("rdtscp", out("eax") low, out("edx") high, out("ecx") _,
             options(nostack, preserves_flags));
    }
    u64::from(low) | (u64::from(high) << 32)
}

/// `node << 12 | cpu`, in a way that the page promises.
#[inline(always)] // one instruction
#[must_use]
pub fn cpu_and_node(features: Features) -> Option<u32> {
    let both: u32;
    if features.contains(Features::GETCPU_RDPID) {
        // SAFETY: reads TSC_AUX, which the feature bit says exists and is maintained. `nomem`: no
        // memory is involved; not `pure`, since the thread may move.
        unsafe {
            asm!("rdpid {both}", both = out(reg) both, options(nomem, nostack, preserves_flags));
        }
        return Some(both);
    }
    if features.contains(Features::GETCPU_SEGMENT_LIMIT) {
        // SAFETY: reads the limit of a segment that the feature bit says exists. It changes the
        // flags and nothing else.
        unsafe {
            asm!("lsl {both}, {segment}", segment = in(reg) SEGMENT, both = out(reg) both,
                 options(nomem, nostack));
        }
        return Some(both);
    }
    core::hint::cold_path();
    None
}

/// Selector of the segment whose limit a 64-bit Linux sets to `node << 12 | cpu` on each CPU
/// (`arch/x86/include/asm/segment.h`: GDT entry 15, privilege level 3). A kernel that keeps it
/// elsewhere does not set the feature bit.
const SEGMENT: u32 = 0x7b;

/// Makes a system call (numbers: `arch/x86/entry/syscalls/syscall_32.tbl`).
///
/// `int 0x80` works on every CPU and in every kernel. `sysenter` is faster and lets the kernel
/// choose where it returns to, a place inside the image that only Linux's own image can name.
#[inline(always)] // one instruction
#[must_use]
pub fn syscall(call: Call, [first, second, third]: [usize; 3]) -> isize {
    let number: usize = match call {
        Call::ClockGettime => 403,
        Call::ClockGetres => 406,
        Call::ClockGettime32 => 265,
        Call::ClockGetres32 => 266,
        Call::Gettimeofday => 78,
        Call::Time => 13,
        Call::Getcpu => 318,
    };
    let answer: isize;
    // SAFETY: these calls only write through pointers that the caller passed for that. The kernel
    // keeps all registers but EAX. Not `nomem`: it writes the caller's memory.
    unsafe {
        asm!("int 0x80", inlateout("eax") number => answer,
             in("ebx") first, in("ecx") second, in("edx") third,
             options(nostack, preserves_flags));
    }
    answer
}
