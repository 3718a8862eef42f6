//! `clock_getres` through a libc, before and after it knew the vDSO's, as bionic's change had it.
//!
//! The libc is this project's own dispatch: on no vDSO (before), on our image and on the host's
//! (after). The machine's libc stands beside them.

use std::cell::Cell;
use std::ffi::c_int;
use std::fmt::Write as _;
use std::rc::Rc;

use serde_json::json;

use super::Bench;
use crate::calls::{self, Call};
use crate::chart::{Body, Chart, NANOSECONDS};
use crate::dispatch::Libc;
use crate::report::{Noise, Report};
use crate::statistics::Spread;
use crate::subject::Subject;

/// An id that no kernel knows.
const UNSUPPORTED: c_int = 99;

/// bionic's benchmarks and the clock of each; `None` is the bare system call.
const BENCHMARKS: [(&str, Option<c_int>); 6] = [
    ("BM_time_clock_getres", Some(libc::CLOCK_MONOTONIC)),
    ("BM_time_clock_getres_syscall", None),
    ("BM_time_clock_getres_REALTIME", Some(libc::CLOCK_REALTIME)),
    ("BM_time_clock_getres_BOOTTIME", Some(libc::CLOCK_BOOTTIME)),
    ("BM_time_clock_getres_TAI", Some(libc::CLOCK_TAI)),
    ("BM_time_clock_getres_unsupported", Some(UNSUPPORTED)),
];

/// Wall time and CPU time of a call, and how often it was made.
#[derive(Clone, Copy, Debug)]
struct Row {
    time: Spread,
    cpu: f64,
    iterations: u64,
}

pub(super) fn measure(bench: &Bench<'_, '_>) -> Report {
    let kernel = bench.setup.chosen();
    let columns = [
        ("BEFORE (system call)", Some(Libc::without_vdso())),
        ("AFTER (our vDSO)", Some(Libc::on(kernel.image()))),
        ("AFTER (the host's vDSO)", Some(Libc::from_auxv())),
        ("the machine's libc", None),
    ];
    let mut noise = Noise::default();
    let mut results = Vec::new();
    for (name, clock) in BENCHMARKS {
        let accounts: Vec<Rc<Cell<Account>>> = columns.iter().map(|_| Rc::default()).collect();
        let call = Call::Getres(clock.unwrap_or(libc::CLOCK_MONOTONIC));
        let mut subjects = Vec::new();
        for ((title, libc), account) in columns.iter().zip(&accounts) {
            let subject = match (clock, libc) {
                (None, _) => calls::through_syscall(call),
                (_, Some(libc)) => calls::through_dispatch(libc, call),
                (_, None) => calls::through_libc(call),
            };
            let subject = accounted(subject, Rc::clone(account));
            subjects.push(subject.named(format!("{name}, {title}")));
        }
        let measured = bench.interleave(name, &mut subjects, &bench.plan());
        noise.add(&subjects, &measured);
        let row = |(index, account): (usize, &Rc<Cell<Account>>)| {
            let Account { cpu_nanos, iterations } = account.get();
            Row {
                time: measured.spread(index),
                cpu: cpu_nanos as f64 / iterations.max(1) as f64,
                iterations,
            }
        };
        results.push((name, accounts.iter().enumerate().map(row).collect::<Vec<Row>>()));
    }
    let titles = columns.map(|(title, _)| title);
    Report {
        table: "getres",
        title: "clock_getres through a libc, before and after it knew the vDSO's",
        text: text(&titles, &results),
        rows: results
            .iter()
            .flat_map(|(name, rows)| {
                titles.iter().zip(rows).map(move |(title, row)| {
                    json!({ "benchmark": name, "libc": title, "time_ns": row.time,
                            "cpu_ns": row.cpu, "iterations": row.iterations })
                })
            })
            .collect(),
        notes: noise.notes(),
        charts: vec![chart(&titles, &results)],
    }
}

/// CPU time and number of calls of a loop, over all of its samples.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    cpu_nanos: u64,
    iterations: u64,
}

/// A loop whose CPU time is added up outside of what is timed.
fn accounted<'m>(mut subject: Subject<'m>, account: Rc<Cell<Account>>) -> Subject<'m> {
    Subject::timed("accounted", move |calls| {
        let before = thread_cpu_nanos();
        let cycles = subject.sample(calls);
        let Account { cpu_nanos, iterations } = account.get();
        account.set(Account {
            cpu_nanos: cpu_nanos + (thread_cpu_nanos() - before),
            iterations: iterations + u64::from(calls),
        });
        cycles
    })
}

fn thread_cpu_nanos() -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is alive; the clock exists for every thread.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut ts) };
    ts.tv_sec.unsigned_abs() * 1_000_000_000 + ts.tv_nsec.unsigned_abs()
}

fn text(titles: &[&str], results: &[(&str, Vec<Row>)]) -> String {
    let line = "-".repeat(102);
    let mut text = String::new();
    for (column, title) in titles.iter().enumerate() {
        let _ = writeln!(text, "{title}:\n{line}");
        let _ = writeln!(
            text,
            "{:<34} {:>13} {:>13} {:>14} {:>11} {:>11}",
            "Benchmark", "Time", "CPU", "Iterations", "min", "p99"
        );
        let _ = writeln!(text, "{line}");
        for (name, rows) in results {
            let Row { time, cpu, iterations } = rows[column];
            let Spread { min, median, p99 } = time;
            let _ = writeln!(
                text,
                "{name:<34} {median:>10.1} ns {cpu:>10.1} ns {iterations:>14} {min:>8.1} ns \
                 {p99:>8.1} ns"
            );
        }
        text.push('\n');
    }
    text
}

fn chart(titles: &[&str], results: &[(&str, Vec<Row>)]) -> Chart {
    let series = |(column, title): (usize, &&str)| {
        let values = results.iter().map(|(_, rows)| rows[column].time);
        ((*title).to_owned(), values.collect())
    };
    Chart {
        file: "getres",
        title: "clock_getres through a libc, before and after".to_owned(),
        value_label: NANOSECONDS,
        body: Body::Bars {
            categories: results.iter().map(|(name, _)| (*name).to_owned()).collect(),
            series: titles.iter().enumerate().map(series).collect(),
        },
    }
}
