use datapage::ClockMode;
use proptest::prelude::*;
use timekeeper::{Clocksource, Verdict, Watchdog, watchdog::best};

use crate::world::{MONOTONIC, RAW, World, exact, nanosecond_counter, tsc};

fn counter(hz: u64, mask: u64) -> Clocksource {
    Clocksource::new("any", hz, mask, ClockMode::COUNTER).unwrap()
}

#[test]
fn known_counters_get_the_scales_that_linux_gives_them() {
    for (hz, mult, shift) in [
        (2_400_000_000, 6_990_507, 24),
        (2_596_096_000, 6_462_479, 24),
        (1_000_000_000, 16_777_216, 24),
        (62_500_000, 268_435_456, 24),
    ] {
        let scale = counter(hz, u64::MAX).scale();
        assert_eq!((scale.mult, scale.shift), (mult, shift), "{hz} Hz");
    }
}

#[test]
fn the_highest_rating_is_taken_and_an_unstable_counter_never() {
    let named = |name, rating| {
        Clocksource::new(name, 1_000_000, u64::MAX, ClockMode::NONE).unwrap().with_rating(rating)
    };
    let counters = [named("jiffies", 1), named("tsc", 300), named("hpet", 250), named("twin", 300)];
    assert_eq!(best(&counters).unwrap().name(), "tsc");
    let without = [counters[0], counters[1].unstable(), counters[2]];
    assert_eq!(best(&without).unwrap().name(), "hpet");
    assert_eq!(best(&[counters[1].unstable()]), None);
    assert_eq!(best(&[]), None);
}

#[test]
fn a_watchdog_tells_a_drifting_counter_from_a_good_one() {
    let hpet = counter(14_318_180, u64::from(u32::MAX));
    let half_second = 500_000_000;
    let mut watchdog = Watchdog::new(tsc(), hpet, 250_000);
    assert_eq!(watchdog.check(1000, 5, half_second), Verdict::Unknown);
    let (mut watched, mut reference) = (1000, 5);
    let mut step = |tsc_cycles: u64| {
        watched += tsc_cycles;
        reference = (reference + 7_159_090) & u64::from(u32::MAX);
        watchdog.check(watched, reference, half_second)
    };
    // Through a wrap of the reference, which takes 300 s.
    for _ in 0..700 {
        assert!(matches!(step(1_200_000_000), Verdict::Good { ahead_ns } if ahead_ns.abs() < 200));
    }
    // Within the margin, in both directions.
    assert!(matches!(step(1_200_590_000), Verdict::Good { ahead_ns } if ahead_ns > 240_000));
    assert!(matches!(step(1_199_410_000), Verdict::Good { ahead_ns } if ahead_ns < -240_000));
    assert!(matches!(step(1_200_610_000), Verdict::Unstable { ahead_ns } if ahead_ns > 250_000));
    assert!(matches!(step(1_199_390_000), Verdict::Unstable { ahead_ns } if ahead_ns < -250_000));
    // It stopped.
    assert!(matches!(step(0), Verdict::Unstable { ahead_ns } if ahead_ns < -499_000_000));
    assert!(matches!(step(1_200_000_000), Verdict::Good { .. }));
}

#[test]
fn a_counter_at_the_margin_is_good_and_beyond_it_is_not() {
    let mut watchdog = Watchdog::new(nanosecond_counter(), nanosecond_counter(), 100);
    assert_eq!(watchdog.check(0, 0, 1_000), Verdict::Unknown);
    assert_eq!(watchdog.check(1_100, 1_000, 1_000), Verdict::Good { ahead_ns: 100 });
    assert_eq!(watchdog.check(2_000, 2_000, 1_000), Verdict::Good { ahead_ns: -100 });
    assert_eq!(watchdog.check(3_101, 3_000, 1_000), Verdict::Unstable { ahead_ns: 101 });
    assert_eq!(watchdog.check(4_000, 4_000, 1_000), Verdict::Unstable { ahead_ns: -101 });
}

#[test]
fn a_watchdog_does_not_judge_what_it_cannot_measure() {
    let hpet = counter(14_318_180, u64::from(u32::MAX));
    let mut watchdog = Watchdog::new(tsc(), hpet, 250_000);
    watchdog.check(0, 0, 0);
    let longest = hpet.max_idle_ns();
    assert_eq!(watchdog.check(1, 1, longest + 1), Verdict::Unknown);
    assert!(matches!(watchdog.check(1, 1, longest), Verdict::Good { ahead_ns: 0 }));
    watchdog.forget();
    assert_eq!(watchdog.check(9, 9, 1), Verdict::Unknown);
}

#[test]
fn a_switch_to_a_coarser_scale_moves_the_clocks_by_less_than_its_unit() {
    let mut world = World::new(tsc(), 0);
    world.clocks.update(|clocks| clocks.set_publication_delay(0)).unwrap();
    let now = 1_234_567;
    let coarse = nanosecond_counter().with_scale(1024, 10).unwrap();
    let before = [MONOTONIC, RAW].map(|clock| exact(&world.snapshot(clock, now).unwrap()));
    world.clocks.update(|clocks| clocks.set_clocksource(now, coarse, 99)).unwrap();
    for (clock, before) in [MONOTONIC, RAW].into_iter().zip(before) {
        let moved = exact(&world.snapshot(clock, 99).unwrap()) - before;
        assert!((1..1 << 24).contains(&moved), "clock {} by {moved}", clock.0);
    }
    // The way back is to a finer scale: exact.
    let before = exact(&world.snapshot(MONOTONIC, 199).unwrap());
    world.clocks.update(|clocks| clocks.set_clocksource(199, tsc(), 1 << 60)).unwrap();
    assert_eq!(exact(&world.snapshot(MONOTONIC, 1 << 60).unwrap()), before);
}

#[test]
fn a_counter_that_programs_cannot_read_publishes_no_mode_and_the_coarse_clocks_go_on() {
    let mut world = World::new(nanosecond_counter(), 0);
    let hpet = Clocksource::new("hpet", 1_000_000_000, u64::MAX, ClockMode::NONE).unwrap();
    world.clocks.update(|clocks| clocks.set_clocksource(1000, hpet, 0)).unwrap();
    assert_eq!(world.read(MONOTONIC, 5), None);
    world.tick(4_000_000);
    let coarse = world.nanos(datapage::ClockId::MONOTONIC_COARSE, 0);
    assert!((4_001_000..4_001_005).contains(&coarse), "{coarse}");
    // The kernel reads it.
    let kernel = world.clocks.timekeeper().read(MONOTONIC, 4_000_009).unwrap();
    assert_eq!(i128::from(kernel.nanos), coarse + 9);
}

#[test]
fn what_a_switch_moved_the_clocks_forward_is_taken_back_from_the_steered_ones() {
    let mut world = World::new(counter(1_000_000, u64::MAX), 0);
    world.clocks.update(|clocks| clocks.set_clocksource(1000, nanosecond_counter(), 0)).unwrap();
    // A cycle of each counter, for what their readings may be late.
    let ahead =
        |world: &World, clock, now: u64| world.nanos(clock, now) - 1_000_000 - i128::from(now);
    assert_eq!(ahead(&world, MONOTONIC, 0), 1001);
    assert_eq!(ahead(&world, RAW, 0), 1001);
    let mut now = 0;
    for _ in 0..250 * 30 {
        now += 4_000_000;
        world.tick(now);
    }
    let left = ahead(&world, MONOTONIC, now);
    assert!(left.abs() <= 2, "{left}");
    assert_eq!(ahead(&world, RAW, now), 1001, "RAW is not steered");
}

#[test]
fn steering_goes_on_across_a_switch() {
    let mut world = World::new(tsc(), 0);
    world.clocks.update(|clocks| clocks.set_frequency(0, 100 << 16)).unwrap();
    world.clocks.update(|clocks| clocks.set_clocksource(1000, nanosecond_counter(), 0)).unwrap();
    let mult = f64::from(world.clocks.timekeeper().mult());
    assert!(((mult / 16_777_216.0 - 1.0) * 1e6 - 100.0).abs() < 0.1);
    assert_eq!(world.clocks.timekeeper().ntp().frequency, 100 << 16);
}

proptest! {
    #[test]
    fn a_scale_is_right_to_half_a_unit_and_leaves_no_precision_unused(
        hz in prop_oneof![1..100_000_u64, 100_000..1_000_000_000_000_u64],
        bits in 8..=64_u32,
        range in prop_oneof![Just(600_u32), 1..3600_u32],
    ) {
        let mask = u64::MAX >> (64 - bits);
        let Ok(counter) = counter(hz, mask).with_range(range) else {
            // The range leaves fewer than ten bits of multiplier.
            return Ok(());
        };
        let scale = counter.scale();
        let second = 1_000_000_000_u128 << scale.shift;
        let off = (u128::from(scale.mult) * u128::from(hz)).abs_diff(second);
        prop_assert!(off * 2 <= u128::from(hz), "off by {off} of {hz}");
        // The fastest clock of that range, on the largest base, is a 64-bit sum.
        let cycles = (u128::from(hz) * u128::from(range)).min(u128::from(mask));
        let sum = |mult: u128, shift: u32| {
            cycles * (mult + mult * 11 / 100) + (1_000_000_000 << shift)
        };
        prop_assert!(sum(u128::from(scale.mult), scale.shift) < 1 << 64);
        // One more bit would not fit: in the sum, in the multiplier, or in a quick read.
        let finer = (second * 2 + u128::from(hz) / 2) / u128::from(hz);
        prop_assert!(
            scale.shift == 33
                || sum(finer, scale.shift + 1) >= 1 << 64
                || finer + finer * 11 / 100 > u128::from(u32::MAX)
        );
    }
}

#[test]
fn a_switch_from_a_scale_that_is_too_fast_meets_its_last_reader() {
    // One percent, for the 50 microseconds that the publication may take.
    let fast = nanosecond_counter().with_scale(1034, 10).unwrap();
    let mut world = World::new(fast, 0);
    let now = 1_000_000;
    let last = [MONOTONIC, RAW].map(|clock| world.nanos(clock, now + 50_000));
    world.clocks.update(|clocks| clocks.set_clocksource(now, nanosecond_counter(), 0)).unwrap();
    for (clock, last) in [MONOTONIC, RAW].into_iter().zip(last) {
        let first = world.nanos(clock, 50_000);
        assert!((0..10).contains(&(first - last)), "clock {}: {last}, then {first}", clock.0);
    }
}
