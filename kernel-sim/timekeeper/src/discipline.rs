//! What an NTP daemon and the kernel's timers change about the clocks' rate and resolution.

use datapage::NANOS_PER_SEC;

use crate::error::Error;
use crate::ntp::{Loop, Ntp};
use crate::timekeeper::{Config, Timekeeper, check, delay_cycles};

impl Timekeeper {
    /// Sets the frequency correction, in 2^-16 ppm (`timex.freq`).
    ///
    /// # Errors
    /// [`Error::Frequency`], [`Error::Suspended`], [`Error::Withdrawn`].
    #[doc(alias = "ADJ_FREQUENCY")]
    pub fn set_frequency(&mut self, now_cycles: u64, frequency: i64) -> Result<(), Error> {
        self.discipline(now_cycles, |ntp, _| ntp.set_frequency(frequency))
    }

    /// Sets the tick length, in microseconds for each hundredth of a second (`timex.tick`).
    ///
    /// # Errors
    /// [`Error::TickLength`], [`Error::Suspended`], [`Error::Withdrawn`].
    #[doc(alias = "ADJ_TICK")]
    pub fn set_tick_length(&mut self, now_cycles: u64, tick_usec: u32) -> Result<(), Error> {
        self.discipline(now_cycles, |ntp, _| ntp.set_tick_usec(tick_usec))
    }

    /// Corrects the phase by `nanos`: a part of the rest each second, the smaller the higher the
    /// time constant.
    ///
    /// # Errors
    /// [`Error::Phase`], [`Error::TimeConstant`], [`Error::Suspended`], [`Error::Withdrawn`].
    #[doc(alias = "ADJ_OFFSET")]
    pub fn adjust_phase(
        &mut self,
        now_cycles: u64,
        nanos: i64,
        time_constant: u32,
        kind: Loop,
    ) -> Result<(), Error> {
        self.discipline(now_cycles, |ntp, secs| ntp.set_phase(nanos, time_constant, kind, secs))
    }

    /// Slews by `nanos`, at 500 ppm; a slew under way is replaced.
    ///
    /// # Errors
    /// [`Error::Adjust`], [`Error::Suspended`], [`Error::Withdrawn`].
    #[doc(alias = "adjtime")]
    #[doc(alias = "ADJ_OFFSET_SINGLESHOT")]
    pub fn slew(&mut self, now_cycles: u64, nanos: i64) -> Result<(), Error> {
        self.discipline(now_cycles, |ntp, _| ntp.set_adjust(nanos))
    }

    /// Sets the tick rate: the resolution of the coarse clocks.
    ///
    /// # Errors
    /// [`Error::TickRate`].
    pub fn set_tick_rate(&mut self, hz: u32) -> Result<(), Error> {
        self.configure(Config { hz, ..self.config })
    }

    /// Says whether timers now fire between ticks.
    pub const fn set_high_resolution(&mut self, high_resolution: bool) {
        self.config.high_resolution = high_resolution;
    }

    /// Sets how long a publication may take.
    ///
    /// # Errors
    /// [`Error::PublicationDelay`].
    pub fn set_publication_delay(&mut self, publication_delay_ns: u32) -> Result<(), Error> {
        self.configure(Config { publication_delay_ns, ..self.config })
    }

    /// A tick in nanoseconds, rounded to the nearest.
    #[doc(alias = "TICK_NSEC")]
    #[must_use]
    pub fn tick_ns(&self) -> u32 {
        // The rate is 1..=10^4, so neither the sum overflows nor the divisor is 0.
        NANOS_PER_SEC
            .wrapping_add(self.config.hz >> 1)
            .checked_div(self.config.hz)
            .unwrap_or(NANOS_PER_SEC)
    }

    /// Resolution of the precise clocks in nanoseconds.
    #[doc(alias = "hrtimer_resolution")]
    #[must_use]
    pub fn resolution_ns(&self) -> u32 {
        if self.config.high_resolution { 1 } else { self.tick_ns() }
    }

    fn configure(&mut self, config: Config) -> Result<(), Error> {
        check(config)?;
        self.config = config;
        self.delay_cycles = delay_cycles(&self.clocksource, config);
        Ok(())
    }

    /// Makes a change to the discipline that holds from `now_cycles` on. `change` gets REALTIME's
    /// seconds.
    fn discipline(
        &mut self,
        now_cycles: u64,
        change: impl FnOnce(&mut Ntp, i64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.running()?;
        let mut next = *self;
        next.forward(now_cycles);
        change(&mut next.ntp, next.xtime.secs)?;
        next.rates = next.ntp.rates(next.clocksource.scale().mult);
        next.steer();
        *self = next;
        Ok(())
    }
}
