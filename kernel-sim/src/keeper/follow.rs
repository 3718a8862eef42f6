//! Following one clock of the host with a line that never goes back.
//!
//! Two lines are kept. The *estimate* is where the host's clock is believed to be: a least-squares
//! fit of its phase and rate over the observations of the last ticks, restarted when they stop
//! agreeing with it (the host changed its rate). The *shown* line is what readers get. It cannot
//! simply be the estimate, because that moves back by fractions of a nanosecond as it is refined;
//! so at each tick the shown line is bent, continuously, towards where the estimate will be a
//! little later.

use crate::host::{Bounds, Pair};
use crate::keeper::line::Line;

/// A host's clock, observed at one counter value.
#[derive(Clone, Copy, Debug)]
struct Observation {
    /// The counter value.
    cycle: u64,
    /// The clock there, in shifted nanoseconds.
    at: i128,
}

/// A clock of the host, and the line that readers see in its place.
#[derive(Clone, Debug)]
pub struct Follower {
    shown: Line,
    /// Estimate of the host's clock at `estimate.cycle`.
    estimate: Observation,
    /// Estimated nanoseconds a cycle.
    rate: f64,
    /// Observations that the estimate rests on, at most [`MEMORY`].
    weight: u32,
    /// Consecutive observations that were off to the same side, negative below the estimate.
    disagreeing: i32,
}

/// Observations that an estimate rests on at most.
///
/// The longer, the finer the rate; the shorter, the sooner a small change of the host's rate is
/// followed. Two seconds of 250 ticks make the rate good to some parts in 10^10.
const MEMORY: u32 = 500;

/// An observation disagrees when it is further from the estimate than this. Observations repeat
/// within about a nanosecond.
const DISAGREEMENT_NS: f64 = 3.0;

/// So many disagreeing observations in a row are a new rate, not noise.
const DISAGREEING: i32 = 3;

/// From this distance on the host's clock has jumped, or stood still while the machine slept.
const STEP_NS: f64 = 1e6;

/// The shown line is bent so as to meet the estimate after this time. A keeper that gets no
/// processor for longer lets it overshoot: the shorter, the further.
const HORIZON_NS: f64 = 50e6;

/// The shown line's rate differs from the estimated one by no more than this, as in `adjtime(3)`.
const MAX_SLEW: f64 = 500e-6;

/// How much later than its cycle a bend to a lower rate meets the old line, in nanoseconds: the
/// time within which it has to be published.
const MARGIN_NS: f64 = 20e3;

/// A bend of the shown line, to be published before the counter reaches `deadline`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bend {
    /// The new line.
    pub line: Line,
    /// Published later, a lower rate would show readers a step back.
    pub deadline: u64,
}

impl Follower {
    /// Follows a clock from two series of observations, taken some time apart.
    ///
    /// `None` if the series exclude each other or the clock stood still.
    #[must_use]
    pub fn new(first: &[Pair], second: &[Pair]) -> Option<Self> {
        let rate = rough_rate(first, second)?;
        let shift = Line::shift_for(rate);
        let (first, second) = (observe(first, rate, shift)?, observe(second, rate, shift)?);
        let cycles = second.cycle.wrapping_sub(first.cycle);
        let rate = to_nanos(second.at - first.at, shift) / as_float(cycles);
        Some(Self {
            shown: Line {
                cycle: second.cycle,
                at: second.at,
                mult: Line::mult_for(rate, shift),
                shift,
            },
            estimate: second,
            rate,
            weight: 2,
            disagreeing: 0,
        })
    }

    /// Shows `line` from now on, which another keeper's readers already see.
    pub fn take_over(&mut self, line: Line) {
        let distance = to_nanos(line.at(self.estimate.cycle) - self.estimate.at, line.shift);
        if line.shift == self.shown.shift && distance.abs() < STEP_NS {
            self.shown = line;
        }
    }

    /// The line that readers see.
    #[must_use]
    pub fn shown(&self) -> &Line {
        &self.shown
    }

    /// Estimated rate of the host's clock, in nanoseconds a cycle.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// How far the last observations were from the shown line, in nanoseconds.
    #[must_use]
    pub fn lag_ns(&self, counter: u64) -> f64 {
        to_nanos(self.estimate_at(counter) - self.shown.at(counter), self.shown.shift)
    }

    /// Takes in what the host's clock said at a tick. A series that excludes itself, because the
    /// clock was changed while it was taken, is left out.
    pub fn update(&mut self, series: &[Pair]) {
        let Some(seen) = observe(series, self.rate, self.shown.shift) else {
            return;
        };
        let expected = self.estimate_at(seen.cycle);
        let off = to_nanos(seen.at - expected, self.shown.shift);
        let cycles = as_float(seen.cycle.wrapping_sub(self.estimate.cycle));
        if off.abs() < DISAGREEMENT_NS {
            self.disagreeing = 0;
        } else if off > 0.0 {
            self.disagreeing = self.disagreeing.max(0) + 1;
        } else {
            self.disagreeing = self.disagreeing.min(0) - 1;
        }
        if off.abs() >= STEP_NS {
            // The machine slept, or was moved: the phase is new, the rate most likely not.
            self.estimate = seen;
            self.weight = 1;
            self.disagreeing = 0;
            self.shown = Line { cycle: seen.cycle, at: seen.at, ..self.shown };
            return;
        }
        if self.disagreeing.abs() >= DISAGREEING {
            // The rate changed where the disagreement began; this observation and the estimate
            // before it are what there is of the new one.
            self.weight = 1;
            self.disagreeing = 0;
        }
        // Least squares over a growing number of observations, as a recursion; the gains stop
        // shrinking at MEMORY, from where on older observations fade.
        let n = f64::from(self.weight);
        let phase_gain = 2.0 * (2.0 * n + 1.0) / ((n + 1.0) * (n + 2.0));
        let rate_gain = 6.0 / ((n + 1.0) * (n + 2.0));
        self.weight = (self.weight + 1).min(MEMORY);
        self.estimate = Observation {
            cycle: seen.cycle,
            at: expected + from_nanos(off * phase_gain, self.shown.shift),
        };
        if cycles > 0.0 {
            self.rate += off * rate_gain / cycles;
        }
    }

    /// The bend with which the shown line approaches the estimate from `now` on.
    #[must_use]
    pub fn bend(&self, now: u64) -> Bend {
        let lag = self.lag_ns(now);
        let slew = (lag / HORIZON_NS).clamp(-MAX_SLEW, MAX_SLEW);
        let mult = Line::mult_for(self.rate * (1.0 + slew), self.shown.shift);
        let margin = cycles_of(MARGIN_NS / self.rate);
        let deadline = now.wrapping_add(margin);
        // Where the new line is lower than the old one, nobody may be shown it. A higher rate is
        // above from the meeting point on, a lower one until the meeting point.
        let meeting = if mult < self.shown.mult { deadline } else { now };
        Bend { line: self.shown.bent(now, meeting, mult), deadline }
    }

    /// Notes that readers see `line` now.
    pub fn show(&mut self, line: Line) {
        self.shown = line;
    }

    fn estimate_at(&self, counter: u64) -> i128 {
        let cycles = counter.wrapping_sub(self.estimate.cycle).cast_signed();
        #[allow(clippy::cast_precision_loss, reason = "some ticks' worth of cycles")]
        let nanos = self.rate * cycles as f64;
        self.estimate.at + from_nanos(nanos, self.shown.shift)
    }
}

/// What a series of pairs says of the clock at the series' last counter value.
fn observe(series: &[Pair], rate: f64, shift: u32) -> Option<Observation> {
    let cycle = series.last()?.after;
    let mult = i128::from(Line::mult_for(rate, shift));
    let until = |counter: u64| i128::from(cycle.wrapping_sub(counter).cast_signed()) * mult;
    let mut bounds = Bounds::UNKNOWN;
    for pair in series {
        // The clock read `nanos` somewhere between the two counters, and was rounded down.
        bounds = bounds.and(Bounds {
            low: (pair.nanos << shift) + until(pair.after),
            high: ((pair.nanos + 1) << shift) + until(pair.before),
        })?;
    }
    Some(Observation { cycle, at: bounds.middle() })
}

/// Nanoseconds a cycle from the fastest pair of each series.
fn rough_rate(first: &[Pair], second: &[Pair]) -> Option<f64> {
    let fastest = |series: &[Pair]| {
        let width = |pair: &&Pair| pair.after.wrapping_sub(pair.before);
        series.iter().min_by_key(width).copied()
    };
    let (first, second) = (fastest(first)?, fastest(second)?);
    let cycles = second.before.wrapping_sub(first.before);
    let nanos = second.nanos.checked_sub(first.nanos)?;
    if cycles == 0 || nanos <= 0 {
        return None;
    }
    Some(to_nanos(nanos, 0) / as_float(cycles))
}

#[allow(clippy::cast_precision_loss, reason = "differences over some ticks")]
fn to_nanos(shifted: i128, shift: u32) -> f64 {
    shifted as f64 / (1_u64 << shift) as f64
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "differences over some ticks; a float that is converted saturates"
)]
fn from_nanos(nanos: f64, shift: u32) -> i128 {
    (nanos * (1_u64 << shift) as f64).round() as i128
}

#[allow(clippy::cast_precision_loss, reason = "differences over some ticks")]
fn as_float(cycles: u64) -> f64 {
    cycles as f64
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float that is converted saturates, and the value is positive"
)]
fn cycles_of(cycles: f64) -> u64 {
    cycles as u64
}
