//! Hosts whose clocks a test sets or knows, and what pages say of them.

use std::thread::sleep;
use std::time::Duration;

use datapage::{ClockId, ClockMode, Features, Instant, PageValues, Scale};

use crate::host::{HostClocks, Pair};
use crate::keeper::clocks::{Clocks, FirstLook, Shift};
use crate::keeper::line::Line;
use crate::keeper::observe::as_float;
use crate::map::MappedImage;

/// A host whose clocks the test sets: another page, on this machine's counter.
pub(super) struct Host {
    pub(super) mapped: MappedImage,
    pub(super) values: PageValues,
}

pub(super) const SECOND: u64 = 1_000_000_000 << 30;

impl Host {
    pub(super) fn new() -> Self {
        let mapped = MappedImage::new(&linker::SYSCALL).unwrap();
        // Half a nanosecond a cycle, and a little less for RAW.
        let scale = |mult| Scale { mask: u64::MAX, mult, shift: 30 };
        let mut values = PageValues {
            clock_mode: ClockMode::COUNTER,
            cycle_last: HostClocks::new().unwrap().counter(),
            steered: scale(1 << 29),
            raw: scale((1 << 29) - 5_000),
            ..PageValues::default()
        };
        let at = |secs, nanos| Instant { secs, nanos };
        values.set(ClockId::REALTIME, at(1_700_000_000, SECOND / 3));
        values.set(ClockId::MONOTONIC, at(5_000, SECOND / 7));
        values.set(ClockId::MONOTONIC_RAW, at(4_999, SECOND / 5));
        values.set(ClockId::BOOTTIME, at(6_000, SECOND / 7));
        values.set(ClockId::TAI, at(1_700_000_037, SECOND / 3));
        let mut host = Self { mapped, values };
        host.mapped.split().0.format(Features::empty(), 4096);
        host.publish();
        host
    }

    fn publish(&mut self) {
        self.mapped.split().0.publish(&self.values.validate().unwrap());
    }

    /// Moves clocks by whole seconds.
    pub(super) fn jump(&mut self, jumps: &[(ClockId, i64)]) {
        for &(clock, seconds) in jumps {
            let mut instant = self.values.get(clock).unwrap();
            instant.secs += seconds;
            self.values.set(clock, instant);
        }
        self.publish();
    }

    pub(super) fn clocks(&self) -> HostClocks {
        HostClocks::of(&self.mapped.functions()).unwrap()
    }

    pub(super) fn follow(&self, shift: Shift) -> Clocks {
        let host = self.clocks();
        (0..10)
            .find_map(|_| {
                let first = FirstLook::new(&host);
                sleep(Duration::from_millis(5));
                Clocks::new(host, &first, shift, 250)
            })
            .expect("nobody sets these clocks")
    }
}

/// What a page with these values says at a counter value, in nanoseconds.
pub(super) fn shown(values: &PageValues, clock: ClockId, counter: u64) -> i128 {
    let raw = clock == ClockId::MONOTONIC_RAW;
    let Scale { mult, shift, .. } = if raw { values.raw } else { values.steered };
    let instant = values.get(clock).unwrap();
    let at = i128::from(instant.secs) * (1_000_000_000 << shift) + i128::from(instant.nanos);
    Line { cycle: values.cycle_last, at, mult, shift }.at(counter) >> shift
}

/// A page that shows these values.
pub(super) fn page_with(values: &PageValues) -> MappedImage {
    let mut page = MappedImage::new(&linker::SYSCALL).unwrap();
    let (mut writer, _) = page.split();
    writer.format(Features::empty(), 4096);
    writer.publish(&values.validate().unwrap());
    page
}

/// A host whose clock is known exactly: pieces of constant rate over a 2.3 GHz counter.
pub(super) struct SteadyHost {
    /// Where a piece begins: the counter, the clock in nanoseconds, nanoseconds a cycle.
    pub(super) piece: (u64, f64, f64),
    random: u64,
}

pub(super) const HERTZ: f64 = 2.3e9;

impl SteadyHost {
    pub(super) fn new() -> Self {
        Self { piece: (0, 7e9, 1e9 / HERTZ), random: 1 }
    }

    pub(super) fn random(&mut self, below: u64) -> u64 {
        // A linear congruential generator (Knuth, MMIX); its high bits are good enough.
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % below
    }

    pub(super) fn nanos(&self, counter: u64) -> f64 {
        let (from, at, rate) = self.piece;
        at + as_float(counter - from) * rate
    }

    pub(super) fn change_rate(&mut self, counter: u64, parts: f64) {
        self.piece = (counter, self.nanos(counter), self.piece.2 * (1.0 + parts));
    }

    pub(super) fn series(&mut self, mut counter: u64, disturbed: bool) -> Vec<Pair> {
        let mut series = Vec::new();
        for _ in 0..12 {
            let (before, read) = (counter, counter + 45 + self.random(12));
            let after = read + 45 + self.random(12) + if disturbed { 2_000 } else { 0 };
            #[allow(clippy::cast_possible_truncation, reason = "rounded down as a clock is")]
            let nanos = self.nanos(read) as i128;
            series.push(Pair { before, nanos, after });
            counter = after + 20;
        }
        series
    }
}
