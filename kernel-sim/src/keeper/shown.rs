//! What a page shows that a keeper before this one has left behind.

use std::cell::Cell;

use datapage::cycles::MAX_SHIFT;
use datapage::{ClockId, ClockMode};

use crate::host::counter_mode;
use crate::keeper::clocks::NANOS_PER_SEC;
use crate::keeper::line::Line;

/// The clocks as the page of a keeper before this one shows them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    pub(super) mode: ClockMode,
    pub(super) monotonic: Line,
    pub(super) raw: Line,
    /// REALTIME - MONOTONIC as readers see it, in nanoseconds.
    pub(super) realtime: i128,
    /// BOOTTIME - MONOTONIC, likewise.
    pub(super) boottime: i128,
}

impl Shown {
    /// What a page shows from `now` on.
    ///
    /// `None` if it was left in the middle of an update, or does not show this counter's clocks.
    /// While nobody writes it, another look finds the same.
    pub(crate) fn on(page: &datapage::Page, now: u64) -> Option<Self> {
        let mode = counter_mode();
        let line = |clock| shown_line(page, mode, clock, now);
        let monotonic = line(ClockId::MONOTONIC)?;
        let ahead = |clock| {
            let other = line(clock)?;
            Some((other.at - monotonic.at) >> monotonic.shift)
        };
        Some(Self {
            mode,
            monotonic,
            raw: line(ClockId::MONOTONIC_RAW)?,
            realtime: ahead(ClockId::REALTIME)?,
            boottime: ahead(ClockId::BOOTTIME)?,
        })
    }
}

/// The line on which a page in this mode shows a clock, from `now` on.
fn shown_line(page: &datapage::Page, mode: ClockMode, clock: ClockId, now: u64) -> Option<Line> {
    let found = Cell::new(None);
    let read = page.precise(clock.slot()?, |mode| {
        found.set(Some(mode));
        Some(now)
    })?;
    if found.get() != Some(mode) || read.shift > MAX_SHIFT {
        return None;
    }
    let secs = i128::from(read.sec.cast_signed()) * (NANOS_PER_SEC << read.shift);
    let since = i128::from(read.elapsed()) * i128::from(read.mult);
    let at = secs + i128::from(read.nsec) + since;
    Some(Line { cycle: now, at, mult: read.mult, shift: read.shift })
}

/// Whether a page shows clocks that are not made from the counter; not of one that was left in the
/// middle of an update, which shows none.
#[must_use]
pub(crate) fn is_without_counter(page: &datapage::Page) -> bool {
    let found = Cell::new(None);
    let slot = ClockId::MONOTONIC.slot();
    // Without a counter nothing is read, but for the mode.
    let _ = slot.and_then(|slot| {
        page.precise(slot, |mode| {
            found.set(Some(mode));
            None
        })
    });
    matches!(found.get(), Some(ClockMode::NONE | ClockMode::MEMORY))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostClocks;
    use crate::keeper::clocks::{Clocks, Shift};
    use crate::keeper::pretended::{Host, SECOND, page_with};
    use crate::keeper::uncounted::{values_by_tick, values_without_counter};
    use datapage::PageValues;

    #[test]
    fn a_page_that_does_not_show_the_counters_clocks_is_not_gone_on_from() {
        let clocks = HostClocks::new().unwrap();
        let shown = |values: &PageValues| Shown::on(page_with(values).page(), clocks.counter());
        assert!(shown(&values_without_counter(&clocks, 250)).is_none(), "mode NONE");
        assert!(shown(&values_by_tick(&clocks, Shift::default(), 250)).is_none(), "mode MEMORY");
        let mut late = Host::new().values;
        late.clock_mode = counter_mode();
        let late = shown(&late).unwrap();
        let continued = Clocks::continued(clocks, &late, Shift::default(), 250);
        assert!(continued.is_err(), "another time and rate than this host's");
    }

    #[test]
    fn a_counter_that_is_behind_the_page_shows_its_base() {
        let host = Host::new();
        let line = |now| {
            let mode = ClockMode::COUNTER;
            shown_line(host.mapped.page(), mode, ClockId::MONOTONIC, now).unwrap()
        };
        let last = host.values.cycle_last;
        let base = line(last).at;
        assert_eq!(base, 5_000 * i128::from(SECOND) + i128::from(SECOND / 7));
        assert_eq!(line(last + 1_000).at, base + (1_000 << 29));
        for behind in [1, 1_000_000, 1 << 62] {
            assert_eq!(line(last.wrapping_sub(behind)).at, base, "{behind}");
        }
    }
}
