//! What a watchdog must say of a counter, and what a kernel may do after it has.
//!
//! Two counters are read together, twice. Between the two times each has counted a time by its own
//! scale; the watched one is good if the two times differ by no more than the margin. A counter that
//! is not good is left before anything else is published, and never taken again.

use crate::event::{Event, Source};
use crate::fine::FINE_BITS;
use crate::published::{Motion, NANOS, Scale, motion};

/// What the kernel makes of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: there was no comparison before it, or it was too long ago.
    Unknown,
    /// The counter in use is good.
    Good,
    /// It is not.
    Unstable,
}

/// What is known of the comparisons so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Watchdog {
    /// Both counters at the last one.
    last: Option<(u64, u64)>,
    /// Numbers of the counters that were found unstable.
    unstable: Vec<usize>,
    /// Whether the counter in use is one of them.
    must_leave: bool,
}

impl Watchdog {
    /// Whether a kernel with the counter `source` may do this.
    pub(crate) fn allows(&self, event: &Event, source: &Source) -> bool {
        match event {
            Event::Switch { source, .. } => !self.unstable.contains(&source.number),
            _ if self.must_leave => false,
            &Event::Watchdog { now, reference, reference_now, interval_ns, margin_ns, verdict } => {
                let Some((last, reference_last)) = self.last else {
                    return verdict == Verdict::Unknown;
                };
                let longest = trusted_ns(source).min(trusted_ns(&reference));
                if i128::from(interval_ns) > longest {
                    return verdict == Verdict::Unknown;
                }
                let watched = time(source.scale, last, now);
                let apart = watched - time(reference.scale, reference_last, reference_now);
                let margin = i128::from(margin_ns) << SHIFT;
                // It is the kernel's to round the difference to a nanosecond.
                match verdict {
                    Verdict::Unknown => false,
                    Verdict::Good => apart.abs() < margin + (1 << SHIFT),
                    Verdict::Unstable => apart.abs() > margin,
                }
            }
            _ => true,
        }
    }

    /// It has done so.
    pub(crate) fn note(&mut self, event: &Event, source: &Source) {
        match *event {
            Event::Watchdog { now, reference_now, verdict, .. } => {
                self.last = Some((now, reference_now));
                if verdict == Verdict::Unstable {
                    self.unstable.push(source.number);
                    self.must_leave = true;
                }
            }
            // The counter is another, or it was said that what it counted means nothing.
            Event::Switch { .. } | Event::Rebase { .. } | Event::Resume { .. } => {
                self.last = None;
                self.must_leave = false;
            }
            _ => {}
        }
    }
}

/// How long a counter can be trusted without a look at it, in nanoseconds: half of its range, less
/// an eighth of that.
pub(crate) fn trusted_ns(source: &Source) -> i128 {
    let half = i128::from(source.scale.mask / 2);
    (half - half / 8) * NANOS / i128::from(source.hz)
}

/// Times are in 2^-34 ns here, which is exact for every scale.
const SHIFT: u32 = FINE_BITS - 32;

/// The time that a counter of this scale makes from `last` to `now`. Beyond 2^80 ns, where the unit
/// ends, any number is as good as another.
fn time(scale: Scale, last: u64, now: u64) -> i128 {
    let cycles = match motion(last, now, scale.mask) {
        Motion::Ahead(cycles) => i128::from(cycles),
        Motion::Behind => 0,
    };
    let product = cycles * i128::from(scale.mult);
    let (whole, rest) = (product >> scale.shift, product & ((1 << scale.shift) - 1));
    (whole.min(1 << 80) << SHIFT) + (rest << (SHIFT - scale.shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Source = Source {
        number: 0,
        scale: Scale { mask: u64::MAX, mult: 1 << 20, shift: 20 },
        hz: 1_000_000_000,
        is_readable: true,
        is_nonstop: false,
    };
    const SLOW: Source = Source {
        number: 1,
        scale: Scale { mask: 0xffff_ffff, mult: 1000 << 20, shift: 20 },
        hz: 1_000_000,
        ..FAST
    };

    fn check(now: u64, reference_now: u64, verdict: Verdict) -> Event {
        let interval_ns = 500_000_000;
        let margin_ns = 250_000;
        Event::Watchdog { now, reference: SLOW, reference_now, interval_ns, margin_ns, verdict }
    }

    #[test]
    fn a_verdict_is_what_the_two_counters_say() {
        let mut watchdog = Watchdog::default();
        assert!(!watchdog.allows(&check(7, 0xffff_0000, Verdict::Good), &FAST), "the first one");
        let first = check(7, 0xffff_0000, Verdict::Unknown);
        assert!(watchdog.allows(&first, &FAST));
        watchdog.note(&first, &FAST);
        // 500000 us by the slow one, which goes around.
        let slow = 0xffff_0000_u64 + 500_000 - (1 << 32);
        for (fast, verdict) in [
            (500_000_000, Verdict::Good),
            (500_250_000, Verdict::Good),
            (499_750_000, Verdict::Good),
            (500_250_001, Verdict::Unstable),
            (499_749_999, Verdict::Unstable),
            (0, Verdict::Unstable),
        ] {
            for other in [Verdict::Unknown, Verdict::Good, Verdict::Unstable] {
                let is_due = watchdog.allows(&check(7 + fast, slow, other), &FAST);
                assert_eq!(is_due, other == verdict, "{fast} is {verdict:?}, not {other:?}");
            }
        }
    }

    #[test]
    fn an_unstable_counter_is_left_and_not_taken_again() {
        let mut watchdog = Watchdog::default();
        watchdog.note(&check(0, 0, Verdict::Unknown), &FAST);
        let condemned = check(0, 1_000, Verdict::Unstable);
        assert!(watchdog.allows(&condemned, &FAST));
        watchdog.note(&condemned, &FAST);
        let tick = Event::Tick { now: 5 };
        assert!(!watchdog.allows(&tick, &FAST), "first it has to go");
        let to = |source| Event::Switch { now: 5, source, new_now: 5 };
        assert!(!watchdog.allows(&to(FAST), &FAST));
        assert!(watchdog.allows(&to(SLOW), &FAST));
        watchdog.note(&to(SLOW), &FAST);
        assert!(watchdog.allows(&tick, &SLOW));
        assert!(!watchdog.allows(&to(FAST), &SLOW), "for ever");
        assert_eq!(watchdog.last, None);
    }

    #[test]
    fn a_comparison_too_long_ago_says_nothing() {
        let mut watchdog = Watchdog::default();
        watchdog.note(&check(0, 0, Verdict::Unknown), &FAST);
        // 7/16 of the slow counter's range are 1879 s.
        let late = |interval_ns, verdict| Event::Watchdog {
            now: 1_800_000_000_000,
            reference: SLOW,
            reference_now: 1_800_000_000,
            interval_ns,
            margin_ns: 250_000,
            verdict,
        };
        assert!(watchdog.allows(&late(1_879_000_000_000, Verdict::Good), &FAST));
        assert!(!watchdog.allows(&late(1_880_000_000_000, Verdict::Good), &FAST));
        assert!(watchdog.allows(&late(1_880_000_000_000, Verdict::Unknown), &FAST));
    }
}
