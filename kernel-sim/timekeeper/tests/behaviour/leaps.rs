use proptest::prelude::*;
use timekeeper::{Leap, LeapState};

use crate::world::{
    BOOTTIME, MONOTONIC, REALTIME, REALTIME_COARSE, TAI, World, nanosecond_counter, time, tsc,
};

const DAY: i64 = 86_400;
const SECOND: u64 = 1_000_000_000;

/// Two seconds before the end of the day that begins at `midnight`, with TAI ahead by 37 s.
fn evening(midnight: i64) -> World {
    let mut world = World::new(nanosecond_counter(), 0);
    world
        .clocks
        .update(|clocks| {
            clocks.set_tai_offset(37)?;
            clocks.set_time(0, time(midnight + DAY - 2, 0))
        })
        .unwrap();
    world
}

fn request(world: &mut World, now: u64, leap: Option<Leap>) {
    world.clocks.update(|clocks| clocks.set_leap(now, leap)).unwrap();
}

#[test]
fn an_inserted_second_repeats_the_last_one_of_the_day_and_no_other_clock_notices() {
    let midnight = 19_723 * DAY;
    let mut world = evening(midnight);
    request(&mut world, 0, Some(Leap::Insert));
    let mut readings = Vec::new();
    let mut last = (0, 0, 0);
    for tenth in 0..=50_u64 {
        let now = tenth * SECOND / 10;
        world.tick(now);
        let steady =
            (world.nanos(TAI, now), world.nanos(MONOTONIC, now), world.nanos(BOOTTIME, now));
        if tenth > 0 {
            let tenth = 100_000_000;
            assert_eq!(steady.0 - last.0, tenth);
            assert_eq!(steady.1 - last.1, tenth);
            assert_eq!(steady.2 - last.2, tenth);
        }
        last = steady;
        let real = world.read(REALTIME, now).unwrap();
        assert_eq!(world.read(REALTIME_COARSE, now), Some(real));
        readings.push(real.secs - midnight - DAY);
    }
    let due: Vec<i64> =
        [-2, -1, -1, 0, 1].into_iter().flat_map(|second| [second; 10]).chain([2]).collect();
    assert_eq!(readings, due);
    assert_eq!(world.clocks.timekeeper().tai_offset(), 38);
}

#[test]
fn a_deleted_second_is_left_out_and_no_other_clock_notices() {
    let midnight = 19_723 * DAY;
    let mut world = evening(midnight);
    request(&mut world, 0, Some(Leap::Delete));
    let mut readings = Vec::new();
    for half in 0..6_u64 {
        let now = half * SECOND / 2;
        world.tick(now);
        assert_eq!(
            world.nanos(TAI, now),
            i128::from(midnight + DAY + 35) * 1_000_000_000 + i128::from(now)
        );
        assert_eq!(world.nanos(MONOTONIC, now), i128::from(now));
        readings.push(world.read(REALTIME, now).unwrap().secs - midnight - DAY);
    }
    assert_eq!(readings, [-2, -2, 0, 0, 1, 1]);
    assert_eq!(world.clocks.timekeeper().tai_offset(), 36);
}

#[test]
fn until_the_tick_after_it_a_page_shows_the_second_that_is_to_be_repeated() {
    let midnight = 19_723 * DAY;
    let mut world = evening(midnight);
    request(&mut world, 0, Some(Leap::Insert));
    world.tick(SECOND * 2 - 1_000_000);
    let after = SECOND * 2 + 2_000_000;
    let tai = world.nanos(TAI, after);
    assert_eq!(world.read(REALTIME, after), Some(time(midnight + DAY, 2_000_000)));
    world.tick(after);
    assert_eq!(world.read(REALTIME, after), Some(time(midnight + DAY - 1, 2_000_000)));
    assert_eq!(world.nanos(TAI, after), tai, "TAI never steps");
}

#[test]
fn a_kernel_can_tick_at_the_leap_itself() {
    for leap in [Leap::Insert, Leap::Delete] {
        let mut world = evening(19_723 * DAY);
        request(&mut world, 0, Some(leap));
        world.tick(SECOND / 3);
        let cycles = world.clocks.timekeeper().cycles_to_leap().unwrap();
        let boundary = if leap == Leap::Insert { 2 } else { 1 };
        assert_eq!(SECOND / 3 + cycles, boundary * SECOND);
        world.tick(boundary * SECOND - 1);
        assert!(world.clocks.timekeeper().cycles_to_leap().is_some(), "not yet");
        world.tick(boundary * SECOND);
        assert_eq!(world.clocks.timekeeper().cycles_to_leap(), None);
        assert_eq!(world.read(REALTIME, boundary * SECOND).unwrap().nanos, 0);
    }
}

#[test]
fn a_leap_second_is_made_once_until_the_request_is_withdrawn() {
    let mut world = evening(0);
    request(&mut world, 0, Some(Leap::Insert));
    let state = |world: &World| world.clocks.timekeeper().leap();
    assert_eq!(state(&world), LeapState::Due { leap: Leap::Insert, at_secs: DAY });
    world.tick(2 * SECOND);
    assert_eq!(state(&world), LeapState::Inserted);
    world.tick(3 * SECOND);
    assert_eq!(state(&world), LeapState::Done);
    request(&mut world, 3 * SECOND, Some(Leap::Insert));
    assert_eq!(state(&world), LeapState::Done);
    world.tick((DAY as u64 + 5) * SECOND);
    assert_eq!(world.clocks.timekeeper().tai_offset(), 38);
    request(&mut world, (DAY as u64 + 5) * SECOND, None);
    assert_eq!(state(&world), LeapState::None);
    request(&mut world, (DAY as u64 + 5) * SECOND, Some(Leap::Insert));
    assert!(matches!(state(&world), LeapState::Due { .. }));
}

#[test]
fn a_withdrawn_request_makes_no_leap_second() {
    let mut world = evening(0);
    request(&mut world, 0, Some(Leap::Insert));
    request(&mut world, SECOND, None);
    world.tick(3 * SECOND);
    assert_eq!(world.clocks.timekeeper().tai_offset(), 37);
    assert_eq!(world.read(REALTIME, 3 * SECOND), Some(time(DAY + 1, 0)));
}

#[test]
fn a_request_in_the_last_second_of_a_day_is_for_that_days_end_or_the_next_one_left_to_delete() {
    let mut world = evening(0);
    world.tick(SECOND);
    request(&mut world, SECOND, Some(Leap::Insert));
    let due = |world: &World| match world.clocks.timekeeper().leap() {
        LeapState::Due { at_secs, .. } => at_secs,
        other => panic!("{other:?}"),
    };
    assert_eq!(due(&world), DAY);
    request(&mut world, SECOND, Some(Leap::Delete));
    assert_eq!(due(&world), 2 * DAY - 1, "23:59:59 has begun already");
}

#[test]
fn setting_the_clock_moves_a_leap_second_to_the_end_of_the_new_day() {
    for (set, due) in [(time(-1, 0), 0), (time(0, 0), DAY), (time(-DAY - 1, 5), -DAY)] {
        let mut world = evening(19_723 * DAY);
        request(&mut world, 0, Some(Leap::Insert));
        world.clocks.update(|clocks| clocks.set_time(500, set)).unwrap();
        assert_eq!(
            world.clocks.timekeeper().leap(),
            LeapState::Due { leap: Leap::Insert, at_secs: due }
        );
    }
}

#[test]
fn an_offset_injected_at_a_leap_second_comes_on_top_of_it() {
    let mut world = evening(0);
    request(&mut world, 0, Some(Leap::Insert));
    world.clocks.update(|keeper| keeper.slew(0, 10_000_000)).unwrap();
    world.tick(SECOND + SECOND / 2);
    let now = SECOND + SECOND / 2 + world.clocks.timekeeper().cycles_to_leap().unwrap() - 10;
    let tai = world.nanos(TAI, now);
    // The slew ends here, which moves the clocks forward by 25 ns, over the boundary.
    world.clocks.update(|keeper| keeper.inject_offset(now, time(100, 0))).unwrap();
    assert_eq!(world.clocks.timekeeper().tai_offset(), 38);
    assert_eq!(world.read(REALTIME, now).unwrap().secs, DAY + 99);
    let moved = world.nanos(TAI, now) - tai - 100_000_000_000;
    assert!((0..=26).contains(&moved), "{moved}");
}

#[test]
fn clocks_taken_over_at_a_leap_second_have_the_tai_offset_that_was_given() {
    let clocks = timekeeper::Clocks {
        realtime: time(2 * DAY, 0),
        monotonic: time(1, 0),
        boottime: time(1, 0),
        monotonic_raw: time(1, 0),
        tai_offset: 10,
    };
    for before in [0, 10] {
        let mut world = evening(0);
        request(&mut world, 0, Some(Leap::Insert));
        world.clocks.update(|keeper| keeper.slew(0, 10_000_000)).unwrap();
        world.tick(SECOND + SECOND / 2);
        let now =
            SECOND + SECOND / 2 + world.clocks.timekeeper().cycles_to_leap().unwrap() - before;
        // The slew ends here, which moves the clocks forward by 25 ns, over the boundary.
        world.clocks.update(|keeper| keeper.set_clocks(now, clocks)).unwrap();
        assert_eq!(world.clocks.timekeeper().leap(), LeapState::Inserted);
        assert_eq!(world.read(TAI, now), Some(time(2 * DAY + 10, 0)), "{before} ns before");
    }
}

proptest! {
    #[test]
    fn however_late_the_tick_comes_a_leap_second_is_made_once(
        day in -20_000..20_000_i64,
        late in 0..10 * 86_400 * SECOND,
        insert in any::<bool>(),
    ) {
        let mut world = World::new(tsc(), u64::MAX - 5);
        world.clocks.update(|clocks| clocks.set_time(u64::MAX - 5, time(day * DAY + DAY - 2, 0))).unwrap();
        let leap = if insert { Leap::Insert } else { Leap::Delete };
        world.clocks.update(|clocks| clocks.set_leap(u64::MAX - 5, Some(leap))).unwrap();
        let now = (u64::MAX - 5).wrapping_add(2 * 2_400_000_000 + late);
        let unleaped = world.nanos(REALTIME, now);
        let tai = world.nanos(TAI, now);
        world.tick(now);
        let step = if insert { -1_000_000_000 } else { 1_000_000_000 };
        prop_assert_eq!(world.nanos(REALTIME, now), unleaped + step);
        prop_assert_eq!(world.nanos(TAI, now), tai);
    }
}
