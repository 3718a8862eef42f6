//! What a clock of the host says, and between which two counter values it said so.
//!
//! The host's rate and phase cannot be read, they have to be observed. One observation is a
//! [`Pair`]: counter, clock, counter. The clock had its value at some counter value between the
//! two, so each pair bounds the clock's distance from a line through the counter on both sides
//! ([`Bounds`]). A pair that was interrupted has wide bounds and does no harm; the intersection of
//! a few pairs is as narrow as the fastest of them allows, about 40 ns here, and its middle repeats
//! within a nanosecond.

use libc::{c_int, timespec};

use crate::functions::Functions;

/// The clocks and the counter of this machine.
#[derive(Clone, Copy, Debug)]
pub struct HostClocks {
    clock_gettime: unsafe extern "C" fn(c_int, *mut timespec) -> isize,
}

/// One observation of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The counter before.
    pub before: u64,
    /// Nanoseconds that the clock said, rounded down.
    pub nanos: i128,
    /// The counter after.
    pub after: u64,
}

/// Bounds of a quantity that does not change while they are narrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Largest value known not to be above it.
    pub low: i128,
    /// Smallest value known not to be below it.
    pub high: i128,
}

impl Bounds {
    /// Nothing is known yet.
    pub const UNKNOWN: Self = Self { low: i128::MIN, high: i128::MAX };

    /// What both say; `None` if they exclude each other, so that the quantity has changed.
    #[must_use]
    pub fn and(self, other: Self) -> Option<Self> {
        let both = Self { low: self.low.max(other.low), high: self.high.min(other.high) };
        (both.low <= both.high).then_some(both)
    }

    /// The value in the middle; of bounds that are known.
    #[must_use]
    pub fn middle(self) -> i128 {
        // Bounds of times are far below 2^126.
        self.low + (self.high - self.low) / 2
    }
}

impl HostClocks {
    /// The clocks of this machine; `None` if the kernel gives this process no vDSO.
    #[must_use]
    pub fn new() -> Option<Self> {
        Self::of(&Functions::of_host()?)
    }

    /// The clocks that a mapped image shows, in place of the machine's own; `None` if it has no
    /// `clock_gettime`. The functions' image has to stay mapped for as long as these are used.
    #[must_use]
    pub fn of(functions: &Functions) -> Option<Self> {
        let clock_gettime = functions.clock_gettime?;
        Some(Self { clock_gettime })
    }

    /// The counter, after everything before it.
    #[must_use]
    pub fn counter(&self) -> u64 {
        counter()
    }

    /// What a clock says, in nanoseconds.
    #[must_use]
    pub fn nanos(&self, clock: c_int) -> i128 {
        let mut spec = timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a live timespec, and the host's own function.
        let answer = unsafe { (self.clock_gettime)(clock, &raw mut spec) };
        debug_assert_eq!(answer, 0, "clock {clock} exists on every Linux");
        i128::from(spec.tv_sec) * 1_000_000_000 + i128::from(spec.tv_nsec)
    }

    /// One observation of a clock.
    #[must_use]
    pub fn pair(&self, clock: c_int) -> Pair {
        let before = counter();
        let nanos = self.nanos(clock);
        let after = counter();
        Pair { before, nanos, after }
    }

    /// Bounds of `clock - other` in nanoseconds, from `rounds` reads of the one between two reads
    /// of the other; `None` if one of the clocks was set meanwhile.
    ///
    /// The way from either read to the next is the same, so the middle has no bias.
    #[must_use]
    pub fn difference(&self, clock: c_int, other: c_int, rounds: u32) -> Option<Bounds> {
        let mut bounds = Bounds::UNKNOWN;
        for _ in 0..rounds {
            let before = self.nanos(other);
            let nanos = self.nanos(clock);
            let after = self.nanos(other);
            bounds = bounds.and(Bounds { low: nanos - after, high: nanos - before })?;
        }
        Some(bounds)
    }

    /// Resolution of a clock in nanoseconds, as the system call says.
    #[must_use]
    pub fn resolution(&self, clock: c_int) -> u32 {
        let mut spec = timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a live timespec.
        unsafe { libc::syscall(libc::SYS_clock_getres, clock, &raw mut spec) };
        u32::try_from(spec.tv_nsec).unwrap_or(0)
    }

    /// The timezone that the kernel keeps. The C library's `gettimeofday` no longer passes it on.
    #[must_use]
    pub fn timezone(&self) -> datapage::TimeZone {
        let mut zone = [0_i32; 2];
        let none = std::ptr::null_mut::<libc::timeval>();
        // SAFETY: two live words, which is what a timezone is.
        unsafe { libc::syscall(libc::SYS_gettimeofday, none, zone.as_mut_ptr()) };
        let [minutes_west, dst_time] = zone;
        datapage::TimeZone { minutes_west, dst_time }
    }
}

/// An ordered read of the counter, as the image makes it.
#[inline]
fn counter() -> u64 {
    // SAFETY: every x86_64 has the instruction.
    unsafe { std::arch::x86_64::_mm_lfence() };
    // SAFETY: as above; a kernel that forbids it to programs does not use it as its clocksource.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_narrow_until_they_exclude_each_other() {
        let first = Bounds { low: 10, high: 20 };
        let second = Bounds { low: 15, high: 30 };
        let both = Bounds::UNKNOWN.and(first).unwrap().and(second).unwrap();
        assert_eq!(both, Bounds { low: 15, high: 20 });
        assert_eq!(both.middle(), 17);
        assert_eq!(both.and(Bounds { low: 21, high: 22 }), None);
    }

    #[test]
    fn a_pair_brackets_and_differences_are_stable() {
        let clocks = HostClocks::new().unwrap();
        let first = clocks.pair(libc::CLOCK_MONOTONIC);
        let second = clocks.pair(libc::CLOCK_MONOTONIC);
        assert!(first.before < first.after && first.after < second.before);
        assert!(first.nanos <= second.nanos);
        let one = clocks.difference(libc::CLOCK_BOOTTIME, libc::CLOCK_MONOTONIC, 50);
        let two = clocks.difference(libc::CLOCK_BOOTTIME, libc::CLOCK_MONOTONIC, 50);
        assert!(one.unwrap().and(two.unwrap()).is_some());
        assert_eq!(clocks.resolution(libc::CLOCK_MONOTONIC), 1);
    }
}
