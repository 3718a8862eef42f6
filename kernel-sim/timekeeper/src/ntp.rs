//! NTP's side of a clock: how long a second shall be.
//!
//! Three things add up to a rate. The *steady* part, tick length and frequency, holds until it is
//! set again. A *phase* correction (`ADJ_OFFSET`) and a *slew* (`adjtime`) have an amount that is
//! to be gained or lost and then they are over: each is a remainder and a rate that is chosen anew
//! with every second of the wall clock.
//!
//! The remainder counts what the clock really gained, not what it should have gained. A tick that
//! comes late finds that the clock went on at its old rate for longer than was meant; the
//! remainder has then changed its sign, and the next seconds take the excess back. So the amounts
//! are met exactly whenever the ticks come, and no work is ever due for seconds gone by.
//!
//! The loop is the phase-locked one of RFC 1589, with or without learning the frequency. There is
//! no frequency-locked loop and no pulse-per-second input: a daemon with a loop of its own sets the
//! frequency.

use crate::error::Error;

/// Largest frequency correction: 500 ppm, in 2^-16 ppm (`timex.freq`).
pub const MAX_FREQUENCY: i64 = 500 << 16;
/// Shortest tick, in microseconds for each hundredth of a second (`timex.tick`).
pub const MIN_TICK_USEC: u32 = 9_000;
/// Longest tick, in the same unit.
pub const MAX_TICK_USEC: u32 = 11_000;
/// Tick length of a clock that is left alone.
pub const NOMINAL_TICK_USEC: u32 = 10_000;
/// Largest phase correction, in nanoseconds (`ADJ_OFFSET`).
pub const MAX_PHASE_NS: i64 = 500_000_000;
/// Largest time constant of the phase-locked loop.
pub const MAX_TIME_CONSTANT: u32 = 10;
/// Longest slew, in nanoseconds: what `adjtime` of the C library takes on 32-bit machines. It lasts
/// 50 days.
pub const MAX_ADJUST_NS: i64 = 2_147_000_000_000;

/// A slew gains or loses this much a second: 500 ppm.
const ADJUST_NS_PER_SEC: i64 = 500_000;
/// A phase correction gains or loses at most this much a second: 0.5 %.
///
/// With a time constant of 0 the loop would take a quarter of half a second at once, which together
/// with a tick length of 10 % is more than a clock may be bent.
const PHASE_NS_PER_SEC: i64 = 5_000_000;

/// All limits together, and the unit that steering adds to a multiplier of at least 1024, make
/// 10.7 %, within the 11 % for which a [`Clocksource`](crate::Clocksource) leaves room.
const _: () = {
    let tick_ppm = (MAX_TICK_USEC.abs_diff(NOMINAL_TICK_USEC)) as i64 * 100;
    let unit_ppm = 1_000_000 / crate::clocksource::MIN_MULT as i64;
    let corrections_ppm = (ADJUST_NS_PER_SEC + PHASE_NS_PER_SEC) / 1000;
    assert!(tick_ppm + (MAX_FREQUENCY >> 16) + corrections_ppm + unit_ppm == 106_976);
    assert!(MAX_TICK_USEC - NOMINAL_TICK_USEC == NOMINAL_TICK_USEC - MIN_TICK_USEC);
};

/// The loop's gain at time constant 0: a quarter of the remainder each second.
const SHIFT_PLL: u32 = 2;

/// Bits below the nanosecond in a rate (nanoseconds a second).
const RATE_BITS: u32 = 32;
/// Bits below the nanosecond in a remainder, and in the clock's error: the largest shift of a page
/// and the 32 bits below a multiplier, so that every conversion is exact.
pub(crate) const FINE_BITS: u32 = 66;

/// How the frequency follows a phase correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loop {
    /// The frequency stays as it is (`STA_FREQHOLD`).
    Phase,
    /// The frequency learns from each correction (`STA_PLL`).
    PhaseAndFrequency,
}

/// What NTP currently does to a clock.
#[doc(alias = "timex")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NtpState {
    /// Frequency correction in 2^-16 ppm.
    pub frequency: i64,
    /// Microseconds for each hundredth of a second.
    pub tick_usec: u32,
    /// Phase correction still to be made, in nanoseconds.
    pub phase_ns: i64,
    /// The phase-locked loop's time constant.
    pub time_constant: u32,
    /// Slew still to be made, in nanoseconds.
    pub adjust_ns: i64,
}

/// An amount still to be gained, and the rate at which it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Remainder {
    /// In 2^-66 ns.
    left: i128,
    /// In 2^-32 ns a second.
    rate: i64,
}

impl Remainder {
    fn of_nanos(nanos: i64) -> Self {
        Self { left: i128::from(nanos) << FINE_BITS, rate: 0 }
    }

    /// The amount in nanoseconds, towards zero; below 2^61, since an `i128` is below 2^127.
    fn nanos(self) -> i64 {
        let nanos = self.left.checked_div(1 << FINE_BITS).unwrap_or(0);
        i64::try_from(nanos).unwrap_or(0)
    }

    /// Chooses the rate for a second: the amount divided by 2^`gain`, at most `limit` nanoseconds.
    fn choose_rate(&mut self, gain: u32, limit: i64) {
        let limit = i128::from(limit) << RATE_BITS;
        // Towards zero: the last fraction of a rate unit is left, instead of being chased forever.
        let divisor = 1_i128 << FINE_BITS.saturating_sub(RATE_BITS).saturating_add(gain);
        let rate = self.left.checked_div(divisor).unwrap_or(0).clamp(limit.wrapping_neg(), limit);
        self.rate = i64::try_from(rate).unwrap_or(0);
    }

    fn gained(&mut self, amount: i128) {
        self.left = self.left.saturating_sub(amount);
    }
}

/// The rates, as multipliers: in 2^-32 of a multiplier's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rates {
    steady: i128,
    phase: i128,
    adjust: i128,
}

impl Rates {
    /// What the multiplier would have to be.
    pub(crate) fn wanted(self) -> i128 {
        // Each is below 2^65.
        self.steady.wrapping_add(self.phase).wrapping_add(self.adjust)
    }
}

/// State of the discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ntp {
    /// In 2^-32 ns a second.
    frequency: i64,
    tick_usec: u32,
    phase: Remainder,
    adjust: Remainder,
    time_constant: u32,
    /// The wall clock's second of the last phase correction.
    reference_secs: Option<i64>,
}

impl Ntp {
    pub(crate) const fn new() -> Self {
        const NOTHING: Remainder = Remainder { left: 0, rate: 0 };
        Self {
            frequency: 0,
            tick_usec: NOMINAL_TICK_USEC,
            phase: NOTHING,
            adjust: NOTHING,
            time_constant: SHIFT_PLL,
            reference_secs: None,
        }
    }

    pub(crate) fn state(&self) -> NtpState {
        NtpState {
            frequency: frequency_of_rate(self.frequency),
            tick_usec: self.tick_usec,
            phase_ns: self.phase.nanos(),
            time_constant: self.time_constant,
            adjust_ns: self.adjust.nanos(),
        }
    }

    /// The rates for a counter whose unsteered multiplier is `mult`.
    pub(crate) fn rates(&self, mult: u32) -> Rates {
        // At most 1.1 * 10^9 << 32 and 500000 << 32: below 2^63.
        let nominal = i64::from(self.tick_usec).wrapping_mul(100_000) << RATE_BITS;
        let steady = nominal.wrapping_add(self.frequency);
        let of = |rate: i64| {
            // Below 2^32 * 2^63; rounded down, for a drift of at most 2^-32 of a unit a cycle.
            i128::from(mult)
                .wrapping_mul(i128::from(rate))
                .div_euclid(i128::from(datapage::NANOS_PER_SEC))
        };
        Rates { steady: of(steady), phase: of(self.phase.rate), adjust: of(self.adjust.rate) }
    }

    /// `cycles` went by at `rates` on a clock of this `shift`.
    pub(crate) fn elapsed(&mut self, cycles: u64, rates: Rates, shift: u32) {
        for (remainder, rate) in [(&mut self.phase, rates.phase), (&mut self.adjust, rates.adjust)]
        {
            if rate != 0 {
                remainder.gained(fine(cycles, rate, shift));
            }
        }
    }

    /// A second of the wall clock has begun.
    #[doc(alias = "second_overflow")]
    pub(crate) fn second(&mut self) {
        let gain = SHIFT_PLL.saturating_add(self.time_constant);
        self.phase.choose_rate(gain, PHASE_NS_PER_SEC);
        self.adjust.choose_rate(0, ADJUST_NS_PER_SEC);
    }

    /// The clock was set: corrections of what it was before are void.
    #[doc(alias = "ntp_clear")]
    pub(crate) fn clear(&mut self) {
        self.phase = Remainder::default();
        self.adjust = Remainder::default();
        self.reference_secs = None;
    }

    pub(crate) fn set_frequency(&mut self, frequency: i64) -> Result<(), Error> {
        if !(-MAX_FREQUENCY..=MAX_FREQUENCY).contains(&frequency) {
            return Err(Error::Frequency { found: frequency });
        }
        self.frequency = rate_of_frequency(frequency);
        Ok(())
    }

    pub(crate) fn set_tick_usec(&mut self, tick_usec: u32) -> Result<(), Error> {
        if !(MIN_TICK_USEC..=MAX_TICK_USEC).contains(&tick_usec) {
            return Err(Error::TickLength { found: tick_usec });
        }
        self.tick_usec = tick_usec;
        Ok(())
    }

    pub(crate) fn set_adjust(&mut self, nanos: i64) -> Result<(), Error> {
        if !(-MAX_ADJUST_NS..=MAX_ADJUST_NS).contains(&nanos) {
            return Err(Error::Adjust { found: nanos });
        }
        // The rate follows with the next second.
        self.adjust = Remainder::of_nanos(nanos);
        Ok(())
    }

    pub(crate) fn set_phase(
        &mut self,
        nanos: i64,
        time_constant: u32,
        kind: Loop,
        now_secs: i64,
    ) -> Result<(), Error> {
        if !(-MAX_PHASE_NS..=MAX_PHASE_NS).contains(&nanos) {
            return Err(Error::Phase { found: nanos });
        }
        if time_constant > MAX_TIME_CONSTANT {
            return Err(Error::TimeConstant { found: time_constant });
        }
        if kind == Loop::PhaseAndFrequency
            && let Some(reference) = self.reference_secs
        {
            self.learn(nanos, time_constant, now_secs.saturating_sub(reference));
        }
        self.reference_secs = Some(now_secs);
        self.time_constant = time_constant;
        self.phase = Remainder::of_nanos(nanos);
        Ok(())
    }

    /// The loop's frequency: an offset that was gathered over `secs` seconds, through a gain that
    /// falls with the square of the time constant (RFC 1589, appendix A).
    fn learn(&mut self, nanos: i64, time_constant: u32, secs: i64) {
        // A long pause says little of the frequency: it counts as twice the time constant.
        let longest = 1_i64 << SHIFT_PLL.saturating_add(1).saturating_add(time_constant);
        let secs = secs.clamp(0, longest);
        let gain = SHIFT_PLL.saturating_add(2).saturating_add(time_constant) << 1;
        // Below 2^29 * 2^13 << 32; the shift right is the division by the gain.
        let learned = (i128::from(nanos).wrapping_mul(i128::from(secs)) << RATE_BITS) >> gain;
        let limit = i128::from(rate_of_frequency(MAX_FREQUENCY));
        let frequency =
            i128::from(self.frequency).saturating_add(learned).clamp(limit.wrapping_neg(), limit);
        self.frequency = i64::try_from(frequency).unwrap_or(self.frequency);
    }
}

/// `cycles` of a rate in 2^-32 multiplier units, in 2^-66 ns.
pub(crate) fn fine(cycles: u64, rate: i128, shift: u32) -> i128 {
    // A unit of the multiplier is 2^-shift ns, its 2^-32 part 2^-(shift + 32): 34 - shift more.
    let scale = 1_i128 << datapage::cycles::MAX_SHIFT.saturating_sub(shift);
    i128::from(cycles).saturating_mul(rate).saturating_mul(scale)
}

/// From 2^-16 ppm to 2^-32 ns a second: a ppm is 1000 ns a second.
const fn rate_of_frequency(frequency: i64) -> i64 {
    // At most 500 * 2^16 * 1000 * 2^16, below 2^51.
    frequency.wrapping_mul(1000 << 16)
}

/// Rounded down; what was set reads back exactly, what was learned may have a fraction.
const fn frequency_of_rate(rate: i64) -> i64 {
    rate.div_euclid(1000 << 16)
}
