//! Which way of asking a CPU for its number holds on every CPU.

use std::arch::x86_64::__cpuid_count;

use datapage::Features;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// CPUID leaf 7, ECX: the CPU has RDPID (Intel SDM volume 2, CPUID).
const RDPID: u32 = 1 << 22;

/// The feature bit for `getcpu` that a page for this machine's programs gets; none where no way
/// holds on every CPU.
#[must_use]
pub fn getcpu_features() -> Features {
    let ways = getcpu_ways();
    // One way is enough, and a page that promises both would only hide which one is used.
    if ways.contains(Features::GETCPU_RDPID) { Features::GETCPU_RDPID } else { ways }
}

/// The feature bits for `getcpu` that are true on every CPU that a program of this process can get
/// to; none where it cannot be verified.
///
/// The calling thread visits each CPU, asks it both ways, and compares with the system call. What
/// the kernel refuses to move it to (an offline CPU, one outside of the control group) no program
/// started from here can get to either.
pub(crate) fn getcpu_ways() -> Features {
    let this = Pid::from_raw(0);
    let Ok(before) = sched_getaffinity(this) else {
        return Features::empty();
    };
    let mut features = Features::GETCPU_SEGMENT_LIMIT;
    if __cpuid_count(7, 0).ecx & RDPID != 0 {
        features |= Features::GETCPU_RDPID;
    }
    let mut visited = 0;
    for cpu in 0..CpuSet::count() {
        let mut one = CpuSet::new();
        if one.set(cpu).is_err() || sched_setaffinity(this, &one).is_err() {
            continue;
        }
        features &= verified_here(features);
        visited += 1;
    }
    if sched_setaffinity(this, &before).is_err() || visited == 0 {
        return Features::empty();
    }
    features
}

/// Those of `candidates` that give this CPU's own answer.
fn verified_here(candidates: Features) -> Features {
    let Some(expected) = by_system_call() else {
        return Features::empty();
    };
    candidates.iter().filter(|&way| by_cpu(way) == Some(expected)).collect()
}

fn by_system_call() -> Option<u32> {
    let (mut cpu, mut node) = (0_u32, 0_u32);
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: two live words, and no cache.
    let answer = unsafe { libc::syscall(libc::SYS_getcpu, &raw mut cpu, &raw mut node, none) };
    (answer == 0 && cpu < 1 << 12).then_some(node << 12 | cpu)
}

fn by_cpu(way: Features) -> Option<u32> {
    if way == Features::GETCPU_RDPID {
        let both: u64;
        // SAFETY: CPUID says that the instruction exists; it reads one register.
        unsafe {
            std::arch::asm!("rdpid {}", out(reg) both, options(nomem, nostack, preserves_flags));
        }
        return u32::try_from(both).ok();
    }
    let both: u32;
    let found: u8;
    // SAFETY: reads the limit of a segment, or says in ZF that there is none.
    unsafe {
        std::arch::asm!("lsl {both:e}, {segment:e}", "setz {found}", both = out(reg) both,
            segment = in(reg) 0x7b_u32, found = out(reg_byte) found, options(nomem, nostack));
    }
    (found == 1).then_some(both)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_promised_was_verified_and_the_affinity_is_as_before() {
        let before = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let features = getcpu_features();
        assert_eq!(sched_getaffinity(Pid::from_raw(0)).unwrap(), before);
        assert!(features.bits().count_ones() <= 1, "{features:?}");
        for _ in 0..1000 {
            // The thread may move between two reads: one equal pair in a row is the claim.
            let agrees = (0..10).any(|_| verified_here(features) == features);
            assert!(agrees, "{features:?}");
        }
    }
}
