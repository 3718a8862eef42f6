use datapage::TimeZone;
use timekeeper::{Clocks, Clocksource, Config, Error, Loop, Timekeeper};

use crate::world::{ALL, START, World, time, tsc};

/// Everything that readers can see of the page.
fn page(world: &World) -> impl PartialEq + std::fmt::Debug + use<> {
    let page = world.page;
    let clocks = ALL.map(|clock| {
        let slot = clock.slot().unwrap();
        (
            page.precise(slot, |mode| Some(u64::from(mode.0.cast_unsigned()))),
            page.coarse(slot),
            page.resolution(slot),
        )
    });
    (clocks, page.timezone(), page.header())
}

/// `change` is refused with `error`, whose message says `limit`, and nothing has changed.
fn refused<T: std::fmt::Debug + PartialEq>(
    change: impl FnOnce(&mut Timekeeper) -> Result<T, Error>,
    error: Error,
    limit: &str,
) {
    let mut world = World::new(tsc(), 0);
    world.tick(9_600_000);
    let (state, seen) = (*world.clocks.timekeeper(), page(&world));
    let mut bare = state;
    let outcome = world.clocks.update(|clocks| {
        // The call itself leaves the state alone, not only the transaction around it.
        let outcome = change(clocks);
        bare = *clocks;
        outcome
    });
    assert_eq!(outcome, Err(error));
    assert_eq!(bare, state);
    assert_eq!(*world.clocks.timekeeper(), state);
    assert!(page(&world) == seen, "the page has changed");
    let message = error.to_string();
    assert!(message.contains(limit), "{message:?} does not say {limit:?}");
}

const NOW: u64 = 12_345_678;

#[test]
fn nanoseconds_of_a_whole_second_are_refused_wherever_a_time_is_taken() {
    let bad = time(1, 1_000_000_000);
    let error = Error::Nanos { found: 1_000_000_000 };
    let says = "1000000000";
    refused(|clocks| clocks.set_time(NOW, bad), error, says);
    refused(|clocks| clocks.inject_offset(NOW, bad), error, says);
    refused(|clocks| clocks.inject_sleep(NOW, bad), error, says);
    refused(|clocks| clocks.suspend(NOW, Some(bad)), error, says);
    refused(|clocks| clocks.rebase(NOW, bad), error, says);
    let good = Clocks {
        realtime: START,
        monotonic: START,
        boottime: START,
        monotonic_raw: START,
        tai_offset: 0,
    };
    for clocks in [
        Clocks { realtime: bad, ..good },
        Clocks { monotonic: bad, ..good },
        Clocks { boottime: bad, ..good },
        Clocks { monotonic_raw: bad, ..good },
    ] {
        refused(|keeper| keeper.set_clocks(NOW, clocks), error, says);
    }
}

#[test]
fn a_date_that_no_clock_can_hold_is_refused() {
    let last = time(9_223_372_036, 854_775_807);
    let first = time(-9_223_372_037, 145_224_192);
    for good in [first, last] {
        let mut world = World::new(tsc(), 0);
        world.clocks.update(|clocks| clocks.set_time(0, good)).unwrap();
    }
    for bad in [
        time(9_223_372_036, 854_775_808),
        time(-9_223_372_037, 145_224_191),
        time(i64::MAX, 0),
        time(i64::MIN, 999_999_999),
    ] {
        let error = Error::Date { found_secs: bad.secs };
        refused(|clocks| clocks.set_time(NOW, bad), error, "2262");
        refused(|clocks| clocks.set_time(NOW, bad), error, "1677");
        let new = Timekeeper::new(tsc(), 0, bad, Config::default());
        assert_eq!(new.err(), Some(error));
    }
    refused(
        |clocks| clocks.inject_offset(NOW, time(8_000_000_000, 0)),
        Error::Date { found_secs: 9_700_000_000 },
        "2262",
    );
    refused(
        |clocks| clocks.inject_offset(NOW, time(i64::MIN, 0)),
        Error::Date { found_secs: i64::MIN + 1_700_000_000 },
        "1677",
    );
}

#[test]
fn a_negative_time_cannot_have_gone_by() {
    let error = Error::Negative { found_secs: -1 };
    refused(|clocks| clocks.inject_sleep(NOW, time(-1, 0)), error, "-1");
    refused(|clocks| clocks.rebase(NOW, time(-1, 999_999_999)), error, "-1");
}

#[test]
fn ntp_settings_beyond_their_limits_are_refused() {
    for found in [32_768_001, -32_768_001, i64::MIN, i64::MAX] {
        refused(|clocks| clocks.set_frequency(NOW, found), Error::Frequency { found }, "32768000");
    }
    for found in [0, 8_999, 11_001, u32::MAX] {
        refused(
            |clocks| clocks.set_tick_length(NOW, found),
            Error::TickLength { found },
            "9000 to 11000",
        );
    }
    for found in [500_000_001, -500_000_001, i64::MIN, i64::MAX] {
        refused(
            |clocks| clocks.adjust_phase(NOW, found, 0, Loop::Phase),
            Error::Phase { found },
            "500000000",
        );
    }
    for found in [11, u32::MAX] {
        refused(
            |clocks| clocks.adjust_phase(NOW, 0, found, Loop::Phase),
            Error::TimeConstant { found },
            "10",
        );
    }
    for found in [2_147_000_000_001, -2_147_000_000_001, i64::MIN, i64::MAX] {
        refused(|clocks| clocks.slew(NOW, found), Error::Adjust { found }, "2147000000000");
    }
}

#[test]
fn offsets_timezones_and_rates_beyond_their_limits_are_refused() {
    for found in [100_001, -100_001, i32::MIN, i32::MAX] {
        refused(|clocks| clocks.set_tai_offset(found), Error::TaiOffset { found }, "100000");
    }
    for found in [901, -901, i32::MIN, i32::MAX] {
        refused(
            |clocks| clocks.set_timezone(TimeZone { minutes_west: found, dst_time: 0 }),
            Error::Timezone { found },
            "900",
        );
    }
    for found in [0, 10_001, u32::MAX] {
        refused(|clocks| clocks.set_tick_rate(found), Error::TickRate { found }, "10000");
    }
    refused(
        |clocks| clocks.set_publication_delay(100_000_001),
        Error::PublicationDelay { found: 100_000_001 },
        "100000000",
    );
}

#[test]
fn each_limit_is_the_last_value_that_is_legal() {
    let mut world = World::new(tsc(), 0);
    let mut legal = |change: &dyn Fn(&mut Timekeeper, i64) -> Result<(), Error>| {
        for sign in [1, -1] {
            assert_eq!(world.clocks.update(|clocks| change(clocks, sign)), Ok(()));
        }
    };
    legal(&|clocks, sign| {
        let minutes_west = 900 * sign as i32;
        clocks.set_timezone(TimeZone { minutes_west, dst_time: i32::MIN })
    });
    legal(&|clocks, sign| clocks.set_tai_offset(100_000 * sign as i32));
    legal(&|clocks, sign| clocks.set_frequency(NOW, 32_768_000 * sign));
    legal(&|clocks, sign| clocks.set_tick_length(NOW, (10_000 + 1_000 * sign) as u32));
    legal(&|clocks, sign| clocks.adjust_phase(NOW, 500_000_000 * sign, 10, Loop::Phase));
    legal(&|clocks, sign| clocks.slew(NOW, 2_147_000_000_000 * sign));
    legal(&|clocks, sign| clocks.set_tick_rate(if sign > 0 { 10_000 } else { 1 }));
    legal(&|clocks, sign| clocks.set_publication_delay(if sign > 0 { 100_000_000 } else { 0 }));
    legal(&|clocks, _| clocks.inject_sleep(NOW, time(0, 0)));
}

#[test]
fn a_machine_that_is_awake_is_not_resumed() {
    refused(|clocks| clocks.resume(NOW, None), Error::NotSuspended, "not suspended");
}

#[test]
fn a_persistent_clock_that_is_refused_leaves_the_machine_suspended() {
    let mut world = World::new(tsc(), 0);
    world.clocks.update(|clocks| clocks.suspend(NOW, None)).unwrap();
    let suspended = *world.clocks.timekeeper();
    let outcome = world.clocks.update(|clocks| clocks.resume(NOW, Some(time(0, u32::MAX))));
    assert_eq!(outcome, Err(Error::Nanos { found: u32::MAX }));
    assert_eq!(*world.clocks.timekeeper(), suspended);
}

#[test]
fn counters_that_no_clock_can_run_on_are_refused() {
    use datapage::ClockMode;
    for mask in [0, 1, 0x7f, 0xfffe, u64::MAX - 1, 0xff00] {
        let outcome = Clocksource::new("bad", 1_000_000, mask, ClockMode::NONE);
        assert_eq!(outcome, Err(Error::Mask { found: mask }));
    }
    assert!(Clocksource::new("good", 1_000_000, 0xff, ClockMode::NONE).is_ok());
    for hz in [0, 1_000_000_000_001, u64::MAX] {
        let outcome = Clocksource::new("bad", hz, u64::MAX, ClockMode::NONE);
        assert_eq!(outcome, Err(Error::CounterRate { found: hz }));
    }
    for (mult, shift) in [(0, 0), (1023, 4), (3_869_339_907, 20), (u32::MAX, 1), (5000, 35)] {
        let outcome = tsc().with_scale(mult, shift);
        assert_eq!(outcome, Err(Error::Scale { mult, shift }));
    }
    assert!(tsc().with_scale(3_869_339_906, 34).is_ok());
}
