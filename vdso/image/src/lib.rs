//! The exported symbols of the vDSO image, and nothing else.
//!
//! `linker/build.rs` compiles this crate to one object and links the image from it. Each function
//! is one call into `vdso`, where the code is; what is here is the ABI: names, types, versions
//! (`linker/src/*.map`) and the note that says how the image wants to be mapped.
//!
//! | file | exports |
//! |---|---|
//! | `exports64.rs` | the calls of 64-bit architectures |
//! | `exports32.rs` | those of 32-bit ones, with both widths of seconds |
//! | `x86_64.rs` | names without a prefix, for x86_64 |
//! | `aarch64.rs`, `riscv64.rs`, `x86.rs` | returning from signal handlers, entering the kernel |
#![no_std]

use datapage::protocol::Native;
use datapage::{ClockMode, Features, Page};
use vdso::{Call, Platform, Policy, arch};

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_pointer_width = "32")]
mod exports32;
#[cfg(target_pointer_width = "64")]
mod exports64;
#[cfg(target_arch = "riscv64")]
mod riscv64;
#[cfg(target_arch = "x86")]
mod x86;
#[cfg(target_arch = "x86_64")]
mod x86_64;

/// What this image does about a call that its page cannot serve.
const POLICY: Policy =
    if cfg!(vdso_fallback = "enosys") { Policy::Enosys } else { Policy::Syscall };

const ENOSYS: isize = 38;

/// Distance between the page slots below this image.
const SLOT_BYTES: u32 = if cfg!(vdso_slots = "64k") { 65536 } else { datapage::SLOT_BYTES };

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

    #[inline(always)] // an addition
    fn page_behind_namespace(&self) -> &Page {
        let slot = arch::data_page().wrapping_add(SLOT_BYTES as usize);
        // SAFETY: as above; a kernel that maps a namespace's page maps its own in the slot behind.
        unsafe { Page::at(slot) }
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

// The note of our own: owner "uVDSO", type 1, four words. Whoever maps the image compares them with
// the page's header.
core::arch::global_asm!(
    // Arm's assemblers take "@" for a comment; "%" is the other spelling.
    ".pushsection .note.uvdso, \"a\", %note",
    ".balign 4",
    ".long 6, 16, 1",
    ".asciz \"uVDSO\"",
    ".balign 4",
    ".long {policy}, {abi}, {slots}, {slot_bytes}",
    ".popsection",
    policy = const POLICY as u32,
    abi = const datapage::ABI,
    slots = const datapage::SLOTS,
    slot_bytes = const SLOT_BYTES,
);
