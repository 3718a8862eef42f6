//! The machine's CPUs: the host's kernel has set them up, so here it is checked what it did.

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::ffi::{c_int, c_long};

use embed::cpu::{Cpu, Promises};

unsafe extern "C" {
    fn prctl(option: c_int, ...) -> c_int;
    fn sched_getaffinity(process: c_int, bytes: usize, set: *mut u64) -> c_int;
    fn sched_setaffinity(process: c_int, bytes: usize, set: *const u64) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
}

/// As many CPUs as Linux's own set has.
type Set = [u64; 16];

/// Brings up one CPU after the other: what all of them keep.
pub(crate) fn bring_up() -> Result<Promises, String> {
    let mut allowed: Set = [0; 16];
    // SAFETY: a set of that many bytes.
    if unsafe { sched_getaffinity(0, size_of::<Set>(), allowed.as_mut_ptr()) } < 0 {
        return Err("the CPUs of this process are not known".to_owned());
    }
    let mut promises = Promises::all();
    for cpu in (0..1024).filter(|cpu| allowed[cpu / 64] >> (cpu % 64) & 1 == 1) {
        let mut one: Set = [0; 16];
        one[cpu / 64] = 1 << (cpu % 64);
        move_to(&one)?;
        promises.hold_on(&mut Here);
    }
    move_to(&allowed)?;
    Ok(promises)
}

fn move_to(set: &Set) -> Result<(), String> {
    // SAFETY: a set of that many bytes.
    match unsafe { sched_setaffinity(0, size_of::<Set>(), set.as_ptr()) } {
        0 => Ok(()),
        _ => Err(format!("no CPU to run on: {}", std::io::Error::last_os_error())),
    }
}

/// The CPU that this runs on.
struct Here;

impl Cpu for Here {
    fn place(&self) -> u32 {
        place()
    }

    fn enable_counter(&mut self) -> bool {
        const PR_GET_TSC: c_int = 25;
        const PR_TSC_ENABLE: c_int = 1;
        let mut state: c_int = 0;
        // SAFETY: writes an int.
        let is_known = unsafe { prctl(PR_GET_TSC, &raw mut state) } == 0;
        let is_constant =
            __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx >> 8 & 1 == 1;
        is_known && state == PR_TSC_ENABLE && is_constant
    }

    fn set_tsc_aux(&mut self, value: u32) -> bool {
        let has_rdpid = __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ecx >> 22 & 1 == 1;
        if !has_rdpid {
            return false;
        }
        let found: u64;
        // SAFETY: the CPU has the instruction, which reads a register.
        unsafe { asm!("rdpid {}", out(reg) found, options(nomem, nostack, preserves_flags)) };
        found == u64::from(value)
    }

    fn set_segment_limit(&mut self, limit: u32) -> bool {
        let found: u32;
        // SAFETY: reads a limit, or nothing where there is no such segment.
        unsafe {
            asm!("xor {found:e}, {found:e}", "lsl {found:e}, {selector:e}",
                 found = out(reg) found, selector = in(reg) 0x7b, options(nomem, nostack));
        }
        found == limit
    }
}

/// `node << 12 | cpu`, as the host's kernel says.
pub(crate) fn place() -> u32 {
    let (mut cpu, mut node) = (0_u32, 0_u32);
    // SAFETY: writes two ints.
    unsafe { syscall(309, &raw mut cpu, &raw mut node, 0_usize) };
    node << 12 | cpu
}
