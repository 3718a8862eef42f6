//! Which of the two ordered reads of the counter a page asks for on this CPU.

use std::arch::x86_64::{__cpuid, CpuidResult};

use datapage::ClockMode;

/// The mode that a page for this machine's programs is published in, if its counter is a clock.
///
/// `rdtscp` where the CPU has it and is Intel's, `lfence; rdtsc` elsewhere
/// (`docs/decisions/0007-which-counter-on-x86.md`: measured, and both are ordered).
#[must_use]
pub fn counter_mode() -> ClockMode {
    if is_intel() && has_rdtscp() { ClockMode::RDTSCP } else { ClockMode::COUNTER }
}

/// Vendor string of leaf 0 (Intel SDM volume 2, CPUID).
fn is_intel() -> bool {
    let CpuidResult { ebx, ecx, edx, .. } = __cpuid(0);
    [ebx, edx, ecx].map(u32::to_le_bytes).as_flattened() == b"GenuineIntel"
}

/// Bit 27 of EDX in leaf 0x8000_0001, if there is that leaf.
pub(crate) fn has_rdtscp() -> bool {
    const EXTENDED: u32 = 0x8000_0000;
    __cpuid(EXTENDED).eax > EXTENDED && __cpuid(EXTENDED + 1).edx & (1 << 27) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_agrees_with_what_the_kernel_says_of_the_cpu() {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let flags = info.lines().find(|line| line.starts_with("flags")).unwrap();
        assert_eq!(has_rdtscp(), flags.split_whitespace().any(|flag| flag == "rdtscp"));
        assert_eq!(is_intel(), info.contains("GenuineIntel"));
        assert!([ClockMode::RDTSCP, ClockMode::COUNTER].contains(&counter_mode()));
    }
}
