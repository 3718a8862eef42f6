//! How near the image is to what this CPU allows: hand-written readers beside it.

use std::fmt::Write as _;

use serde_json::json;

use super::Bench;
use crate::chart::{Body, Chart, NANOSECONDS};
use crate::limit;
use crate::report::{Noise, Report};
use crate::statistics::{Estimate, Spread};
use crate::subject::{self, Subject};

pub(super) fn measure(bench: &Bench<'_, '_>) -> Report {
    let mut subjects = subjects(bench);
    let measured = bench.interleave("limits", &mut subjects, &bench.plan());
    let mut noise = Noise::default();
    noise.add(&subjects, &measured);
    let names: Vec<String> = subjects.iter().map(|s| s.name().to_owned()).collect();
    // Names say what is called behind the colon, and that is what the host's is found by.
    let host_of = |name: &str| {
        let (_, what) = name.split_once(": ").unwrap_or(("", "MONOTONIC"));
        let what = what.split(',').next().unwrap_or(what);
        names.iter().position(|other| other.strip_prefix("host: ") == Some(what))
    };
    let rows: Vec<(String, Spread, Option<Estimate>)> = names
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let ratio = host_of(name).map(|host| measured.ratio(index, host));
            (name.clone(), measured.spread(index), ratio)
        })
        .collect();
    let mut text = format!(
        "{:<56} {:>7} {:>7} {:>7} {:>8} {:>14}\n",
        "", "ns", "min", "p99", "to host", "95 % interval"
    );
    for (name, Spread { min, median: nanos, p99 }, ratio) in &rows {
        let (median, interval) = ratio.map_or_else(
            || ("-".to_owned(), "-".to_owned()),
            |r| (format!("{:.3}", r.median), format!("{:.3} - {:.3}", r.low, r.high)),
        );
        let _ = writeln!(
            text,
            "{name:<56} {nanos:>7.2} {min:>7.2} {p99:>7.2} {median:>8} {interval:>14}"
        );
    }
    Report {
        table: "limit",
        title: "How near the image is to what this CPU allows",
        text,
        rows: rows
            .iter()
            .map(|(name, nanos, ratio)| json!({ "reader": name, "nanos": nanos, "to_host": ratio }))
            .collect(),
        notes: noise.notes(),
        charts: vec![Chart {
            file: "limit",
            title: "The image and what this CPU allows".to_owned(),
            value_label: NANOSECONDS,
            body: Body::Bars {
                categories: names,
                series: vec![(
                    "nanoseconds per read".to_owned(),
                    rows.iter().map(|(_, nanos, _)| *nanos).collect(),
                )],
            },
        }],
    }
}

fn subjects<'b>(bench: &Bench<'b, '_>) -> Vec<Subject<'b>> {
    let setup = bench.setup;
    let monotonic = libc::CLOCK_MONOTONIC;
    let coarse = libc::CLOCK_MONOTONIC_COARSE;
    let chosen = setup.chosen();
    let mut subjects = vec![subject::bare_lfence_rdtsc().named("bare lfence; rdtsc")];
    let modes = [("COUNTER", Some(&setup.counter)), ("RDTSCP", setup.rdtscp.as_ref())];
    if setup.rdtscp.is_some() {
        subjects.push(subject::bare_rdtscp().named("bare rdtscp"));
    }
    for (mode, kernel) in modes {
        let Some(kernel) = kernel else { continue };
        let unchecked = limit::unchecked(kernel, monotonic);
        let precise = limit::precise(kernel, monotonic);
        subjects.push(unchecked.named(format!("hand-written, no check at all: MONOTONIC, {mode}")));
        subjects.push(precise.named(format!("hand-written, all checks: MONOTONIC, {mode}")));
        let ours = subject::clock_gettime(&kernel.callee(), monotonic);
        subjects.extend(ours.map(|s| s.named(format!("ours: MONOTONIC, {mode}"))));
    }
    let host = &setup.host;
    let ours = chosen.callee();
    let mut add = |name: &str, subject: Option<Subject<'b>>| {
        subjects.extend(subject.map(|subject| subject.named(name)));
    };
    add("host: MONOTONIC", subject::clock_gettime(host, monotonic));
    let nothing = limit::nothing();
    add("empty function: MONOTONIC_COARSE", subject::clock_gettime(&nothing, coarse));
    let hand = limit::coarse(chosen, coarse);
    add("hand-written, all checks: MONOTONIC_COARSE", Some(hand));
    add("ours: MONOTONIC_COARSE", subject::clock_gettime(&ours, coarse));
    add("host: MONOTONIC_COARSE", subject::clock_gettime(host, coarse));
    add("empty function: clock_getres", subject::clock_getres(&nothing, monotonic));
    let bare = limit::unchecked_getres(chosen, monotonic);
    add("hand-written, no check at all: clock_getres", Some(bare));
    let hand = limit::getres(chosen, monotonic);
    add("hand-written, all checks: clock_getres", Some(hand));
    add("ours: clock_getres", subject::clock_getres(&ours, monotonic));
    add("host: clock_getres", subject::clock_getres(host, monotonic));
    add("empty function: time", subject::time(&nothing));
    add("ours: time", subject::time(&ours));
    add("host: time", subject::time(host));
    add("empty function: getcpu", subject::getcpu(&nothing));
    add("ours: getcpu", subject::getcpu(&ours));
    add("host: getcpu", subject::getcpu(host));
    subjects
}
