//! What a page shows when the counter is no clock.

use datapage::{ClockId, ClockMode, PageValues, Scale};

use crate::host::HostClocks;
use crate::keeper::clocks::Shift;
use crate::keeper::line::Line;
use crate::keeper::ticks::tick_nanos;

/// The host's own values as of this tick, in nanoseconds as they are, and the precise clocks left to
/// the kernel.
#[must_use]
pub(crate) fn values_without_counter(host: &HostClocks, hz: u32) -> PageValues {
    let mut values = PageValues {
        clock_mode: ClockMode::NONE,
        hrtimer_res: host.resolution(libc::CLOCK_MONOTONIC),
        coarse_res: tick_nanos(hz),
        ..PageValues::default()
    };
    fill(&mut values, host, 0);
    values
}

/// The same where REALTIME is moved: the kernel's own answer would be another time, so the clocks stand still between ticks, on a counter of the page's own
/// that counts nanoseconds.
#[must_use]
pub(crate) fn values_by_tick(host: &HostClocks, shift: Shift, hz: u32) -> PageValues {
    let counter = u64::try_from(host.nanos(libc::CLOCK_MONOTONIC)).unwrap_or(0);
    let nanoseconds = Scale { mask: u64::MAX, mult: 1, shift: 0 };
    let mut values = PageValues {
        clock_mode: ClockMode::MEMORY,
        cycle_last: counter,
        steered: nanoseconds,
        raw: nanoseconds,
        hrtimer_res: tick_nanos(hz),
        coarse_res: tick_nanos(hz),
        ..PageValues::default()
    };
    fill(&mut values, host, shift.0);
    values
}

fn fill(values: &mut PageValues, host: &HostClocks, shift: i128) {
    let moved = [ClockId::REALTIME, ClockId::REALTIME_COARSE, ClockId::TAI];
    let all = (0..12).map(ClockId).filter(|clock| clock.slot().is_some());
    for clock in all {
        let shift = if moved.contains(&clock) { shift } else { 0 };
        let line = Line { cycle: 0, at: host.nanos(clock.0), mult: 0, shift: 0 };
        values.set(clock, line.coarse(shift));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keeper::clocks::NANOS_PER_SEC;
    use crate::keeper::pretended::shown;

    #[test]
    fn without_a_counter_the_values_are_the_hosts_as_of_the_tick() {
        let host = HostClocks::new().unwrap();
        let before = host.nanos(libc::CLOCK_REALTIME);
        let none = values_without_counter(&host, 250);
        let moved = values_by_tick(&host, Shift(-5 * NANOS_PER_SEC), 100);
        let after = host.nanos(libc::CLOCK_REALTIME);
        assert_eq!((none.clock_mode, none.coarse_res), (ClockMode::NONE, 4_000_000));
        assert_eq!((moved.clock_mode, moved.hrtimer_res), (ClockMode::MEMORY, 10_000_000));
        let realtime = shown(&none, ClockId::REALTIME, none.cycle_last);
        assert!((before..=after).contains(&realtime));
        let realtime = shown(&moved, ClockId::REALTIME, moved.cycle_last) + 5 * NANOS_PER_SEC;
        assert!((before..=after).contains(&realtime));
        let boottime = shown(&moved, ClockId::BOOTTIME, moved.cycle_last);
        assert!((0..1_000_000_000).contains(&(host.nanos(libc::CLOCK_BOOTTIME) - boottime)));
    }
}
