//! What every CPU has before it runs its first program.
//!
//! A clock mode or a feature bit of the page is a promise for all CPUs: a program may move from one
//! to another between two instructions. What cannot be had, or not be checked, is not promised; the
//! image asks the kernel then.

use datapage::{ClockMode, Features};

/// A CPU that comes up, as the rest of the kernel sets it up: on x86.
pub trait Cpu {
    /// `node << 12 | cpu`: what getcpu answers there.
    fn place(&self) -> u32;

    /// Lets programs read the counter (CR4.TSD clear) and makes LFENCE wait for earlier loads where
    /// that is a choice (AMD: MSR 0xc0011029, bit 1).
    ///
    /// Whether the counter neither stops nor changes its rate (CPUID 0x80000007, EDX bit 8), and
    /// agrees with those of the CPUs that are up.
    fn enable_counter(&mut self) -> bool;

    /// Writes IA32_TSC_AUX; whether programs have RDPID to read it.
    fn set_tsc_aux(&mut self, value: u32) -> bool;

    /// Makes GDT entry 15 a segment of that limit, visible in user mode (selector 0x7b); whether it
    /// did.
    fn set_segment_limit(&mut self, limit: u32) -> bool;
}

/// What holds on every CPU that has come up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promises {
    /// How programs read the counter.
    pub mode: ClockMode,
    /// How they learn on which CPU they are.
    pub features: Features,
}

impl Promises {
    /// Everything that is good, before the first CPU was asked.
    #[must_use]
    pub const fn all() -> Self {
        Self { mode: ClockMode::COUNTER, features: Features::all() }
    }

    /// On each CPU as it comes up, after a sleep too: sets it up, and takes back what it lacks.
    pub fn hold_on(&mut self, cpu: &mut impl Cpu) {
        let place = cpu.place();
        if !cpu.enable_counter() {
            self.mode = ClockMode::NONE;
        }
        for (feature, holds) in [
            (Features::GETCPU_RDPID, cpu.set_tsc_aux(place)),
            (Features::GETCPU_SEGMENT_LIMIT, cpu.set_segment_limit(place)),
        ] {
            if !holds {
                self.features.remove(feature);
            }
        }
    }
}
