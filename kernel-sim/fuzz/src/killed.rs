//! A writer that is killed, again and again, wherever in an update it happens to be.
//!
//! The writer is a process of its own that shares the page and does nothing but publish; the signal
//! comes from outside, at any instruction. Readers on all CPUs go on meanwhile. Every publication
//! has the same number in all of its words, so a read that mixes two of them shows it, and whoever
//! has seen a number sees no smaller one later.
//!
//! `tests/dead_writer.rs` lets a writer die before each of its stores in turn; here it is a real
//! process, a real signal, and the shipped image.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use datapage::{
    ClockId, ClockMode, Features, Instant as Base, PageValues, SLOT_BYTES, Scale, Writer,
};
use kernel_sim::map::MappedImage;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};
use oracle::publication::SERVED;

use crate::expect;
use crate::rng::Rng;
use crate::subject::{Answer, Call, Image, UNTOUCHED};
use crate::world::Violation;

/// What a run has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Writers that were killed.
    pub killed: u64,
    /// Those that left the page in the middle of an update.
    pub left_odd: u64,
    /// Publications, over all writers.
    pub updates: u64,
    /// Reads that gave a publication's time, whole and no older than one seen before.
    pub reads: u64,
    /// Reads that fell back.
    pub gave_up: u64,
    /// The longest that a read took, with whatever else this machine did meanwhile.
    pub longest: Duration,
}

/// Publications of one writer at most: it ends by itself should nobody be left to kill it.
const LIFE: i64 = 2_000_000;

/// Lets writers be killed for `duration`, one after the other, on the page of `mapped`, while as many
/// `threads` read the image. `on_progress` gets the writers killed and the reads so far.
///
/// # Errors
/// The first read that is torn or goes back, or a process that cannot be made or killed.
pub fn run(
    mapped: &mut MappedImage,
    threads: usize,
    duration: Duration,
    seed: u64,
    mut on_progress: impl FnMut(u64, u64),
) -> Result<Report, Violation> {
    let (mut writer, mapped) = mapped.split();
    writer.format(Features::empty(), SLOT_BYTES);
    writer.set_memory_counter(0);
    let image = Image::new(mapped);
    let shared = Shared { stop: AtomicBool::new(false), reads: AtomicU64::new(0) };
    let mut report = Report::default();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..threads).map(|_| scope.spawn(|| read(&image, &shared))).collect();
        let mut rng = Rng::new(seed, 0);
        let until = Instant::now() + duration;
        let mut killing = Ok(());
        while Instant::now() < until && !shared.stop.load(Ordering::Acquire) {
            match one(writer, &image, &mut rng, &mut report) {
                Ok(next) => writer = next,
                Err(violation) => {
                    killing = Err(violation);
                    break;
                }
            }
            on_progress(report.killed, shared.reads.load(Ordering::Relaxed));
        }
        shared.stop.store(true, Ordering::Release);
        for reader in readers {
            let part = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            report.reads += part.reads;
            report.gave_up += part.gave_up;
            report.longest = report.longest.max(part.longest);
        }
        killing.map(|()| report)
    })
}

struct Shared {
    stop: AtomicBool,
    reads: AtomicU64,
}

/// One writer's life and death; its page passes on to the next.
fn one<'p>(
    mut writer: Writer<'p>,
    image: &Image<'_>,
    rng: &mut Rng,
    report: &mut Report,
) -> Result<Writer<'p>, Violation> {
    let first = i64::try_from(report.killed).unwrap_or(i64::MAX).saturating_mul(LIFE) + 1;
    // SAFETY: the child makes no call but to `publish` and `kill`: no lock, no memory of its own.
    let child = match unsafe { fork() }.map_err(|error| wrong("fork", &error))? {
        ForkResult::Child => loop {
            for number in first..first.saturating_add(LIFE) {
                if let Ok(update) = publication(number).validate() {
                    writer.publish(&update);
                }
            }
            let _ = nix::sys::signal::raise(Signal::SIGKILL);
        },
        ForkResult::Parent { child } => child,
    };
    // Not before it is at work, and then at any instant.
    let seconds = || image.call(Call::Time).returned;
    let patience = Instant::now() + Duration::from_secs(5);
    while seconds() < first && Instant::now() < patience {
        std::thread::yield_now();
    }
    let instant = Instant::now() + Duration::from_nanos(rng.below(300_000));
    while Instant::now() < instant {
        std::hint::spin_loop();
    }
    kill(child, Signal::SIGKILL).map_err(|error| wrong("kill", &error))?;
    waitpid(child, None).map_err(|error| wrong("waitpid", &error))?;
    report.killed += 1;
    report.updates += u64::try_from(seconds() - first + 1).unwrap_or(0);
    let is_odd = writer.page().is_odd();
    report.left_odd += u64::from(is_odd);
    // Nobody writes now, so it is known what each call has to do.
    for call in SERVED.map(Call::ClockGettime) {
        let answer = image.call(call);
        if (answer == Answer::bare(-38)) != is_odd {
            return Err(Violation {
                what: format!("{} after the writer's death", expect::name(call)),
                read: expect::words(call, answer),
                due: if is_odd { "a fallback" } else { "a time" }.into(),
            });
        }
    }
    writer.adopt().map_err(|error| wrong("the next writer", &error))
}

/// Publication number `number`: the number is in every word that depends on time.
fn publication(number: i64) -> PageValues {
    let scale = Scale { mask: u64::MAX, mult: 1, shift: 0 };
    let mut values = PageValues {
        clock_mode: ClockMode::MEMORY,
        steered: scale,
        raw: scale,
        hrtimer_res: 1,
        coarse_res: 4_000_000,
        ..PageValues::default()
    };
    for id in SERVED {
        values.set(ClockId(id), Base { secs: number, nanos: nanos(number).unsigned_abs() });
    }
    values
}

fn nanos(number: i64) -> i64 {
    number % 1_000_000_000
}

/// Reads until told to stop.
fn read(image: &Image<'_>, shared: &Shared) -> Result<Report, Violation> {
    let mut report = Report::default();
    let mut seen = 0;
    while !shared.stop.load(Ordering::Acquire) {
        let before = report.reads;
        for call in SERVED.map(Call::ClockGettime) {
            let begin = Instant::now();
            let answer = image.call(call);
            report.longest = report.longest.max(begin.elapsed());
            if answer == Answer::bare(-38) {
                report.gave_up += 1;
                continue;
            }
            let [number, rest, ..] = answer.words;
            let whole =
                Answer { returned: 0, words: [number, nanos(number), UNTOUCHED, UNTOUCHED] };
            if answer != whole || number < seen {
                shared.stop.store(true, Ordering::Release);
                return Err(Violation {
                    what: format!("{} while a writer is killed", expect::name(call)),
                    read: format!("{number} s {rest} ns"),
                    due: format!("a whole publication, number {seen} or later"),
                });
            }
            seen = number;
            report.reads += 1;
        }
        shared.reads.fetch_add(report.reads - before, Ordering::Relaxed);
    }
    Ok(report)
}

fn wrong(what: &str, error: &dyn std::fmt::Display) -> Violation {
    Violation { what: what.into(), read: error.to_string(), due: "success".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_survive_every_writer_that_is_killed() {
        let mut mapped = MappedImage::new(&linker::ENOSYS).unwrap();
        let report = run(&mut mapped, 2, Duration::from_millis(400), 5, |_, _| ()).unwrap();
        assert!(report.killed > 0 && report.updates > 0 && report.reads > 0, "{report:?}");
    }
}
