//! The calls of 32-bit architectures.
//!
//! The plain names have 32-bit seconds; `clock_gettime64` and
//! `clock_getres_time64` have 64-bit ones. `gettimeofday` and `time` never got a wide variant.
//! `time` and `getcpu` are x86's alone.

use vdso::{TimeSpec, TimeSpec32, TimeVal32, Timezone, UserPtr};

use crate::Machine;

/// `clock_gettime(2)` with 32-bit seconds; see [`vdso::clock_gettime`].
// SAFETY: the symbol is the image's own; nothing else is linked with it.
#[unsafe(no_mangle)]
extern "C" fn __vdso_clock_gettime(id: i32, ts: *mut TimeSpec32) -> isize {
    // SAFETY: the caller's claim.
    let ts = unsafe { UserPtr::new(ts) };
    vdso::clock_gettime(&Machine, id, ts)
}

/// `clock_gettime(2)` with 64-bit seconds; see [`vdso::clock_gettime`].
// SAFETY: the symbol is the image's own; nothing else is linked with it.
#[unsafe(no_mangle)]
extern "C" fn __vdso_clock_gettime64(id: i32, ts: *mut TimeSpec) -> isize {
    // SAFETY: the caller's claim.
    let ts = unsafe { UserPtr::new(ts) };
    vdso::clock_gettime(&Machine, id, ts)
}

/// `clock_getres(2)` with 32-bit seconds; see [`vdso::clock_getres`].
// SAFETY: the symbol is the image's own; nothing else is linked with it.
#[unsafe(no_mangle)]
extern "C" fn __vdso_clock_getres(id: i32, res: *mut TimeSpec32) -> isize {
    // SAFETY: the caller's claim.
    let res = unsafe { UserPtr::new(res) };
    vdso::clock_getres(&Machine, id, res)
}

/// `clock_getres(2)` with 64-bit seconds; see [`vdso::clock_getres`].
// SAFETY: the symbol is the image's own; nothing else is linked with it.
#[unsafe(no_mangle)]
extern "C" fn __vdso_clock_getres_time64(id: i32, res: *mut TimeSpec) -> isize {
    // SAFETY: the caller's claim.
    let res = unsafe { UserPtr::new(res) };
    vdso::clock_getres(&Machine, id, res)
}

/// `gettimeofday(2)`; see [`vdso::gettimeofday`].
// SAFETY: the symbol is the image's own; nothing else is linked with it.
#[unsafe(no_mangle)]
extern "C" fn __vdso_gettimeofday(tv: *mut TimeVal32, tz: *mut Timezone) -> isize {
    // SAFETY: the caller's claim.
    let tv = unsafe { UserPtr::new(tv) };
    // SAFETY: the caller's claim.
    let tz = unsafe { UserPtr::new(tz) };
    vdso::gettimeofday(&Machine, tv, tz)
}

/// `time(2)`; see [`vdso::time`].
// SAFETY: the symbol is the image's own; nothing else is linked with it.
#[cfg(target_arch = "x86")]
#[unsafe(no_mangle)]
extern "C" fn __vdso_time(t: *mut i32) -> i32 {
    // SAFETY: the caller's claim.
    let t = unsafe { UserPtr::new(t) };
    vdso::time(&Machine, t)
}

/// `getcpu(2)`; see [`vdso::getcpu`].
// SAFETY: the symbol is the image's own; nothing else is linked with it.
#[cfg(target_arch = "x86")]
#[unsafe(no_mangle)]
extern "C" fn __vdso_getcpu(cpu: *mut u32, node: *mut u32, unused: usize) -> isize {
    // SAFETY: the caller's claim.
    let cpu = unsafe { UserPtr::new(cpu) };
    // SAFETY: the caller's claim.
    let node = unsafe { UserPtr::new(node) };
    vdso::getcpu(&Machine, cpu, node, unused)
}

/// Nanoseconds of a clock in two registers; see [`vdso::clock_gettime_ns`].
// SAFETY: the symbol is the image's own; nothing else is linked with it.
#[unsafe(no_mangle)]
extern "C" fn __vdso_clock_gettime_ns(id: i32) -> i64 {
    vdso::clock_gettime_ns(&Machine, id)
}
