//! The promises, row by row.

use datapage::ClockId;
use std::arch::x86_64::{_mm_clflush, _mm_mfence};

use crate::check::Row;
use crate::clock;
use crate::rounds::{Measured, Plan, interleave};
use crate::setup::{Kernel, Setup};
use crate::statistics;
use crate::subject::{self, Subject};
use crate::writer::Publisher;

const PRECISE: [(&str, ClockId); 5] = [
    ("REALTIME", ClockId::REALTIME),
    ("MONOTONIC", ClockId::MONOTONIC),
    ("BOOTTIME", ClockId::BOOTTIME),
    ("TAI", ClockId::TAI),
    ("MONOTONIC_RAW", ClockId::MONOTONIC_RAW),
];

const COARSE: [(&str, ClockId); 2] = [
    ("REALTIME_COARSE", ClockId::REALTIME_COARSE),
    ("MONOTONIC_COARSE", ClockId::MONOTONIC_COARSE),
];

/// All rows.
#[must_use]
pub fn all<'m>(setup: &'m Setup<'_>) -> Vec<Row<'m>> {
    let mut rows = against_host(setup);
    rows.extend(against_the_machine(setup));
    rows.extend(cold(setup));
    rows.extend(writer(setup));
    rows
}

/// A row of two loops that `pair` makes.
fn row<'m>(
    setup: &'m Setup<'_>,
    name: String,
    against: &str,
    target: Option<f64>,
    pair: impl Fn() -> Option<[Subject<'m>; 2]> + 'm,
) -> Option<Row<'m>> {
    pair()?;
    Some(Row::new(name, against, target, move |plan: &Plan| {
        let mut subjects: Vec<Subject<'_>> = pair().into_iter().flatten().collect();
        interleave(&mut subjects, plan, || setup.tick())
    }))
}

/// Our image beside the host's vDSO, call by call.
fn against_host<'m>(setup: &'m Setup<'_>) -> Vec<Row<'m>> {
    let (ours, host) = (setup.counter.callee(), setup.host);
    let mut rows = Vec::new();
    let mut add = |name: String, target, pair: Box<dyn Fn() -> Option<[Subject<'m>; 2]> + 'm>| {
        rows.extend(row(setup, name, "host vDSO", Some(target), pair));
    };
    for (clocks, target) in [(&PRECISE[..], 0.87), (&COARSE[..], 0.66)] {
        for &(name, clock) in clocks {
            let pair = move || {
                Some([&ours, &host].map(|callee| subject::clock_gettime(callee, clock.0)))
                    .and_then(both)
            };
            add(format!("clock_gettime {name}"), target, Box::new(pair));
        }
    }
    for (name, clock) in [PRECISE[1], COARSE[1]] {
        let pair =
            move || both([&ours, &host].map(|callee| subject::clock_getres(callee, clock.0)));
        add(format!("clock_getres {name}"), 0.80, Box::new(pair));
    }
    let pair = move || both([&ours, &host].map(subject::gettimeofday));
    add("gettimeofday".to_owned(), 0.95, Box::new(pair));
    let pair = move || both([&ours, &host].map(subject::time));
    add("time".to_owned(), 1.0, Box::new(pair));
    let pair = move || both([&ours, &host].map(subject::getcpu));
    add("getcpu".to_owned(), 1.0, Box::new(pair));
    rows
}

fn both<'m>([a, b]: [Option<Subject<'m>>; 2]) -> Option<[Subject<'m>; 2]> {
    Some([a?, b?])
}

/// Our image beside what the machine can do at best, and beside itself.
fn against_the_machine<'m>(setup: &'m Setup<'_>) -> Vec<Row<'m>> {
    let (ours, rdtscp) = (setup.counter.callee(), setup.rdtscp.callee());
    let mut rows = Vec::new();
    for (name, clock) in PRECISE {
        rows.extend(row(
            setup,
            format!("clock_gettime {name}"),
            "bare lfence; rdtsc",
            None,
            move || {
                both([subject::clock_gettime(&ours, clock.0), Some(subject::bare_lfence_rdtsc())])
            },
        ));
    }
    let monotonic = libc::CLOCK_MONOTONIC;
    rows.extend(row(
        setup,
        "clock_gettime MONOTONIC in RDTSCP mode".to_owned(),
        "bare rdtscp",
        None,
        move || both([subject::clock_gettime(&rdtscp, monotonic), Some(subject::bare_rdtscp())]),
    ));
    rows.extend(row(
        setup,
        "clock_gettime MONOTONIC in RDTSCP mode".to_owned(),
        "COUNTER mode",
        None,
        move || both([&rdtscp, &ours].map(|callee| subject::clock_gettime(callee, monotonic))),
    ));
    rows.extend(row(
        setup,
        "clock_gettime_ns REALTIME".to_owned(),
        "clock_gettime and conversion",
        Some(0.97),
        move || {
            both([
                subject::clock_gettime_ns(&ours, libc::CLOCK_REALTIME),
                subject::clock_gettime_converted(&ours, libc::CLOCK_REALTIME),
            ])
        },
    ));
    let unserved = libc::CLOCK_THREAD_CPUTIME_ID;
    rows.extend(row(
        setup,
        "clock_gettime THREAD_CPUTIME_ID (fallback)".to_owned(),
        "direct system call",
        Some(1.03),
        move || {
            both([
                subject::clock_gettime(&ours, unserved),
                Some(subject::syscall(libc::SYS_clock_gettime, Some(unserved))),
            ])
        },
    ));
    rows
}

/// A read with the page out of the caches: each clock beside REALTIME.
fn cold<'m>(setup: &'m Setup<'_>) -> Vec<Row<'m>> {
    let clocks = PRECISE.into_iter().chain(COARSE).skip(1);
    let row_of = |(name, clock): (&str, ClockId)| {
        row(
            setup,
            format!("clock_gettime {name}, page out of the caches"),
            "REALTIME, likewise",
            Some(1.2),
            move || both([clock, ClockId::REALTIME].map(|clock| cold_read(&setup.counter, clock))),
        )
    };
    clocks.filter_map(row_of).collect()
}

/// Single reads, each after the page's lines left the caches; the median of them, less what timing
/// nothing takes.
fn cold_read<'m>(kernel: &'m Kernel<'_>, clock: ClockId) -> Option<Subject<'m>> {
    let callee = kernel.callee();
    let call = callee.functions().clock_gettime?;
    let page: *const datapage::Page = kernel.image().page();
    Some(Subject::timed("cold read", move |calls| {
        let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let mut reads = Vec::new();
        let mut nothing = Vec::new();
        for _ in 0..calls {
            // SAFETY: the callee is mapped, `ts` is alive. It makes the code itself warm.
            unsafe { call(clock.0, &raw mut ts) };
            for line in (0..datapage::layout::DATA_BYTES).step_by(64) {
                // SAFETY: flushing a line of a mapped page changes no memory.
                unsafe { _mm_clflush(page.cast::<u8>().wrapping_add(line)) };
            }
            // SAFETY: a fence.
            unsafe { _mm_mfence() };
            let start = clock::cycles();
            // SAFETY: as above.
            unsafe { call(clock.0, &raw mut ts) };
            reads.push((clock::cycles() - start) as f64);
            let start = clock::cycles();
            nothing.push((clock::cycles() - start) as f64);
        }
        (statistics::median(&reads) - statistics::median(&nothing)) * f64::from(calls)
    }))
}

/// Reading while a writer publishes, and the writer itself.
fn writer<'m>(setup: &'m Setup<'_>) -> Vec<Row<'m>> {
    let mut rows = Vec::new();
    if let Some(cpu) = setup.other_cpu {
        rows.push(Row::new(
            "clock_gettime MONOTONIC, writer at 1000 Hz on another CPU",
            "no writer",
            Some(1.02),
            move |plan: &Plan| beside_a_writer(setup, cpu, plan),
        ));
    }
    let values = setup.counter.values();
    let publish = move || {
        let kernel = &setup.counter;
        let publish = Subject::new("update_vsyscall", move |calls| {
            for _ in 0..calls {
                kernel.publish(&values);
            }
        });
        Some([publish, subject::bare_lfence_rdtsc()])
    };
    let name = "update_vsyscall, publish of one update".to_owned();
    rows.extend(row(setup, name, "bare lfence; rdtsc", None, publish));
    rows
}

/// Both loops are the same reader; before each sample of the first, the writer is let loose, and
/// before each of the second it is stopped. A sample is a little longer than the writer's period:
/// the median of shorter ones would be one that met no publication.
fn beside_a_writer(setup: &Setup<'_>, cpu: usize, plan: &Plan) -> Measured {
    const PERIODS: f64 = 1.25;
    const PERIOD_NANOS: u32 = 1_000_000;
    let plan = Plan { sample_nanos: PERIODS * f64::from(PERIOD_NANOS), samples: 5, ..*plan };
    let kernel = &setup.counter;
    std::thread::scope(|scope| {
        let publisher = Publisher::spawn(scope, cpu, PERIOD_NANOS, || kernel.tick());
        let reader = |publishes| {
            let mut reader = subject::clock_gettime(&kernel.callee(), libc::CLOCK_MONOTONIC)?;
            let publisher = &publisher;
            Some(Subject::timed("reader", move |calls| {
                publisher.set(publishes);
                reader.sample(calls)
            }))
        };
        let mut subjects: Vec<Subject<'_>> = [true, false].into_iter().filter_map(reader).collect();
        interleave(&mut subjects, &plan, || kernel.tick())
    })
}
