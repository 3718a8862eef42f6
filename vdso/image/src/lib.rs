//! The exported symbols of the vDSO image, and nothing else.
//!
//! `linker/build.rs` compiles this crate to one object and links the image from it. Each function
//! is one call into `vdso`, where the code is; what is here is the ABI: names, types, versions
//! (`linker/src/*.map`) and the note that says how the image wants to be mapped.
#![no_std]

use datapage::protocol::Native;
use datapage::{ClockMode, Features, Page};
use vdso::{Call, Platform, Policy, TimeSpec, TimeVal, Timezone, UserPtr, arch};

/// What this image does about a call that its page cannot serve.
const POLICY: Policy = if cfg!(vdso_fallback = "enosys") {
    Policy::Enosys
} else {
    Policy::Syscall
};

const ENOSYS: isize = 38;

/// The machine that the image runs on: no state, only instructions.
struct Machine;

impl Platform for Machine {
    type Cells = Native;

    #[inline(always)] // one instruction
    fn page(&self) -> &Page {
        // SAFETY: whoever maps an image maps the data page four slots below it, readable for as
        // long as the image is mapped; that is the contract of its note.
        unsafe { Page::at(arch::data_page()) }
    }

    #[inline(always)] // the counter's instructions
    fn counter(&self, mode: ClockMode) -> Option<u64> {
        arch::counter(mode)
    }

    #[inline(always)] // one instruction
    fn cpu_and_node(&self, features: Features) -> Option<u32> {
        arch::cpu_and_node(features)
    }

    #[inline(always)] // one instruction, or a constant
    fn syscall(&self, call: Call, arguments: [usize; 3]) -> isize {
        match POLICY {
            Policy::Syscall => arch::syscall(call, arguments),
            Policy::Enosys => -ENOSYS,
        }
    }
}

/// `clock_gettime(2)`; see [`vdso::clock_gettime`].
// SAFETY: the symbol is the image's own; nothing else is linked with it.
#[unsafe(no_mangle)]
extern "C" fn __vdso_clock_gettime(id: i32, ts: *mut TimeSpec) -> isize {
    // SAFETY: the caller's claim.
    let ts = unsafe { UserPtr::new(ts) };
    vdso::clock_gettime(&Machine, id, ts)
}

/// `clock_getres(2)`; see [`vdso::clock_getres`].
// SAFETY: the symbol is the image's own; nothing else is linked with it.
#[unsafe(no_mangle)]
extern "C" fn __vdso_clock_getres(id: i32, res: *mut TimeSpec) -> isize {
    // SAFETY: the caller's claim.
    let res = unsafe { UserPtr::new(res) };
    vdso::clock_getres(&Machine, id, res)
}

/// `gettimeofday(2)`; see [`vdso::gettimeofday`].
// SAFETY: the symbol is the image's own; nothing else is linked with it.
#[unsafe(no_mangle)]
extern "C" fn __vdso_gettimeofday(tv: *mut TimeVal, tz: *mut Timezone) -> isize {
    // SAFETY: the caller's claim.
    let tv = unsafe { UserPtr::new(tv) };
    // SAFETY: the caller's claim.
    let tz = unsafe { UserPtr::new(tz) };
    vdso::gettimeofday(&Machine, tv, tz)
}

/// `time(2)`; see [`vdso::time`].
// SAFETY: the symbol is the image's own; nothing else is linked with it.
#[unsafe(no_mangle)]
extern "C" fn __vdso_time(t: *mut i64) -> i64 {
    // SAFETY: the caller's claim.
    let t = unsafe { UserPtr::new(t) };
    vdso::time(&Machine, t)
}

/// `getcpu(2)`; see [`vdso::getcpu`].
// SAFETY: the symbol is the image's own; nothing else is linked with it.
#[unsafe(no_mangle)]
extern "C" fn __vdso_getcpu(cpu: *mut u32, node: *mut u32, unused: usize) -> isize {
    // SAFETY: the caller's claim.
    let cpu = unsafe { UserPtr::new(cpu) };
    // SAFETY: the caller's claim.
    let node = unsafe { UserPtr::new(node) };
    vdso::getcpu(&Machine, cpu, node, unused)
}

/// Nanoseconds of a clock in a register; see [`vdso::clock_gettime_ns`].
// SAFETY: the symbol is the image's own; nothing else is linked with it.
#[unsafe(no_mangle)]
extern "C" fn __vdso_clock_gettime_ns(id: i32) -> i64 {
    vdso::clock_gettime_ns(&Machine, id)
}

/// A name without the prefix, at the same address and size, which a program may override.
macro_rules! weak_alias {
    ($($alias:literal = $function:literal;)*) => {
        core::arch::global_asm!($(
            concat!(".weak ", $alias),
            concat!(".type ", $alias, ", @function"),
            concat!(".set ", $alias, ", ", $function),
        )*);
    };
}

weak_alias! {
    "clock_gettime" = "__vdso_clock_gettime";
    "clock_getres" = "__vdso_clock_getres";
    "gettimeofday" = "__vdso_gettimeofday";
    "time" = "__vdso_time";
    "getcpu" = "__vdso_getcpu";
}

// The note of our own: owner "uVDSO", type 1, four words. Whoever maps the image compares them with
// the page's header.
core::arch::global_asm!(
    ".pushsection .note.uvdso, \"a\", @note",
    ".balign 4",
    ".long 6, 16, 1",
    ".asciz \"uVDSO\"",
    ".balign 4",
    ".long {policy}, {abi}, {slots}, {slot_bytes}",
    ".popsection",
    policy = const POLICY as u32,
    abi = const datapage::ABI,
    slots = const datapage::SLOTS,
    slot_bytes = const datapage::SLOT_BYTES,
);
