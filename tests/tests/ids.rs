//! Every clock id on the shipped images, beside the live kernel in the same process.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "a test fails by panicking, and registers are 64 bits wide here"
)]

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use kernel_sim::drive::ids;
use kernel_sim::map::MappedImage;
use libc::timespec;
use linker::{Image, Policy};
use tests::child::{Outcome, outcome};
use tests::kernel::{number, syscall};
use tests::page::RawPage;

type ClockCall = unsafe extern "C" fn(c_int, *mut timespec) -> isize;

const SERVED: [i32; 7] = [0, 1, 4, 5, 6, 7, 11];
const UNTOUCHED: [i64; 2] = [0x5a5a_5a5a_5a5a_5a5a, -0x0123_4567_89ab_cdef];
const ENOSYS: isize = -38;

/// The kernel's own answer for an id, and what it left in memory.
fn live(number: usize, id: i32, pointer: *mut c_void) -> isize {
    // SAFETY: a null pointer, or a live timespec of the caller.
    unsafe { syscall(number, id as isize as usize, pointer, 0) }
}

fn with_page(image: &Image, page: Option<RawPage>, test: impl FnOnce(&MappedImage)) {
    let mut mapped = MappedImage::new(image).unwrap();
    let (words, mapped) = mapped.split_words();
    if let Some(page) = page {
        page.store(words);
    }
    test(mapped);
}

/// Compares both calls for each id, with and without a pointer.
fn sweep(mapped: &MappedImage, serves: bool) {
    let functions = mapped.functions();
    let calls: [(usize, ClockCall); 2] = [
        (number::CLOCK_GETTIME, functions.clock_gettime.unwrap()),
        (number::CLOCK_GETRES, functions.clock_getres.unwrap()),
    ];
    let enosys = mapped.image().policy == Policy::Enosys;
    for (number, call) in calls {
        for id in ids() {
            let served = serves && SERVED.contains(&id);
            let mut theirs = UNTOUCHED;
            let expected = live(number, id, (&raw mut theirs).cast());
            let expected = if enosys && !served { ENOSYS } else { expected };
            let mut ours = UNTOUCHED;
            // SAFETY: a live pair of words, which is what a timespec is.
            let answer = unsafe { call(id, (&raw mut ours).cast()) };
            assert_eq!(answer, expected, "call {number}, id {id}");
            if answer == 0 {
                assert!((0..1_000_000_000).contains(&ours[1]), "call {number}, id {id}: {ours:?}");
            } else {
                assert_eq!(ours, UNTOUCHED, "call {number}, id {id}: memory was touched");
            }

            if number == number::CLOCK_GETTIME && served {
                // The one documented difference: a fault instead of -EFAULT, as with Linux's vDSO.
                // SAFETY: the fault is the child's.
                let ends = outcome(|| unsafe { call(id, null_mut()) } as i32);
                assert_eq!(ends, Outcome::Signalled(libc::SIGSEGV), "id {id}");
                continue;
            }
            let expected = live(number, id, null_mut());
            let expected = if enosys && !served { ENOSYS } else { expected };
            // SAFETY: null is what the kernel gets, or is legal.
            let answer = unsafe { call(id, null_mut()) };
            assert_eq!(answer, expected, "call {number}, id {id}, null");
        }
    }
}

#[test]
fn every_id_is_answered_as_the_kernel_answers_it_where_the_page_serves() {
    with_page(&linker::SYSCALL, Some(RawPage::serving()), |mapped| {
        sweep(mapped, true);
    });
}

#[test]
fn every_id_is_answered_as_the_kernel_answers_it_where_the_page_serves_nothing() {
    with_page(&linker::SYSCALL, None, |mapped| sweep(mapped, false));
}

#[test]
fn the_enosys_image_refuses_what_the_page_does_not_serve_without_the_kernel() {
    with_page(&linker::ENOSYS, Some(RawPage::serving()), |mapped| {
        sweep(mapped, true);
    });
    with_page(&linker::ENOSYS, None, |mapped| sweep(mapped, false));
}

#[test]
fn the_register_call_takes_the_same_ids() {
    with_page(&linker::SYSCALL, Some(RawPage::serving()), |mapped| {
        let call = mapped.functions().clock_gettime_ns.unwrap();
        for id in ids() {
            let mut spec = UNTOUCHED;
            let kernel = live(number::CLOCK_GETTIME, id, (&raw mut spec).cast());
            // SAFETY: the image is mapped.
            let answer = unsafe { call(id) };
            if kernel == 0 {
                assert!(answer >= 0, "id {id}: {answer}");
            } else {
                assert_eq!(answer, kernel as i64, "id {id}");
            }
        }
    });
}

#[test]
fn the_upper_half_of_the_ids_register_is_ignored() {
    type Wide = unsafe extern "C" fn(u64, *mut timespec) -> isize;
    with_page(&linker::SYSCALL, Some(RawPage::serving()), |mapped| {
        let functions = mapped.functions();
        for call in [functions.clock_gettime, functions.clock_getres] {
            let call = call.unwrap();
            // SAFETY: an i32 is passed in the low half of the register that a u64 fills.
            let wide = unsafe { std::mem::transmute::<ClockCall, Wide>(call) };
            for id in [0, 1, 2, 5, 8, 11, 12, -1, -6, i32::MIN, i32::MAX] {
                let (mut plain, mut dirty) = (UNTOUCHED, UNTOUCHED);
                // SAFETY: a live pair of words.
                let expected = unsafe { call(id, (&raw mut plain).cast()) };
                let register = 0xdead_beef_0000_0000 | u64::from(id.cast_unsigned());
                // SAFETY: as above.
                let answer = unsafe { wide(register, (&raw mut dirty).cast()) };
                assert_eq!(answer, expected, "id {id}");
                // The kernel's own clocks move on between two calls; the page stands still.
                if SERVED.contains(&id) || answer != 0 {
                    assert_eq!(dirty, plain, "id {id}");
                }
            }
        }
    });
}
