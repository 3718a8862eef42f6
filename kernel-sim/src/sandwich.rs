//! Whether a clock of an image agrees with the kernel's: system call, image, system call, in order.
//!
//! The kernel's value may not be above the image's that was read after it, nor below the one that
//! was read before it. A violation is counted with its distance. It needs the image in place of the
//! kernel's own, so the caller is a program that runs on it.

use std::time::{Duration, Instant};

use libc::{c_int, timespec};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::functions::Functions;

/// The clocks that are compared, with their names.
pub const CLOCKS: [(c_int, &str); 5] = [
    (libc::CLOCK_REALTIME, "REALTIME"),
    (libc::CLOCK_MONOTONIC, "MONOTONIC"),
    (libc::CLOCK_BOOTTIME, "BOOTTIME"),
    (libc::CLOCK_TAI, "TAI"),
    (libc::CLOCK_MONOTONIC_RAW, "MONOTONIC_RAW"),
];

/// What was found for one clock on one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Sandwiches made.
    pub reads: u64,
    /// Reads that were below the kernel's value before them.
    pub below: u64,
    /// Reads that were above the kernel's value after them.
    pub above: u64,
    /// Largest violation to the one side, in nanoseconds.
    pub most_below_ns: i64,
    /// Largest violation to the other side.
    pub most_above_ns: i64,
    /// Reads of the image that were below the one before.
    pub backwards: u64,
    /// The shortest time between the two system calls.
    pub narrowest_ns: i64,
    last_ns: i64,
}

impl Tally {
    fn add(&mut self, before: i64, image: i64, after: i64) {
        if self.reads == 0 {
            self.narrowest_ns = i64::MAX;
        }
        self.reads += 1;
        self.narrowest_ns = self.narrowest_ns.min(after - before);
        if image < before {
            self.below += 1;
            self.most_below_ns = self.most_below_ns.max(before - image);
        }
        if image > after {
            self.above += 1;
            self.most_above_ns = self.most_above_ns.max(image - after);
        }
        if image < self.last_ns {
            self.backwards += 1;
        }
        self.last_ns = image;
    }

    /// Whether no read was outside of its sandwich or went back.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.reads > 0 && self.below + self.above + self.backwards == 0
    }
}

/// Compares all clocks for `time` on each CPU that this process may use, and calls `report` with
/// each CPU, clock and what was found.
///
/// Returns whether there was a vDSO of this project to be compared.
pub fn compare(time: Duration, report: &mut dyn FnMut(usize, &str, &Tally)) -> bool {
    let Some(functions) = Functions::of_host() else {
        return false;
    };
    let (Some(gettime), Some(_)) = (functions.clock_gettime, functions.clock_gettime_ns) else {
        return false;
    };
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this).unwrap_or_default();
    for cpu in 0..CpuSet::count() {
        if allowed.is_set(cpu) != Ok(true) {
            continue;
        }
        let mut one = CpuSet::new();
        if one.set(cpu).is_err() || sched_setaffinity(this, &one).is_err() {
            continue;
        }
        let mut tallies = [Tally::default(); CLOCKS.len()];
        let begin = Instant::now();
        while begin.elapsed() < time {
            for ((clock, _), tally) in CLOCKS.iter().zip(&mut tallies) {
                for _ in 0..ROUNDS {
                    let before = by_system_call(*clock);
                    // SAFETY: the image's own function, and a live timespec.
                    let image = nanos(|spec| unsafe { gettime(*clock, spec) } == 0);
                    tally.add(before, image, by_system_call(*clock));
                }
            }
        }
        for ((_, name), tally) in CLOCKS.iter().zip(&tallies) {
            report(cpu, name, tally);
        }
    }
    let _ = sched_setaffinity(this, &allowed);
    true
}

/// Sandwiches of one clock in a row.
const ROUNDS: u32 = 200;

fn by_system_call(clock: c_int) -> i64 {
    nanos(|spec| {
        // SAFETY: a live timespec.
        let answer = unsafe { libc::syscall(libc::SYS_clock_gettime, clock, spec) };
        answer == 0
    })
}

/// Nanoseconds of the time that `read` stores; these clocks exist on every Linux, so it succeeds.
fn nanos(read: impl FnOnce(*mut timespec) -> bool) -> i64 {
    let mut spec = timespec { tv_sec: 0, tv_nsec: 0 };
    let served = read(&raw mut spec);
    debug_assert!(served);
    spec.tv_sec * 1_000_000_000 + spec.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_outside_of_its_sandwich_is_counted_with_its_distance() {
        let mut tally = Tally::default();
        tally.add(10, 10, 10);
        tally.add(20, 25, 30);
        assert!(tally.holds());
        tally.add(40, 37, 50);
        tally.add(50, 60, 55);
        tally.add(51, 59, 99);
        assert!(!tally.holds());
        assert_eq!((tally.below, tally.most_below_ns), (1, 3));
        assert_eq!((tally.above, tally.most_above_ns), (1, 5));
        assert_eq!((tally.reads, tally.backwards, tally.narrowest_ns), (5, 1, 0));
    }
}
