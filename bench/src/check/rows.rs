//! The promises, row by row.

use std::hint::black_box;

use datapage::layout::DATA_BYTES;
use datapage::{ClockId, ClockMode, Page, Time, Writer};
use timekeeper::{Clocksource, Timekeeper};

use crate::calls::{self, Call};
use crate::check::Row;
use crate::clock;
use crate::cold;
use crate::rounds::{Measured, Plan, interleave};
use crate::setup::{Kernel, Setup};
use crate::subject::{self, Subject};
use crate::writer::{Pace, Publisher};

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
    let (ours, host) = (setup.chosen().callee(), setup.host);
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
    let (ours, chosen) = (setup.counter.callee(), setup.chosen().callee());
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
    let monotonic = ClockId::MONOTONIC.0;
    if let Some(rdtscp) = setup.rdtscp.as_ref().map(Kernel::callee) {
        let name = "clock_gettime MONOTONIC in RDTSCP mode";
        rows.extend(row(setup, name.to_owned(), "bare rdtscp", None, move || {
            both([subject::clock_gettime(&rdtscp, monotonic), Some(subject::bare_rdtscp())])
        }));
        let pair = move || both([&rdtscp, &ours].map(|c| subject::clock_gettime(c, monotonic)));
        rows.extend(row(setup, name.to_owned(), "COUNTER mode", None, pair));
        let host = setup.host;
        let pair = move || both([&rdtscp, &host].map(|c| subject::clock_gettime(c, monotonic)));
        rows.extend(row(setup, name.to_owned(), "host vDSO", None, pair));
    }
    let pair = move || both([&ours, &setup.host].map(|c| subject::clock_gettime(c, monotonic)));
    let name = "clock_gettime MONOTONIC in COUNTER mode".to_owned();
    rows.extend(row(setup, name, "host vDSO", None, pair));
    rows.extend(row(
        setup,
        "clock_gettime_ns REALTIME".to_owned(),
        "clock_gettime and conversion",
        Some(0.97),
        move || {
            both([
                subject::clock_gettime_ns(&chosen, libc::CLOCK_REALTIME),
                subject::clock_gettime_converted(&chosen, libc::CLOCK_REALTIME),
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
                Some(calls::through_syscall(Call::Gettime(unserved))),
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

fn cold_read<'m>(kernel: &'m Kernel<'_>, clock: ClockId) -> Option<Subject<'m>> {
    let call = kernel.callee().functions().clock_gettime?;
    let page: *const u8 = std::ptr::from_ref(kernel.image().page()).cast();
    let read = move || {
        let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the image stays mapped as long as `kernel` is borrowed, and `ts` is alive.
        std::hint::black_box(unsafe { call(clock.0, &raw mut ts) });
    };
    Some(cold::read("cold read", page, DATA_BYTES, read))
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
    let name = "update_vsyscall, publish of one update".to_owned();
    rows.extend(row(setup, name, "bare lfence; rdtsc", None, || {
        let publish = Subject::timed("update_vsyscall", |calls| update_vsyscall(calls, false));
        Some([publish, subject::bare_lfence_rdtsc()])
    }));
    let name = "tick of the timekeeper and update_vsyscall".to_owned();
    rows.extend(row(setup, name, "bare lfence; rdtsc", None, || {
        let tick = Subject::timed("tick", |calls| update_vsyscall(calls, true));
        Some([tick, subject::bare_lfence_rdtsc()])
    }));
    rows
}

/// Both loops are the same reader; before each sample of the first, the writer is let loose, and
/// before each of the second it is stopped. A sample is a little longer than the writer's period:
/// the median of shorter ones would be one that met no publication.
fn beside_a_writer(setup: &Setup<'_>, cpu: usize, plan: &Plan) -> Measured {
    const PERIODS: f64 = 1.25;
    let pace = Pace::per_second(1000);
    let plan = Plan { sample_nanos: PERIODS * pace.nanos(), samples: 5, ..*plan };
    let kernel = &setup.counter;
    std::thread::scope(|scope| {
        let publisher = Publisher::spawn(scope, cpu, pace, || kernel.tick());
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

/// Cycles of a kernel's side: publishing a timekeeper's clocks, with a tick of a millisecond before
/// each if `ticks`. Neither allocates or enters the kernel: `tests/tests/update_vsyscall.rs` counts.
fn update_vsyscall(calls: u32, ticks: bool) -> f64 {
    const HERTZ: u64 = 1_000_000_000;
    const TICK: u64 = HERTZ / 1000;
    let counter = Clocksource::new("counter", HERTZ, u64::MAX, ClockMode::COUNTER);
    let realtime = Time { secs: 1_700_000_000, nanos: 0 };
    let started = counter
        .and_then(|counter| Timekeeper::new(counter, 0, realtime, timekeeper::Config::default()));
    let Ok(mut timekeeper) = started else {
        return f64::NAN;
    };
    let mut page = Page::zeroed();
    let (mut writer, _) = Writer::split(&mut page);
    let mut now = 0;
    let start = clock::cycles();
    for _ in 0..calls {
        if ticks {
            now += TICK;
            timekeeper.tick(now);
        }
        if timekeeper::update_vsyscall(&mut writer, black_box(&timekeeper)).is_err() {
            return f64::NAN;
        }
    }
    (clock::cycles() - start) as f64
}
