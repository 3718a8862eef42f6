//! Bad pointers: a fault for what the page serves, the kernel's -EFAULT for the rest.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "a test fails by panicking, and registers are 64 bits wide here"
)]

use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ptr::null_mut;

use kernel_sim::functions::Functions;
use kernel_sim::map::MappedImage;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous};
use tests::child::{Outcome, outcome};
use tests::page::RawPage;

const EFAULT: i32 = 14;
const SEGV: Outcome = Outcome::Signalled(libc::SIGSEGV);

/// A call with one pointer.
type Case = (&'static str, fn(&Functions, *mut c_void) -> isize);

const CASES: [Case; 6] = [
    ("clock_gettime", |functions, pointer| {
        // SAFETY: the fault is the child's.
        unsafe { functions.clock_gettime.unwrap()(0, pointer.cast()) }
    }),
    ("clock_gettime coarse", |functions, pointer| {
        // SAFETY: as above.
        unsafe { functions.clock_gettime.unwrap()(5, pointer.cast()) }
    }),
    ("clock_getres", |functions, pointer| {
        // SAFETY: as above.
        unsafe { functions.clock_getres.unwrap()(0, pointer.cast()) }
    }),
    ("gettimeofday", |functions, pointer| {
        // SAFETY: as above.
        unsafe { functions.gettimeofday.unwrap()(pointer.cast(), null_mut()) }
    }),
    ("gettimeofday's timezone", |functions, pointer| {
        // SAFETY: as above.
        unsafe { functions.gettimeofday.unwrap()(null_mut(), pointer.cast()) }
    }),
    ("time", |functions, pointer| {
        // SAFETY: as above.
        unsafe { functions.time.unwrap()(pointer.cast()) as isize }
    }),
];

/// An unmapped address, a read-only one, and one outside of the canonical range (whose fault the
/// CPU reports in another way).
fn bad_pointers() -> [*mut c_void; 3] {
    let page = NonZeroUsize::new(4096).unwrap();
    // SAFETY: a mapping of its own.
    let read_only =
        unsafe { mmap_anonymous(None, page, ProtFlags::PROT_READ, MapFlags::MAP_PRIVATE) };
    [
        std::ptr::without_provenance_mut(16),
        read_only.unwrap().as_ptr(),
        std::ptr::without_provenance_mut(0x8000_0000_0000_0000),
    ]
}

/// The child's exit code: an errno, or 0.
fn errno(answer: isize) -> i32 {
    i32::try_from(-answer).unwrap_or(255).clamp(0, 255)
}

#[test]
fn a_bad_pointer_faults_where_the_page_serves() {
    let mut mapped = MappedImage::new(&linker::SYSCALL).unwrap();
    let (words, mapped) = mapped.split_words();
    RawPage::serving().store(words);
    let functions = mapped.functions();
    for pointer in bad_pointers() {
        for (name, call) in CASES {
            let ends = outcome(|| errno(call(&functions, pointer)));
            assert_eq!(ends, SEGV, "{name} at {pointer:?}");
        }
    }
}

#[test]
fn a_bad_pointer_gets_the_kernels_answer_where_it_does_not() {
    let mut mapped = MappedImage::new(&linker::SYSCALL).unwrap();
    let (_, mapped) = mapped.split_words();
    let functions = mapped.functions();
    for pointer in bad_pointers() {
        for (name, call) in CASES {
            let ends = outcome(|| errno(call(&functions, pointer)));
            assert_eq!(ends, Outcome::Exited(EFAULT), "{name} at {pointer:?}");
        }
    }
}

#[test]
fn a_good_time_is_stored_before_a_bad_timezone_faults() {
    let mut mapped = MappedImage::new(&linker::SYSCALL).unwrap();
    let (words, mapped) = mapped.split_words();
    RawPage::serving().store(words);
    let functions = mapped.functions();
    let shared = NonZeroUsize::new(4096).unwrap();
    // SAFETY: a mapping of its own.
    let tv = unsafe {
        mmap_anonymous(
            None,
            shared,
            ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
            MapFlags::MAP_SHARED,
        )
    }
    .unwrap();
    let bad = std::ptr::without_provenance_mut(16);
    // SAFETY: the fault is the child's; what it stores before is in shared memory.
    let ends =
        outcome(|| errno(unsafe { functions.gettimeofday.unwrap()(tv.as_ptr().cast(), bad) }));
    assert_eq!(ends, SEGV);
    // SAFETY: the mapping holds what the child stored.
    let seconds = unsafe { tv.cast::<i64>().read() };
    assert_eq!(seconds, 1_700_000_000);
}

#[test]
fn a_structure_may_be_misaligned() {
    let mut mapped = MappedImage::new(&linker::SYSCALL).unwrap();
    let (words, mapped) = mapped.split_words();
    RawPage::serving().store(words);
    let functions = mapped.functions();
    let mut buffer = [0_u64; 8];
    for off in 0..8 {
        let pointer: *mut c_void = (&raw mut buffer).cast::<u8>().wrapping_add(off).cast();
        for (name, call) in CASES {
            assert!(call(&functions, pointer) >= 0, "{name} at +{off}");
        }
    }
}
