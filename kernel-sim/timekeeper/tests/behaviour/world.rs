//! A world with true time, ideal counters, and readers who hold on to the page.

use datapage::{ClockId, ClockMode, Features, Page, Precise, SLOT_BYTES, Time, Writer};
use timekeeper::{Clocksource, Config, Published, Timekeeper};

pub(crate) const REALTIME: ClockId = ClockId::REALTIME;
pub(crate) const MONOTONIC: ClockId = ClockId::MONOTONIC;
pub(crate) const RAW: ClockId = ClockId::MONOTONIC_RAW;
pub(crate) const BOOTTIME: ClockId = ClockId::BOOTTIME;
pub(crate) const TAI: ClockId = ClockId::TAI;
pub(crate) const REALTIME_COARSE: ClockId = ClockId::REALTIME_COARSE;
pub(crate) const MONOTONIC_COARSE: ClockId = ClockId::MONOTONIC_COARSE;
pub(crate) const ALL: [ClockId; 7] =
    [REALTIME, MONOTONIC, RAW, REALTIME_COARSE, MONOTONIC_COARSE, BOOTTIME, TAI];

/// 2023-11-14, 22:13:20.
pub(crate) const START: Time = Time { secs: 1_700_000_000, nanos: 0 };

pub(crate) fn time(secs: i64, nanos: u32) -> Time {
    Time { secs, nanos }
}

/// Nanoseconds since zero, without a limit.
pub(crate) fn nanos(time: Time) -> i128 {
    i128::from(time.secs) * 1_000_000_000 + i128::from(time.nanos)
}

/// The counter of the examples in the literature: mult 6990507, shift 24.
pub(crate) fn tsc() -> Clocksource {
    Clocksource::new("tsc", 2_400_000_000, u64::MAX, ClockMode::COUNTER).unwrap()
}

/// One cycle is one nanosecond, exactly.
pub(crate) fn nanosecond_counter() -> Clocksource {
    Clocksource::new("ns", 1_000_000_000, u64::MAX, ClockMode::COUNTER).unwrap()
}

/// A page, a timekeeper that publishes on it, and readers that are given a counter value.
pub(crate) struct World {
    pub(crate) clocks: Published<'static>,
    pub(crate) page: &'static Page,
}

impl World {
    pub(crate) fn new(clocksource: Clocksource, now_cycles: u64) -> Self {
        Self::with(clocksource, now_cycles, Config::default())
    }

    pub(crate) fn with(clocksource: Clocksource, now_cycles: u64, config: Config) -> Self {
        let (mut writer, page) = Writer::split(Box::leak(Box::new(Page::zeroed())));
        writer.format(Features::empty(), SLOT_BYTES);
        let timekeeper = Timekeeper::new(clocksource, now_cycles, START, config).unwrap();
        Self { clocks: Published::new(timekeeper, writer).unwrap(), page }
    }

    /// What a reader takes out of the page, or `None` where it falls back.
    pub(crate) fn snapshot(&self, clock: ClockId, cycles: u64) -> Option<Precise> {
        self.page
            .precise(clock.slot().unwrap(), |mode| (mode == ClockMode::COUNTER).then_some(cycles))
    }

    /// What a reader sees, or `None` where it falls back.
    pub(crate) fn read(&self, clock: ClockId, cycles: u64) -> Option<Time> {
        match clock {
            REALTIME_COARSE | MONOTONIC_COARSE => {
                self.page.coarse(clock.slot().unwrap())?.standing_still()?.time()
            }
            _ => self.snapshot(clock, cycles)?.time(),
        }
    }

    pub(crate) fn nanos(&self, clock: ClockId, cycles: u64) -> i128 {
        nanos(self.read(clock, cycles).unwrap())
    }

    pub(crate) fn tick(&mut self, now_cycles: u64) {
        self.clocks.tick(now_cycles).unwrap();
    }
}

/// A precise clock's exact position on a page, in 2^-34 ns: what a reader rounds down.
pub(crate) fn exact(snapshot: &Precise) -> i128 {
    let part =
        i128::from(snapshot.nsec) + i128::from(snapshot.elapsed()) * i128::from(snapshot.mult);
    ((i128::from(snapshot.sec.cast_signed()) * 1_000_000_000) << 34)
        + (part << (34 - snapshot.shift))
}
