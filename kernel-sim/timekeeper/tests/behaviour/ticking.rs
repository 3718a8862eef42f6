use datapage::{ClockId, ClockMode, Time};
use proptest::prelude::*;
use timekeeper::{Clocksource, Tick};

use crate::world::{
    ALL, MONOTONIC, MONOTONIC_COARSE, RAW, REALTIME, START, World, exact, nanos,
    nanosecond_counter, time, tsc,
};

const TICK: u64 = 9_600_000;

#[test]
fn coarse_time_takes_a_new_value_with_every_tick() {
    let mut world = World::new(nanosecond_counter(), 0);
    for tick in 1..=250_u64 {
        world.tick(tick * 4_000_000);
        assert_eq!(world.nanos(MONOTONIC_COARSE, 0), i128::from(tick) * 4_000_000);
    }
}

#[test]
fn one_tick_after_an_hour_counts_all_of_it() {
    let mut world = World::new(tsc(), 0);
    let hour = 3600 * 2_400_000_000_u64;
    let before = exact(&world.snapshot(MONOTONIC, hour).unwrap());
    // Readers get on without a tick, on the wide path.
    assert_eq!(before, (i128::from(hour) * 6_990_507) << 10);
    assert_eq!(world.clocks.tick(hour), Ok(Tick::Advanced { cycles: hour }));
    assert_eq!(exact(&world.snapshot(MONOTONIC, hour).unwrap()), before);
    assert_eq!(exact(&world.snapshot(RAW, hour).unwrap()), before);
}

#[test]
fn a_burst_of_ticks_at_one_instant_counts_it_once() {
    let mut world = World::new(tsc(), 0);
    world.tick(TICK);
    let once = ALL.map(|clock| world.read(clock, TICK + 5));
    for _ in 0..100 {
        assert_eq!(world.clocks.tick(TICK), Ok(Tick::Advanced { cycles: 0 }));
    }
    assert_eq!(ALL.map(|clock| world.read(clock, TICK + 5)), once);
}

#[test]
fn a_tick_from_a_cpu_whose_counter_lags_changes_nothing() {
    let mut world = World::new(tsc(), 1_000_000);
    world.tick(5_000_000);
    let before = *world.clocks.timekeeper();
    assert_eq!(world.clocks.tick(4_999_000), Ok(Tick::Behind { cycles: 1000 }));
    assert_eq!(*world.clocks.timekeeper(), before);
    // Its readers see the base.
    assert_eq!(world.read(MONOTONIC, 4_999_000), world.read(MONOTONIC, 5_000_000));
}

#[test]
fn a_counter_that_stepped_back_holds_the_clocks_until_it_has_caught_up_or_is_rebased() {
    let mut world = World::new(nanosecond_counter(), 2_000_000_000);
    world.tick(3_000_000_000);
    let held = 1_000_000_000;
    for now in (2_000_000_000..3_000_000_000).step_by(4_000_000) {
        assert!(matches!(world.clocks.tick(now), Ok(Tick::Behind { .. })));
        assert_eq!(world.nanos(MONOTONIC, now), held);
    }
    world.tick(3_000_000_007);
    assert_eq!(world.nanos(MONOTONIC, 3_000_000_007), held + 7);

    world.clocks.update(|clocks| clocks.rebase(1_000, time(0, 4_000_000))).unwrap();
    assert_eq!(world.nanos(MONOTONIC, 1_001), held + 7 + 4_000_001);
}

#[test]
fn a_reader_far_behind_gets_the_base() {
    let mut world = World::new(tsc(), 1_000_000_000_000_000);
    world.tick(1_000_000_009_600_000);
    assert_eq!(world.read(REALTIME, 5), world.read(REALTIME, 1_000_000_009_600_000));
}

/// Counters of every width that machines have.
fn widths() -> impl Strategy<Value = Clocksource> {
    (
        prop_oneof![Just(24_u32), Just(32), Just(40), Just(48), Just(56), Just(62), Just(64)],
        prop_oneof![
            Just(32_768_u64),
            Just(1_000_000),
            Just(3_579_545),
            Just(62_500_000),
            Just(1_000_000_000),
            Just(2_400_000_000),
            32_768..5_000_000_000_u64
        ],
    )
        .prop_map(|(bits, hz)| {
            Clocksource::new("any", hz, u64::MAX >> (64 - bits), ClockMode::COUNTER).unwrap()
        })
}

fn all_exact(world: &World, clocks: &[ClockId], cycles: u64) -> Vec<i128> {
    clocks.iter().map(|&clock| exact(&world.snapshot(clock, cycles).unwrap())).collect()
}

proptest! {
    #[test]
    fn no_bit_is_lost_however_the_ticks_fall_on_counters_of_any_width_around_their_wrap(
        counter in widths(),
        before_wrap in 0..1_000_000_u64,
        gaps in proptest::collection::vec(0..1000_u64, 1..200),
    ) {
        let start = counter.mask().wrapping_sub(before_wrap);
        let mut world = World::new(counter, start);
        let (scale, longest) = (counter.scale(), counter.mask() >> 1);
        let mut elapsed = 0_u128;
        for gap in gaps {
            // Up to half of the range at once.
            let gap = u64::try_from(u128::from(longest) * u128::from(gap) / 1000).unwrap() >> (gap % 30);
            elapsed += u128::from(gap);
            if elapsed >> 64 != 0 {
                break;
            }
            let now = start.wrapping_add(elapsed as u64) & scale.mask;
            world.tick(now);
            prop_assert_eq!(world.clocks.timekeeper().cycle_last(), now);
            // Unsteered, all clocks are the cycles times the multiplier. In whole units of 2^-shift
            // ns, whose seconds are split off.
            let shifted = elapsed * u128::from(scale.mult);
            let second = 1_000_000_000_u128 << scale.shift;
            for clock in [MONOTONIC, RAW] {
                let page = world.snapshot(clock, now).unwrap();
                prop_assert_eq!(page.cycles, 0);
                if elapsed == 0 {
                    // The page has another spelling of {0, 0}.
                    continue;
                }
                prop_assert_eq!(i128::from(page.sec.cast_signed()), (shifted / second) as i128);
                prop_assert_eq!(u128::from(page.nsec), shifted % second);
            }
        }
    }

    #[test]
    fn nine_of_ten_ticks_may_be_lost_and_no_reader_notices(
        frequency in -32_768_000..=32_768_000_i64,
        lost in proptest::collection::vec(0..10_u32, 100..400),
    ) {
        // A steered clock is steered at ticks, so only the unsteered parts are the same to the bit.
        let mut all = World::new(tsc(), 0);
        let mut some = World::new(tsc(), 0);
        for world in [&mut all, &mut some] {
            world.clocks.update(|clocks| clocks.set_frequency(0, frequency)).unwrap();
        }
        let (mut run, mut longest) = (0, 0);
        for (tick, lost) in (1..).zip(lost) {
            let now = tick * TICK;
            all.tick(now);
            run += 1;
            longest = longest.max(run);
            if lost == 0 {
                some.tick(now);
                run = 0;
            }
            prop_assert_eq!(all_exact(&all, &[RAW], now), all_exact(&some, &[RAW], now));
            let off = all.nanos(MONOTONIC, now) - some.nanos(MONOTONIC, now);
            // Two units of the multiplier make 1.2 ns in a tick.
            prop_assert!(off.abs() <= longest * 12 / 10 + 3, "{off} after {longest} lost in a row");
        }
    }

    #[test]
    fn absolute_counter_values_do_not_matter(
        origin in prop_oneof![
            Just(0), Just(1 << 54), Just((1 << 54) - 100), Just(1 << 63), Just((1 << 63) - 1000),
            Just(u64::MAX - 1000), any::<u64>()
        ],
        story in proptest::collection::vec((1..TICK * 3, -32_768_000..=32_768_000_i64), 1..50),
    ) {
        let mut here = World::new(tsc(), origin);
        let mut there = World::new(tsc(), 0);
        let mut elapsed = 0;
        for (gap, frequency) in story {
            elapsed += gap;
            let now = origin.wrapping_add(elapsed);
            here.tick(now);
            there.tick(elapsed);
            here.clocks.update(|clocks| clocks.set_frequency(now, frequency)).unwrap();
            there.clocks.update(|clocks| clocks.set_frequency(elapsed, frequency)).unwrap();
            for clock in ALL {
                prop_assert_eq!(
                    here.read(clock, now.wrapping_add(17)),
                    there.read(clock, elapsed + 17)
                );
            }
        }
    }
}

#[test]
fn a_clock_at_the_end_of_an_i64_of_seconds_stands_still() {
    let slow = Clocksource::new("slow", 1, u64::MAX, ClockMode::COUNTER).unwrap();
    let mut world = World::new(slow, 0);
    let half = u64::MAX >> 1;
    for round in 1..=4_u64 {
        world.tick(half.wrapping_mul(round));
    }
    let end = Time { secs: i64::MAX, nanos: 0 };
    let now = half.wrapping_mul(4);
    assert_eq!(world.read(REALTIME, now), Some(end));
    assert!(nanos(START) < nanos(end));
}
