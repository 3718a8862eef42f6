use datapage::{ClockId, TimeZone};
use proptest::prelude::*;
use timekeeper::{Clocks, Error};

use crate::world::{
    BOOTTIME, MONOTONIC, MONOTONIC_COARSE, RAW, REALTIME, REALTIME_COARSE, START, TAI, World,
    exact, nanos, nanosecond_counter, time, tsc,
};

const OTHERS: [ClockId; 3] = [MONOTONIC, BOOTTIME, RAW];

#[test]
fn a_time_before_1970_counts_its_nanoseconds_upwards() {
    let mut world = World::new(nanosecond_counter(), 0);
    world.clocks.update(|clocks| clocks.set_time(100, time(-2, 500_000_000))).unwrap();
    assert_eq!(world.read(REALTIME, 100), Some(time(-2, 500_000_000)));
    assert_eq!(world.read(REALTIME_COARSE, 100), Some(time(-2, 500_000_000)));
    assert_eq!(world.page.realtime_seconds(), Some(-2));
    assert_eq!(world.read(REALTIME, 500_000_100), Some(time(-1, 0)));
    assert_eq!(world.read(REALTIME, 1_500_000_100), Some(time(0, 0)));
}

#[test]
fn realtime_may_be_less_than_the_uptime() {
    let mut world = World::new(nanosecond_counter(), 0);
    let uptime = 300_000_000_000;
    world.clocks.update(|clocks| clocks.set_time(uptime, time(0, 0))).unwrap();
    assert_eq!(world.read(REALTIME, uptime), Some(time(0, 0)));
    assert_eq!(world.page.realtime_seconds(), Some(0));
    assert_eq!(world.read(MONOTONIC, uptime), Some(time(300, 0)));
    assert_eq!(world.read(MONOTONIC_COARSE, uptime), Some(time(300, 0)));
}

#[test]
fn tai_is_ahead_of_realtime_by_its_offset_at_once_and_after_a_set() {
    let mut world = World::new(tsc(), 0);
    assert_eq!(world.read(TAI, 7), world.read(REALTIME, 7));
    for offset in [37, -5, 0, 100_000, -100_000] {
        world.clocks.update(|clocks| clocks.set_tai_offset(offset)).unwrap();
        let difference = |world: &World| world.nanos(TAI, 9_999) - world.nanos(REALTIME, 9_999);
        assert_eq!(difference(&world), i128::from(offset) * 1_000_000_000);
        world
            .clocks
            .update(|clocks| clocks.set_time(5000, time(1_600_000_000, 999_999_999)))
            .unwrap();
        assert_eq!(difference(&world), i128::from(offset) * 1_000_000_000);
    }
}

#[test]
fn the_timezone_reaches_the_page_with_the_update_that_set_it() {
    let mut world = World::new(tsc(), 0);
    let set = TimeZone { minutes_west: -90, dst_time: 1 };
    world.clocks.update(|clocks| clocks.set_timezone(set)).unwrap();
    assert_eq!(world.page.timezone(), Some(set));
    assert_eq!(world.clocks.timekeeper().timezone(), set);
}

#[test]
fn the_resolutions_follow_the_high_resolution_switch_and_the_tick_rate() {
    let mut world = World::new(tsc(), 0);
    let resolutions = |world: &World| {
        let of = |clock: ClockId| world.page.resolution(clock.slot().unwrap()).unwrap();
        assert_eq!(of(RAW), of(REALTIME));
        assert_eq!(of(MONOTONIC_COARSE), of(REALTIME_COARSE));
        (of(MONOTONIC), of(MONOTONIC_COARSE))
    };
    assert_eq!(resolutions(&world), (1, 4_000_000));
    for (hz, tick) in [(100, 10_000_000), (300, 3_333_333), (1024, 976_563), (1, 1_000_000_000)] {
        world.clocks.update(|clocks| clocks.set_tick_rate(hz)).unwrap();
        assert_eq!(resolutions(&world), (1, tick));
        let switch = |world: &mut World, on| {
            world
                .clocks
                .update(|clocks| {
                    clocks.set_high_resolution(on);
                    Ok::<_, Error>(())
                })
                .unwrap();
        };
        switch(&mut world, false);
        assert_eq!(resolutions(&world), (tick, tick));
        switch(&mut world, true);
    }
}

#[test]
fn a_date_flows_past_the_end_of_64_bit_nanoseconds() {
    let mut world = World::new(nanosecond_counter(), 0);
    world.clocks.update(|clocks| clocks.set_time(0, time(9_223_372_036, 854_775_807))).unwrap();
    world.tick(4_000_000);
    assert_eq!(world.read(REALTIME, 4_000_000), Some(time(9_223_372_036, 858_775_807)));
    world.tick(1_000_000_000);
    assert_eq!(world.read(REALTIME, 1_000_000_001), Some(time(9_223_372_037, 854_775_808)));
}

#[test]
fn clocks_taken_over_from_elsewhere_stand_where_they_stood_there() {
    let mut world = World::new(tsc(), 0);
    world.tick(1_234_567);
    let clocks = Clocks {
        realtime: time(1_700_000_000, 1),
        monotonic: time(86_400, 999_999_999),
        boottime: time(100_000, 2),
        monotonic_raw: time(86_401, 3),
        tai_offset: 37,
    };
    world.clocks.update(|keeper| keeper.set_clocks(2_000_001, clocks)).unwrap();
    let at = |clock| world.read(clock, 2_000_001).unwrap();
    assert_eq!(at(REALTIME), clocks.realtime);
    assert_eq!(at(MONOTONIC), clocks.monotonic);
    assert_eq!(at(BOOTTIME), clocks.boottime);
    assert_eq!(at(RAW), clocks.monotonic_raw);
    assert_eq!(at(TAI), time(1_700_000_037, 1));
}

#[test]
fn several_changes_are_published_as_one_or_not_at_all() {
    let mut world = World::new(tsc(), 0);
    let before = *world.clocks.timekeeper();
    let error = world
        .clocks
        .update(|clocks| {
            clocks.set_time(10, time(5, 5))?;
            clocks.set_timezone(TimeZone { minutes_west: 60, dst_time: 0 })?;
            clocks.set_tai_offset(100_001)
        })
        .unwrap_err();
    assert_eq!(error, Error::TaiOffset { found: 100_001 });
    assert_eq!(*world.clocks.timekeeper(), before);
    assert_eq!(world.read(REALTIME, 0), Some(START));
    assert_eq!(world.page.timezone(), Some(TimeZone::default()));
}

#[test]
fn a_change_that_panics_leaves_the_page_as_it_was() {
    let mut world = World::new(tsc(), 0);
    let dies = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        world.clocks.update(|clocks| -> Result<(), Error> {
            clocks.set_time(10, time(5, 5))?;
            std::panic::resume_unwind(Box::new(()));
        })
    }));
    assert!(dies.is_err() && !world.page.is_odd());
    assert_eq!(world.read(REALTIME, 0), Some(START));
}

fn dates() -> impl Strategy<Value = datapage::Time> {
    (-9_223_372_035..=9_223_372_035_i64, 0..1_000_000_000_u32)
        .prop_map(|(secs, nanos)| time(secs, nanos))
}

proptest! {
    #[test]
    fn a_set_stands_to_the_nanosecond_and_moves_no_other_clock(
        sets in proptest::collection::vec((dates(), 1..30_000_000_u64), 1..20),
        frequency in -32_768_000..=32_768_000_i64,
    ) {
        let mut world = World::new(tsc(), 0);
        world.clocks.update(|clocks| clocks.set_frequency(0, frequency)).unwrap();
        let mut now = 0;
        for (date, gap) in sets {
            now += gap;
            let before: Vec<_> =
                OTHERS.map(|clock| exact(&world.snapshot(clock, now).unwrap())).to_vec();
            world.clocks.update(|clocks| clocks.set_time(now, date)).unwrap();
            prop_assert_eq!(world.read(REALTIME, now), Some(date));
            prop_assert_eq!(world.read(REALTIME_COARSE, now), Some(date));
            for (clock, before) in OTHERS.into_iter().zip(before) {
                let moved = exact(&world.snapshot(clock, now).unwrap()) - before;
                // Steering by one unit may move the steered clocks forward by 0.007 ns.
                prop_assert!((0..1 << 28).contains(&moved), "clock {} by {moved}", clock.0);
            }
        }
    }

    #[test]
    fn an_injected_offset_moves_realtime_by_exactly_that(
        start in dates(),
        secs in -3_000_000_000..3_000_000_000_i64,
        fraction in 0..1_000_000_000_u32,
    ) {
        let mut world = World::new(tsc(), 0);
        world.clocks.update(|clocks| clocks.set_time(0, start)).unwrap();
        let old = world.nanos(REALTIME, 1_000);
        let due = old + nanos(time(secs, fraction));
        let outcome = world.clocks.update(|clocks| clocks.inject_offset(1_000, time(secs, fraction)));
        if i64::try_from(due).is_ok() {
            prop_assert_eq!(outcome, Ok(()));
            prop_assert_eq!(world.nanos(REALTIME, 1_000), due);
        } else {
            prop_assert!(matches!(outcome, Err(Error::Date { .. })), "{outcome:?}");
            prop_assert_eq!(world.nanos(REALTIME, 1_000), old);
        }
    }
}
