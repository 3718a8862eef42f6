//! A hundred million reads of the wall clock in nanoseconds: a `timespec` that the caller
//! converts, or a register.
//!
//! The two programs that this reproduces ran one after the other, each for as long as it took.
//! Here the loops take short turns, and the seconds are the number of turns times the median turn:
//! the sum would belong to whoever interrupted most.

use std::fmt::Write as _;

use serde_json::json;

use super::Bench;
use crate::chart::{Body, Chart};
use crate::clock;
use crate::report::{Effort, Noise, Report};
use crate::rounds::Plan;
use crate::statistics::{self, Spread};
use crate::subject::{self, Subject};

/// Calls of a turn: short against a time slice.
const TURN: u32 = 2_000;
/// Turns between two publications, far less than a second.
const TURNS_PER_TICK: usize = 100;

pub(super) fn measure(bench: &Bench<'_, '_>) -> Report {
    let calls: u64 = match bench.effort {
        Effort::Quick => 2_000_000,
        Effort::Full => 100_000_000,
    };
    let setup = bench.setup;
    let ours = setup.chosen().callee();
    let id = libc::CLOCK_REALTIME;
    let mut loops: Vec<Subject<'_>> = [
        subject::clock_gettime_converted(&ours, id).map(|s| s.named("gettimespec")),
        subject::clock_gettime_ns(&ours, id).map(|s| s.named("getns")),
        subject::clock_gettime_converted(&setup.host, id).map(|s| s.named("gettimespec (host)")),
        Some(subject::libc_converted(id).named("gettimespec (libc)")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let turns = usize::try_from(calls / u64::from(TURN)).unwrap_or(1);
    let mut noise = Noise::default();
    let mut seconds = take_turns(bench, &mut loops, turns, &mut noise);
    // The system call is an order of magnitude slower: a tenth of the calls, times ten.
    let mut syscall = [subject::syscall_converted(id).named("gettimespec (syscall)")];
    let scaled = take_turns(bench, &mut syscall, turns.div_ceil(10), &mut noise);
    let factor = turns as f64 / turns.div_ceil(10) as f64;
    seconds.extend(scaled.iter().map(|seconds| seconds.times(factor)));
    let names: Vec<String> = loops.iter().chain(&syscall).map(|s| s.name().to_owned()).collect();

    let faster = 100.0 * (1.0 - seconds[1].median / seconds[0].median);
    let mut text = format!("{calls} calls\n\n");
    for (name, Spread { min, median, p99 }) in names.iter().zip(&seconds) {
        let percent =
            if name == "getns" { format!(" ({})", in_words(faster)) } else { String::new() };
        let _ = writeln!(text, "{name}: {median:.2} secs{percent}; min {min:.2}, p99 {p99:.2}");
    }
    let _ = write!(
        text,
        "\ngettimespec and getns are ours. The loops take turns of {TURN} calls; secs is the median \
         turn times the number\nof turns, min and p99 are the fastest turn and the 99th percentile \
         of the turns, likewise. The system call made a\ntenth of the calls, times ten.\n",
    );
    let mut notes = vec![ratio_of_short_rounds(bench)];
    notes.extend(noise.notes());
    Report {
        table: "getns",
        title: "A hundred million reads in nanoseconds: timespec and conversion, or a register",
        text,
        rows: names
            .iter()
            .zip(&seconds)
            .map(|(name, seconds)| json!({ "loop": name, "calls": calls, "seconds": seconds }))
            .collect(),
        notes,
        charts: vec![Chart {
            file: "getns",
            title: format!("{} million reads of REALTIME in nanoseconds", calls / 1_000_000),
            value_label: "seconds: the median turn times the turns; line: fastest turn to 99th percentile",
            body: Body::Bars { categories: names, series: vec![("seconds".to_owned(), seconds)] },
        }],
    }
}

/// What the two programs' author wrote in brackets.
fn in_words(percent: f64) -> String {
    if percent < 0.0 { format!("{:.1}% slower", -percent) } else { format!("{percent:.1}% faster") }
}

/// Runs each loop for a number of turns, interleaved; the seconds of each if all turns were as the
/// median one, the fastest, and the 99th percentile.
fn take_turns(
    bench: &Bench<'_, '_>,
    loops: &mut [Subject<'_>],
    turns: usize,
    noise: &mut Noise,
) -> Vec<Spread> {
    let mut cycles = vec![Vec::with_capacity(turns); loops.len()];
    let names: Vec<String> = loops.iter().map(|s| s.name().to_owned()).collect();
    bench.progress.begin(&names.join(", "), turns);
    for turn in 0..turns {
        if turn % TURNS_PER_TICK == 0 {
            bench.setup.tick();
        }
        for step in 0..loops.len() {
            let index = (step + turn) % loops.len();
            cycles[index].push(loops[index].sample(TURN));
        }
        bench.progress.step();
    }
    bench.progress.end();
    let nanos_per_cycle = clock::nanos_per_cycle();
    for (name, cycles) in names.iter().zip(&cycles) {
        // A round, for the noise, is what lies between two publications.
        let nanos = |round| statistics::median(round) * nanos_per_cycle / f64::from(TURN);
        let rounds: Vec<f64> = cycles.chunks(TURNS_PER_TICK).map(nanos).collect();
        noise.add_series(name, &rounds);
    }
    let of_all = turns as f64 * nanos_per_cycle / 1e9;
    cycles.iter().map(|cycles| Spread::of(cycles).times(of_all)).collect()
}

/// The same comparison with an interval.
fn ratio_of_short_rounds(bench: &Bench<'_, '_>) -> String {
    let ours = bench.setup.chosen().callee();
    let id = libc::CLOCK_REALTIME;
    let pair = [subject::clock_gettime_ns(&ours, id), subject::clock_gettime_converted(&ours, id)];
    let mut pair: Vec<Subject<'_>> = pair.into_iter().flatten().collect();
    let plan = Plan { rounds: 101, ..bench.plan() };
    let ratio = bench.interleave("getns / gettimespec", &mut pair, &plan).ratio(0, 1);
    format!(
        "getns / gettimespec in short interleaved rounds: {:.3} (95 % interval {:.3} to {:.3})",
        ratio.median, ratio.low, ratio.high
    )
}
