//! The live kernel: system calls without a libc that would look at a vDSO, or at the arguments.

use std::arch::asm;
use std::ffi::c_void;

/// Numbers of the calls that a vDSO stands for (`arch/x86/entry/syscalls/syscall_64.tbl`).
pub mod number {
    /// `gettimeofday`.
    pub const GETTIMEOFDAY: usize = 96;
    /// `time`.
    pub const TIME: usize = 201;
    /// `clock_gettime`.
    pub const CLOCK_GETTIME: usize = 228;
    /// `clock_getres`.
    pub const CLOCK_GETRES: usize = 229;
    /// `getcpu`.
    pub const GETCPU: usize = 309;
}

/// The raw answer of a system call: a negative errno for an error.
///
/// # Safety
/// What that call may write through its arguments, the caller may.
#[must_use]
pub unsafe fn syscall(number: usize, first: usize, second: *mut c_void, third: usize) -> isize {
    let answer;
    // SAFETY: the kernel keeps all registers but RAX, RCX and R11; what it writes the caller
    // promises to be writable.
    unsafe {
        asm!("syscall", inlateout("rax") number => answer, in("rdi") first, in("rsi") second,
             in("rdx") third, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    answer
}

/// `clock_gettime` by system call, as seconds and nanoseconds.
///
/// # Panics
/// If the kernel refuses the clock.
#[must_use]
pub fn clock_gettime(id: i32) -> (i64, i64) {
    let mut spec = [0_i64; 2];
    let id = usize::try_from(id).expect("a clock that exists");
    // SAFETY: a live timespec.
    let answer = unsafe { syscall(number::CLOCK_GETTIME, id, (&raw mut spec).cast(), 0) };
    assert_eq!(answer, 0, "clock {id}");
    (spec[0], spec[1])
}
