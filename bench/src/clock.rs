//! The stopwatch and the CPU that it runs on.

use std::arch::asm;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The time-stamp counter, read after everything before it and before everything behind it.
#[inline(always)] // a call would be measured too
#[must_use]
pub fn cycles() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: neither instruction touches memory, the stack or the flags. Not `nomem`: the compiler
    // must not move the measured code across.
    unsafe {
        asm!("lfence", "rdtsc", "lfence", out("rax") low, out("rdx") high,
             options(nostack, preserves_flags));
    }
    low | (high << 32)
}

/// Nanoseconds of one cycle of the counter, measured once against the host's raw clock.
#[must_use]
pub fn nanos_per_cycle() -> f64 {
    static RATE: OnceLock<f64> = OnceLock::new();
    *RATE.get_or_init(|| {
        let (start_cycles, start) = both();
        std::thread::sleep(Duration::from_millis(60));
        let (end_cycles, end) = both();
        end.duration_since(start).as_nanos() as f64 / (end_cycles - start_cycles) as f64
    })
}

/// The counter and the host's clock at the same moment: the narrowest of many tries.
fn both() -> (u64, Instant) {
    let attempt = || {
        let before = cycles();
        let instant = Instant::now();
        let after = cycles();
        (after - before, before + (after - before) / 2, instant)
    };
    let (_, cycles, instant) =
        (0..100).map(|_| attempt()).min_by_key(|&(width, ..)| width).unwrap_or_else(attempt);
    (cycles, instant)
}

/// The CPUs that this process may run on.
///
/// # Errors
/// What the kernel says.
pub fn cpus() -> nix::Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    Ok((0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect())
}

/// Keeps the calling thread on `cpu`.
///
/// # Errors
/// What the kernel says.
pub fn pin(cpu: usize) -> nix::Result<()> {
    allow(&[cpu])
}

/// Lets the calling thread, and what it starts, run on `cpus`.
///
/// # Errors
/// What the kernel says.
pub fn allow(cpus: &[usize]) -> nix::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu)?;
    }
    sched_setaffinity(Pid::from_raw(0), &set)
}
