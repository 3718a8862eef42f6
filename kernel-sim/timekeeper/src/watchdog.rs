//! Is a counter still good? And if not, which one is next?
//!
//! A fast counter of a CPU may change its rate or stop in deep sleep without a word. A watchdog
//! compares it with a slow but honest one at intervals. It only judges: going over to another
//! counter is [`Timekeeper::set_clocksource`](crate::Timekeeper::set_clocksource).

use datapage::cycles::elapsed_cycles;

use crate::clocksource::Clocksource;
use crate::ntp::FINE_BITS;
use crate::timekeeper::product;

/// How far two counters may drift apart between two checks, in nanoseconds: the time that two
/// pairs of reads may take when interrupts of the machine's firmware come in between.
pub const DEFAULT_MARGIN_NS: u32 = 250_000;

/// The counter of the highest rating, the first one among equals; `None` if none is fit.
#[doc(alias = "clocksource_select")]
#[must_use]
pub fn best(counters: &[Clocksource]) -> Option<&Clocksource> {
    counters
        .iter()
        .filter(|counter| counter.rating() > 0)
        .reduce(|best, other| if other.rating() > best.rating() { other } else { best })
}

/// What a check says of the watched counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing yet: it was the first check, or the interval was longer than one of the two counters
    /// can measure.
    Unknown,
    /// It agrees.
    Good {
        /// By how much it went ahead of the reference, in nanoseconds.
        ahead_ns: i64,
    },
    /// It does not.
    Unstable {
        /// By how much it went ahead of the reference, in nanoseconds.
        ahead_ns: i64,
    },
}

/// Compares a counter with a reference.
#[derive(Clone, Copy, Debug)]
pub struct Watchdog {
    watched: Clocksource,
    reference: Clocksource,
    margin_ns: u32,
    last: Option<Pair>,
}

/// Both counters, read together.
#[derive(Clone, Copy, Debug)]
struct Pair {
    watched: u64,
    reference: u64,
}

impl Watchdog {
    /// A watchdog of `watched`, by `reference`.
    #[must_use]
    pub const fn new(watched: Clocksource, reference: Clocksource, margin_ns: u32) -> Self {
        Self { watched, reference, margin_ns, last: None }
    }

    /// Judges the time since the last check, from both counters read together. `interval_ns` is how
    /// long that is at most, as the kernel's timer knows it.
    #[doc(alias = "clocksource_watchdog")]
    pub fn check(
        &mut self,
        watched_cycles: u64,
        reference_cycles: u64,
        interval_ns: u64,
    ) -> Verdict {
        let last = self.last.replace(Pair { watched: watched_cycles, reference: reference_cycles });
        let Some(last) = last else {
            return Verdict::Unknown;
        };
        let longest = self.watched.max_idle_ns().min(self.reference.max_idle_ns());
        if interval_ns > longest {
            return Verdict::Unknown;
        }
        let ahead = nanos(&self.watched, watched_cycles, last.watched).saturating_sub(nanos(
            &self.reference,
            reference_cycles,
            last.reference,
        ));
        #[allow(clippy::cast_possible_truncation, reason = "62 bits of 128 are left")]
        let ahead_ns = (ahead >> FINE_BITS) as i64;
        if ahead_ns.unsigned_abs() > u64::from(self.margin_ns) {
            Verdict::Unstable { ahead_ns }
        } else {
            Verdict::Good { ahead_ns }
        }
    }

    /// Forgets the last check: after a suspend, or any time in which the counters stood still.
    pub const fn forget(&mut self) {
        self.last = None;
    }
}

/// The time between two values of a counter, in 2^-66 ns; saturated.
fn nanos(counter: &Clocksource, now: u64, last: u64) -> i128 {
    let scale = counter.scale();
    let cycles = elapsed_cycles(now, last, scale.mask);
    i128::try_from(product(cycles, scale.mult))
        .unwrap_or(i128::MAX)
        .saturating_mul(1 << FINE_BITS.wrapping_sub(scale.shift))
}
