use std::collections::HashMap;

use datapage::{ClockId, ClockMode, Time};
use proptest::prelude::*;
use timekeeper::{Clocksource, Config, Idle, Leap, Loop, Tick};

use crate::world::{
    ALL, BOOTTIME, MONOTONIC, MONOTONIC_COARSE, RAW, REALTIME, TAI, World, exact, nanos,
    nanosecond_counter, tsc,
};

const DELAY_NS: u32 = 50_000;

#[test]
fn a_slower_rate_meets_the_old_one_where_its_last_reader_may_be() {
    let mut world = World::new(tsc(), 0);
    world.clocks.update(|clocks| clocks.set_frequency(0, 500 << 16)).unwrap();
    let now = 9_600_000;
    let meeting = now + 120_000; // 50 microseconds
    let old = world.snapshot(MONOTONIC, meeting).unwrap();
    world.clocks.update(|clocks| clocks.set_frequency(now, -500 << 16)).unwrap();
    let new = world.snapshot(MONOTONIC, meeting).unwrap();
    assert!(new.mult < old.mult);
    assert_eq!(exact(&new), exact(&old), "to the last bit");
}

#[test]
fn a_faster_rate_meets_the_old_one_at_the_counter_value_of_the_call() {
    let mut world = World::new(tsc(), 0);
    let now = 9_600_000;
    let old = world.snapshot(MONOTONIC, now).unwrap();
    world.clocks.update(|clocks| clocks.set_frequency(now, 500 << 16)).unwrap();
    let new = world.snapshot(MONOTONIC, now).unwrap();
    assert!(new.mult > old.mult);
    assert_eq!(exact(&new), exact(&old), "to the last bit");
}

#[test]
fn beyond_the_publication_delay_a_step_back_is_the_excess_times_the_difference_of_the_rates() {
    let mut world = World::new(nanosecond_counter(), 0);
    world.clocks.update(|clocks| clocks.set_frequency(0, 500 << 16)).unwrap();
    world.tick(1_000_000);
    let late = 2_000_000 + u64::from(DELAY_NS) + 1_000_000; // a millisecond too late
    let old = world.nanos(MONOTONIC, late);
    world.clocks.update(|clocks| clocks.set_frequency(2_000_000, -500 << 16)).unwrap();
    let back = old - world.nanos(MONOTONIC, late);
    // 1000 ppm of a millisecond.
    assert!((999..=1001).contains(&back), "{back}");
}

#[test]
fn coarse_time_stands_still_or_advances_when_only_the_frequency_changes() {
    let mut world = World::new(tsc(), 0);
    let mut last = 0;
    for step in 1..2000_u64 {
        let now = step * 1_234_567;
        let frequency = if step % 2 == 0 { 500 << 16 } else { -500 << 16 };
        world.clocks.update(|clocks| clocks.set_frequency(now, frequency)).unwrap();
        let coarse = world.nanos(MONOTONIC_COARSE, 0);
        assert!(coarse >= last, "step {step}: {coarse} after {last}");
        assert!(coarse <= world.nanos(MONOTONIC, now));
        last = coarse;
    }
}

/// What may happen to a machine.
#[derive(Clone, Debug)]
enum Event {
    Tick,
    Frequency(i64),
    TickLength(u32),
    Phase(i64, u32),
    Slew(i64),
    SetTime(i64, u32),
    Inject(i64, u32),
    Tai(i32),
    Leap(Option<bool>),
    /// For so many nanoseconds.
    Suspend(u64),
    Idle(u64),
    Switch(usize),
    TickRate(u32),
    Delay(u32),
}

fn events() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => Just(Event::Tick),
        4 => (-32_768_000..=32_768_000_i64).prop_map(Event::Frequency),
        1 => (9_000..=11_000_u32).prop_map(Event::TickLength),
        2 => (-500_000_000..=500_000_000_i64, 0..=10_u32).prop_map(|(ns, tc)| Event::Phase(ns, tc)),
        2 => (-2_000_000..=2_000_000_i64).prop_map(Event::Slew),
        1 => (-9_000_000_000..=9_000_000_000_i64, 0..1_000_000_000_u32)
            .prop_map(|(s, ns)| Event::SetTime(s, ns)),
        // Close to the end of a UTC day, so that leap seconds come.
        2 => (0..20_000_i64, 0..1_000_000_000_u32)
            .prop_map(|(day, ns)| Event::SetTime(day * 86_400 + 86_398, ns)),
        1 => (-3..3_i64, 0..1_000_000_000_u32).prop_map(|(s, ns)| Event::Inject(s, ns)),
        1 => (-40..40_i32).prop_map(Event::Tai),
        2 => proptest::option::of(any::<bool>()).prop_map(Event::Leap),
        1 => (0..100_000_000_000_u64).prop_map(Event::Suspend),
        1 => (0..10_000_000_000_u64).prop_map(Event::Idle),
        2 => (0..4_usize).prop_map(Event::Switch),
        1 => (1..=10_000_u32).prop_map(Event::TickRate),
        1 => (0..=200_000_u32).prop_map(Event::Delay),
    ]
}

/// From a counter value to the publication: the longest that is promised, or less.
fn lags() -> impl Strategy<Value = u64> {
    prop_oneof![Just(u64::MAX), 0..=u64::from(DELAY_NS)]
}

/// Counters of different rates and widths; each wraps within a test.
fn counters() -> [Clocksource; 4] {
    let counter = |name, hz, bits: u32| {
        Clocksource::new(name, hz, u64::MAX >> (64 - bits), ClockMode::COUNTER).unwrap()
    };
    [
        tsc(),
        counter("arch", 62_500_000, 56),
        counter("narrow", 14_318_180, 32).nonstop(),
        counter("slow", 32_768, 32),
    ]
}

/// True time in picoseconds, and ideal counters driven by it.
struct Machine {
    world: World,
    counters: [Clocksource; 4],
    current: usize,
    /// Where each counter starts, so that each wraps soon.
    origins: [u64; 4],
    now_ps: u128,
    highest: HashMap<i32, i128>,
}

impl Machine {
    fn new(origins: [u64; 4]) -> Self {
        let counters = counters();
        let world = World::with(
            counters[0],
            origins[0],
            Config { publication_delay_ns: DELAY_NS, ..Config::default() },
        );
        Self { world, counters, current: 0, origins, now_ps: 0, highest: HashMap::new() }
    }

    fn counter_of(&self, which: usize) -> u64 {
        let cycles = self.now_ps * u128::from(self.counters[which].hz()) / 1_000_000_000_000;
        self.origins[which].wrapping_add(cycles as u64) & self.counters[which].mask()
    }

    fn counter(&self) -> u64 {
        self.counter_of(self.current)
    }

    fn pass(&mut self, ns: u64) {
        self.now_ps += u128::from(ns) * 1000 + 7;
    }

    /// A reader sees all clocks.
    fn observe(&mut self, after: &str) -> Result<(), TestCaseError> {
        for clock in ALL {
            let Some(time) = self.world.read(clock, self.counter()) else {
                continue;
            };
            let now = nanos(time);
            let highest = self.highest.entry(clock.0).or_insert(now);
            prop_assert!(
                now >= *highest,
                "clock {} went back by {} ns after {after}",
                clock.0,
                *highest - now,
            );
            *highest = now;
            // The kernel's own answer is the reader's.
            let kernel = self.world.clocks.timekeeper().read(clock, self.counter());
            prop_assert_eq!(kernel, Some(time), "clock {} after {}", clock.0, after);
        }
        Ok(())
    }

    /// REALTIME and TAI may step.
    fn forget_wall_clocks(&mut self) {
        for clock in [REALTIME, ClockId::REALTIME_COARSE, TAI] {
            self.highest.remove(&clock.0);
        }
    }

    /// The event is computed for the counter value of now, and published `lag_ns` later; until then
    /// readers see the old page.
    fn happen(&mut self, event: &Event, lag_ns: u64) -> Result<(), TestCaseError> {
        let now = self.counter();
        let mut next = *self.world.clocks.timekeeper();
        let before = next;
        let mut stopped_ns = None;
        match *event {
            Event::Tick => {
                let tick = next.tick(now);
                prop_assert!(matches!(tick, Tick::Advanced { .. }), "{tick:?}");
            }
            Event::Frequency(frequency) => next.set_frequency(now, frequency).unwrap(),
            Event::TickLength(usec) => next.set_tick_length(now, usec).unwrap(),
            Event::Phase(ns, tc) => {
                next.adjust_phase(now, ns, tc, Loop::PhaseAndFrequency).unwrap()
            }
            Event::Slew(ns) => next.slew(now, ns).unwrap(),
            Event::SetTime(secs, nanos) => next.set_time(now, Time { secs, nanos }).unwrap(),
            Event::Inject(secs, nanos) => {
                // Refused at the ends of time, and then nothing may have changed.
                if next.inject_offset(now, Time { secs, nanos }).is_err() {
                    prop_assert_eq!(next, before);
                }
            }
            Event::Tai(offset) => next.set_tai_offset(offset).unwrap(),
            Event::Leap(request) => {
                let leap = |insert| if insert { Leap::Insert } else { Leap::Delete };
                next.set_leap(now, request.map(leap)).unwrap();
            }
            Event::Suspend(ns) => {
                let clock = Time { secs: (self.now_ps / 1_000_000_000_000) as i64, nanos: 0 };
                next.suspend(now, Some(clock)).unwrap();
                stopped_ns = Some(ns);
            }
            Event::Idle(ns) => {
                if next.enter_idle(now, Some(ns).filter(|ns| ns % 2 == 0)).unwrap()
                    == Idle::Withdrawn
                {
                    stopped_ns = Some(ns);
                }
            }
            Event::Switch(which) => {
                next.set_clocksource(now, self.counters[which], self.counter_of(which)).unwrap();
            }
            Event::TickRate(hz) => next.set_tick_rate(hz).unwrap(),
            Event::Delay(ns) => next.set_publication_delay(ns).unwrap(),
        }
        let lag_ns = lag_ns.min(u64::from(before.config().publication_delay_ns));
        // The last reader of the old page, right before the publication.
        self.now_ps += u128::from(lag_ns) * 1000;
        self.observe("a wait")?;
        self.world
            .clocks
            .update(|clocks| {
                *clocks = next;
                Ok::<_, timekeeper::Error>(())
            })
            .unwrap();
        if let Event::Switch(which) = *event {
            self.current = which;
        }
        let stepped = matches!(event, Event::SetTime(..) | Event::Inject(..) | Event::Tai(..));
        // A leap second steps REALTIME alone.
        if stepped {
            self.forget_wall_clocks();
        } else if next.tai_offset() != before.tai_offset() {
            self.highest.remove(&REALTIME.0);
            self.highest.remove(&ClockId::REALTIME_COARSE.0);
        }
        self.observe(&format!("{event:?}"))?;
        if let Some(ns) = stopped_ns {
            self.sleep(event, ns)?;
        }
        Ok(())
    }

    fn sleep(&mut self, event: &Event, ns: u64) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.world.snapshot(MONOTONIC, self.counter()), None);
        self.pass(ns);
        let now = self.counter();
        let secs = (self.now_ps / 1_000_000_000_000) as i64;
        let tai = self.world.clocks.timekeeper().tai_offset();
        self.world
            .clocks
            .update(|clocks| match event {
                Event::Suspend(_) => clocks.resume(now, Some(Time { secs, nanos: 0 })).map(|_| ()),
                // Nobody knows how long it was.
                _ => clocks.rebase(now, Time { secs: 0, nanos: 0 }),
            })
            .unwrap();
        if self.world.clocks.timekeeper().tai_offset() != tai {
            self.forget_wall_clocks();
        }
        self.observe("waking up")
    }
}

proptest! {
    #[test]
    fn no_clock_goes_back_whatever_happens_while_counters_agree(
        origins in any::<[u64; 4]>(),
        story in proptest::collection::vec((events(), 0..8_000_000_u64, lags()), 1..80),
    ) {
        let mut machine = Machine::new(origins);
        for (event, gap_ns, lag_ns) in &story {
            machine.pass(*gap_ns);
            machine.observe("a gap")?;
            machine.happen(event, *lag_ns)?;
        }
    }

    #[test]
    fn clocks_that_follow_each_other_differ_by_what_they_should_on_every_page(
        origins in any::<[u64; 4]>(),
        story in proptest::collection::vec((events(), 0..8_000_000_u64), 1..60),
    ) {
        let mut machine = Machine::new(origins);
        for (event, gap_ns) in &story {
            machine.pass(*gap_ns);
            machine.happen(event, 0)?;
            let cycles = machine.counter();
            let Some(realtime) = machine.world.snapshot(REALTIME, cycles) else { continue };
            let at = |clock| exact(&machine.world.snapshot(clock, cycles).unwrap());
            let tai = i128::from(machine.world.clocks.timekeeper().tai_offset());
            prop_assert_eq!(at(TAI) - exact(&realtime), (tai * 1_000_000_000) << 34);
            // Whole nanoseconds: the bits below are shared.
            prop_assert_eq!((at(MONOTONIC) - exact(&realtime)) & ((1 << 34) - 1), 0);
            prop_assert!(at(BOOTTIME) >= at(MONOTONIC));
            prop_assert_eq!((at(BOOTTIME) - at(MONOTONIC)) & ((1 << 34) - 1), 0);
        }
    }

    #[test]
    fn raw_time_is_the_cycles_times_its_multiplier_and_nothing_else(
        story in proptest::collection::vec((events(), 0..8_000_000_u64), 1..60),
    ) {
        let mut machine = Machine::new([u64::MAX - 1_000_000; 4]);
        let start = machine.counter();
        for (event, gap_ns) in &story {
            if matches!(event, Event::Suspend(_) | Event::Idle(_) | Event::Switch(_)) {
                continue;
            }
            machine.pass(*gap_ns);
            machine.happen(event, 0)?;
            let cycles = machine.counter();
            let raw = exact(&machine.world.snapshot(RAW, cycles).unwrap());
            let elapsed = i128::from(cycles.wrapping_sub(start));
            prop_assert_eq!(raw, (elapsed * 6_990_507) << 10);
        }
    }
}
