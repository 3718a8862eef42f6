//! Updates that no timekeeper would make: every value that the writer accepts, and some that it
//! does not.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "any part of a random word is as random as the whole"
)]

use datapage::{ClockId, ClockMode, Instant, PageValues, Scale};
use kernel_sim::machine::Event;

use crate::rng::Rng;
use crate::scenario::{Namespace, Reader, Scenario, Setup, Step, Which};
use crate::subject::Call;

const IDS: [i32; 7] = [0, 1, 4, 5, 6, 7, 11];
/// Clock modes: readable ones most often. That of a time namespace is not here: its page is no
/// page of instants.
const MODES: [i32; 12] = [1, 1, 1, 0x100, 0x100, 0x101, 0, 2, 3, 0x102, 0x103, -1];

pub(super) fn scenario(mut rng: Rng, reader: Reader, updates: u64) -> Scenario {
    let rng = &mut rng;
    let namespace = rng.one_in(6).then(|| namespace(rng));
    let mut steps = Vec::new();
    // Half of the updates differ in little from the one before, as on a machine.
    let mut values = values(rng);
    // A few more than are wanted: some are refused.
    for _ in 0..updates + updates / 32 {
        if rng.one_in(2) {
            values = self::values(rng);
        } else {
            values.cycle_last = counter_near(rng, &values);
        }
        let publish = Step::Publish(Box::new(values));
        let counter = counter_near(rng, &values);
        steps.push(Step::Counter(counter));
        if reader == Reader::Preemptible && rng.one_in(4) {
            steps.push(Step::InterruptedRead {
                cpu: 0,
                call: call(rng),
                at: u32::try_from(rng.below(24)).unwrap_or(0),
                inside: vec![publish],
            });
        } else {
            steps.push(publish);
        }
        if rng.one_in(64) {
            let event = timezone(rng);
            steps.push(match reader {
                Reader::Preemptible => {
                    Step::InterruptedUpdate { event, at: u32::try_from(rng.below(5)).unwrap_or(0) }
                }
                _ => Step::Event(event),
            });
        }
        let which = match rng.below(16) {
            0 => Which::All,
            1..8 => Which::One(call(rng)),
            _ => Which::One(Call::ClockGettime(rng.of(&IDS))),
        };
        steps.push(Step::Read { cpu: 0, which });
    }
    Scenario { setup: Setup { reader, namespace, machine: None }, steps }
}

/// Offsets that no kernel would accept among those that it would: they carry, borrow, and leave 64
/// bits. They are few, since each needs a page of its own.
const OFFSETS: [(i64, u32); 6] = [
    (86_400, 0),
    (-1, 999_999_999),
    (0, 1),
    (-4_000_000_000, 500_000_000),
    (i64::MAX, 999_999_999),
    (i64::MIN, 1),
];

fn namespace(rng: &mut Rng) -> Namespace {
    let at = rng.below(OFFSETS.len() as u64) as usize;
    let next = (at + 1) % OFFSETS.len();
    Namespace { monotonic: OFFSETS[at], boottime: OFFSETS[next] }
}

fn timezone(rng: &mut Rng) -> Event {
    let any = |rng: &mut Rng| rng.edge() as u32 as i32;
    Event::Timezone { minutes_west: any(rng), dst_time: any(rng) }
}

fn call(rng: &mut Rng) -> Call {
    let id = if rng.one_in(16) { rng.within(-8, 40) as i32 } else { rng.of(&IDS) };
    match rng.below(12) {
        0 => Call::ClockGetres(id),
        1 => Call::Time,
        2 => Call::Gettimeofday { tv: true, tz: true },
        3 => Call::Gettimeofday { tv: true, tz: false },
        4 => Call::Gettimeofday { tv: false, tz: true },
        5..8 => Call::ClockGettimeNs(id),
        _ => Call::ClockGettime(id),
    }
}

fn values(rng: &mut Rng) -> PageValues {
    let mut values = PageValues {
        clock_mode: ClockMode(if rng.one_in(64) {
            rng.edge() as u32 as i32
        } else {
            rng.of(&MODES)
        }),
        cycle_last: rng.edge(),
        steered: scale(rng),
        raw: scale(rng),
        hrtimer_res: if rng.one_in(16) { 0 } else { rng.any_magnitude() as u32 },
        coarse_res: if rng.one_in(16) { 0 } else { rng.any_magnitude() as u32 },
        ..PageValues::default()
    };
    if values.clock_mode == ClockMode::TIME_NAMESPACE {
        values.clock_mode = ClockMode::NONE;
    }
    for id in IDS {
        if !rng.one_in(16) {
            let shift = match id {
                5 | 6 => 0,
                4 => values.raw.shift,
                _ => values.steered.shift,
            };
            values.set(ClockId(id), instant(rng, shift));
        }
    }
    if rng.one_in(256) {
        // For the writer to refuse.
        match rng.below(3) {
            0 => values.steered.shift = 35,
            1 => values.raw.mask = 6,
            _ => values.set(ClockId(5), Instant { secs: 0, nanos: 1_000_000_000 }),
        }
    }
    values
}

fn scale(rng: &mut Rng) -> Scale {
    let bits = if rng.one_in(8) { rng.below(65) as u32 } else { rng.of(&[32, 48, 56, 64]) };
    Scale {
        mask: u64::MAX.checked_shr(64 - bits).unwrap_or(0),
        mult: match rng.below(4) {
            0 => rng.edge() as u32,
            1 => 6_990_507,
            _ => rng.any_magnitude() as u32,
        },
        shift: rng.below(35) as u32,
    }
}

fn instant(rng: &mut Rng, shift: u32) -> Instant {
    let second = 1_000_000_000_u64 << shift;
    let secs = match rng.below(8) {
        0 => rng.edge().cast_signed(),
        1 => rng.within(-3, 3),
        // Where nanoseconds leave 64 bits.
        2 => rng.within(9_223_372_034, 9_223_372_038),
        3 => rng.within(-9_223_372_038, -9_223_372_034),
        4 => i64::MAX - rng.below(3).cast_signed(),
        _ => rng.within(0, 4_000_000_000),
    };
    let nanos = match rng.below(4) {
        0 => rng.below(3),
        1 => second - 1 - rng.below(3),
        _ => rng.below(second),
    };
    Instant { secs, nanos }
}

/// A counter ahead of the update's by any magnitude, or at an edge of what counts as ahead.
fn counter_near(rng: &mut Rng, values: &PageValues) -> u64 {
    let mask = values.steered.mask;
    let ahead = match rng.below(8) {
        0 => (mask >> 1).wrapping_add_signed(rng.within(-1, 2)),
        1 => rng.below(3).wrapping_neg(),
        2 => 0,
        3 => rng.next(),
        _ => rng.any_magnitude(),
    };
    values.cycle_last.wrapping_add(ahead)
}
