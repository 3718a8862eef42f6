//! Our clocks beside the host's: value, difference, cost.

use std::ffi::c_int;
use std::time::Duration;

use anyhow::Context as _;
use bench::callee::Callee;
use bench::rounds::{Plan, interleave};
use bench::subject;
use datapage::{ClockId, Features, Writer};
use kernel_sim::functions::Functions;
use kernel_sim::host::{HostClocks, counter_is_a_clock, getcpu_features};
use kernel_sim::keeper::{Clocks, FirstLook, Shift};
use kernel_sim::map::MappedImage;
use libc::timespec;
use serde::Serialize;

/// One clock.
#[derive(Debug, Serialize)]
pub(super) struct Clock {
    pub(super) name: &'static str,
    /// Our value, in nanoseconds.
    pub(super) ours: i64,
    /// The host's, from a system call right before ours.
    pub(super) host: i64,
    /// How much ours is before the system call that preceded it, or behind the one that followed
    /// it; 0 if it lies between them.
    pub(super) outside_ns: i64,
    pub(super) ours_ns_per_call: f64,
    pub(super) host_ns_per_call: Option<f64>,
}

const CLOCKS: [(&str, c_int); 7] = [
    ("REALTIME", libc::CLOCK_REALTIME),
    ("MONOTONIC", libc::CLOCK_MONOTONIC),
    ("MONOTONIC_RAW", libc::CLOCK_MONOTONIC_RAW),
    ("BOOTTIME", libc::CLOCK_BOOTTIME),
    ("TAI", libc::CLOCK_TAI),
    ("REALTIME_COARSE", libc::CLOCK_REALTIME_COARSE),
    ("MONOTONIC_COARSE", libc::CLOCK_MONOTONIC_COARSE),
];

/// Between the two looks that give the clocks' rates.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// A precise clock further outside than this is a failure: the rate was measured over
/// [`BETWEEN_LOOKS`] only, which is good to some nanoseconds.
const TOLERANCE_NS: i64 = 1_000;

/// A coarse clock may be a tick of either side away: ours ticks when this command says so.
const COARSE_TOLERANCE_NS: i64 = 30_000_000;

/// Compares all clocks, on a page that follows the host's.
pub(super) fn compare(failures: &mut Vec<String>) -> anyhow::Result<Vec<Clock>> {
    let mut mapped = MappedImage::new(&linker::SYSCALL).context("mapping the image")?;
    let (mut writer, mapped) = mapped.split();
    let mut page = Page::new(&mut writer, getcpu_features())?;
    if let Err(reason) = counter_is_a_clock() {
        eprintln!("kernel-sim: precise clocks fall back here: {reason}");
    }
    page.publish();
    let ours = mapped.functions();
    let costs = costs(mapped, &mut || page.publish());
    page.publish();
    let clocks = CLOCKS.iter().zip(costs).map(|(&(name, id), (ours_cost, host_cost))| {
        let clock = read(&ours, name, id)?;
        Ok(Clock { ours_ns_per_call: ours_cost, host_ns_per_call: host_cost, ..clock })
    });
    let clocks: Vec<Clock> = clocks.collect::<anyhow::Result<_>>()?;
    for clock in &clocks {
        let coarse = clock.name.ends_with("COARSE");
        let tolerance = if coarse { COARSE_TOLERANCE_NS } else { TOLERANCE_NS };
        if clock.outside_ns.abs() > tolerance {
            failures.push(format!("{} is {} ns off the host's", clock.name, clock.outside_ns));
        }
    }
    Ok(clocks)
}

/// A page that follows the host's clocks.
struct Page<'w, 'p> {
    writer: &'w mut Writer<'p>,
    clocks: Clocks,
}

impl<'w, 'p> Page<'w, 'p> {
    fn new(writer: &'w mut Writer<'p>, features: Features) -> anyhow::Result<Self> {
        writer.format(features, datapage::SLOT_BYTES);
        let host = HostClocks::new().context("the host maps no vDSO into this process")?;
        let first = FirstLook::new(&host);
        std::thread::sleep(BETWEEN_LOOKS);
        let clocks = Clocks::new(host, &first, Shift::default(), 250)
            .context("the host's clocks were set while they were looked at; run it again")?;
        Ok(Self { writer, clocks })
    }

    fn publish(&mut self) {
        self.clocks.update();
        let bends = self.clocks.bend();
        if let Ok(update) = self.clocks.values(&bends).validate() {
            self.writer.publish(&update);
            self.clocks.show(&bends);
        }
    }
}

fn read(ours: &Functions, name: &'static str, id: c_int) -> anyhow::Result<Clock> {
    let ours = ours.clock_gettime.context("our image has no clock_gettime")?;
    let mut spec = timespec { tv_sec: 0, tv_nsec: 0 };
    let before = system_call(id);
    // SAFETY: a live timespec; the image is mapped for as long as its functions are used.
    let answer = unsafe { ours(id, &raw mut spec) };
    let after = system_call(id);
    anyhow::ensure!(answer == 0, "clock_gettime({name}) returned {answer}");
    let ours = nanos(spec);
    let outside_ns = (ours - before).min(0) + (ours - after).max(0);
    let unknown = f64::NAN;
    debug_assert!(ClockId(id).slot().is_some());
    Ok(Clock {
        name,
        ours,
        host: before,
        outside_ns,
        ours_ns_per_call: unknown,
        host_ns_per_call: None,
    })
}

/// The clock by a system call.
fn system_call(id: c_int) -> i64 {
    let mut spec = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a live timespec.
    unsafe { libc::syscall(libc::SYS_clock_gettime, id, &raw mut spec) };
    nanos(spec)
}

fn nanos(spec: timespec) -> i64 {
    spec.tv_sec * 1_000_000_000 + spec.tv_nsec
}

/// Nanoseconds a call of each clock, ours and the host's, from one interleaved run.
fn costs(mapped: &MappedImage, publish: &mut dyn FnMut()) -> Vec<(f64, Option<f64>)> {
    let callees = [Some(Callee::of(mapped)), Callee::host()];
    let mut subjects = Vec::new();
    let mut places = Vec::new();
    for (_, id) in CLOCKS {
        places.push(callees.map(|callee| {
            subjects.push(subject::clock_gettime(&callee?, id)?);
            Some(subjects.len() - 1)
        }));
    }
    let plan = Plan { rounds: 15, samples: 3, sample_nanos: 20_000.0 };
    let measured = interleave(&mut subjects, &plan, publish);
    let cost = |place: Option<usize>| place.map(|place| measured.spread(place).median);
    places.into_iter().map(|[ours, host]| (cost(ours).unwrap_or(f64::NAN), cost(host))).collect()
}
