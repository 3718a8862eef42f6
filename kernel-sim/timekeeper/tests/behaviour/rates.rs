use std::collections::BTreeSet;

use datapage::ClockMode;
use proptest::prelude::*;
use timekeeper::{Clocksource, Config, Error, Loop};

use crate::world::{MONOTONIC, World, exact, nanosecond_counter, tsc};

const PPM: i64 = 1 << 16;
const SECOND: u64 = 2_400_000_000;
const TICK: u64 = SECOND / 250;

/// Length of a second that NTP asks for, in 2^-32 ns.
fn second_length(frequency: i64, tick_usec: u32) -> i128 {
    ((i128::from(tick_usec) * 100_000) << 32) + ((i128::from(frequency) * 1000) << 16)
}

/// MONOTONIC at `cycles` in 2^-34 ns.
fn position(world: &World, cycles: u64) -> i128 {
    exact(&world.snapshot(MONOTONIC, cycles).unwrap())
}

const fn ns(nanos: i128) -> i128 {
    nanos << 34
}

/// Where MONOTONIC has to be after `cycles` of the 2.4 GHz counter, in 2^-34 ns, from the length of
/// a second: cycles * mult / 2^24 * length / (10^9 * 2^32).
fn wanted(cycles: u64, frequency: i64, tick_usec: u32) -> i128 {
    let nominal = (i128::from(cycles) * 6_990_507) << 10;
    // Split, since the product of both has more than 128 bits.
    let length = second_length(frequency, tick_usec);
    let unit = 1_000_000_000_i128 << 32;
    nominal + (nominal >> 32) * (length - unit) / (unit >> 32)
}

proptest! {
    #[test]
    fn the_clock_stays_within_a_unit_of_the_multiplier_of_what_ntp_asks_for(
        frequency in -500 * PPM..=500 * PPM,
        gaps in proptest::collection::vec(1..4 * TICK, 1..400),
    ) {
        let mut world = World::new(tsc(), 0);
        world.clocks.update(|clocks| clocks.set_frequency(0, frequency)).unwrap();
        let mut now = 0;
        for gap in gaps {
            now += gap;
            world.tick(now);
            let off = position(&world, now) - wanted(now, frequency, 10_000);
            // The first change of rate moves the clock forward by up to 25 ns; a unit makes 2.4 ns
            // in four ticks.
            prop_assert!((-ns(5)..=ns(30)).contains(&off), "{} ns", off >> 34);
        }
    }

    #[test]
    fn a_frequency_reads_back_as_it_was_set(frequency in -500 * PPM..=500 * PPM) {
        let mut world = World::new(tsc(), 0);
        world.clocks.update(|clocks| clocks.set_frequency(0, frequency)).unwrap();
        prop_assert_eq!(world.clocks.timekeeper().ntp().frequency, frequency);
    }

    #[test]
    fn what_a_correction_gained_and_what_is_left_of_it_make_up_the_whole_at_every_tick(
        slew in -3_000_000..3_000_000_i64,
        phase in -500_000_000..500_000_000_i64,
        time_constant in 0..=10_u32,
        gaps in proptest::collection::vec(1..SECOND * 3 / 2, 1..60),
    ) {
        let mut corrected = World::new(tsc(), 0);
        let mut left_alone = World::new(tsc(), 0);
        corrected.clocks.update(|clocks| {
            clocks.slew(0, slew)?;
            clocks.adjust_phase(0, phase, time_constant, Loop::Phase)
        }).unwrap();
        let mut now = 0;
        for gap in gaps {
            now += gap;
            corrected.tick(now);
            left_alone.tick(now);
            let gained = position(&corrected, now) - position(&left_alone, now);
            let ntp = corrected.clocks.timekeeper().ntp();
            let left = ns(i128::from(ntp.phase_ns) + i128::from(ntp.adjust_ns));
            let off = gained + left - ns(i128::from(slew) + i128::from(phase));
            // A unit of the multiplier makes 0.2 us in the longest gap; a change of rate by 0.55 %
            // moves the clock forward by 0.3 us.
            prop_assert!(off.abs() <= ns(1500), "{} ns after {now} cycles", off >> 34);
        }
    }

    #[test]
    fn no_setting_bends_the_clock_by_more_than_eleven_percent(
        frequency in any::<i64>(),
        tick_usec in any::<u32>(),
        phase in any::<i64>(),
        slew in any::<i64>(),
        time_constant in any::<u32>(),
        hz in prop_oneof![1..1000_u64, 1000..1_000_000_000_000_u64],
        gaps in proptest::collection::vec(any::<u64>(), 1..20),
    ) {
        let counter = Clocksource::new("any", hz, u64::MAX, ClockMode::COUNTER).unwrap();
        let nominal = u64::from(counter.scale().mult);
        let mut world = World::new(counter, 0);
        // Refusals are as good as anything here.
        let _: Result<(), Error> = world.clocks.update(|clocks| clocks.set_frequency(0, frequency));
        let _: Result<(), Error> = world.clocks.update(|clocks| clocks.set_tick_length(0, tick_usec));
        let _: Result<(), Error> = world.clocks.update(|clocks| clocks.slew(0, slew));
        let _: Result<(), Error> = world.clocks.update(|clocks| {
            clocks.adjust_phase(0, phase, time_constant, Loop::PhaseAndFrequency)
        });
        let mut now = 0_u64;
        for gap in gaps {
            now = now.wrapping_add(gap);
            world.tick(now);
            let mult = u64::from(world.clocks.timekeeper().mult());
            prop_assert!(mult * 100 >= nominal * 89 && mult * 100 <= nominal * 111, "{mult} of {nominal}");
        }
    }
}

#[test]
fn every_limit_at_once_is_within_eleven_percent_and_not_clamped() {
    for (frequency, tick, sign) in [(500 * PPM, 11_000, 1), (-500 * PPM, 9_000, -1_i64)] {
        let mut world = World::new(tsc(), 0);
        world
            .clocks
            .update(|clocks| {
                clocks.set_frequency(0, frequency)?;
                clocks.set_tick_length(0, tick)?;
                clocks.slew(0, sign * 1_000_000_000)?;
                clocks.adjust_phase(0, sign * 500_000_000, 0, Loop::Phase)
            })
            .unwrap();
        // A second begins, and with it the corrections.
        world.tick(SECOND * 3 / 2);
        let mult = f64::from(world.clocks.timekeeper().mult());
        let ppm = (mult / 6_990_507.0 - 1.0) * 1e6;
        let due = sign as f64 * (100_000.0 + 500.0 + 500.0 + 5000.0);
        assert!((ppm - due).abs() < 1.0, "{ppm} ppm, {due} due");
    }
}

#[test]
fn on_time_ticks_keep_the_clock_within_two_nanoseconds_for_five_minutes() {
    let frequency = 12_345_678; // 188 ppm and a fraction
    let mut world = World::new(tsc(), 0);
    world.clocks.update(|clocks| clocks.set_frequency(0, frequency)).unwrap();
    for tick in 1..=75_000 {
        let now = tick * TICK;
        world.tick(now);
        let off = position(&world, now) - wanted(now, frequency, 10_000);
        assert!(off.abs() <= ns(2), "{} ns at tick {tick}", off >> 34);
    }
}

#[test]
fn a_clock_that_was_moved_forward_by_a_change_of_rate_is_held_back_again() {
    let mut world = World::new(tsc(), 0);
    world.clocks.update(|clocks| clocks.set_frequency(0, 500 * PPM)).unwrap();
    world.tick(TICK);
    world.clocks.update(|clocks| clocks.set_frequency(TICK, 0)).unwrap();
    // 500 ppm of 50 microseconds.
    let due = |now: u64| wanted(TICK, 500 * PPM, 10_000) + wanted(now - TICK, 0, 10_000);
    let ahead = position(&world, TICK) - due(TICK);
    assert!((ns(24)..ns(26)).contains(&ahead), "{} ns", ahead >> 34);
    for tick in 2..=250 {
        world.tick(tick * TICK);
    }
    let ahead = position(&world, 250 * TICK) - due(250 * TICK);
    assert!(ahead.abs() <= ns(2), "{} ns", ahead >> 34);
}

#[test]
fn a_slew_gains_half_a_millisecond_a_second_and_ends_exactly() {
    let mut slewed = World::new(tsc(), 0);
    let mut left_alone = World::new(tsc(), 0);
    slewed.clocks.update(|clocks| clocks.slew(0, 1_750_000)).unwrap();
    let mut gained = Vec::new();
    for tick in 1..=250 * 20 {
        slewed.tick(tick * TICK);
        left_alone.tick(tick * TICK);
        if tick % 250 == 125 {
            let now = tick * TICK;
            gained.push((position(&slewed, now) - position(&left_alone, now)) >> 34);
        }
    }
    let near = |found: i128, due: i128| assert!((found - due).abs() < 3000, "{found}, {due} due");
    near(gained[0], 0); // it begins with the next second
    near(gained[1], 250_000);
    near(gained[2], 750_000);
    near(gained[4], 1_625_000); // the last quarter is spread over its second
    for settled in &gained[8..] {
        assert!((settled - 1_750_000).abs() <= 2, "{settled}");
    }
    assert_eq!(slewed.clocks.timekeeper().ntp().adjust_ns, 0);
}

#[test]
fn a_slew_that_a_late_tick_overshot_is_taken_back() {
    let mut slewed = World::new(tsc(), 0);
    let mut left_alone = World::new(tsc(), 0);
    slewed.clocks.update(|clocks| clocks.slew(0, 100_000)).unwrap();
    // A second begins, then a minute without a tick: 100 us became 6 ms.
    let mut now = SECOND;
    for world in [&mut slewed, &mut left_alone] {
        world.tick(now);
        world.tick(now + 60 * SECOND);
    }
    now += 60 * SECOND;
    let over = slewed.clocks.timekeeper().ntp().adjust_ns;
    assert!((-5_910_000..=-5_890_000).contains(&over), "{over}");
    for _ in 0..250 * 30 {
        now += TICK;
        slewed.tick(now);
        left_alone.tick(now);
    }
    let gained = (position(&slewed, now) - position(&left_alone, now)) >> 34;
    assert!((gained - 100_000).abs() <= 10, "{gained}");
}

#[test]
fn the_phase_loop_takes_a_quarter_of_the_rest_each_second() {
    let mut world = World::new(tsc(), 0);
    world.clocks.update(|clocks| clocks.adjust_phase(0, 4_000_000, 0, Loop::Phase)).unwrap();
    let mut left = Vec::new();
    for tick in 1..=250 * 4 {
        world.tick(tick * TICK);
        if tick % 250 == 249 {
            left.push(world.clocks.timekeeper().ntp().phase_ns);
        }
    }
    for (found, due) in left.iter().zip([4_000_000, 3_000_000, 2_250_000, 1_687_500_i64]) {
        assert!((found - due).abs() < 10_000, "{left:?}");
    }
}

#[test]
fn each_step_of_the_time_constant_halves_what_the_phase_loop_takes() {
    for time_constant in 0..=10 {
        let mut world = World::new(tsc(), 0);
        world
            .clocks
            .update(|clocks| clocks.adjust_phase(0, 4_096_000, time_constant, Loop::Phase))
            .unwrap();
        world.tick(SECOND);
        world.tick(2 * SECOND);
        let taken = 4_096_000 - world.clocks.timekeeper().ntp().phase_ns;
        let due = 1_024_000 >> time_constant;
        assert!((taken - due).abs() <= 1 + due / 1000, "{taken}, {due} due at {time_constant}");
    }
}

#[test]
fn the_frequency_learns_from_a_phase_that_keeps_coming_back() {
    let mut world = World::new(tsc(), 0);
    let adjust = |world: &mut World, now, kind| {
        world.clocks.update(|clocks| clocks.adjust_phase(now, 1_000_000, 2, kind)).unwrap();
        world.clocks.timekeeper().ntp().frequency
    };
    assert_eq!(adjust(&mut world, 0, Loop::PhaseAndFrequency), 0);
    // 1 ms in 8 s through a gain of 2^12: 1953 ns a second.
    let learned = adjust(&mut world, 8 * SECOND, Loop::PhaseAndFrequency);
    assert_eq!(learned, 1_000_000 * 8 * PPM / 4096 / 1000);
    assert_eq!(adjust(&mut world, 16 * SECOND, Loop::Phase), learned);
    // A long pause counts as twice the time constant: 32 s.
    let more = adjust(&mut world, 1000 * SECOND, Loop::PhaseAndFrequency);
    assert_eq!(more - learned, 1_000_000 * 32 * PPM / 4096 / 1000);
}

#[test]
fn setting_the_clock_drops_corrections_and_keeps_the_frequency() {
    let mut world = World::new(nanosecond_counter(), 0);
    world
        .clocks
        .update(|clocks| {
            clocks.set_frequency(0, 77)?;
            clocks.set_tick_length(0, 10_001)?;
            clocks.slew(0, 500)?;
            clocks.adjust_phase(0, 600, 3, Loop::Phase)?;
            clocks.set_time(1000, crate::world::START)
        })
        .unwrap();
    let ntp = world.clocks.timekeeper().ntp();
    assert_eq!((ntp.frequency, ntp.tick_usec), (77, 10_001));
    assert_eq!((ntp.adjust_ns, ntp.phase_ns), (0, 0));
}

#[test]
fn a_steady_rate_takes_two_multipliers_however_late_its_ticks_are() {
    // Ticks in which a unit of the multiplier is more than a nanosecond, and less than a thousandth
    // of one; the second ones come twenty at once.
    for (rate, hz, at_once) in [(4_000_000_000, 100, 1), (1_000_000, 1000, 20)] {
        let counter = Clocksource::new("counter", rate, u64::MAX, ClockMode::COUNTER).unwrap();
        let mut world = World::with(counter, 0, Config { hz, ..Config::default() });
        world.clocks.update(|clocks| clocks.set_frequency(0, 12_345_678)).unwrap();
        let step = rate / u64::from(hz) * at_once;
        let mut taken = BTreeSet::new();
        for tick in 1..=3_000 {
            world.tick(tick * step);
            if tick > 100 {
                taken.insert(world.clocks.timekeeper().mult());
            }
        }
        let (least, most) = (*taken.first().unwrap(), *taken.last().unwrap());
        assert_eq!((taken.len(), most - least), (2, 1), "{rate} Hz: {taken:?}");
    }
}
