//! Going over to another counter.
//!
//! Everything that the old counter is due is counted first, then the lines go on in the new one's
//! unit. Where the new unit is larger they are rounded up, by less than one unit: a clock may not
//! go back. The account of [`steer`](crate::steer) has the difference and takes it back.
//!
//! Two counters do not run at exactly the same rate, so readers that go on with the old page while
//! the new one is computed may see a step of the delay times the difference. Linux stops all other
//! CPUs for the switch, for this and for the counter's own sake; so should whoever calls this.

use crate::clocksource::Clocksource;
use crate::error::Error;
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
        let (from, to) = (self.shift(), clocksource.scale().shift);
        let before = self.xtime.fine(from);
        self.clocksource = clocksource;
        self.cycle_last = new_cycles & clocksource.mask();
        self.delay_cycles = delay_cycles(&clocksource, self.config);
        self.rates = self.ntp.rates(clocksource.scale().mult);
        self.raw = self.raw.rescaled(from, to);
        let units = self.xtime.units(from, to);
        let gained = crate::line::fine(units, to).wrapping_sub(before);
        self.error = self.error.saturating_sub(gained);
        self.xtime.shifted = 0;
        self.advance_xtime(units);
        self.mult = self.choose_mult();
        Ok(())
    }
}
