use datapage::{ClockId, ClockMode, Time, TimeZone};
use proptest::prelude::*;
use timekeeper::{Clocks, Clocksource, Config, Error, Leap, Loop, Timekeeper};

use crate::world::{ALL, World, tsc};

/// A call with any arguments at all.
#[derive(Clone, Debug)]
enum Call {
    Tick,
    SetTime(Time),
    Inject(Time),
    SetClocks([Time; 4], i32),
    Tai(i32),
    Timezone(i32, i32),
    Frequency(i64),
    TickLength(u32),
    Phase(i64, u32, bool),
    Slew(i64),
    Leap(Option<bool>),
    Suspend(Option<Time>),
    Resume(Option<Time>),
    InjectSleep(Time),
    EnterIdle(Option<u64>),
    Rebase(Time),
    Switch(Clocksource, u64),
    TickRate(u32),
    Delay(u32),
}

/// The values at which something ends or begins, and all others.
fn edgy_i64() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -1000..1000_i64,
        Just(i64::MIN),
        Just(i64::MAX),
        (0..63_u32, -1..=1_i64).prop_map(|(bit, by)| (1_i64 << bit).wrapping_add(by)),
    ]
}

fn times() -> impl Strategy<Value = Time> {
    let nanos = prop_oneof![8 => 0..1_000_000_000_u32, 1 => any::<u32>()];
    (edgy_i64(), nanos).prop_map(|(secs, nanos)| Time { secs, nanos })
}

fn counters() -> impl Strategy<Value = Clocksource> {
    let hz = prop_oneof![1..=1_000_000_000_000_u64, 1..100_000_u64];
    let scale = proptest::option::of((1024..=3_869_339_906_u32, 0..=34_u32));
    (hz, 8..=64_u32, scale, any::<bool>()).prop_map(|(hz, bits, scale, nonstop)| {
        let mask = u64::MAX >> (64 - bits);
        let counter = Clocksource::new("any", hz, mask, ClockMode::COUNTER).unwrap();
        let counter = if nonstop { counter.nonstop() } else { counter };
        // A scale that has nothing to do with the rate is odd, but legal.
        scale.map_or(counter, |(mult, shift)| counter.with_scale(mult, shift).unwrap())
    })
}

fn calls() -> impl Strategy<Value = Call> {
    let small = prop_oneof![any::<u32>(), 0..20_000_u32];
    prop_oneof![
        4 => Just(Call::Tick),
        1 => times().prop_map(Call::SetTime),
        1 => times().prop_map(Call::Inject),
        1 => (proptest::array::uniform4(times()), any::<i32>())
            .prop_map(|(times, tai)| Call::SetClocks(times, tai)),
        1 => prop_oneof![any::<i32>(), -100_000..=100_000].prop_map(Call::Tai),
        1 => (any::<i32>(), any::<i32>()).prop_map(|(west, dst)| Call::Timezone(west, dst)),
        1 => prop_oneof![edgy_i64(), -32_768_000..=32_768_000_i64].prop_map(Call::Frequency),
        1 => small.clone().prop_map(Call::TickLength),
        1 => (prop_oneof![edgy_i64(), -500_000_000..=500_000_000_i64], 0..12_u32, any::<bool>())
            .prop_map(|(ns, tc, learn)| Call::Phase(ns, tc, learn)),
        1 => edgy_i64().prop_map(Call::Slew),
        1 => proptest::option::of(any::<bool>()).prop_map(Call::Leap),
        1 => proptest::option::of(times()).prop_map(Call::Suspend),
        2 => proptest::option::of(times()).prop_map(Call::Resume),
        1 => times().prop_map(Call::InjectSleep),
        1 => proptest::option::of(any::<u64>()).prop_map(Call::EnterIdle),
        2 => times().prop_map(Call::Rebase),
        1 => (counters(), any::<u64>()).prop_map(|(counter, now)| Call::Switch(counter, now)),
        1 => small.clone().prop_map(Call::TickRate),
        1 => small.prop_map(Call::Delay),
    ]
}

fn make(call: &Call, clocks: &mut Timekeeper, now: u64) -> Result<(), Error> {
    match *call {
        Call::Tick => {
            let _ = clocks.tick(now);
            Ok(())
        }
        Call::SetTime(time) => clocks.set_time(now, time),
        Call::Inject(offset) => clocks.inject_offset(now, offset),
        Call::SetClocks([realtime, monotonic, boottime, monotonic_raw], tai_offset) => {
            let all = Clocks { realtime, monotonic, boottime, monotonic_raw, tai_offset };
            clocks.set_clocks(now, all)
        }
        Call::Tai(offset) => clocks.set_tai_offset(offset),
        Call::Timezone(minutes_west, dst_time) => {
            clocks.set_timezone(TimeZone { minutes_west, dst_time })
        }
        Call::Frequency(frequency) => clocks.set_frequency(now, frequency),
        Call::TickLength(usec) => clocks.set_tick_length(now, usec),
        Call::Phase(ns, tc, learn) => {
            let kind = if learn { Loop::PhaseAndFrequency } else { Loop::Phase };
            clocks.adjust_phase(now, ns, tc, kind)
        }
        Call::Slew(ns) => clocks.slew(now, ns),
        Call::Leap(request) => clocks
            .set_leap(now, request.map(|insert| if insert { Leap::Insert } else { Leap::Delete })),
        Call::Suspend(clock) => clocks.suspend(now, clock),
        Call::Resume(clock) => clocks.resume(now, clock).map(|_| ()),
        Call::InjectSleep(slept) => clocks.inject_sleep(now, slept),
        Call::EnterIdle(expected) => clocks.enter_idle(now, expected).map(|_| ()),
        Call::Rebase(elapsed) => clocks.rebase(now, elapsed),
        Call::Switch(counter, new) => clocks.set_clocksource(now, counter, new),
        Call::TickRate(hz) => clocks.set_tick_rate(hz),
        Call::Delay(ns) => clocks.set_publication_delay(ns),
    }
}

proptest! {
    #[test]
    fn any_calls_with_any_arguments_are_refused_whole_or_published_as_legal_clocks(
        story in proptest::collection::vec((calls(), any::<u64>(), any::<bool>()), 1..40),
    ) {
        let mut world = World::with(tsc(), 0, Config::default());
        let mut now = 0_u64;
        for (call, gap, far) in story {
            now = now.wrapping_add(if far { gap } else { gap >> 40 });
            let before = *world.clocks.timekeeper();
            let mut after = before;
            if let Err(error) = make(&call, &mut after, now) {
                prop_assert_eq!(after, before, "{:?} changed the state and said {}", call, error);
                prop_assert!(!error.to_string().is_empty());
            }
            let outcome = world.clocks.update(|clocks| make(&call, clocks, now));
            prop_assert!(!matches!(outcome, Err(Error::Page(_))), "{outcome:?}");
            for clock in ALL {
                // Seconds at the end of an i64 are a legal base that a reader falls back on.
                let kernel = world.clocks.timekeeper().read(clock, now);
                prop_assert!(kernel.is_some_and(|time| time.nanos < 1_000_000_000));
                if let Some(time) = world.read(clock, now) {
                    prop_assert_eq!(Some(time), kernel);
                }
            }
            let _ = world.clocks.timekeeper().cycles_to_leap();
            let _ = world.clocks.timekeeper().ntp();
        }
    }
}

#[test]
fn the_kernel_keeps_no_clock_that_a_page_does_not_serve() {
    let world = World::new(tsc(), 0);
    for id in (-20..40).filter(|id| !ALL.contains(&ClockId(*id))) {
        assert_eq!(world.clocks.timekeeper().read(ClockId(id), 0), None, "clock {id}");
    }
}
