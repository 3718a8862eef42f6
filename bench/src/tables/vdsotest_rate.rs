//! Calls per second and speedup, as an older vdsotest printed them.
//!
//! The message that this reproduces came from a board without a usable counter: its precise clocks
//! showed 1.00x, because the vDSO fell back to the system call, and its coarse clocks and
//! resolutions their full speedup. Our page in mode NONE is that board.

use std::fmt::Write as _;

use serde_json::json;

use super::Bench;
use crate::calls::{self, Call, NamedCall};
use crate::chart::{Body, Chart};
use crate::report::{Noise, Report};
use crate::statistics::Spread;

/// The clocks that the message has.
const CLOCKS: [libc::c_int; 4] = [
    libc::CLOCK_MONOTONIC,
    libc::CLOCK_MONOTONIC_COARSE,
    libc::CLOCK_REALTIME,
    libc::CLOCK_REALTIME_COARSE,
];

/// Calls per second: the system call, ours with a counter, ours without, the host's.
struct Row {
    named: NamedCall,
    rates: [f64; 4],
    speedups: [f64; 4],
}

pub(super) fn measure(bench: &Bench<'_, '_>) -> Report {
    let setup = bench.setup;
    let callees = [setup.chosen().callee(), setup.none.callee(), setup.host];
    let (mut rows, mut notes, mut noise) = (Vec::new(), Vec::new(), Noise::default());
    for named in calls::ALL.into_iter().filter(is_in_the_message) {
        let images = callees.iter().zip(["ours", "ours in mode NONE", "host"]);
        let syscall = calls::through_syscall(named.call);
        let mut subjects = vec![syscall.named(format!("{} (system call)", named.name))];
        subjects.extend(images.filter_map(|(callee, way)| {
            let subject = calls::through_image(callee, named.call)?;
            Some(subject.named(format!("{} ({way})", named.name)))
        }));
        if subjects.len() != 4 {
            notes.push(format!("{} is missing in an image and was left out", named.name));
            continue;
        }
        let measured = bench.interleave(named.name, &mut subjects, &bench.plan());
        noise.add(&subjects, &measured);
        rows.push(Row {
            named,
            rates: [0, 1, 2, 3].map(|way| 1e9 / measured.spread(way).median),
            speedups: [0, 1, 2, 3].map(|way| measured.ratio(0, way).median),
        });
    }
    let spreads = noise.table();
    notes.extend(noise.notes());
    Report {
        table: "vdsotest-rate",
        title: "vdsotest: calls per second and speedup over the system call",
        text: text(&rows) + spreads.trim_start(),
        rows: rows
            .iter()
            .map(|Row { named, rates, speedups }| {
                json!({
                    "call": named.name,
                    "system_calls_per_second": rates[0],
                    "counter": { "calls_per_second": rates[1], "speedup": speedups[1] },
                    "none": { "calls_per_second": rates[2], "speedup": speedups[2] },
                    "host": { "calls_per_second": rates[3], "speedup": speedups[3] },
                })
            })
            .collect(),
        notes,
        charts: vec![chart(&rows)],
    }
}

fn is_in_the_message(named: &NamedCall) -> bool {
    match named.call {
        Call::Gettime(id) | Call::Getres(id) => CLOCKS.contains(&id),
        Call::Getcpu | Call::Gettimeofday => true,
    }
}

fn text(rows: &[Row]) -> String {
    let mut text = String::new();
    let sections = [
        ("Our image, page in mode COUNTER:", 1),
        ("Our image, page in mode NONE (no counter that a program may read):", 2),
        ("The host's vDSO:", 3),
    ];
    for (title, way) in sections {
        let _ = writeln!(text, "{title}\n");
        for Row { named, rates, speedups } in rows {
            let name = named.name;
            let (system, vdso, speedup) = (rates[0], rates[way], speedups[way]);
            let _ = writeln!(text, "{name} system calls per second: {system:.0}");
            let _ =
                writeln!(text, "{name} vdso calls per second:   {vdso:.0} ({speedup:.2}x speedup)");
        }
        text.push('\n');
    }
    text
}

fn chart(rows: &[Row]) -> Chart {
    let series = |name: &str, way: usize| {
        (name.to_owned(), rows.iter().map(|row| Spread::exact(row.speedups[way])).collect())
    };
    Chart {
        file: "vdsotest-rate",
        title: "vdsotest: speedup over the system call".to_owned(),
        value_label: "times as many calls per second as the system call",
        body: Body::Bars {
            categories: rows.iter().map(|row| row.named.name.to_owned()).collect(),
            series: vec![
                series("our vDSO", 1),
                series("our vDSO, page in mode NONE", 2),
                series("host's vDSO", 3),
            ],
        },
    }
}
