//! Readers beside a writer that publishes ever faster: what a read costs, how often it has to be
//! repeated, and how long the worst one took.
//!
//! Cost and worst read are those of the image. The image counts nothing, so retries are counted by
//! the model reader on the same page, beside the same writer.

use std::fmt::Write as _;
use std::sync::Barrier;

use serde_json::json;

use super::Bench;
use crate::callee::Callee;
use crate::chart::{Body, Chart};
use crate::clock;
use crate::model::{BEFORE_THE_COUNTER, Ours, Reader};
use crate::report::{Effort, Noise, Report};
use crate::setup::Kernel;
use crate::statistics::{self, Spread};
use crate::writer::{Pace, Publisher};

const RATES: [u32; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];
const CLOCK: i32 = libc::CLOCK_MONOTONIC;

/// What one reader saw.
#[derive(Clone, Debug)]
struct Seen {
    /// Nanoseconds per read, by loop.
    per_read: Vec<f64>,
    nanos: Spread,
    /// Of a thousand single reads, one takes longer.
    late_nanos: f64,
    worst_nanos: f64,
    retries_per_million: f64,
}

impl Seen {
    /// Of two readers, the one that suffered more.
    fn or_worse(self, other: Self) -> Self {
        let slower = if self.nanos.median < other.nanos.median { &other } else { &self };
        Self {
            per_read: slower.per_read.clone(),
            nanos: slower.nanos,
            late_nanos: self.late_nanos.max(other.late_nanos),
            worst_nanos: self.worst_nanos.max(other.worst_nanos),
            retries_per_million: self.retries_per_million.max(other.retries_per_million),
        }
    }
}

struct Row {
    readers: usize,
    rate: u32,
    published_per_second: f64,
    seen: Seen,
}

pub(super) fn measure(bench: &Bench<'_, '_>) -> Report {
    let setup = bench.setup;
    let cpus: Vec<usize> = [Some(setup.cpu), setup.other_cpu].into_iter().flatten().collect();
    let writer_cpu = setup.other_cpu.unwrap_or(setup.cpu);
    let mut rows = Vec::new();
    bench.progress.begin("readers beside a writer", (RATES.len() + 1) * cpus.len());
    for readers in 1..=cpus.len() {
        for rate in [0].into_iter().chain(RATES) {
            let cpus = &cpus[..readers];
            let seen = beside(&setup.counter, cpus, writer_cpu, rate, bench.effort);
            rows.extend(seen.map(|(seen, published_per_second)| Row {
                readers,
                rate,
                published_per_second,
                seen,
            }));
            bench.progress.step();
        }
    }
    bench.progress.end();
    Report {
        table: "scale",
        title: "Readers beside a writer that publishes ever faster",
        text: text(&rows),
        rows: rows
            .iter()
            .map(|row| {
                json!({ "readers": row.readers, "publications_per_second": row.rate,
                        "reached_per_second": row.published_per_second,
                        "nanos": row.seen.nanos, "late_nanos": row.seen.late_nanos,
                        "worst_nanos": row.seen.worst_nanos,
                        "retries_per_million": row.seen.retries_per_million })
            })
            .collect(),
        notes: notes(&rows, cpus.len()),
        charts: vec![chart(&rows)],
    }
}

/// Runs a reader on each of `cpus` beside a writer; what the slowest of them saw, and how often
/// the writer published.
fn beside(
    kernel: &Kernel<'_>,
    cpus: &[usize],
    writer_cpu: usize,
    rate: u32,
    effort: Effort,
) -> Option<(Seen, f64)> {
    let samples = match effort {
        Effort::Quick => 40,
        Effort::Full => 400,
    };
    let together = Barrier::new(cpus.len());
    kernel.tick();
    std::thread::scope(|scope| {
        let pace = Pace::per_second(rate.max(1));
        let values = kernel.values();
        // A fast writer publishes what it has: reading the host's clocks would be most of its time.
        let publisher = Publisher::spawn(scope, writer_cpu, pace, move || {
            if rate > 1000 { kernel.publish(&values) } else { kernel.tick() }
        });
        publisher.set(rate != 0);
        let started = std::time::Instant::now();
        let readers: Vec<_> = cpus
            .iter()
            .map(|&cpu| {
                let together = &together;
                scope.spawn(move || {
                    // A thread that may not move there reads where it is.
                    let _ = clock::pin(cpu);
                    together.wait();
                    observe(&kernel.callee(), kernel.image().page(), samples)
                })
            })
            .collect();
        let seen = readers.into_iter().filter_map(|reader| reader.join().ok().flatten());
        let slowest = seen.reduce(Seen::or_worse);
        let published = publisher.published() as f64 / started.elapsed().as_secs_f64();
        slowest.map(|seen| (seen, published))
    })
}

/// Reads for a while: loops for the cost, single reads for the worst, counted ones for retries.
fn observe(callee: &Callee<'_>, page: &datapage::Page, samples: u32) -> Option<Seen> {
    const LOOP: u32 = 2_000;
    let nanos_per_cycle = clock::nanos_per_cycle();
    let address: *const u8 = std::ptr::from_ref(page).cast();
    let call = callee.functions().clock_gettime?;
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let mut per_read = Vec::new();
    let mut single = Vec::new();
    let mut retries = 0_u64;
    let mut time = [0; 2];
    for _ in 0..samples {
        let start = clock::cycles();
        for _ in 0..LOOP {
            // SAFETY: the callee is mapped, `ts` is alive.
            std::hint::black_box(unsafe { call(CLOCK, &raw mut ts) });
        }
        let cycles = (clock::cycles() - start) as f64;
        per_read.push(cycles * nanos_per_cycle / f64::from(LOOP));
        for _ in 0..LOOP {
            let start = clock::cycles();
            // SAFETY: as above.
            std::hint::black_box(unsafe { call(CLOCK, &raw mut ts) });
            single.push((clock::cycles() - start) as f64);
        }
        for _ in 0..LOOP {
            // SAFETY: the page is mapped and has our layout; it is in a mode that has a counter.
            let read =
                unsafe { Reader::<Ours, CLOCK, BEFORE_THE_COUNTER>::read(address, &mut time) };
            retries += u64::from(read);
        }
    }
    Some(Seen {
        nanos: Spread::of(&per_read),
        per_read,
        late_nanos: statistics::quantile(&single, 0.999) * nanos_per_cycle,
        worst_nanos: statistics::quantile(&single, 1.0) * nanos_per_cycle,
        retries_per_million: retries as f64 * 1e6 / f64::from(LOOP * samples),
    })
}

fn notes(rows: &[Row], cpus: usize) -> Vec<String> {
    let mut noise = Noise::default();
    for Row { readers, rate, seen, .. } in rows {
        let name = format!("{readers} reader(s) beside {rate} publications per second");
        noise.add_series(&name, &seen.per_read);
    }
    let mut notes = noise.notes();
    notes.extend([
        "ns/read, min and p99 are of loops of reads, of the slower reader where there are two; \
         \"99.9 % below\" and the worst are of single reads"
            .to_owned(),
        "the worst read contains whatever interrupted it: compare it with the row without a writer"
            .to_owned(),
    ]);
    if cpus < 3 {
        notes.push(format!(
            "this machine offers {cpus} CPUs, so with {cpus} readers the writer shares one with a reader"
        ));
    }
    for row in rows.iter().filter(|row| row.rate != 0) {
        if row.published_per_second < 0.8 * f64::from(row.rate) {
            notes.push(format!(
                "beside {} reader(s) the writer reached {:.0} of {} publications per second",
                row.readers, row.published_per_second, row.rate
            ));
        }
    }
    notes
}

fn text(rows: &[Row]) -> String {
    let mut text = format!(
        "{:>7} {:>16} {:>12} {:>9} {:>8} {:>8} {:>20} {:>13} {:>14}\n",
        "readers",
        "publications/s",
        "reached/s",
        "ns/read",
        "min",
        "p99",
        "retries per million",
        "99.9 % below",
        "worst read ns"
    );
    for row in rows {
        let _ = writeln!(
            text,
            "{:>7} {:>16} {:>12.0} {:>9.2} {:>8.2} {:>8.2} {:>20.1} {:>13.0} {:>14.0}",
            row.readers,
            row.rate,
            row.published_per_second,
            row.seen.nanos.median,
            row.seen.nanos.min,
            row.seen.nanos.p99,
            row.seen.retries_per_million,
            row.seen.late_nanos,
            row.seen.worst_nanos
        );
    }
    text
}

fn chart(rows: &[Row]) -> Chart {
    let most = rows.iter().map(|row| row.readers).max().unwrap_or(1);
    let series = |readers: usize| {
        let of_count = rows.iter().filter(|row| row.readers == readers && row.rate != 0);
        let points = of_count.map(|row| (f64::from(row.rate), row.seen.nanos.median));
        let name = if readers == 1 { "1 reader".to_owned() } else { format!("{readers} readers") };
        (name, points.collect())
    };
    Chart {
        file: "scale",
        title: "Reading MONOTONIC beside a writer".to_owned(),
        value_label: "nanoseconds per read (median)",
        body: Body::Lines {
            axis_label: "publications per second",
            series: (1..=most).map(series).collect(),
        },
    }
}
