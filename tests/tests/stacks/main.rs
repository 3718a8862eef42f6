//! The shipped images on any stack, with any registers.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "a test fails by panicking, and registers are 64 bits wide here"
)]

mod cases;
mod frame;
mod signal;

use std::arch::asm;
use std::sync::atomic::AtomicU64;

use kernel_sim::map::{MappedImage, WORDS};
use tests::child::{Outcome, outcome};
use tests::page::RawPage;

use cases::{Case, address_of, calls, cases, is_of_path, mapped};
use frame::{Frame, KEPT_FLAGS, REGISTERS, Stack};

/// Every call on every page, on a stack that ends at `top` bytes above a guard page; returns the
/// most that one has used, and who.
fn call_all(
    mapped: &MappedImage,
    words: &[AtomicU64; WORDS],
    top: usize,
    flags: u64,
) -> (usize, String) {
    let stack = Stack::new();
    let mut memory = [0_u64; 4];
    let mut most = (0, String::new());
    for Case { path, page, shown } in cases() {
        page.store(words);
        for (name, function, arguments) in calls(mapped, address_of(&mut memory)) {
            stack.fill(top);
            // SAFETY: the function gets arguments that it may be given, and a page of stack.
            let frame = unsafe { Frame::call(function, arguments, stack.top(top), flags) };
            let case = format!("{name} {arguments:x?} on a page for {path}");
            if name == "clock_gettime" && arguments[0] == 0 {
                let took = (frame.answer as i64, memory[0] as i64);
                assert!(is_of_path(took, shown.as_ref(), mapped.image()), "{case}: {took:?}");
            }
            assert_eq!(frame.registers_after, REGISTERS, "{case}");
            assert_eq!(frame.stack_after, frame.stack - 8, "{case}");
            assert_eq!(frame.flags_after & KEPT_FLAGS, flags & KEPT_FLAGS, "{case}");
            // What the trampoline itself pushed is not the callee's.
            let used = stack.used(top - 8);
            assert!(used >= 8, "{case}: not even a return address on that stack");
            if used > most.0 {
                most = (used, case);
            }
        }
    }
    most
}

/// The room that a function of the image may take, return address included.
const BUDGET: usize = 224;

#[test]
fn a_call_needs_little_stack_and_keeps_registers_and_flags() {
    for image in [&linker::SYSCALL, &linker::ENOSYS] {
        for mut mapped in mapped(image) {
            let (words, mapped) = mapped.split_words();
            for top in [4096, 4088] {
                let (used, case) = call_all(mapped, words, top, 1 << 21);
                assert!(used <= BUDGET, "{case} used {used} bytes");
            }
        }
    }
}

#[test]
fn a_call_runs_on_256_bytes_above_a_guard_page_aligned_or_not() {
    for image in [&linker::SYSCALL, &linker::ENOSYS] {
        for mut mapped in mapped(image) {
            let (words, mapped) = mapped.split_words();
            // At a function's entry the ABI has RSP at 8 modulo 16; both are tried.
            for top in [256, 256 - 8] {
                let ends = outcome(|| {
                    call_all(mapped, words, top, 0);
                    0
                });
                assert_eq!(ends, Outcome::Exited(0), "{top} bytes");
            }
        }
    }
}

#[test]
fn the_second_page_is_read_behind_that_of_a_namespace() {
    // The control of `mapped`: only a namespace's readers add its offset.
    let secs = mapped(&linker::ENOSYS).map(|mut mapped| {
        let (words, mapped) = mapped.split_words();
        RawPage::serving().store(words);
        let mut spec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let clock_gettime = mapped.functions().clock_gettime.unwrap();
        // SAFETY: a live timespec, and the image is mapped.
        assert_eq!(unsafe { clock_gettime(libc::CLOCK_MONOTONIC, &raw mut spec) }, 0);
        spec.tv_sec
    });
    assert_eq!(secs, [5000, 5002]);
}

#[test]
fn the_guard_page_is_one() {
    // The control of the test above: a stack that is too small does fault.
    let mut mapped = MappedImage::new(&linker::SYSCALL).unwrap();
    let (words, mapped) = mapped.split_words();
    let ends = outcome(|| {
        call_all(mapped, words, 8, 0);
        0
    });
    assert_eq!(ends, Outcome::Signalled(libc::SIGSEGV));
}

#[test]
fn the_floating_point_environment_is_kept() {
    let mut mapped = MappedImage::new(&linker::SYSCALL).unwrap();
    let (words, mapped) = mapped.split_words();
    // Round up, flush to zero; round down in the x87.
    let (rounding, control): (u32, u16) = (0xdf80, 0x077f);
    let (mut rounding_after, mut control_after): (u32, u16) = (0, 0);
    let (mut old_rounding, mut old_control): (u32, u16) = (0, 0);
    // SAFETY: stores both control words; live variables.
    unsafe {
        asm!("stmxcsr [{}]", "fnstcw [{}]", in(reg) &raw mut old_rounding, in(reg) &raw mut old_control)
    };
    // SAFETY: loads legal control words; they are put back below.
    unsafe {
        asm!("ldmxcsr [{}]", "fldcw [{}]", in(reg) &raw const rounding, in(reg) &raw const control)
    };
    call_all(mapped, words, 4096, 0);
    // SAFETY: as above.
    unsafe {
        asm!("stmxcsr [{}]", "fnstcw [{}]", in(reg) &raw mut rounding_after, in(reg) &raw mut control_after)
    };
    // SAFETY: as above.
    unsafe {
        asm!("ldmxcsr [{}]", "fldcw [{}]", in(reg) &raw const old_rounding, in(reg) &raw const old_control)
    };
    assert_eq!((rounding_after & 0xffc0, control_after), (rounding & 0xffc0, control));
}
