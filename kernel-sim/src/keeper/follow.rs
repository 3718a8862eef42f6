//! Following one clock of the host with a line that never goes back.
//!
//! Two lines are kept. The *estimate* is where the host's clock is believed to be: a least-squares
//! fit of its phase and rate over the observations of the last ticks, restarted when they stop
//! agreeing with it (the host changed its rate). The *shown* line is what readers get. It cannot
//! simply be the estimate, because that moves back by fractions of a nanosecond as it is refined;
//! so at each tick the shown line is bent, continuously, towards where the estimate will be a
//! little later.

use std::collections::VecDeque;

use crate::host::Pair;
use crate::keeper::line::Line;
use crate::keeper::observe::{Observation, as_float, observe, rough_rate, to_nanos};

/// A clock of the host, and the line that readers see in its place.
#[derive(Clone, Debug)]
pub struct Follower {
    shown: Line,
    /// Estimate of the host's clock at `estimate.cycle`.
    estimate: Observation,
    /// Estimated nanoseconds a cycle.
    rate: f64,
    /// Observations that the estimate rests on, oldest first, at most [`MEMORY`].
    seen: VecDeque<Observation>,
    /// Consecutive observations that were off to the same side, negative below the estimate.
    disagreeing: isize,
    /// Width of the narrowest observations.
    width: i128,
    /// The longest time between ticks of late, in nanoseconds.
    pace_ns: f64,
}

/// Observations that an estimate rests on at most.
///
/// The longer, the finer the rate; the shorter, the sooner a small change of the host's rate is
/// followed. Two seconds of 250 ticks make the rate good to some parts in 10^10.
const MEMORY: usize = 500;

/// An observation disagrees when it is further from the estimate than this. Observations repeat
/// within about a nanosecond.
const DISAGREEMENT_NS: f64 = 3.0;

/// So many disagreeing observations in a row are a new rate, not noise.
const DISAGREEING: usize = 3;

/// From this distance on the host's clock has jumped, or stood still while the machine slept.
const STEP_NS: f64 = 1e6;

/// The shown line is bent so as to meet the estimate after this time, or after some ticks where
/// those come late: a line that is left alone for longer overshoots, and one that overshot twice as
/// far each time would never come to rest.
const HORIZON_NS: f64 = 50e6;
const HORIZON_TICKS: f64 = 4.0;

/// How much of the longest recent time between ticks is still expected at the next one.
const PACE_DECAY: f64 = 0.95;

/// An observation with bounds this much wider than the narrowest ones was disturbed.
const DISTURBED: i128 = 2;

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

/// Why a look at the host's clocks does not go on from the line of another keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotContinued {
    /// The look was interrupted, or a clock was set meanwhile: another one may do.
    Disturbed,
    /// The clock is too far from the line to be slewed there, and another look finds the same.
    Step,
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
            seen: VecDeque::from([first, second]),
            disagreeing: 0,
            width: first.width.min(second.width),
            pace_ns: 0.0,
        })
    }

    /// Goes on from a line that another keeper's readers already see, with one series of
    /// observations: the line's rate is near enough until the next tick gives a better one.
    ///
    /// # Errors
    /// That the series says nothing, or that the clock is a step from the line.
    pub(crate) fn continued(line: Line, series: &[Pair]) -> Result<Self, NotContinued> {
        let rate = line.rate();
        let seen = observe(series, rate, line.shift).ok_or(NotContinued::Disturbed)?;
        let distance = to_nanos(line.at(seen.cycle) - seen.at, line.shift);
        if distance.abs() >= STEP_NS {
            return Err(NotContinued::Step);
        }
        Ok(Self {
            shown: line,
            estimate: seen,
            rate,
            seen: VecDeque::from([seen]),
            disagreeing: 0,
            width: seen.width,
            pace_ns: 0.0,
        })
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

    /// Takes in what the host's clock said at a tick.
    ///
    /// A series that excludes itself, because the clock was changed while it was taken, or that was
    /// disturbed is left out.
    pub fn update(&mut self, series: &[Pair]) {
        let Some(seen) = observe(series, self.rate, self.shown.shift) else {
            return;
        };
        let disturbed = seen.width > self.width * DISTURBED;
        // The narrowest width is let grow, so that a machine that has become slower is followed.
        self.width = seen.width.min(self.width + self.width / 16);
        let expected = self.estimate_at(seen.cycle);
        let off = to_nanos(seen.at - expected, self.shown.shift);
        if off.abs() >= STEP_NS {
            self.step(seen);
        } else if !disturbed {
            self.fit(seen, off);
        }
    }

    /// The machine slept, or was moved: the phase is new, the rate most likely not.
    fn step(&mut self, seen: Observation) {
        self.estimate = seen;
        self.seen.clear();
        self.seen.push_back(seen);
        self.disagreeing = 0;
        self.shown = Line { cycle: seen.cycle, at: seen.at, ..self.shown };
    }

    /// Fits the estimate to an observation that is `off` nanoseconds from where it was expected.
    fn fit(&mut self, seen: Observation, off: f64) {
        if off.abs() < DISAGREEMENT_NS {
            self.disagreeing = 0;
        } else if off > 0.0 {
            self.disagreeing = self.disagreeing.max(0) + 1;
        } else {
            self.disagreeing = self.disagreeing.min(0) - 1;
        }
        if self.seen.len() == MEMORY {
            self.seen.pop_front();
        }
        self.seen.push_back(seen);
        if self.disagreeing.unsigned_abs() >= DISAGREEING {
            // The rate changed where the disagreement began, so what came before says nothing.
            self.seen.drain(..self.seen.len() - DISAGREEING);
            self.disagreeing = 0;
        }
        let since = as_float(seen.cycle.wrapping_sub(self.estimate.cycle)) * self.rate;
        self.pace_ns = (self.pace_ns * PACE_DECAY).max(since);
        let (phase, rate) = self.least_squares(seen);
        self.rate += rate;
        self.estimate = Observation { at: seen.at + from_nanos(phase, self.shown.shift), ..seen };
    }

    /// How far, in nanoseconds, the straight line through all that was seen is from `last`, the
    /// latest of it, and by how much its rate is above the present estimate.
    fn least_squares(&self, last: Observation) -> (f64, f64) {
        let n = as_float(self.seen.len() as u64);
        // Residuals from the estimated rate: small numbers, which a float holds well.
        let points = self.seen.iter().map(|seen| {
            let before = as_float(last.cycle.wrapping_sub(seen.cycle));
            let nanos = to_nanos(seen.at - last.at, self.shown.shift);
            (-before, nanos + before * self.rate)
        });
        let (x_sum, y_sum) =
            points.clone().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
        let (x_mean, y_mean) = (x_sum / n, y_sum / n);
        let (covariance, variance) = points.fold((0.0, 0.0), |(covariance, variance), (x, y)| {
            let x = x - x_mean;
            (covariance + x * (y - y_mean), variance + x * x)
        });
        let rate = if variance > 0.0 { covariance / variance } else { 0.0 };
        (y_mean - rate * x_mean, rate)
    }

    /// The bend with which the shown line approaches the estimate from `now` on.
    #[must_use]
    pub fn bend(&self, now: u64) -> Bend {
        let lag = self.lag_ns(now);
        let horizon = HORIZON_NS.max(self.pace_ns * HORIZON_TICKS);
        let slew = (lag / horizon).clamp(-MAX_SLEW, MAX_SLEW);
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

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "differences over some ticks; a float that is converted saturates"
)]
fn from_nanos(nanos: f64, shift: u32) -> i128 {
    (nanos * (1_u64 << shift) as f64).round() as i128
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float that is converted saturates, and the value is positive"
)]
fn cycles_of(cycles: f64) -> u64 {
    cycles as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keeper::pretended::{HERTZ, SteadyHost};

    fn distance(follower: &Follower, host: &SteadyHost, counter: u64) -> f64 {
        let shift = follower.shown.shift;
        // Through seconds, because a float has no picoseconds of a large number.
        let second = 1_000_000_000_i128 << shift;
        let base = follower.shown.at(counter).div_euclid(second);
        let shown = to_nanos(follower.shown.at(counter) - base * second, shift);
        #[allow(clippy::cast_precision_loss, reason = "a number of seconds")]
        let host = host.nanos(counter) - base as f64 * 1e9;
        shown - host
    }

    /// Runs for `ticks`, and returns the largest distance from the host over the last half.
    fn run(
        host: &mut SteadyHost,
        follower: &mut Follower,
        counter: &mut u64,
        ticks: u32,
        late: bool,
    ) -> f64 {
        let mut worst = 0.0_f64;
        for tick in 0..ticks {
            let millis = match host.random(20) {
                0 if late => 50 + host.random(400),
                1 if late => 0,
                _ => 4,
            };
            *counter += millis * 2_300_000 + host.random(200_000);
            if tick >= ticks / 2 {
                worst = worst.max(distance(follower, host, *counter).abs());
            }
            let disturbed = host.random(15) == 0;
            let series = host.series(*counter, disturbed);
            *counter = series.last().unwrap().after + host.random(2_000);
            follower.update(&series);
            let bend = follower.bend(*counter);
            // Published at the last moment, nobody sees a step back.
            assert!(bend.line.at(bend.deadline) >= follower.shown.at(bend.deadline));
            assert!(bend.line.at(*counter) >= follower.shown.at(*counter));
            follower.show(bend.line);
        }
        worst
    }

    fn follow(host: &mut SteadyHost, counter: &mut u64) -> Follower {
        let first = host.series(*counter, false);
        *counter += 11_500_000;
        let second = host.series(*counter, false);
        Follower::new(&first, &second).unwrap()
    }

    #[test]
    fn a_steady_clock_is_followed_within_some_nanoseconds() {
        let (mut host, mut counter) = (SteadyHost::new(), 10_u64.pow(15));
        host.piece.0 = counter;
        let mut follower = follow(&mut host, &mut counter);
        let worst = run(&mut host, &mut follower, &mut counter, 2_000, false);
        assert!(worst < 2.0, "{worst} ns");
        let worst = run(&mut host, &mut follower, &mut counter, 1_000, true);
        assert!(worst < 4.0, "{worst} ns with ticks that come late");
        let rate = follower.rate() / (1e9 / HERTZ) - 1.0;
        assert!(rate.abs() < 2e-9, "rate is off by {rate:e}");
    }

    #[test]
    fn a_change_of_rate_is_followed_without_a_step() {
        let (mut host, mut counter) = (SteadyHost::new(), 10_u64.pow(12));
        host.piece.0 = counter;
        let mut follower = follow(&mut host, &mut counter);
        for parts in [1e-6, -20e-6, 0.1e-6, 400e-6, -400e-6] {
            run(&mut host, &mut follower, &mut counter, 300, false);
            host.change_rate(counter, parts);
            let worst = run(&mut host, &mut follower, &mut counter, 600, false);
            assert!(worst < 4.0, "{worst} ns after a change by {parts:e}");
        }
    }

    #[test]
    fn a_clock_that_slept_is_stepped() {
        let (mut host, mut counter) = (SteadyHost::new(), 10_u64.pow(12));
        host.piece.0 = counter;
        let mut follower = follow(&mut host, &mut counter);
        run(&mut host, &mut follower, &mut counter, 100, false);
        host.piece = (counter, host.nanos(counter) - 5e6, host.piece.2);
        let series = host.series(counter, false);
        follower.update(&series);
        counter = series.last().unwrap().after;
        assert!(distance(&follower, &host, counter).abs() < 30.0);
        let worst = run(&mut host, &mut follower, &mut counter, 200, false);
        assert!(worst < 2.0, "{worst} ns");
    }
}
