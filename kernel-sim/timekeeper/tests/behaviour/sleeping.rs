use datapage::{ClockMode, Time};
use proptest::prelude::*;
use timekeeper::{Clocksource, Config, Error, Idle, SleepClock, Slept, Tick};

use crate::world::{
    BOOTTIME, MONOTONIC, MONOTONIC_COARSE, RAW, REALTIME, START, TAI, World, nanosecond_counter,
    time,
};

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;

/// A world in which a publication takes no time, so that what is slept is a round number.
fn prompt(clocksource: Clocksource) -> World {
    World::with(clocksource, 0, Config { publication_delay_ns: 0, ..Config::default() })
}

fn suspend(world: &mut World, now: u64, clock: Option<Time>) {
    world.clocks.update(|clocks| clocks.suspend(now, clock)).unwrap();
}

fn resume(world: &mut World, now: u64, clock: Option<Time>) -> Slept {
    world.clocks.update(|clocks| clocks.resume(now, clock)).unwrap()
}

fn rebase(world: &mut World, now: u64, elapsed: Time) {
    world.clocks.update(|clocks| clocks.rebase(now, elapsed)).unwrap();
}

/// By how much each clock moved since the start: MONOTONIC, RAW, BOOTTIME, REALTIME, TAI.
fn moved(world: &World, now: u64) -> [i128; 5] {
    let start = i128::from(START.secs) * 1_000_000_000;
    [
        world.nanos(MONOTONIC, now),
        world.nanos(RAW, now),
        world.nanos(BOOTTIME, now),
        world.nanos(REALTIME, now) - start,
        world.nanos(TAI, now) - start,
    ]
}

#[test]
fn a_counter_that_goes_on_counts_the_sleep_itself() {
    let mut world = prompt(nanosecond_counter().nonstop());
    suspend(&mut world, 100, None);
    let wake = 100 + 30 * DAY + 123;
    let slept = resume(&mut world, wake, None);
    assert_eq!(slept, Slept { time: time(30 * 86_400, 123), clock: SleepClock::Counter });
    let awake = 100;
    let all = awake + i128::from(30 * DAY + 123);
    assert_eq!(moved(&world, wake), [awake, awake, all, all, all]);
}

#[test]
fn a_counter_that_stops_leaves_the_sleep_to_the_persistent_clock() {
    let mut world = prompt(nanosecond_counter());
    suspend(&mut world, 1000, Some(time(5_000, 250_000_000)));
    // The counter was reset.
    let slept = resume(&mut world, 7, Some(time(5_003, 0)));
    assert_eq!(slept, Slept { time: time(2, 750_000_000), clock: SleepClock::Persistent });
    let all = 2_750_001_000;
    assert_eq!(moved(&world, 7), [1000, 1000, all, all, all]);
    assert_eq!(world.nanos(MONOTONIC, 9), 1002);
}

#[test]
fn without_any_clock_the_time_slept_can_be_added_later() {
    let mut world = prompt(nanosecond_counter());
    suspend(&mut world, 1000, None);
    let slept = resume(&mut world, 5, None);
    assert_eq!((slept.time, slept.clock), (time(0, 0), SleepClock::None));
    assert_eq!(moved(&world, 5), [1000; 5]);
    world.clocks.update(|clocks| clocks.inject_sleep(15, time(9, 1))).unwrap();
    let all = 9_000_001_012;
    assert_eq!(moved(&world, 16), [1011, 1011, all, all, all]);
}

#[test]
fn a_persistent_clock_that_went_back_counts_as_none() {
    let mut world = prompt(nanosecond_counter());
    suspend(&mut world, 1000, Some(time(5_000, 0)));
    let slept = resume(&mut world, 1000, Some(time(4_999, 0)));
    assert_eq!(slept.clock, SleepClock::None);
    assert_eq!(moved(&world, 1000), [1000; 5]);
}

#[test]
fn a_nonstop_counter_that_went_around_meanwhile_yields_to_the_persistent_clock() {
    // Wraps in 4.3 s.
    let narrow = Clocksource::new("narrow", SECOND, u64::from(u32::MAX), ClockMode::COUNTER)
        .unwrap()
        .nonstop();
    let mut world = prompt(narrow);
    suspend(&mut world, 0, Some(time(100, 0)));
    let slept = resume(&mut world, 1_410_065_408, Some(time(110, 0)));
    assert_eq!(slept, Slept { time: time(10, 0), clock: SleepClock::Persistent });
    // Short enough for the counter, which is the finer clock.
    suspend(&mut world, 1_410_065_408, Some(time(110, 0)));
    let slept = resume(&mut world, 2_410_065_409, Some(time(111, 0)));
    assert_eq!(slept, Slept { time: time(1, 1), clock: SleepClock::Counter });
}

#[test]
fn while_suspended_the_page_serves_coarse_clocks_only_and_nothing_can_be_set() {
    let mut world = prompt(nanosecond_counter());
    suspend(&mut world, 500, None);
    for clock in [REALTIME, MONOTONIC, RAW, BOOTTIME, TAI] {
        assert_eq!(world.read(clock, 600), None, "clock {}", clock.0);
    }
    assert_eq!(world.nanos(MONOTONIC_COARSE, 600), 500);
    assert_eq!(world.page.realtime_seconds(), Some(START.secs));
    let kernel = |world: &World| world.clocks.timekeeper().read(MONOTONIC, 600);
    assert_eq!(kernel(&world), Some(time(0, 500)), "the kernel's clock stands");
    assert_eq!(world.clocks.tick(700), Ok(Tick::Stopped));
    let refused = |change: fn(&mut timekeeper::Timekeeper) -> Result<(), Error>| {
        let mut next = *world.clocks.timekeeper();
        assert_eq!(change(&mut next), Err(Error::Suspended));
        assert_eq!(next, *world.clocks.timekeeper());
    };
    refused(|clocks| clocks.set_time(700, START));
    refused(|clocks| clocks.inject_offset(700, START));
    refused(|clocks| clocks.set_frequency(700, 1));
    refused(|clocks| clocks.set_leap(700, None));
    refused(|clocks| clocks.suspend(700, None));
    refused(|clocks| clocks.inject_sleep(700, START));
    refused(|clocks| clocks.enter_idle(700, None).map(|_| ()));
    refused(|clocks| clocks.rebase(700, START));
    refused(|clocks| clocks.set_clocksource(700, nanosecond_counter(), 0));
    resume(&mut world, 800, None);
    assert_eq!(world.nanos(MONOTONIC, 801), 501);
}

#[test]
fn clocks_stop_where_the_last_reader_of_the_old_page_may_be() {
    // 50 microseconds of publication.
    let mut world = World::new(nanosecond_counter().nonstop(), 0);
    let seen = world.nanos(MONOTONIC, MILLISECOND + 50_000);
    suspend(&mut world, MILLISECOND, None);
    let slept = resume(&mut world, MILLISECOND + SECOND, None);
    assert_eq!(world.nanos(MONOTONIC, MILLISECOND + SECOND), seen);
    // The sleep is shorter by what the clocks ran on, so that the wall clock is right.
    assert_eq!(slept.time, time(0, 999_950_000));
    assert_eq!(world.nanos(BOOTTIME, MILLISECOND + SECOND), i128::from(MILLISECOND + SECOND));
}

#[test]
fn what_the_clocks_ran_on_is_not_counted_again_by_the_persistent_clock() {
    let mut world = World::new(nanosecond_counter(), 0);
    suspend(&mut world, MILLISECOND, Some(time(5_000, 1_000_000)));
    let slept = resume(&mut world, 7, Some(time(5_010, 0)));
    assert_eq!(slept.time, time(9, 998_950_000));
    assert_eq!(world.nanos(BOOTTIME, 7), 10_000_000_000);
}

#[test]
fn a_persistent_clock_of_whole_seconds_gathers_no_error_over_many_sleeps() {
    let mut world = World::new(nanosecond_counter(), 0);
    let rtc = |now: u64| time(1_000 + (now / SECOND) as i64, 0);
    let mut now = 0;
    let mut counter = 0;
    for nap in 0..500_u64 {
        let awake = 300 * MILLISECOND + nap * 1_234_567;
        now += awake;
        counter += awake;
        suspend(&mut world, counter, Some(rtc(now)));
        now += 2 * SECOND + 777 * MILLISECOND;
        resume(&mut world, counter, Some(rtc(now)));
        let off = world.nanos(BOOTTIME, counter) - i128::from(now);
        assert!(off.abs() < 1_000_000_000, "{off} ns after {nap} naps");
    }
}

#[test]
fn a_persistent_clock_that_was_set_between_two_sleeps_starts_anew() {
    let mut world = prompt(nanosecond_counter());
    suspend(&mut world, 0, Some(time(1_000, 0)));
    resume(&mut world, 0, Some(time(1_010, 0)));
    suspend(&mut world, 0, Some(time(500_000, 0)));
    let slept = resume(&mut world, 0, Some(time(500_001, 0)));
    assert_eq!(slept.time, time(1, 0));
}

#[test]
fn an_idle_period_that_the_counter_can_measure_is_served() {
    let narrow =
        Clocksource::new("narrow", SECOND, u64::from(u32::MAX), ClockMode::COUNTER).unwrap();
    let mut world = prompt(narrow);
    let longest = world.clocks.timekeeper().max_idle_ns();
    // Half of 2^32 ns, less an eighth.
    assert_eq!(longest, 2_147_483_647 - 268_435_455);
    let idle = world.clocks.update(|clocks| clocks.enter_idle(5, Some(longest))).unwrap();
    assert_eq!(idle, Idle::Served);
    let end = (5 + longest) & u64::from(u32::MAX);
    assert_eq!(world.nanos(MONOTONIC, end), i128::from(5 + longest));
    world.tick(end);
    assert_eq!(world.nanos(MONOTONIC, end), i128::from(5 + longest));
}

#[test]
fn an_idle_period_that_is_too_long_withdraws_the_counter_until_it_is_rebased() {
    let narrow =
        Clocksource::new("narrow", SECOND, u64::from(u32::MAX), ClockMode::COUNTER).unwrap();
    for expected in [Some(2_000_000_000), None] {
        let mut world = World::new(narrow, 0);
        let idle = world.clocks.update(|clocks| clocks.enter_idle(1000, expected)).unwrap();
        assert_eq!(idle, Idle::Withdrawn);
        assert_eq!(world.read(MONOTONIC, 2000), None);
        assert_eq!(world.clocks.tick(2000), Ok(Tick::Stopped));
        let mut next = *world.clocks.timekeeper();
        assert_eq!(next.set_time(0, START), Err(Error::Withdrawn));
        // An hour, as another clock measured it; the counter says nothing of it.
        rebase(&mut world, 77, time(3600, 0));
        assert_eq!(moved(&world, 77), [3_600_000_001_000; 5]);
        world.tick(78);
        assert_eq!(moved(&world, 79), [3_600_000_001_002; 5]);
    }
}

#[test]
fn a_rebase_after_an_unknown_idle_time_never_goes_back() {
    let mut world = World::new(nanosecond_counter(), 0);
    let seen = world.nanos(MONOTONIC, 1000 + 50_000);
    world.clocks.update(|clocks| clocks.enter_idle(1000, None)).unwrap();
    for elapsed in [time(0, 0), time(0, 49_999)] {
        let mut next = *world.clocks.timekeeper();
        next.rebase(3, elapsed).unwrap();
        assert_eq!(next.read(MONOTONIC, 3), Some(time(0, seen as u32)));
    }
    rebase(&mut world, 3, time(0, 50_001));
    assert_eq!(world.nanos(MONOTONIC, 3), seen + 1);
}

#[test]
fn after_a_gap_beyond_half_of_the_range_a_rebase_continues() {
    let narrow =
        Clocksource::new("narrow", SECOND, u64::from(u32::MAX), ClockMode::COUNTER).unwrap();
    let mut world = World::new(narrow, 0);
    world.tick(1000);
    // 3 s without a tick: more than half of 4.3 s, so the counter seems to be behind.
    let late = 3_000_001_000;
    assert!(matches!(world.clocks.tick(late), Ok(Tick::Behind { .. })));
    assert_eq!(world.nanos(MONOTONIC, late), 1000);
    rebase(&mut world, late, time(3, 0));
    assert_eq!(moved(&world, late + 5), [3_000_001_005; 5]);
}

proptest! {
    #[test]
    fn boottime_minus_monotonic_is_the_sum_of_all_sleeps(
        naps in proptest::collection::vec((0..SECOND, 0..DAY), 1..50),
        delay in 0..=200_000_u32,
    ) {
        let mut world = World::with(
            nanosecond_counter().nonstop(),
            0,
            Config { publication_delay_ns: delay, ..Config::default() },
        );
        let mut now = 0;
        let mut asleep = 0;
        for (awake, nap) in naps {
            now += awake;
            suspend(&mut world, now, None);
            now += nap;
            let slept = resume(&mut world, now, None).time;
            asleep += crate::world::nanos(slept);
            prop_assert_eq!(crate::world::nanos(slept), i128::from(nap.saturating_sub(u64::from(delay))));
            prop_assert_eq!(world.nanos(BOOTTIME, now) - world.nanos(MONOTONIC, now), asleep);
            prop_assert_eq!(world.nanos(MONOTONIC, now), world.nanos(RAW, now));
        }
    }
}
