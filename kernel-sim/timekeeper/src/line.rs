//! A clock's exact position: seconds, and nanoseconds with the bits below them.
//!
//! The bits below the nanosecond are never dropped, or each tick would lose half a nanosecond on
//! average. They are counted in 2^-shift ns, the unit of the page, so what is kept here is what
//! the page says, and a reader's sum continues it to the last bit.

use datapage::{Instant, NANOS_PER_SEC, Time};

/// A position, in the unit of a scale with the `shift` that each call is given.
///
/// # Invariants
/// `shifted` is below 10^9 << shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) secs: i64,
    pub(crate) shifted: u64,
}

impl Line {
    /// At a whole number of nanoseconds.
    pub(crate) fn at(time: Time, shift: u32) -> Self {
        Self { secs: time.secs, shifted: u64::from(time.nanos) << shift }
    }

    /// Moved forward by `by` units of 2^-shift ns.
    ///
    /// Seconds beyond an `i64` stay at its end: 292 thousand million years from now a clock stands
    /// still instead of a kernel's interrupt panicking.
    #[must_use]
    pub(crate) fn plus(self, by: u128, shift: u32) -> Self {
        let second = u64::from(NANOS_PER_SEC) << shift;
        let total = by.saturating_add(u128::from(self.shifted));
        if let Ok(shifted) = u64::try_from(total)
            && shifted < second
        {
            return Self { shifted, ..self };
        }
        let (carried, shifted) = divide(total, second);
        Self { secs: self.secs.saturating_add(i64::try_from(carried).unwrap_or(i64::MAX)), shifted }
    }

    /// Moved by a whole number of nanoseconds in either direction.
    #[must_use]
    pub(crate) fn offset(self, by: Time, shift: u32) -> Self {
        Self { secs: self.secs.saturating_add(by.secs), ..self }
            .plus(u128::from(by.nanos) << shift, shift)
    }

    /// Set to a whole number of nanoseconds, keeping the bits below: clocks that are whole
    /// nanoseconds apart stay so.
    #[must_use]
    pub(crate) fn moved_to(self, time: Time, shift: u32) -> Self {
        Self { secs: time.secs, shifted: (u64::from(time.nanos) << shift) | self.fraction(shift) }
    }

    /// What a clock shows here: whole nanoseconds, rounded down.
    pub(crate) fn time(self, shift: u32) -> Time {
        #[allow(clippy::cast_possible_truncation, reason = "below 10^9 by the invariant")]
        let nanos = (self.shifted >> shift) as u32;
        Time { secs: self.secs, nanos }
    }

    /// As a page has it.
    pub(crate) const fn instant(self) -> Instant {
        Instant { secs: self.secs, nanos: self.shifted }
    }

    fn fraction(self, shift: u32) -> u64 {
        self.shifted & (1_u64 << shift).wrapping_sub(1)
    }
}

/// Quotient and remainder by a second, which is not 0; written so that there is no path on which a
/// division could panic.
fn divide(total: u128, second: u64) -> (u128, u64) {
    let quotient = total.checked_div(u128::from(second)).unwrap_or(0);
    let rest = total.wrapping_sub(quotient.wrapping_mul(u128::from(second)));
    #[allow(clippy::cast_possible_truncation, reason = "a remainder is below its divisor")]
    let rest = rest as u64;
    (quotient, rest)
}
