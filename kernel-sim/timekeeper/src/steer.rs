//! Steering: which multiplier the page gets, and where the old rate and the new one meet.
//!
//! # The multiplier
//!
//! NTP wants a rate of `w` units of 2^-32 of a multiplier; a page holds whole multipliers. So the
//! timekeeper keeps an exact account of how far the clock is behind what NTP wants, and the clock
//! runs at one of the neighbours of `w`: behind, at the one above; ahead, at the one below. Where
//! `w` is a whole number there is none below, and a clock that got ahead would stay so; one that is
//! ahead by more than a threshold therefore takes the next one down.
//!
//! The distance stays below what two units make over the longest time without a tick. For a 2.4
//! GHz counter a unit is 0.14 ppm, 0.6 ns in a 4 ms tick. A stronger correction would bring a clock
//! back sooner after a long gap, but it would also go on through the next gap that nobody foresaw,
//! and be wrong by more in the other direction.
//!
//! # The meeting point
//!
//! An update is computed for the counter value `now`, but readers go on with the old page until
//! the update is in it, a little later, at `p`. Let `m` be the old multiplier, `n` the new one, and
//! let the two lines meet at the counter value `q`. Somebody sees the old line at any `c` up to
//! `p`, and after that somebody sees the new line, at `p` or later. Time does not go back if at `p`,
//! and from there on, the new line is not below what the old one was at `p`; since both rise, it is
//! enough that it is not below at `p`.
//!
//! - `n > m`: the new line is above the old one to the right of `q`, so `q = now` will do, whatever
//!   `p` is.
//! - `n < m`: the new line is above the old one to the left of `q`, so `q` has to be at `p` or
//!   later, and `p` is not known yet. `q = now + delay`, where `delay` is what the kernel promises
//!   for `p - now` ([`Config::publication_delay_ns`](crate::Config)).
//!
//! In the second case the clock moves forward by `delay * (m - n)` when the update is published:
//! 0.007 ns for one unit of a 2.4 GHz counter and 50 microseconds, 25 ns for the whole 500 ppm. The
//! account has it, so the clock gives it back in the following ticks, by steering.
//!
//! All of it is in whole units of 2^-shift ns, and rounding down is monotonic: if the line does not
//! go back, neither does what the reader makes of it.

use crate::ntp::{FINE_BITS, fine};
use crate::timekeeper::{Timekeeper, product};

impl Timekeeper {
    /// Counts what `cycles` at `mult` fall short of what NTP wants.
    pub(crate) fn account(&mut self, cycles: u64, mult: u32) {
        let missing = self.rates.wanted().wrapping_sub(i128::from(mult) << 32);
        self.error = self.error.saturating_add(fine(cycles, missing, self.shift()));
    }

    /// Chooses the multiplier for what follows, and makes the lines meet.
    pub(crate) fn steer(&mut self) {
        let mult = self.choose_mult();
        if let Some(slower) = self.mult.checked_sub(mult)
            && slower != 0
        {
            let ahead = product(self.delay_cycles, slower);
            // Below 2^96, and exact: the account's unit is the finest that a scale can have.
            let gain = i128::try_from(ahead)
                .unwrap_or(i128::MAX)
                .saturating_mul(1 << FINE_BITS.wrapping_sub(self.shift()));
            self.error = self.error.saturating_sub(gain);
            self.mult = mult;
            self.advance_xtime(ahead);
        }
        self.mult = mult;
    }

    pub(crate) fn choose_mult(&self) -> u32 {
        let wanted = self.rates.wanted();
        let below = wanted >> 32;
        let step = if self.error > 0 {
            1
        } else if self.error < self.threshold().wrapping_neg() {
            -1
        } else {
            0
        };
        // Within 11 % of the nominal multiplier, by the limits of what NTP can ask for, so that it
        // fits: the clocksource has seen to that.
        u32::try_from(below.wrapping_add(step)).unwrap_or(self.clocksource.scale().mult)
    }

    /// How far the clock may be ahead before it is held back: a nanosecond, or what two units make
    /// in a tick if that is more.
    fn threshold(&self) -> i128 {
        let tick_cycles = self.clocksource.hz().checked_div(u64::from(self.config.hz)).unwrap_or(1);
        fine(tick_cycles, 2 << 32, self.shift()).max(1 << FINE_BITS)
    }

    pub(crate) const fn shift(&self) -> u32 {
        self.clocksource.scale().shift
    }
}
