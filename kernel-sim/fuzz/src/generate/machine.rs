//! What happens to machines: ticks, people, NTP, sleep, and counters that go wrong.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "any part of a random word is as random as the whole"
)]

use datapage::ClockMode;
use kernel_sim::machine::event::{Event, Leap, Sleep};
use kernel_sim::machine::hardware::Oscillator;
use kernel_sim::machine::setup::{CounterSetup, Setup as Machine};

use crate::rng::Rng;
use crate::scenario::{Namespace, Reader, Scenario, Setup, Step, Which};
use crate::subject::Call;

const SECOND: u64 = 1_000_000_000;

/// Rates of counters that exist: TSC, HPET, ACPI PM, Arm and RISC-V timers, a slow watch crystal.
const RATES: [u64; 12] = [
    2_400_000_000,
    2_399_999_999,
    1_000_000_000,
    3_000_000_000,
    14_318_180,
    3_579_545,
    24_000_000,
    19_200_000,
    62_500_000,
    10_000_000,
    1_000_000,
    32_768,
];

/// Dates around which things go wrong.
const DATES: [i64; 9] = [
    1_700_000_000,
    1_483_228_798, // the last leap second
    2_147_483_646, // 2038
    4_294_967_294, // 2106
    9_223_300_000, // 2262
    0,
    -2,
    -86_401,
    -9_223_300_000, // 1677
];

/// Time namespaces as they come about: a container that was moved to a machine that is up for longer
/// or shorter than the one before. In the last one the clocks are below zero at first.
const NAMESPACES: [Namespace; 4] = [
    Namespace { monotonic: (86_400 * 30, 123_456_789), boottime: (86_400 * 31, 999_999_999) },
    Namespace { monotonic: (0, 1), boottime: (-1, 999_999_999) },
    Namespace { monotonic: (9_000_000_000, 0), boottime: (0, 0) },
    Namespace { monotonic: (-11, 500_000_000), boottime: (-100, 1) },
];

pub(super) fn scenario(mut rng: Rng, reader: Reader, updates: u64) -> Scenario {
    let machine = machine(&mut rng);
    let namespace = rng.one_in(6).then(|| rng.of(&NAMESPACES));
    let mut writer = Writer::new(rng, machine.clone(), reader);
    // A few more than are wanted: some are refused, some only move counters.
    while writer.updates < updates + updates / 8 {
        writer.step();
    }
    let steps = writer.steps;
    Scenario { setup: Setup { reader, namespace, machine: Some(machine) }, steps }
}

fn machine(rng: &mut Rng) -> Machine {
    let counters = (0..=rng.below(3)).map(|index| counter(rng, index == 0)).collect();
    Machine {
        cpus: usize::try_from(1 + rng.below(4)).unwrap_or(1),
        hz: rng.of(&[100, 250, 250, 300, 1000]),
        realtime_secs: rng.of(&DATES),
        counters,
    }
}

fn counter(rng: &mut Rng, is_first: bool) -> CounterSetup {
    let oscillator = Oscillator { hz: rng.of(&RATES), bits: rng.of(&[64, 64, 64, 56, 48, 32]) };
    let mode = match rng.below(8) {
        0 if !is_first => ClockMode::NONE,
        1 => ClockMode::RDTSCP,
        2 => ClockMode::MEMORY,
        _ => ClockMode::COUNTER,
    };
    // Shortly before it wraps, more often than not.
    let start = if rng.one_in(2) { rng.any_magnitude().wrapping_neg() } else { rng.next() };
    CounterSetup { oscillator, mode, start, is_nonstop: rng.one_in(2) }
}

/// Writes one step after the other.
pub(crate) struct Writer {
    rng: Rng,
    machine: Machine,
    reader: Reader,
    pub(crate) steps: Vec<Step>,
    pub(crate) updates: u64,
    /// The counters that the kernel may be using: where a watchdog decides, more than one.
    sources: Vec<Oscillator>,
    has_watchdog: bool,
    /// True time since the last update, and by how much counters were moved since, in cycles: with
    /// more than half of a counter's range nobody can tell what it means.
    since_ns: u64,
    moved: u64,
    /// By how much the CPUs' counters may disagree, in cycles, and whether that grows.
    apart: u64,
    drifting: bool,
}

impl Writer {
    pub(crate) fn new(mut rng: Rng, machine: Machine, reader: Reader) -> Self {
        let has_watchdog = machine.counters.len() > 1 && rng.one_in(2);
        let all = machine.counters.iter().map(|counter| counter.oscillator);
        let sources = all.take(if has_watchdog { usize::MAX } else { 1 }).collect();
        Self {
            rng,
            machine,
            reader,
            steps: Vec::new(),
            updates: 0,
            sources,
            has_watchdog,
            since_ns: 0,
            moved: 0,
            apart: 0,
            drifting: false,
        }
    }

    /// Adds what happens next to `steps`.
    pub(crate) fn step(&mut self) {
        self.time();
        let event = if self.rng.one_in(8) { self.event() } else { self.tick() };
        if matches!(event, Event::Tick { .. } | Event::SetRealtime { .. } | Event::Inject { .. }) {
            self.since_ns = 0;
        }
        self.updates += 1;
        self.put(event);
        self.read();
    }

    fn put(&mut self, event: Event) {
        if self.reader == Reader::Preemptible && self.rng.one_in(8) {
            let at = u32::try_from(self.rng.below(48)).unwrap_or(0);
            self.steps.push(Step::InterruptedUpdate { event, at });
        } else {
            self.steps.push(Step::Event(event));
        }
    }

    /// Time passes until something happens.
    fn time(&mut self) {
        let tick = SECOND / u64::from(self.machine.hz);
        let ns = match self.rng.below(64) {
            0 => 0,
            1 => self.rng.below(3),
            2 => self.rng.below(tick * 100),
            3 => self.rng.below(3 * SECOND),
            4 if self.rng.one_in(16) => self.rng.below(3600 * SECOND),
            5 if self.rng.one_in(64) => self.rng.below(40 * 86_400 * SECOND),
            6..16 => self.rng.below(tick),
            16..20 => SECOND - self.rng.below(2),
            _ => tick.saturating_add_signed(self.rng.within(-2_000, 20_000)),
        };
        let ns = self.drift(ns);
        if ns + self.since_ns > self.longest_ns() {
            // The kernel knows it before, or the counter goes around unseen.
            self.steps.push(Step::Event(Event::Idle { ns }));
            if self.rng.one_in(2) {
                self.read();
            }
            let tick = self.tick();
            self.steps.push(Step::Event(tick));
            self.since_ns = 0;
            self.moved = 0;
            return;
        }
        self.since_ns += ns;
        if ns > 0 {
            self.steps.push(Step::Pass(ns));
        }
    }

    /// While a CPU's counter drifts no long time passes, and before it is too far off somebody sets
    /// it right: no page could serve a machine of which that is not true.
    fn drift(&mut self, ns: u64) -> u64 {
        if !self.drifting {
            return ns;
        }
        let ns = ns.min(SECOND);
        self.apart += self.fastest_hz() / 10_000 + 1;
        if self.apart > self.narrowest() >> 5 {
            self.steps.push(Step::Event(Event::Agree));
            self.agree();
        }
        ns
    }

    fn agree(&mut self) {
        self.drifting = false;
        // The counters' jump back is one more of the things that moved them.
        self.moved += std::mem::take(&mut self.apart);
    }

    /// The longest time without an update that leaves room for what moved the counter meanwhile.
    fn longest_ns(&self) -> u64 {
        let moved = self.moved + self.apart;
        let longest = |oscillator: &Oscillator| {
            let cycles = (oscillator.mask() / 2).saturating_sub(moved) / 4 * 3;
            let ns = u128::from(cycles) * u128::from(SECOND) / u128::from(oscillator.hz);
            u64::try_from(ns).unwrap_or(u64::MAX)
        };
        self.sources.iter().map(longest).min().unwrap_or(0).min(3 * 3600 * SECOND)
    }

    /// The range of the narrowest counter that may be in use.
    fn narrowest(&self) -> u64 {
        self.sources.iter().map(Oscillator::mask).min().unwrap_or(0)
    }

    fn fastest_hz(&self) -> u64 {
        self.sources.iter().map(|oscillator| oscillator.hz).max().unwrap_or(1)
    }

    fn slowest_hz(&self) -> u64 {
        self.sources.iter().map(|oscillator| oscillator.hz).min().unwrap_or(1)
    }

    fn tick(&mut self) -> Event {
        Event::Tick { cpu: self.cpu() }
    }

    fn cpu(&mut self) -> usize {
        usize::try_from(self.rng.below(self.machine.cpus as u64)).unwrap_or(0)
    }

    fn read(&mut self) {
        let cpu = self.cpu();
        if self.reader == Reader::Preemptible && self.rng.one_in(4) {
            return self.interrupted_read(cpu);
        }
        let which = match self.rng.below(32) {
            0 => Which::All,
            1..12 => Which::Clocks,
            _ => Which::One(self.call()),
        };
        if self.rng.one_in(4) {
            let later = self.rng.below(5_000_000);
            if self.since_ns + later < self.longest_ns() {
                self.steps.push(Step::Pass(later));
                self.since_ns += later;
            }
        }
        self.steps.push(Step::Read { cpu, which });
    }

    fn interrupted_read(&mut self, cpu: usize) {
        let call = self.call();
        let at = u32::try_from(self.rng.below(24)).unwrap_or(0);
        let mut inside = Vec::new();
        if self.since_ns < self.longest_ns() / 2 {
            inside.push(Step::Pass(self.rng.below(100_000)));
        }
        let tick = self.tick();
        inside.push(Step::Event(tick));
        self.since_ns = 0;
        self.updates += 1;
        self.steps.push(Step::InterruptedRead { cpu, call, at, inside });
    }

    fn call(&mut self) -> Call {
        let id = self.rng.of(&[0, 1, 1, 4, 5, 6, 7, 11]);
        match self.rng.below(16) {
            0 => Call::Time,
            1 => Call::Gettimeofday { tv: true, tz: self.rng.one_in(2) },
            2 => Call::ClockGetres(id),
            3..6 => Call::ClockGettimeNs(id),
            _ => Call::ClockGettime(id),
        }
    }

    fn event(&mut self) -> Event {
        match self.rng.below(if self.has_watchdog { 30 } else { 28 }) {
            28 | 29 => self.watchdog(),
            0 | 1 => self.set(),
            2 | 3 => Event::Inject { nanos: self.amount(3_000_000_000) },
            4 => Event::Timezone {
                minutes_west: self.limited(900) as i32,
                dst_time: self.rng.within(0, 6) as i32,
            },
            5..8 => Event::Frequency { scaled_ppm: self.limited(500 << 16) },
            8 | 9 => Event::TickLength { micros: 10_000 + self.limited(1_000) },
            10 | 11 => Event::Offset {
                nanos: self.limited(500_000_000),
                time_constant: self.limited(10).unsigned_abs() as u32,
            },
            12 => Event::Slew { nanos: self.amount(5_000_000) },
            13 => Event::Tai { secs: self.rng.of(&[0, 36, 37, 38, -5, 100_000, -100_001]) },
            14 | 15 => Event::Leap(self.rng.of(&[Leap::Insert, Leap::Delete, Leap::None])),
            16 => self.sleep(),
            17 => self.switch(),
            18 => Event::HighResolution { on: self.rng.one_in(2) },
            19 => {
                let cycles = self.shift(100);
                self.apart += cycles.unsigned_abs();
                Event::Skew { cpu: self.cpu(), cycles }
            }
            20 if self.rng.one_in(4) => {
                let cycles = self.shift(10_000);
                self.moved += cycles.unsigned_abs();
                Event::Step { cycles }
            }
            21 if self.rng.one_in(4) => {
                self.drifting = true;
                Event::Drift { cpu: self.cpu(), ppb: self.rng.within(-100_000, 100_000) }
            }
            22 if self.rng.one_in(4) => {
                self.moved = 0;
                self.apart = 0;
                self.drifting = false;
                self.since_ns = 0;
                Event::Migrate { cycles: self.rng.edge() }
            }
            // Machines whose counters disagree are the exception.
            _ if self.apart > 0 || self.drifting => {
                self.agree();
                Event::Agree
            }
            _ => self.tick(),
        }
    }

    /// By how much a counter jumps: at most what it makes in `ms` milliseconds, or a small part of
    /// its range.
    fn shift(&mut self, ms: i64) -> i64 {
        let by_time = i64::try_from(self.slowest_hz() / 1_000).unwrap_or(1).saturating_mul(ms);
        let room = (self.narrowest() >> 4).saturating_sub(self.moved + self.apart);
        let most = by_time.min(i64::try_from(room).unwrap_or(i64::MAX));
        self.rng.within(-most, most)
    }

    fn set(&mut self) -> Event {
        // Shortly before midnight UTC on one of the dates, or right at it.
        let secs = self.rng.of(&DATES) + self.rng.within(-3, 3);
        let nanos = match self.rng.below(16) {
            0 => 1_000_000_000,
            1 => -1,
            2 => 999_999_999,
            3 => 0,
            _ => self.rng.within(0, 999_999_999),
        };
        Event::SetRealtime { secs, nanos }
    }

    /// A number up to a limit, at it, or just beyond, to either side.
    fn limited(&mut self, limit: i64) -> i64 {
        match self.rng.below(8) {
            0 => limit,
            1 => -limit,
            2 if self.rng.one_in(4) => limit + 1,
            3 if self.rng.one_in(4) => -limit - 1,
            4 => 0,
            _ => self.rng.within(-limit, limit),
        }
    }

    /// A number of any magnitude up to a limit, to either side.
    fn amount(&mut self, limit: i64) -> i64 {
        let magnitude = self.rng.any_magnitude().min(limit.unsigned_abs()).cast_signed();
        if self.rng.one_in(2) { magnitude } else { -magnitude }
    }

    fn sleep(&mut self) -> Event {
        let ns = match self.rng.below(4) {
            0 => self.rng.below(30 * 86_400 * SECOND),
            1 => self.rng.below(3600 * SECOND),
            _ => self.rng.below(30 * SECOND),
        };
        self.since_ns = 0;
        self.moved = 0;
        if self.drifting {
            // Nothing drifts for a month unnoticed.
            return Event::Sleep { ns: ns % SECOND, how: Sleep::Persistent };
        }
        Event::Sleep { ns, how: self.rng.of(&[Sleep::Nonstop, Sleep::Persistent, Sleep::Unknown]) }
    }

    /// The watchdog looks, and half of the time the counter jumps between two looks: by about what is
    /// tolerated, or by much more.
    fn watchdog(&mut self) -> Event {
        if self.rng.one_in(2) {
            self.steps.push(Step::Event(Event::Watchdog));
            let tolerated = self.rng.of(&self.sources).hz / 4_000;
            let about = tolerated.saturating_add_signed(self.rng.within(-2, 2)).cast_signed();
            let any = self.shift(100);
            let cycles = self.rng.of(&[about, -about, any, any / 16]);
            self.moved += cycles.unsigned_abs();
            self.steps.push(Step::Event(Event::Step { cycles }));
        }
        Event::Watchdog
    }

    fn switch(&mut self) -> Event {
        let source = self.rng.below(self.machine.counters.len() as u64);
        let source = usize::try_from(source).unwrap_or(0);
        if !self.has_watchdog {
            self.sources = vec![self.machine.counters[source].oscillator];
        }
        Event::Switch { source }
    }
}
