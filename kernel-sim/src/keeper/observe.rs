//! What a series of readings says of a clock of the host.

use crate::host::{Bounds, Pair};
use crate::keeper::line::Line;

/// A host's clock, observed at one counter value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    /// The counter value.
    pub(super) cycle: u64,
    /// The clock there, in shifted nanoseconds.
    pub(super) at: i128,
    /// How far apart its bounds were.
    pub(super) width: i128,
}

/// A series that took this much longer than its fastest pair would have needed was interrupted, and
/// the rate by which its pairs are compared is not good enough for that.
const INTERRUPTED: u64 = 4;

/// What a series of pairs says of the clock at the series' last counter value.
pub(super) fn observe(series: &[Pair], rate: f64, shift: u32) -> Option<Observation> {
    let cycle = series.last()?.after;
    if was_interrupted(series) {
        return None;
    }
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
    let width = bounds.high - bounds.low;
    Some(Observation { cycle, at: bounds.middle(), width })
}

/// Whether the thread was taken off its CPU, or kept busy by an interrupt, within a series.
#[must_use]
pub(crate) fn was_interrupted(series: &[Pair]) -> bool {
    let (Some(first), Some(last)) = (series.first(), series.last()) else {
        return true;
    };
    let width = |pair: &Pair| pair.after.wrapping_sub(pair.before);
    let fastest = series.iter().map(width).min().unwrap_or(0);
    let pairs = series.len() as u64;
    last.after.wrapping_sub(first.before) > fastest * pairs * INTERRUPTED
}

/// Nanoseconds a cycle from the fastest pair of each series.
pub(super) fn rough_rate(first: &[Pair], second: &[Pair]) -> Option<f64> {
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
pub(super) fn to_nanos(shifted: i128, shift: u32) -> f64 {
    shifted as f64 / (1_u64 << shift) as f64
}

#[allow(clippy::cast_precision_loss, reason = "differences over some ticks")]
pub(super) fn as_float(cycles: u64) -> f64 {
    cycles as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keeper::pretended::SteadyHost;

    #[test]
    fn a_series_that_was_interrupted_or_excludes_itself_says_nothing() {
        let mut host = SteadyHost::new();
        let mut series = host.series(1_000, false);
        let rate = host.piece.2;
        assert!(observe(&series, rate, 32).is_some());
        series[11].nanos += 5_000;
        assert!(observe(&series, rate, 32).is_none(), "the clock was set");
        series[11].nanos -= 5_000;
        series[0].before -= 900;
        series[0].nanos -= 200;
        assert!(observe(&series, rate, 32).is_some(), "one slow pair does no harm");
        let mut gap = host.series(100_000, false);
        gap.truncate(6);
        let mut series = host.series(5_000, false);
        series.truncate(6);
        series.extend(gap);
        assert!(observe(&series, rate, 32).is_none(), "40 microseconds in between");
    }
}
