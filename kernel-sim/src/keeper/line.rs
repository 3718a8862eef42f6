//! A clock between two ticks: a line through the counter, in the page's own arithmetic.

use datapage::{Instant, Scale};

/// `at + (counter - cycle) * mult`, in nanoseconds shifted left by `shift`: what readers of the
/// page compute, so that the keeper knows exactly what they see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where the line was begun.
    pub cycle: u64,
    /// The clock there, in shifted nanoseconds.
    pub at: i128,
    /// Shifted nanoseconds a cycle.
    pub mult: u32,
    /// By how much nanoseconds are shifted.
    pub shift: u32,
}

/// Largest shift that [`Line::shift_for`] chooses.
///
/// Each bit more halves the error of the rate; at 31 it is below 0.6 parts in 10^9, two picoseconds a
/// tick. With 32 the reader's sum would leave 63 bits a second after the last update instead of
/// three, which makes reads slower under a keeper that is late.
const MAX_SHIFT: u32 = 31;

impl Line {
    /// The shift that makes the most of a `u32` for a rate of `nanos` a cycle.
    #[must_use]
    pub fn shift_for(nanos: f64) -> u32 {
        // A quarter of the range is left, so that no correction of the rate leaves a u32.
        let limit = f64::from(u32::MAX) * 0.75;
        (0..=MAX_SHIFT).rev().find(|&shift| scale(nanos, shift) < limit).unwrap_or(0)
    }

    /// The clock at `counter`, in shifted nanoseconds.
    #[must_use]
    pub fn at(&self, counter: u64) -> i128 {
        let cycles = i128::from(counter.wrapping_sub(self.cycle).cast_signed());
        self.at + cycles * i128::from(self.mult)
    }

    /// The line that meets this one at `meeting`, has `mult` from there on, and begins at `cycle`.
    #[must_use]
    pub fn bent(&self, cycle: u64, meeting: u64, mult: u32) -> Self {
        let ahead = i128::from(meeting.wrapping_sub(cycle).cast_signed());
        Self { cycle, at: self.at(meeting) - ahead * i128::from(mult), mult, shift: self.shift }
    }

    /// The nearest multiplier for a rate of `nanos` a cycle.
    #[must_use]
    pub fn mult_for(nanos: f64, shift: u32) -> u32 {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float that is converted saturates, and rates are positive"
        )]
        let mult = scale(nanos, shift).round() as u32;
        mult
    }

    /// Nanoseconds a cycle.
    #[must_use]
    pub fn rate(&self) -> f64 {
        f64::from(self.mult) / scale(1.0, self.shift)
    }

    /// The scale that the page needs.
    #[must_use]
    pub fn scale(&self) -> Scale {
        Scale { mask: u64::MAX, mult: self.mult, shift: self.shift }
    }

    /// The instant where the line begins, `offset` nanoseconds later, as a precise clock has it.
    #[must_use]
    pub fn precise(&self, offset: i128) -> Instant {
        let second = 1_000_000_000_i128 << self.shift;
        split(self.at + (offset << self.shift), second)
    }

    /// The same for a coarse clock.
    #[must_use]
    pub fn coarse(&self, offset: i128) -> Instant {
        split((self.at >> self.shift) + offset, 1_000_000_000)
    }
}

fn scale(nanos: f64, shift: u32) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "a power of two is exact")]
    let unit = (1_u64 << shift) as f64;
    nanos * unit
}

/// Whole seconds and what remains; an `i64` of seconds outlasts every clock of a host.
fn split(value: i128, second: i128) -> Instant {
    Instant {
        secs: i64::try_from(value.div_euclid(second)).unwrap_or(i64::MAX),
        nanos: u64::try_from(value.rem_euclid(second)).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bent_line_meets_the_old_one_where_it_was_told() {
        let line = Line { cycle: 1_000, at: 77 << 32, mult: 1_867_000_000, shift: 32 };
        for (cycle, meeting) in [(5_000, 5_000), (5_000, 51_000)] {
            for mult in [1_866_999_000, 1_867_001_000] {
                let bent = line.bent(cycle, meeting, mult);
                assert_eq!(bent.at(meeting), line.at(meeting));
                assert_eq!((bent.cycle, bent.mult), (cycle, mult));
            }
        }
        // A slower line that is met later is above until then: time never goes back.
        let slower = line.bent(5_000, 51_000, 1_866_999_000);
        assert!((5_000..=51_000).all(|counter| slower.at(counter) >= line.at(counter)));
    }

    #[test]
    fn the_shift_leaves_room_and_instants_are_split_towards_minus_infinity() {
        for (rate, shift) in [(0.4347, 31), (1.0, 31), (0.2, 31), (41.6, 26), (1e9, 1)] {
            assert_eq!(Line::shift_for(rate), shift, "{rate}");
        }
        let line = Line { cycle: 0, at: 3 << 31, mult: 1, shift: 32 };
        let instant = |secs, nanos| Instant { secs, nanos };
        assert_eq!(line.precise(0), instant(0, 3 << 31));
        assert_eq!(line.coarse(0), instant(0, 1));
        assert_eq!(line.coarse(-2), instant(-1, 999_999_999));
        assert_eq!(line.precise(-2), instant(-1, (1_000_000_000 << 32) - (1 << 31)));
        // A counter read on a CPU that is a little behind.
        assert_eq!(line.at(u64::MAX), (3 << 31) - 1);
    }
}
