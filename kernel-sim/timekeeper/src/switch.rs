//! Going over to another counter.
//!
//! Everything that the old counter is due is counted first, then the lines go on in the new one's
//! unit. Where the new unit is larger they are rounded up, by less than one unit: a clock may not
//! go back. The account of [`steer`](crate::steer) has the difference and takes it back.
//!
//! Readers go on with the old page until the new one is published. What they may have seen by then
//! is ahead of what the new counter shows, for two reasons: its rate may be the lower one, by the
//! nominal rates and the present multipliers, and each of the two values that the kernel read
//! together is up to a cycle old. The clocks are moved forward by the sum, as
//! [`steer`](crate::steer) does within one counter. For fast counters that is a nanosecond or two.
//!
//! A kernel that stops all other CPUs for the switch, as Linux does, has nobody to deceive. It sets
//! the publication delay to 0 for that time, and the clocks stay exactly where they are. It also
//! has to if the true rates of the counters are not their nominal ones.

use datapage::NANOS_PER_SEC;

use crate::clocksource::Clocksource;
use crate::error::Error;
use crate::line::Line;
use crate::ntp::FINE_BITS;
use crate::timekeeper::{Timekeeper, delay_cycles};

impl Timekeeper {
    /// Goes over to `clocksource`, which reads `new_cycles` at the moment when the old one reads
    /// `now_cycles`.
    ///
    /// Frequency, corrections and a leap second that is due go on: they are properties of the
    /// machine's time, not of a counter.
    ///
    /// # Errors
    /// [`Error::Suspended`], [`Error::Withdrawn`].
    #[doc(alias = "change_clocksource")]
    pub fn set_clocksource(
        &mut self,
        now_cycles: u64,
        clocksource: Clocksource,
        new_cycles: u64,
    ) -> Result<(), Error> {
        self.running()?;
        self.forward(now_cycles);
        let old = Pace::of(&self.clocksource, self.mult);
        let old_raw = Pace::of(&self.clocksource, self.clocksource.scale().mult);
        let from = self.shift();

        self.clocksource = clocksource;
        self.cycle_last = new_cycles & clocksource.mask();
        self.delay_cycles = delay_cycles(&clocksource, self.config);
        self.rates = self.ntp.rates(clocksource.scale().mult);
        self.mult = self.choose_mult();

        let new_raw = Pace::of(&clocksource, clocksource.scale().mult);
        let (raw, units, _) = self.carry_over(self.raw, from, old_raw.gain_over(new_raw, self));
        self.raw = raw.plus(units, self.shift());

        let new = Pace::of(&clocksource, self.mult);
        let (xtime, units, gained) = self.carry_over(self.xtime, from, old.gain_over(new, self));
        self.xtime = xtime;
        self.error = self.error.saturating_sub(gained);
        self.advance_xtime(units);
        Ok(())
    }

    /// A line of the scale `from`, `ahead` later: its second, the units of the present scale after
    /// that, rounded up, and what it gained altogether.
    fn carry_over(&self, line: Line, from: u32, ahead: u128) -> (Line, u128, i128) {
        let before = u128::from(line.shifted) << FINE_BITS.wrapping_sub(from);
        let unit = FINE_BITS.wrapping_sub(self.shift());
        let almost = (1_u128 << unit).wrapping_sub(1);
        let units = before.saturating_add(ahead).saturating_add(almost) >> unit;
        let gained = (units << unit).wrapping_sub(before).cast_signed();
        let second = Line { secs: line.secs, shifted: 0 };
        (second, units, gained)
    }
}

/// How fast a clock goes by a counter of exactly its nominal rate.
#[derive(Clone, Copy)]
struct Pace {
    /// In 2^-66 ns a second.
    second: u128,
    /// In 2^-66 ns a cycle.
    cycle: u128,
}

impl Pace {
    fn of(clocksource: &Clocksource, mult: u32) -> Self {
        // At most 2^32 << 66.
        let cycle = u128::from(mult) << FINE_BITS.wrapping_sub(clocksource.scale().shift);
        Self {
            // About 10^9 << 66, for a scale that has to do with the rate.
            second: u128::from(clocksource.hz()).saturating_mul(cycle),
            cycle,
        }
    }

    /// How far a reader of this pace may be ahead of one of the other by the publication delay.
    fn gain_over(self, other: Self, timekeeper: &Timekeeper) -> u128 {
        let delay_ns = u128::from(timekeeper.config.publication_delay_ns);
        if delay_ns == 0 {
            return 0;
        }
        // A second at most: more than that comes of scales that have nothing to do with the rate.
        self.second
            .saturating_sub(other.second)
            .min(u128::from(NANOS_PER_SEC) << FINE_BITS)
            .saturating_mul(delay_ns)
            .div_ceil(u128::from(NANOS_PER_SEC))
            .saturating_add(self.cycle)
            .saturating_add(other.cycle)
    }
}
