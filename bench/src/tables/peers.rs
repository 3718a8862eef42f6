//! Other ways for a Rust program to get a time, beside the host's vDSO and ours.

use std::fmt::Write as _;
use std::hint::black_box;

use serde_json::json;

use super::Bench;
use crate::calls::{self, Call};
use crate::chart::{Body, Chart, NANOSECONDS};
use crate::report::{Noise, Report};
use crate::statistics::Spread;
use crate::subject::{self, Subject};

/// A way, what it gives, and its loop.
struct Peer<'m> {
    gives: &'static str,
    subject: Subject<'m>,
}

const STEERED: &str = "MONOTONIC, the kernel's, steered";

pub(super) fn measure(bench: &Bench<'_, '_>) -> Report {
    let (gives, mut subjects): (Vec<_>, Vec<_>) =
        peers(bench).into_iter().map(|peer| (peer.gives, peer.subject)).unzip();
    let measured = bench.interleave("peers", &mut subjects, &bench.plan());
    let mut noise = Noise::default();
    noise.add(&subjects, &measured);
    let spreads: Vec<Spread> = (0..subjects.len()).map(|i| measured.spread(i)).collect();
    let ratios: Vec<f64> = (0..subjects.len()).map(|i| measured.ratio(i, 0).median).collect();
    let mut text = format!(
        "{:<42} {:>8} {:>8} {:>8} {:>8}  what it gives\n",
        "", "median", "min", "p99", "to ours"
    );
    for (index, subject) in subjects.iter().enumerate() {
        let Spread { min, median, p99 } = spreads[index];
        let _ = writeln!(
            text,
            "{:<42} {median:>8.2} {min:>8.2} {p99:>8.2} {:>8.3}  {}",
            subject.name(),
            ratios[index],
            gives[index]
        );
    }
    text.push_str("\nnanoseconds per call, rounds of one interleaved run\n");
    let names: Vec<String> = subjects.iter().map(|s| s.name().to_owned()).collect();
    Report {
        table: "peers",
        title: "Other ways for a Rust program to get a time",
        text,
        rows: (0..names.len())
            .map(|index| {
                json!({ "peer": names[index], "gives": gives[index], "nanos": spreads[index],
                        "to_ours": ratios[index] })
            })
            .collect(),
        notes: noise.notes(),
        charts: vec![Chart {
            file: "peers",
            title: "Ways for a Rust program to get a time".to_owned(),
            value_label: NANOSECONDS,
            body: Body::Bars {
                categories: names,
                series: vec![("nanoseconds per call".to_owned(), spreads.clone())],
            },
        }],
    }
}

fn peers<'b>(bench: &Bench<'b, '_>) -> Vec<Peer<'b>> {
    let ours = bench.setup.chosen().callee();
    let monotonic = libc::CLOCK_MONOTONIC;
    let coarse = libc::CLOCK_MONOTONIC_COARSE;
    let mut peers = Vec::new();
    let mut add = |name: &str, gives, subject: Option<Subject<'b>>| {
        let named = subject.map(|subject| subject.named(name));
        peers.extend(named.map(|subject| Peer { gives, subject }));
    };
    add("ours: clock_gettime", STEERED, subject::clock_gettime(&ours, monotonic));
    add("ours: clock_gettime_ns", STEERED, subject::clock_gettime_ns(&ours, monotonic));
    let host = &bench.setup.host;
    add("host's vDSO: clock_gettime", STEERED, subject::clock_gettime(host, monotonic));
    let libc = calls::through_libc(Call::Gettime(monotonic));
    add("libc: clock_gettime", STEERED, Some(libc));
    let std = Subject::new("", |calls| repeat(calls, std::time::Instant::now));
    add("std::time::Instant::now", STEERED, Some(std));
    let unsteered = "the counter, scaled once at start, unsteered";
    let clock = quanta::Clock::new();
    let quanta = Subject::new("", move |calls| repeat(calls, || clock.now()));
    add("quanta: Clock::now", unsteered, Some(quanta));
    let minstant = Subject::new("", |calls| repeat(calls, minstant::Instant::now));
    add("minstant: Instant::now", "raw counter, unordered, unsteered", Some(minstant));
    let fastant = Subject::new("", |calls| repeat(calls, fastant::Instant::now));
    add("fastant: Instant::now", "raw counter, unordered, unsteered", Some(fastant));
    let now = Subject::new("", |calls| repeat(calls, coarsetime::Instant::now));
    add("coarsetime: Instant::now", "MONOTONIC_COARSE of the kernel", Some(now));
    coarsetime::Instant::update();
    let recent = Subject::new("", |calls| repeat(calls, coarsetime::Instant::recent));
    add("coarsetime: Instant::recent", "a variable, as of the last update()", Some(recent));
    let tick = "MONOTONIC_COARSE, as of the last tick";
    add("ours: clock_gettime, coarse", tick, subject::clock_gettime(&ours, coarse));
    add("host's vDSO: clock_gettime, coarse", tick, subject::clock_gettime(host, coarse));
    peers
}

#[inline(always)] // the measured loop itself
fn repeat<T>(calls: u32, now: impl Fn() -> T) {
    for _ in 0..calls {
        black_box(now());
    }
}
