//! A counter as a source of time: its width, its scale, and how programs may read it.

use datapage::cycles::{MAX_SHIFT, QUICK_SHIFT};
use datapage::{ClockMode, NANOS_PER_SEC, Scale};

use crate::error::Error;

/// Slowest counter, in hertz: one whose cycle lasts a second.
pub const MIN_COUNTER_HZ: u64 = 1;
/// Fastest counter, in hertz: beyond it a step of the multiplier is coarser than NTP's limit.
pub const MAX_COUNTER_HZ: u64 = 1_000_000_000_000;

/// How long the page may go without an update until a clock's sum leaves 64 bits, in seconds: Linux's
/// choice, which gives its scales. Readers are quick for half of it, with 63 bits, and exact for ever.
///
/// Longer ranges cost precision: each doubling takes a bit of the shift.
pub const DEFAULT_RANGE_SECS: u32 = 600;

/// Least multiplier: with less, a step of it is coarser than 0.1 %.
pub const MIN_MULT: u32 = 1024;
/// Greatest multiplier: moved up by 11 %, it is the last that fits in 32 bits.
pub const MAX_MULT: u32 = 3_869_339_906;
const _: () = assert!(
    MAX_MULT.checked_add(max_adjustment(MAX_MULT)).is_some()
        && MAX_MULT.wrapping_add(1).checked_add(max_adjustment(MAX_MULT.wrapping_add(1))).is_none()
);

/// How far NTP may move the multiplier: 11 %, since a tick length of 10 % is legal and 500 ppm of
/// frequency, 500 ppm of slew and 5000 ppm of phase come on top.
pub(crate) const fn max_adjustment(mult: u32) -> u32 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::arithmetic_side_effects,
        reason = "11 % of a u32, in 64 bits"
    )]
    let part = (mult as u64 * 11 / 100) as u32;
    part
}

/// A counter, as a timekeeper uses it.
///
/// # Invariants
/// The mask is 2^n - 1 with n from 8 to 64; the shift is at most 34; the multiplier is from
/// [`MIN_MULT`] to [`MAX_MULT`].
#[doc(alias = "clocksource")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocksource {
    name: &'static str,
    hz: u64,
    mask: u64,
    mult: u32,
    shift: u32,
    mode: ClockMode,
    rating: u32,
    nonstop: bool,
}

impl Clocksource {
    /// A counter of `hz` hertz and the width of `mask`, read by programs as `mode` says
    /// ([`ClockMode::NONE`]: not at all), with the best scale for [`DEFAULT_RANGE_SECS`].
    ///
    /// # Errors
    /// [`Error::CounterRate`] or [`Error::Mask`].
    pub fn new(name: &'static str, hz: u64, mask: u64, mode: ClockMode) -> Result<Self, Error> {
        if mask.count_ones() < 8 || mask & mask.wrapping_add(1) != 0 {
            return Err(Error::Mask { found: mask });
        }
        let (mult, shift) = scale_for(hz, mask, DEFAULT_RANGE_SECS)?;
        Ok(Self { name, hz, mask, mult, shift, mode, rating: 1, nonstop: false })
    }

    /// With the best scale for `range_secs` between two updates, as [`DEFAULT_RANGE_SECS`].
    ///
    /// # Errors
    /// [`Error::CounterRate`] if no scale has that range.
    pub fn with_range(mut self, range_secs: u32) -> Result<Self, Error> {
        (self.mult, self.shift) = scale_for(self.hz, self.mask, range_secs)?;
        Ok(self)
    }

    /// With this scale: `ns = cycles * mult / 2^shift`, for a counter that was calibrated elsewhere.
    ///
    /// # Errors
    /// [`Error::Scale`].
    pub const fn with_scale(mut self, mult: u32, shift: u32) -> Result<Self, Error> {
        if shift > MAX_SHIFT || mult < MIN_MULT || mult > MAX_MULT {
            return Err(Error::Scale { mult, shift });
        }
        self.mult = mult;
        self.shift = shift;
        Ok(self)
    }

    /// With this rating: among several, the highest is taken (Linux: 1 to 99 unfit except as a
    /// last resort, 300 good, 400 perfect; 0 is [unstable](Self::unstable)).
    #[must_use]
    pub const fn with_rating(mut self, rating: u32) -> Self {
        self.rating = rating;
        self
    }

    /// A counter that goes on counting while the machine is suspended, so that it can say for how
    /// long.
    #[doc(alias = "CLOCK_SOURCE_SUSPEND_NONSTOP")]
    #[must_use]
    pub const fn nonstop(mut self) -> Self {
        self.nonstop = true;
        self
    }

    /// Unfit: whatever else there is, is better.
    #[doc(alias = "clocksource_mark_unstable")]
    #[must_use]
    pub const fn unstable(mut self) -> Self {
        self.rating = 0;
        self
    }

    /// The longest time between two reads after which the second one still says how long it was, in
    /// nanoseconds: half of the range, less an eighth of that.
    #[must_use]
    pub fn max_idle_ns(&self) -> u64 {
        let half = self.mask >> 1;
        let cycles = half.saturating_sub(half >> 3);
        // Below 2^63 * 10^9; the rate is not 0.
        let nanos = u128::from(cycles)
            .wrapping_mul(u128::from(NANOS_PER_SEC))
            .checked_div(u128::from(self.hz))
            .unwrap_or(0);
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }

    /// What it is called.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its rate in hertz.
    #[must_use]
    pub const fn hz(&self) -> u64 {
        self.hz
    }

    /// Its width, as a mask.
    #[must_use]
    pub const fn mask(&self) -> u64 {
        self.mask
    }

    /// Its unsteered scale, the one of MONOTONIC_RAW.
    #[must_use]
    pub const fn scale(&self) -> Scale {
        Scale { mask: self.mask, mult: self.mult, shift: self.shift }
    }

    /// How programs read it.
    #[must_use]
    pub const fn mode(&self) -> ClockMode {
        self.mode
    }

    /// Its rating.
    #[must_use]
    pub const fn rating(&self) -> u32 {
        self.rating
    }

    /// Whether it goes on counting while the machine is suspended.
    #[must_use]
    pub const fn is_nonstop(&self) -> bool {
        self.nonstop
    }
}

/// The largest shift, with its multiplier, for which `range_secs` (or, for a narrow counter, its
/// whole range) of a clock that NTP has sped up by 11 %, on top of a base of almost a second, fit
/// in 64 bits.
#[doc(alias = "clocks_calc_mult_shift")]
fn scale_for(hz: u64, mask: u64, range_secs: u32) -> Result<(u32, u32), Error> {
    let error = Error::CounterRate { found: hz };
    if !(MIN_COUNTER_HZ..=MAX_COUNTER_HZ).contains(&hz) {
        return Err(error);
    }
    // At most 2^32 * 10^12, below 2^72.
    let cycles = (u128::from(range_secs).wrapping_mul(u128::from(hz))).min(u128::from(mask));
    for shift in (0..=QUICK_SHIFT).rev() {
        let second = u128::from(NANOS_PER_SEC) << shift;
        // Rounded to the nearest; below 2^65, and `hz` is not 0.
        let Some(mult) = (second.wrapping_add(u128::from(hz >> 1))).checked_div(u128::from(hz))
        else {
            continue;
        };
        let Ok(mult) = u32::try_from(mult) else {
            continue;
        };
        // Saturated only above the greatest multiplier.
        let fastest = mult.saturating_add(max_adjustment(mult));
        // Below 2^72 * 2^32 + 2^64.
        let product = cycles.wrapping_mul(u128::from(fastest)).wrapping_add(second);
        if (MIN_MULT..=MAX_MULT).contains(&mult) && product <= u128::from(u64::MAX) {
            return Ok((mult, shift));
        }
    }
    Err(error)
}
