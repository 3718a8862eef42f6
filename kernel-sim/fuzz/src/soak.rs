//! The real counter: a timekeeper driven by it at full speed, and readers on all CPUs that bracket it.
//!
//! Nobody knows which value of the counter a read takes. So a reader takes it right before and right
//! after, and what it read must lie between what the oracle says for the two, of one of the
//! publications that stood meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use datapage::{ClockMode, Features, Time};
use kernel_sim::machine::{Operation, kernel};
use kernel_sim::map::MappedImage;
use oracle::publication::SERVED;
use oracle::{Clocks, Config};
use timekeeper::{Clocksource, Published, Timekeeper};

use crate::expect;
use crate::rng::Rng;
use crate::simulated::{source, told};
use crate::subject::{Answer, Call, Image, UNTOUCHED};
use crate::world::Violation;

/// What a run has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Publications.
    pub updates: u64,
    /// Reads between the two values that bracket them.
    pub reads: u64,
    /// Reads that gave up and fell back: the writer was off its CPU in the middle of an update.
    pub gave_up: u64,
    /// Reads for which too many publications had come meanwhile.
    pub unchecked: u64,
}

/// Publications that are remembered.
const ENTRIES: u64 = 1 << 10;

struct Log {
    entries: Vec<Mutex<Option<Arc<Clocks>>>>,
    started: AtomicU64,
    completed: AtomicU64,
    stop: AtomicBool,
}

impl Log {
    fn place(&self, number: u64) -> &Mutex<Option<Arc<Clocks>>> {
        &self.entries[usize::try_from(number % ENTRIES).unwrap_or(0)]
    }

    fn end(&self, clocks: &Clocks) {
        let number = self.started.load(Ordering::Relaxed);
        let mut place = self.place(number).lock().unwrap_or_else(PoisonError::into_inner);
        *place = Some(Arc::new(clocks.clone()));
        drop(place);
        self.completed.store(number, Ordering::Release);
    }
}

/// Drives a timekeeper with this machine's counter of `hz` on the page of `mapped` for `duration`,
/// while `threads` threads read the image. `on_progress` gets the updates so far.
///
/// # Errors
/// The first read that lies outside of its brackets, or the first refusal of the timekeeper.
pub fn run(
    mapped: &mut MappedImage,
    hz: u64,
    threads: usize,
    duration: Duration,
    seed: u64,
    on_progress: impl FnMut(u64),
) -> Result<Report, Violation> {
    let wrong = |what: String| Violation {
        what,
        read: "a refusal".into(),
        due: "a running timekeeper".into(),
    };
    let (mut writer, mapped) = mapped.split();
    writer.format(Features::empty(), datapage::SLOT_BYTES);
    let image = Image::new(mapped);
    let config = timekeeper::Config::default();
    let first = counter();
    let start = Time { secs: 1_700_000_000, nanos: 0 };
    let tsc = Clocksource::new("tsc", hz, u64::MAX, ClockMode::COUNTER);
    let tsc = tsc.map_err(|error| wrong(error.to_string()))?;
    let keeper = Timekeeper::new(tsc, first, start, config);
    let keeper = keeper.map_err(|error| wrong(error.to_string()))?;
    let clocks = Clocks::new(
        source(0, &tsc),
        first,
        start.secs,
        Config { hz: config.hz, publication_delay_ns: config.publication_delay_ns },
    );
    let mut published = Published::new(keeper, writer).map_err(|error| wrong(error.to_string()))?;
    let log = Log {
        entries: (0..ENTRIES).map(|_| Mutex::new(None)).collect(),
        started: AtomicU64::new(1),
        completed: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    log.end(&clocks);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..threads).map(|_| scope.spawn(|| bracket(&image, &log))).collect();
        let until = Instant::now() + duration;
        let driven = drive(&mut published, clocks, &log, seed, until, on_progress);
        log.stop.store(true, Ordering::Release);
        let mut report = Report::default();
        for reader in readers {
            let part = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            report.reads += part.reads;
            report.gave_up += part.gave_up;
            report.unchecked += part.unchecked;
        }
        report.updates = driven.map_err(|error| wrong(error.to_string()))?;
        Ok(report)
    })
}

fn counter() -> u64 {
    vdso::arch::counter(ClockMode::COUNTER).unwrap_or(0)
}

/// Ticks without a pause, and now and then something of what an NTP daemon does.
fn drive(
    published: &mut Published<'_>,
    mut clocks: Clocks,
    log: &Log,
    seed: u64,
    until: Instant,
    mut on_progress: impl FnMut(u64),
) -> Result<u64, timekeeper::Error> {
    let mut rng = Rng::new(seed, 0);
    let mut updates = 0;
    while Instant::now() < until && !log.stop.load(Ordering::Acquire) {
        let now = counter();
        let operation = match rng.below(64) {
            0 => Operation::SetFrequency {
                now,
                scaled_ppm: rng.within(-kernel::MAX_SCALED_PPM, kernel::MAX_SCALED_PPM),
            },
            1 => Operation::Slew { now, nanos: rng.within(-500_000, 500_000) },
            2 => Operation::InjectOffset { now, nanos: rng.within(-1_000_000, 1_000_000) },
            _ => Operation::Tick { now },
        };
        let number = log.started.load(Ordering::Relaxed) + 1;
        log.started.store(number, Ordering::Release);
        clocks.happens(told(operation, &[]));
        published.update(|keeper| match operation {
            Operation::SetFrequency { now, scaled_ppm } => keeper.set_frequency(now, scaled_ppm),
            Operation::Slew { now, nanos } => keeper.slew(now, nanos),
            Operation::InjectOffset { now, nanos } => {
                let second = 1_000_000_000;
                let rest = u32::try_from(nanos.rem_euclid(second)).unwrap_or(0);
                keeper.inject_offset(now, Time { secs: nanos.div_euclid(second), nanos: rest })
            }
            _ => {
                keeper.tick(now);
                Ok(())
            }
        })?;
        log.end(&clocks);
        updates += 1;
        on_progress(updates);
        // As often as no kernel ticks, but not so often that no reader ever finds the page stable.
        std::thread::sleep(Duration::from_micros(20));
    }
    Ok(updates)
}

fn bracket(image: &Image<'_>, log: &Log) -> Result<Report, Violation> {
    let mut report = Report::default();
    while !log.stop.load(Ordering::Acquire) {
        for id in SERVED {
            let call = Call::ClockGettime(id);
            let first = log.completed.load(Ordering::Acquire);
            let before = counter();
            let answer = image.call(call);
            let after = counter();
            let last = log.started.load(Ordering::Acquire);
            while log.completed.load(Ordering::Acquire) < last && !log.stop.load(Ordering::Acquire)
            {
                std::thread::yield_now();
            }
            let [secs, nanos, ..] = answer.words;
            if answer == Answer::bare(-38) {
                report.gave_up += 1;
                continue;
            }
            if answer != (Answer { returned: 0, words: [secs, nanos, UNTOUCHED, UNTOUCHED] })
                || last - first >= ENTRIES / 2
                || log.stop.load(Ordering::Acquire)
            {
                report.unchecked += 1;
                continue;
            }
            let value = i128::from(secs) * 1_000_000_000 + i128::from(nanos);
            let mut due = Vec::new();
            let fits = (first..=last).any(|number| {
                let place = log.place(number).lock().unwrap_or_else(PoisonError::into_inner);
                let Some(clocks) = place.clone() else {
                    return false;
                };
                drop(place);
                let bounds = (clocks.due(id, before).0, clocks.due(id, after).1);
                due.push(bounds);
                bounds.0 <= value && value <= bounds.1
            });
            if !fits && log.started.load(Ordering::Acquire) - first >= ENTRIES {
                report.unchecked += 1;
            } else if !fits {
                log.stop.store(true, Ordering::Release);
                return Err(Violation {
                    what: format!(
                        "{} by the real counter, from {before:#x} to {after:#x}",
                        expect::name(call)
                    ),
                    read: expect::words(call, answer),
                    due: format!("nanoseconds in one of {due:?}"),
                });
            } else {
                report.reads += 1;
            }
        }
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_by_the_real_counter_lie_between_their_brackets() {
        // Any rate will do: oracle and timekeeper are told the same.
        let mut mapped = MappedImage::new(&linker::ENOSYS).unwrap();
        let report =
            run(&mut mapped, 2_000_000_000, 2, Duration::from_millis(400), 3, |_| ()).unwrap();
        assert!(report.updates > 0 && report.reads > 0, "{report:?}");
    }
}
