//! Nanoseconds per call, as vdsotest prints them: syscall, libc and vdso for each of its calls.
//!
//! The message that this reproduces compared two kernels on two boots. Here both vDSOs are in one
//! process, so all of it is one interleaved run: `Unified vDSO` is our image, with this project's
//! libc side on it; `Stock Kernel` is the host's, with the machine's libc.

use std::fmt::Write as _;

use serde_json::json;

use super::Bench;
use crate::calls::{self, NamedCall};
use crate::chart::{Body, Chart, NANOSECONDS};
use crate::dispatch::Libc;
use crate::report::{Noise, Report};
use crate::statistics::Spread;
use crate::subject::Subject;

/// The ways in the order of the columns.
const WAYS: [&str; 5] = ["syscall", "libc on ours", "ours", "libc", "host"];

pub(super) fn measure(bench: &Bench<'_, '_>) -> Report {
    let setup = bench.setup;
    let kernel = setup.chosen();
    let libc = Libc::on(kernel.image());
    let mut noise = Noise::default();
    let mut results: Vec<(NamedCall, [Spread; 5])> = Vec::new();
    for named in calls::ALL {
        let ways = [
            Some(calls::through_syscall(named.call)),
            Some(calls::through_dispatch(&libc, named.call)),
            calls::through_image(&kernel.callee(), named.call),
            Some(calls::through_libc(named.call)),
            calls::through_image(&setup.host, named.call),
        ];
        let mut subjects = Vec::new();
        for (way, subject) in WAYS.into_iter().zip(ways) {
            // A function that an image lacks takes no time that could be told.
            let subject = subject.unwrap_or_else(|| Subject::timed("", |_| f64::NAN));
            subjects.push(subject.named(format!("{} ({way})", named.name)));
        }
        let measured = bench.interleave(named.name, &mut subjects, &bench.plan());
        noise.add(&subjects, &measured);
        results.push((named, [0, 1, 2, 3, 4].map(|way| measured.spread(way))));
    }
    Report {
        table: "vdsotest",
        title: "vdsotest: nanoseconds per call of the system call, libc and the vDSO",
        text: text(&results),
        rows: results
            .iter()
            .map(|(named, spreads)| {
                let [syscall, our_libc, ours, libc, host] = spreads;
                json!({
                    "call": named.name, "syscall": syscall,
                    "unified": { "libc": our_libc, "vdso": ours },
                    "stock": { "libc": libc, "vdso": host },
                })
            })
            .collect(),
        notes: noise.notes(),
        charts: vec![chart(&results)],
    }
}

fn text(results: &[(NamedCall, [Spread; 5])]) -> String {
    let mut text = String::new();
    let sections = [("Unified vDSO:", [0, 1, 2]), ("Stock Kernel:", [0, 3, 4])];
    for (title, ways) in sections {
        let _ = writeln!(text, "{title}\n{}\n", "=".repeat(title.len() - 1));
        for (named, spreads) in results {
            for (way, index) in ["syscall", "   libc", "   vdso"].into_iter().zip(ways) {
                let nanos = spreads[index].median;
                let _ = if nanos.is_finite() {
                    writeln!(text, "{}: {way}: {nanos:.1} nsec/call", named.name)
                } else {
                    writeln!(text, "{}: {way}: not tested", named.name)
                };
            }
        }
        text.push('\n');
    }
    let _ = writeln!(text, "Side by side, nsec/call, median (min, p99 of the rounds):\n");
    let _ = write!(text, "{:<31}", "");
    for way in WAYS {
        let _ = write!(text, " {way:>22}");
    }
    text.push('\n');
    for (named, spreads) in results {
        let _ = write!(text, "{:<31}", named.name);
        for Spread { min, median, p99 } in spreads {
            let _ = write!(text, " {:>22}", format!("{median:.1} ({min:.1}, {p99:.1})"));
        }
        text.push('\n');
    }
    text
}

fn chart(results: &[(NamedCall, [Spread; 5])]) -> Chart {
    let series = |name: &str, way: usize| {
        let values = results.iter().map(|(_, spreads)| spreads[way]);
        (name.to_owned(), values.collect())
    };
    Chart {
        file: "vdsotest",
        title: "vdsotest: cost of a call".to_owned(),
        value_label: NANOSECONDS,
        body: Body::Bars {
            categories: results.iter().map(|(named, _)| named.name.to_owned()).collect(),
            series: vec![
                series("our vDSO", 2),
                series("host's vDSO", 4),
                series("libc", 3),
                series("system call", 0),
            ],
        },
    }
}
