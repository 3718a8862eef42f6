//! The kernel's watchdog: is the counter in use still good, and what if it is not?
//!
//! The kernel compares its counter with another of the machine's at every `watchdog` event, as a
//! kernel does twice a second. One that is found unstable is left at once for the best of the others,
//! and never taken again.

use timekeeper::watchdog::DEFAULT_MARGIN_NS;
use timekeeper::{Clocksource, Verdict, Watchdog};

/// The two counters that are compared, and when they last were.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    watched: usize,
    reference: usize,
    watchdog: Watchdog,
    checked_ns: u64,
}

/// The counter to compare the one numbered `source` with: the last of those that are good, which is
/// where a setup puts the slow and honest ones. `None` if there is none besides.
pub(super) fn reference(sources: &[Clocksource], source: usize) -> Option<usize> {
    (0..sources.len())
        .rev()
        .find(|&index| index != source && sources.get(index).is_some_and(|it| it.rating() > 0))
}

impl Watch {
    /// Goes on with `last`, if that compares the same two counters, else begins anew.
    pub(super) fn over(
        last: Option<Self>,
        sources: &[Clocksource],
        watched: usize,
        reference: usize,
    ) -> Option<Self> {
        if let Some(last) = last
            && (last.watched, last.reference) == (watched, reference)
        {
            return Some(last);
        }
        let (counter, other) = (*sources.get(watched)?, *sources.get(reference)?);
        let watchdog = Watchdog::new(counter, other, DEFAULT_MARGIN_NS);
        Some(Self { watched, reference, watchdog, checked_ns: 0 })
    }

    /// Judges both counters, read together at the true time `true_ns`; also says how long the
    /// kernel's timer was set to.
    pub(super) fn check(&mut self, now: u64, reference_now: u64, true_ns: u64) -> (Verdict, u64) {
        let interval_ns = true_ns.saturating_sub(self.checked_ns);
        self.checked_ns = true_ns;
        (self.watchdog.check(now, reference_now, interval_ns), interval_ns)
    }
}
