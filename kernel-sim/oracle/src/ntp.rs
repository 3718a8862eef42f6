//! How long a second is to be, by the rules that an NTP daemon is promised.
//!
//! A rate is in 2^-32 ns a second, as `adjtimex` counts; an amount is in [`Fine`].

use crate::fine::{FINE_BITS, Fine};

/// A second at its nominal length, as a rate.
const NOMINAL: i128 = 1_000_000_000 << 32;

/// What NTP was told, and what is left to do of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ntp {
    /// In 2^-16 ppm.
    pub(crate) frequency: i64,
    /// Microseconds for each hundredth of a second.
    pub(crate) tick_usec: u32,
    phase: Correction,
    slew: Correction,
    time_constant: u32,
}

/// An amount to be gained, and the rate at which it is until the next second begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Correction {
    left: Fine,
    rate: i128,
}

impl Correction {
    fn of(nanos: i64) -> Self {
        Self { left: i128::from(nanos) << FINE_BITS, rate: 0 }
    }

    /// The rate for the second that begins: what is left over 2^`gain` seconds, within `limit` ns.
    fn begin_second(&mut self, gain: u32, limit: i128) {
        let limit = limit << 32;
        self.rate = (self.left / (1 << (FINE_BITS - 32 + gain))).clamp(-limit, limit);
    }
}

impl Ntp {
    pub(crate) fn new() -> Self {
        Self {
            frequency: 0,
            tick_usec: 10_000,
            phase: Correction::default(),
            slew: Correction::default(),
            time_constant: 2,
        }
    }

    /// Nanoseconds of clock for each second of an unsteered one, as rates: the lasting one, and
    /// those of the two corrections.
    pub(crate) fn rates(&self) -> [i128; 3] {
        let tick = NOMINAL * i128::from(self.tick_usec) / 10_000;
        // A part in a million is 1000 ns a second, its 65536th part 1000 * 2^16 units.
        let frequency = i128::from(self.frequency) * (1000 << 16);
        [tick + frequency, self.phase.rate, self.slew.rate]
    }

    /// `cycles` of a counter with this scale went by: so much of the corrections is made.
    pub(crate) fn pass(&mut self, cycles: u64, mult: u32, shift: u32) {
        for correction in [&mut self.phase, &mut self.slew] {
            if correction.rate != 0 {
                let made = i128::from(cycles) * in_multiplier(mult, correction.rate);
                correction.left -= made << (FINE_BITS - 32 - shift);
            }
        }
    }

    /// A second of the wall clock begins.
    pub(crate) fn begin_second(&mut self) {
        self.phase.begin_second(2 + self.time_constant, 5_000_000);
        self.slew.begin_second(0, 500_000);
    }

    pub(crate) fn set_phase(&mut self, nanos: i64, time_constant: u32) {
        self.phase = Correction::of(nanos);
        self.time_constant = time_constant;
    }

    pub(crate) fn set_slew(&mut self, nanos: i64) {
        self.slew = Correction::of(nanos);
    }

    /// The clock was set: corrections of what it was are void.
    pub(crate) fn clear(&mut self) {
        self.phase = Correction::default();
        self.slew = Correction::default();
    }
}

/// A rate in 2^-32 of a multiplier's unit, rounded down.
pub(crate) fn in_multiplier(mult: u32, rate: i128) -> i128 {
    (i128::from(mult) * rate).div_euclid(1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slew_gains_what_it_was_told_at_500_ppm() {
        let mut ntp = Ntp::new();
        ntp.set_slew(1_250_000);
        assert_eq!(ntp.rates(), [NOMINAL, 0, 0], "it begins with the next second");
        let mut gained = 0;
        for _ in 0..4 {
            ntp.begin_second();
            gained += ntp.rates()[2];
            ntp.pass(1_000_000_000, 1 << 20, 20);
        }
        // Each rate is rounded down to a part of the multiplier, and what that loses is made up.
        assert!((gained - (1_250_000 << 32)).abs() < 1 << 22);
        assert!(ntp.slew.left.abs() < 1 << (FINE_BITS - 10));
    }

    #[test]
    fn frequency_and_tick_length_are_in_their_units() {
        let mut ntp = Ntp::new();
        ntp.frequency = 1 << 16;
        assert_eq!(ntp.rates()[0] - NOMINAL, 1000 << 32);
        ntp.frequency = 0;
        ntp.tick_usec = 11_000;
        assert_eq!(ntp.rates()[0], 1_100_000_000 << 32);
    }
}
