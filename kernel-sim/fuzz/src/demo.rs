//! A machine at full speed on one thread, and readers on all CPUs, every read of theirs verified.
//!
//! The writer keeps a log: what each clock shows after each thing that can change it (a publication,
//! a move of the counter), computed by the oracle. A reader notes how far the log had come before its
//! read and how far after; what it read must be exactly one of the entries in between. So each read
//! is compared with the exact value, although nobody waits for anybody.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use datapage::ClockMode;
use kernel_sim::machine::Event;
use kernel_sim::machine::hardware::Oscillator;
use kernel_sim::machine::setup::{CounterSetup, Setup};
use kernel_sim::map::MappedImage;
use oracle::Clocks;
use oracle::publication::SERVED;

use crate::expect;
use crate::generate::machine::Writer as Generator;
use crate::judge::judge;
use crate::report::Counts;
use crate::rng::Rng;
use crate::scenario::{Reader, Step};
use crate::simulated::{Simulated, When};
use crate::subject::{Answer, Call, Image, UNTOUCHED};
use crate::world::{Violation, misjudged};

/// What a run has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Publications of the timekeeper.
    pub updates: u64,
    /// Reads by the reader threads, each equal to an exact value.
    pub reads: u64,
    /// Reads that gave up and fell back, as they must when the writer is off its CPU in the middle of
    /// an update.
    pub gave_up: u64,
    /// Reads that were not compared: the reader was off its CPU for longer than the log reaches.
    pub unchecked: u64,
    /// Reader threads.
    pub threads: usize,
    /// How long it took.
    pub elapsed: Duration,
    /// Events by kind, among others.
    pub counts: Counts,
}

/// Entries that the log holds before it is written over.
const ENTRIES: usize = 1 << 14;

/// What every clock shows between two changes.
#[derive(Default)]
struct Entry {
    /// Smallest and largest nanoseconds, in the order of [`SERVED`]; [`FALLBACK`] for both where the
    /// call has to fall back.
    bounds: [(AtomicI64, AtomicI64); SERVED.len()],
}

/// Stands in the log for a call that falls back: no clock gets there.
const FALLBACK: i64 = i64::MIN;

struct Log {
    entries: Vec<Entry>,
    /// Changes that may be visible.
    started: AtomicU64,
    /// Changes whose entries are complete.
    completed: AtomicU64,
    stop: AtomicBool,
    reads: AtomicU64,
    gave_up: AtomicU64,
    unchecked: AtomicU64,
}

impl Log {
    fn new() -> Self {
        Self {
            entries: (0..ENTRIES).map(|_| Entry::default()).collect(),
            started: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            reads: AtomicU64::new(0),
            gave_up: AtomicU64::new(0),
            unchecked: AtomicU64::new(0),
        }
    }

    fn entry(&self, number: u64) -> &Entry {
        let place = usize::try_from(number % ENTRIES as u64).unwrap_or(0);
        &self.entries[place]
    }

    /// A change is about to become visible. Whoever sees it also sees this: on the page through the
    /// sequence number's release, in the counter because x86_64 keeps stores in order.
    fn begin(&self) {
        let number = self.started.load(Ordering::Relaxed) + 1;
        self.started.store(number, Ordering::Release);
    }

    /// The change is visible, and this is what the clocks show.
    fn end(&self, clocks: &Clocks, counter: u64) {
        let number = self.started.load(Ordering::Relaxed);
        let precise = clocks.serves_precise();
        for (&id, (low, high)) in SERVED.iter().zip(&self.entry(number).bounds) {
            let bounds = if precise || id == 5 || id == 6 {
                let (low, high) = clocks.due(id, counter);
                (word(low), word(high))
            } else {
                (FALLBACK, FALLBACK)
            };
            low.store(bounds.0, Ordering::Relaxed);
            high.store(bounds.1, Ordering::Relaxed);
        }
        self.completed.store(number, Ordering::Release);
    }
}

fn word(nanos: i128) -> i64 {
    i64::try_from(nanos).unwrap_or(if nanos < 0 { FALLBACK + 1 } else { i64::MAX })
}

/// Drives a simulated machine on the page of `mapped` for `duration`, with random events at full
/// speed, while one thread for each CPU reads the image and verifies each read. `on_progress` gets
/// the updates and the verified reads so far, some times a second.
///
/// # Errors
/// The first read that is not exact, or the first thing that the kernel did against the rules.
pub fn drive(
    mapped: &mut MappedImage,
    duration: Duration,
    seed: u64,
    mut on_progress: impl FnMut(u64, u64),
) -> Result<Report, Violation> {
    let started = Instant::now();
    let setup = machine();
    let (writer, mapped) = mapped.split();
    let image = Image::new(mapped);
    let wrong =
        |what: String| Violation { what, read: "no machine".into(), due: "a machine".into() };
    let simulated =
        Simulated::new(&setup, writer, true).map_err(|error| wrong(error.to_string()))?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let log = Log::new();
    let mut driver = Driver { simulated, image: &image, log: &log, counts: Counts::default() };
    driver.move_counter();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..threads).map(|_| scope.spawn(|| verify(&image, &log))).collect();
        let driven = driver.run(seed, &setup, started + duration, &mut on_progress);
        log.stop.store(true, Ordering::Release);
        for reader in readers {
            match reader.join() {
                Ok(result) => result?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        let counts = driven?;
        Ok(Report {
            updates: counts.updates,
            reads: log.reads.load(Ordering::Relaxed),
            gave_up: log.gave_up.load(Ordering::Relaxed),
            unchecked: log.unchecked.load(Ordering::Relaxed),
            threads,
            elapsed: started.elapsed(),
            counts,
        })
    })
}

/// A machine with one counter, shortly before it wraps, that never jumps by itself: the page's
/// counter, which stands for it, cannot jump in the same instant as the kernel publishes.
fn machine() -> Setup {
    let counter = CounterSetup {
        oscillator: Oscillator { hz: 2_400_000_000, bits: 64 },
        mode: ClockMode::MEMORY,
        start: u64::MAX << 40,
        is_nonstop: true,
    };
    Setup { cpus: 1, hz: 1000, realtime_secs: 1_700_000_000, counters: vec![counter] }
}

/// The longest time that passes at once. At full speed a machine lives through months in a second,
/// and the oracle's exact numbers hold 73 years.
const LONGEST_NS: u64 = 3_000_000_000;

fn shortened(event: Event) -> Event {
    match event {
        Event::Sleep { ns, how } => Event::Sleep { ns: ns % LONGEST_NS, how },
        Event::Idle { ns } => Event::Idle { ns: ns % LONGEST_NS },
        _ => event,
    }
}

struct Driver<'p, 'r> {
    simulated: Simulated<'p, datapage::protocol::Native>,
    image: &'r Image<'r>,
    log: &'r Log,
    counts: Counts,
}

impl Driver<'_, '_> {
    fn run(
        mut self,
        seed: u64,
        setup: &Setup,
        until: Instant,
        on_progress: &mut impl FnMut(u64, u64),
    ) -> Result<Counts, Violation> {
        let mut generator = Generator::new(Rng::new(seed, 0), setup.clone(), Reader::Image);
        let mut rounds = 0_u32;
        while !self.log.stop.load(Ordering::Acquire) {
            rounds += 1;
            if rounds.is_multiple_of(4_096) {
                on_progress(self.counts.updates, self.log.reads.load(Ordering::Relaxed));
                if Instant::now() >= until {
                    break;
                }
            }
            generator.step();
            for step in std::mem::take(&mut generator.steps) {
                self.step(&step)?;
            }
        }
        Ok(self.counts)
    }

    fn step(&mut self, step: &Step) -> Result<(), Violation> {
        match *step {
            Step::Pass(ns) => self.simulated.machine.pass(ns.min(LONGEST_NS)),
            Step::Event(Event::Migrate { .. }) => {}
            Step::Event(event) => {
                let event = shortened(event);
                let counter = self.simulated.machine.counter(0);
                let (image, log) = (self.image, self.log);
                let mut wrong = Ok(());
                let outcome = self.simulated.happens(event, |when, _, clocks| match when {
                    When::Before => log.begin(),
                    When::After => {
                        // The writer's own reads tell the oracle the last fraction of a nanosecond.
                        if wrong.is_ok() {
                            wrong = own_reads(image, clocks, counter);
                        }
                        log.end(clocks, counter);
                    }
                });
                wrong?;
                let outcome = outcome.map_err(|wrong| misjudged(&wrong))?;
                self.counts.updates += outcome.updates;
                self.counts.refused += outcome.refused;
                self.counts.events[event.kind()] += 1;
            }
            // The other threads read.
            _ => return Ok(()),
        }
        self.move_counter();
        Ok(())
    }

    fn move_counter(&mut self) {
        let counter = self.simulated.machine.counter(0);
        self.log.begin();
        self.simulated.machine.writer().set_memory_counter(counter);
        self.log.end(&self.simulated.clocks, counter);
    }
}

/// Reads that narrow what the oracle does not know.
fn own_reads(image: &Image<'_>, clocks: &mut Clocks, counter: u64) -> Result<(), Violation> {
    for call in [6, 1].map(Call::ClockGettime) {
        let answer = image.call(call);
        judge(clocks, counter, call, answer, Answer::bare(-38)).map_err(|due| Violation {
            what: format!("{} by the writer itself", expect::name(call)),
            read: expect::words(call, answer),
            due,
        })?;
    }
    Ok(())
}

/// Reads and verifies until told to stop.
fn verify(image: &Image<'_>, log: &Log) -> Result<(), Violation> {
    let (mut reads, mut gave_up, mut unchecked) = (0, 0, 0);
    let mut result = Ok(());
    while result.is_ok() && !log.stop.load(Ordering::Acquire) {
        for (place, &id) in SERVED.iter().enumerate() {
            match verify_one(image, log, place, id) {
                Ok(Verified::Exact) => reads += 1,
                Ok(Verified::GaveUp) => gave_up += 1,
                Ok(Verified::Not) => unchecked += 1,
                Err(violation) => {
                    result = Err(violation);
                    log.stop.store(true, Ordering::Release);
                    break;
                }
            }
        }
        if reads >= 1_024 {
            log.reads.fetch_add(std::mem::take(&mut reads), Ordering::Relaxed);
        }
    }
    log.reads.fetch_add(reads, Ordering::Relaxed);
    log.gave_up.fetch_add(gave_up, Ordering::Relaxed);
    log.unchecked.fetch_add(unchecked, Ordering::Relaxed);
    result
}

/// What can be said of a read.
enum Verified {
    /// It is what is due.
    Exact,
    /// It fell back where it could have been served.
    GaveUp,
    /// Nothing.
    Not,
}

/// One read.
fn verify_one(image: &Image<'_>, log: &Log, place: usize, id: i32) -> Result<Verified, Violation> {
    let call = Call::ClockGettime(id);
    let first = log.completed.load(Ordering::Acquire);
    let answer = image.call(call);
    let last = log.started.load(Ordering::Acquire);
    while log.completed.load(Ordering::Acquire) < last {
        if log.stop.load(Ordering::Acquire) {
            return Ok(Verified::Not);
        }
        std::thread::yield_now();
    }
    let [secs, nanos, ..] = answer.words;
    let value = if answer == (Answer { returned: 0, words: [secs, nanos, UNTOUCHED, UNTOUCHED] }) {
        word(i128::from(secs) * 1_000_000_000 + i128::from(nanos))
    } else {
        FALLBACK
    };
    let mut due = Vec::with_capacity(4);
    let matched = (first..=last).any(|number| {
        let (low, high) = &log.entry(number).bounds[place];
        let bounds = (low.load(Ordering::Relaxed), high.load(Ordering::Relaxed));
        if due.len() < 4 {
            due.push(bounds);
        }
        bounds.0 <= value && value <= bounds.1
    });
    // The entries must not have been written over meanwhile.
    std::sync::atomic::fence(Ordering::Acquire);
    let reach = log.started.load(Ordering::Acquire) - first;
    if reach >= ENTRIES as u64 {
        return Ok(Verified::Not);
    }
    if matched {
        return Ok(Verified::Exact);
    }
    if value == FALLBACK && answer == Answer::bare(-38) {
        return Ok(Verified::GaveUp);
    }
    Err(Violation {
        what: format!("{} on a reader's thread, changes {first} to {last}", expect::name(call)),
        read: expect::words(call, answer),
        due: format!("nanoseconds in one of {due:?}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_read_of_a_driven_image_is_exact() {
        let mut mapped = MappedImage::new(&linker::ENOSYS).unwrap();
        let report = drive(&mut mapped, Duration::from_millis(300), 1, |_, _| ()).unwrap();
        // How much is done in that time is the machine's business.
        assert!(report.updates > 0 && report.reads > 0, "{report:?}");
        assert_eq!(report.counts.updates, report.updates);
    }
}
