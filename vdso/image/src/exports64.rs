//! The calls of 64-bit architectures.
//!
//! Linux names them `__vdso_*`, on aarch64 `__kernel_*`; `time` is x86's alone, and aarch64 has no
//! `getcpu`. Our own call has one name everywhere.

use vdso::{TimeSpec, TimeVal, Timezone, UserPtr};

use crate::Machine;

/// `clock_gettime(2)`; see [`vdso::clock_gettime`].
// SAFETY: the symbol is the image's own; nothing else is linked with it.
#[cfg_attr(target_arch = "aarch64", unsafe(export_name = "__kernel_clock_gettime"))]
#[cfg_attr(not(target_arch = "aarch64"), unsafe(no_mangle))]
extern "C" fn __vdso_clock_gettime(id: i32, ts: *mut TimeSpec) -> isize {
    // SAFETY: the caller's claim.
    let ts = unsafe { UserPtr::new(ts) };
    vdso::clock_gettime(&Machine, id, ts)
}

/// `clock_getres(2)`; see [`vdso::clock_getres`].
// SAFETY: the symbol is the image's own; nothing else is linked with it.
#[cfg_attr(target_arch = "aarch64", unsafe(export_name = "__kernel_clock_getres"))]
#[cfg_attr(not(target_arch = "aarch64"), unsafe(no_mangle))]
extern "C" fn __vdso_clock_getres(id: i32, res: *mut TimeSpec) -> isize {
    // SAFETY: the caller's claim.
    let res = unsafe { UserPtr::new(res) };
    vdso::clock_getres(&Machine, id, res)
}

/// `gettimeofday(2)`; see [`vdso::gettimeofday`].
// SAFETY: the symbol is the image's own; nothing else is linked with it.
#[cfg_attr(target_arch = "aarch64", unsafe(export_name = "__kernel_gettimeofday"))]
#[cfg_attr(not(target_arch = "aarch64"), unsafe(no_mangle))]
extern "C" fn __vdso_gettimeofday(tv: *mut TimeVal, tz: *mut Timezone) -> isize {
    // SAFETY: the caller's claim.
    let tv = unsafe { UserPtr::new(tv) };
    // SAFETY: the caller's claim.
    let tz = unsafe { UserPtr::new(tz) };
    vdso::gettimeofday(&Machine, tv, tz)
}

/// `time(2)`; see [`vdso::time`].
// SAFETY: the symbol is the image's own; nothing else is linked with it.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
extern "C" fn __vdso_time(t: *mut i64) -> i64 {
    // SAFETY: the caller's claim.
    let t = unsafe { UserPtr::new(t) };
    vdso::time(&Machine, t)
}

/// `getcpu(2)`; see [`vdso::getcpu`].
// SAFETY: the symbol is the image's own; nothing else is linked with it.
#[cfg(not(target_arch = "aarch64"))]
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
