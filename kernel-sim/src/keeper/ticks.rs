//! When the keeper ticks, and how long a tick is.

use std::time::Duration;

use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

/// Nanoseconds of a tick, rounded as Linux rounds `TICK_NSEC`.
#[must_use]
pub(crate) fn tick_nanos(hz: u32) -> u32 {
    (1_000_000_000 + hz / 2) / hz.max(1)
}

/// How long the keeper stays at most after the last program has ended.
const LOOK_AROUND: Duration = Duration::from_millis(4);

/// A regular tick; one that comes too late is left out, not made up for.
pub(super) struct Ticks {
    period: Duration,
    next: Duration,
}

impl Ticks {
    pub(super) fn new(hz: u32) -> Self {
        let period = Duration::from_nanos(u64::from(tick_nanos(hz)));
        Self { period, next: now() + period }
    }

    /// Waits for the next tick, or for a while; returns whether it is time for the tick.
    pub(super) fn wait(&mut self) -> bool {
        let until = self.next.min(now() + LOOK_AROUND);
        let flags = ClockNanosleepFlags::TIMER_ABSTIME;
        // A signal only makes a tick come early.
        let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, flags, &until.into());
        if until < self.next {
            return false;
        }
        self.next += self.period;
        let now = now();
        if self.next <= now {
            self.next = now + self.period;
        }
        true
    }
}

/// When to look again whether the host still keeps time with the counter.
pub(super) struct Looks {
    next: Duration,
}

/// The host's own watchdog compares its clocksource twice a second.
const BETWEEN_COUNTER_LOOKS: Duration = Duration::from_millis(500);

impl Looks {
    /// The first look is due some time from now.
    pub(super) fn new() -> Self {
        Self { next: now() + BETWEEN_COUNTER_LOOKS }
    }

    pub(super) fn is_due(&mut self) -> bool {
        let now = now();
        let due = self.next <= now;
        if due {
            self.next = now + BETWEEN_COUNTER_LOOKS;
        }
        due
    }
}

fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}
