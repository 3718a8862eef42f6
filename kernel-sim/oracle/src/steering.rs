//! How far a steered clock may be from what NTP wants.
//!
//! A page holds a whole multiplier, and what NTP wants is nearly never a whole one. The rule: the
//! clock runs at one of the two whole multipliers beside the wanted one, at the upper while it is
//! behind, at the lower while it is not, and at the one below that while it is ahead by more than a
//! threshold. When it is made slower, it first moves forward by what the difference makes in the
//! publication delay, so that no reader of the old page is overtaken.
//!
//! The oracle knows neither the multiplier nor the clock's position to the last bit. It keeps the
//! set of states that the rule and all reads so far allow: a few intervals of *lag* (what NTP
//! wants, less what the clock shows), each with the multiplier that goes with it. A read must fall
//! within the set, and narrows it. A clock that runs at a wrong rate leaves the set as soon as the
//! difference makes a nanosecond, no matter how slowly it drifts: once it is seen to be behind, the
//! rule demands that it catch up.

use crate::fine::{FINE_BITS, Fine, NANO};
use crate::ntp::in_multiplier;

/// States that share their multiplier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Smallest lag.
    pub(crate) low: Fine,
    /// Largest lag.
    pub(crate) high: Fine,
    /// The multiplier.
    pub(crate) mult: i64,
}

/// All states that are possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    parts: [Part; Self::MOST],
    count: usize,
}

/// A counter's unsteered scale and what NTP wants of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Unsteered multiplier.
    pub(crate) mult: u32,
    /// Its shift.
    pub(crate) shift: u32,
    /// Nanoseconds of clock a second, in 2^-32 ns, by reason.
    pub(crate) rates: [i128; 3],
}

impl Wanted {
    /// The wanted multiplier, in 2^-32.
    fn fixed(self) -> i128 {
        self.rates.iter().map(|&rate| in_multiplier(self.mult, rate)).sum()
    }

    /// The whole multiplier below the wanted one.
    fn below(self) -> i64 {
        i64::try_from(self.fixed() >> 32).unwrap_or(i64::MAX)
    }

    /// What NTP wants of the clock in a cycle.
    pub(crate) fn per_cycle(self) -> Fine {
        self.fixed() << (FINE_BITS - 32 - self.shift)
    }

    /// What one unit of the multiplier makes in a cycle.
    pub(crate) fn unit(self) -> Fine {
        1 << (FINE_BITS - self.shift)
    }
}

impl Parts {
    /// The rule has three multipliers to choose from.
    const MOST: usize = 3;

    /// One state: no lag, this multiplier.
    pub(crate) fn exact(mult: u32) -> Self {
        let mult = i64::from(mult);
        let part = Part { low: 0, high: 0, mult };
        Self { parts: [part; Self::MOST], count: 1 }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().take(self.count)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Changes each part; those that become empty are gone.
    pub(crate) fn retain(&mut self, mut change: impl FnMut(&mut Part)) {
        let mut kept = 0;
        for index in 0..self.count {
            let mut part = self.parts[index];
            change(&mut part);
            if part.low <= part.high {
                self.parts[kept] = part;
                kept += 1;
            }
        }
        self.count = kept;
    }

    /// Adds a part; one with the same multiplier takes it in.
    fn push(&mut self, part: Part) {
        let same = |other: &&mut Part| other.mult == part.mult;
        if let Some(other) = self.parts.iter_mut().take(self.count).find(same) {
            other.low = other.low.min(part.low);
            other.high = other.high.max(part.high);
        } else if let Some(place) = self.parts.get_mut(self.count) {
            *place = part;
            self.count += 1;
        } else {
            unreachable!("a multiplier is one of three");
        }
    }

    /// `cycles` go by at the multipliers in force.
    pub(crate) fn pass(&mut self, cycles: u64, wanted: Wanted) {
        let cycles = i128::from(cycles);
        let per_cycle = wanted.per_cycle();
        let unit = wanted.unit();
        self.retain(|part| {
            let lost = cycles * (per_cycle - i128::from(part.mult) * unit);
            part.low += lost;
            part.high += lost;
        });
    }

    /// The multiplier is chosen anew, and a clock made slower moves forward by what the difference
    /// makes in the publication delay.
    pub(crate) fn steer(&mut self, wanted: Wanted, threshold: Fine, delay_cycles: u64) {
        let delay = i128::from(delay_cycles) * wanted.unit();
        self.choose(wanted, threshold, |old, new| {
            let ahead = delay * i128::from((old - new).max(0));
            (ahead, ahead)
        });
    }

    /// The multiplier is chosen anew, by how far the clock is behind or ahead. `ahead` says by how
    /// much, at least and at most, the clock moves forward when it goes from the first multiplier
    /// to the second.
    pub(crate) fn choose(
        &mut self,
        wanted: Wanted,
        threshold: Fine,
        ahead: impl Fn(i64, i64) -> (Fine, Fine),
    ) {
        let below = wanted.below();
        let old = *self;
        self.count = 0;
        for part in old.iter() {
            let choices = [(1, 1, Fine::MAX), (0, -threshold, 0), (-1, Fine::MIN, -threshold - 1)];
            for (step, low, high) in choices {
                let (low, high) = (part.low.max(low), part.high.min(high));
                if low <= high {
                    let mult = below + step;
                    let (least, most) = ahead(part.mult, mult);
                    self.push(Part { low: low - most, high: high - least, mult });
                }
            }
        }
    }
}

/// How far ahead a clock may be before it is held back: a nanosecond, or what two units make in a
/// tick if that is more.
pub(crate) fn threshold(wanted: Wanted, tick_cycles: u64) -> Fine {
    NANO.max(i128::from(tick_cycles) * 2 * wanted.unit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: Wanted =
        Wanted { mult: 6_990_507, shift: 24, rates: [1_000_000_000 << 32, 0, 0] };

    #[test]
    fn a_whole_multiplier_is_met_exactly() {
        let mut parts = Parts::exact(6_990_507);
        for _ in 0..1_000 {
            parts.pass(9_600_000, WANTED);
            parts.steer(WANTED, NANO, 120_000);
        }
        let part = parts.iter().next().copied();
        assert_eq!((part, parts.count), (Some(Part { low: 0, high: 0, mult: 6_990_507 }), 1));
    }

    #[test]
    fn the_lag_stays_below_what_a_unit_makes_in_a_gap() {
        // Half a unit above a whole multiplier.
        let rate = (((6_990_507_i128 << 32) + (1 << 31)) * 1_000_000_000).div_euclid(6_990_507);
        let wanted = Wanted { rates: [rate, 0, 0], ..WANTED };
        let mut parts = Parts::exact(6_990_507);
        let gap = 9_600_000;
        for _ in 0..10_000 {
            parts.pass(gap, wanted);
            parts.steer(wanted, NANO, 120_000);
            let limit = i128::from(gap) * wanted.unit();
            assert!(parts.iter().all(|part| part.low > -limit - NANO && part.high < limit));
            assert!(!parts.is_empty());
        }
    }
}
