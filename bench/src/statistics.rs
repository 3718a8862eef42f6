//! What the numbers of many rounds say: order statistics and bootstrap intervals.
//!
//! A shared machine adds time and never takes any away, so the mean belongs to whoever interrupted
//! most. Everything here is a median or another quantile, and how sure a median is comes from
//! resampling the rounds themselves, not from a distribution that they do not have.

use serde::Serialize;

/// Resamples for an interval: its ends move by less than the rounds' own noise.
const RESAMPLES: usize = 2000;

/// The value below which `share` of the values lie, interpolated; NaN of nothing.
#[must_use]
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_of_sorted(&sorted, share)
}

/// The middle value.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

fn quantile_of_sorted(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let position = share.clamp(0.0, 1.0) * last as f64;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a position in the slice"
    )]
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    let weight = position - below as f64;
    sorted[below] * (1.0 - weight) + sorted[above] * weight
}

/// A median, or another quantile, with its 95 % bootstrap interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The median, or the quantile that was asked for.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// The median of `values`, and where it would lie in 95 of 100 repetitions.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        Self::of_quantile(values, 0.5)
    }

    /// The largest of `values`. Its interval reaches down to about the fourth largest: a value that
    /// resampling misses in one of forty cases is one of four.
    #[must_use]
    pub fn of_largest(values: &[f64]) -> Self {
        Self::of_quantile(values, 1.0)
    }

    fn of_quantile(values: &[f64], share: f64) -> Self {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut resample = vec![0.0; values.len()];
        let mut found = Vec::with_capacity(RESAMPLES);
        for _ in 0..RESAMPLES {
            for place in &mut resample {
                *place = values[random.below(values.len())];
            }
            resample.sort_by(f64::total_cmp);
            found.push(quantile_of_sorted(&resample, share));
        }
        found.sort_by(f64::total_cmp);
        Self {
            median: quantile(values, share),
            low: quantile_of_sorted(&found, 0.025),
            high: quantile_of_sorted(&found, 0.975),
        }
    }

    /// Width of the interval as a share of the median.
    #[must_use]
    pub fn width(&self) -> f64 {
        (self.high - self.low) / self.median
    }
}

/// The spread of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The smallest value: what the machine can do.
    pub min: f64,
    /// The middle value: what it does.
    pub median: f64,
    /// 99 of 100 values are below: what the neighbours do to it.
    pub p99: f64,
}

impl Spread {
    /// The spread of `values`.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Self {
            min: quantile_of_sorted(&sorted, 0.0),
            median: quantile_of_sorted(&sorted, 0.5),
            p99: quantile_of_sorted(&sorted, 0.99),
        }
    }

    /// A value that is not spread.
    #[must_use]
    pub fn exact(value: f64) -> Self {
        Self { min: value, median: value, p99: value }
    }

    /// The spread of the values in another unit.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        let Self { min, median, p99 } = self;
        Self { min: min * factor, median: median * factor, p99: p99 * factor }
    }
}

/// Random numbers for resampling (Marsaglia's xorshift64): the same rounds give the same interval.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // The high half of the product is uniform below the limit, to within limit / 2^64.
        let scaled = u128::from(self.0) * limit as u128;
        #[allow(clippy::cast_possible_truncation, reason = "below the limit")]
        let index = (scaled >> 64) as usize;
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate_between_neighbours() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&values, 0.0), 1.0);
        assert_eq!(median(&values), 2.5);
        assert_eq!(quantile(&values, 1.0), 4.0);
        assert_eq!(quantile(&values, 0.25), 1.75);
        assert!(median(&[]).is_nan());
        assert_eq!(median(&[7.0]), 7.0);
    }

    #[test]
    fn one_interrupted_round_moves_no_median() {
        let mut values = vec![1.0; 31];
        values[7] = 1000.0;
        let estimate = Estimate::of(&values);
        assert_eq!((estimate.median, estimate.low, estimate.high), (1.0, 1.0, 1.0));
    }

    #[test]
    fn an_interval_covers_the_true_median_about_as_often_as_it_says() {
        let mut random = Random(42);
        let mut covered = 0;
        for _ in 0..200 {
            let sample: Vec<f64> = (0..31).map(|_| random.below(1001) as f64).collect();
            let estimate = Estimate::of(&sample);
            covered += usize::from(estimate.low <= 500.0 && 500.0 <= estimate.high);
        }
        // 95 % of 200 is 190; the bootstrap of a median of 31 is a little narrow or wide.
        assert!((176..=200).contains(&covered), "{covered} of 200");
    }

    #[test]
    fn three_large_values_of_a_hundred_are_not_sure_to_be_the_rule_and_five_are() {
        let largest = |large: usize| {
            let values: Vec<f64> =
                (0..100).map(|at| if at < large { 150.0 } else { 4.0 }).collect();
            let Estimate { median, low, high } = Estimate::of_largest(&values);
            assert_eq!((median, high), (150.0, 150.0));
            low
        };
        assert_eq!((largest(1), largest(3), largest(5)), (4.0, 4.0, 150.0));
    }

    #[test]
    fn more_rounds_give_a_narrower_interval() {
        let mut random = Random(7);
        let mut sample =
            |count| -> Vec<f64> { (0..count).map(|_| 100.0 + random.below(100) as f64).collect() };
        assert!(Estimate::of(&sample(1000)).width() < Estimate::of(&sample(20)).width());
    }

    #[test]
    fn random_numbers_reach_every_index_and_none_beyond() {
        let mut random = Random(1);
        let mut seen = [0_u32; 5];
        for _ in 0..1000 {
            seen[random.below(5)] += 1;
        }
        assert!(seen.iter().all(|&count| count > 120), "{seen:?}");
    }
}
