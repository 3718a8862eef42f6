//! What a reader must make of one publication: base, scale and counter, in unbounded arithmetic.
//!
//! The publication is taken as the event that it is (the values that a kernel handed to the writer,
//! before they became words of a page), so a fault in writing, laying out, loading or computing
//! shows up as a difference.

/// Nanoseconds in a second.
pub(crate) const NANOS: i128 = 1_000_000_000;

/// A counter's scale as handed to the writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scale {
    /// 2^bits - 1.
    pub mask: u64,
    /// Nanoseconds a cycle, times 2^shift.
    pub mult: u32,
    /// 0..=34.
    pub shift: u32,
}

/// How the counter of a read related to the publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// The counter had not passed half of its range since: cycles since.
    Ahead(u64),
    /// It had, so it counts as behind.
    Behind,
}

/// Cycles from `last` to `now`, and whether `now` counts as behind `last`.
#[must_use]
pub fn motion(last: u64, now: u64, mask: u64) -> Motion {
    // Where each stands in the counter's range; `now` may have gone around since.
    let (last, now) = (last & mask, now & mask);
    let cycles = if now >= last { now - last } else { (mask - last) + 1 + now };
    // The last one ahead is the middle of the range, which ends at the mask.
    if cycles <= mask / 2 { Motion::Ahead(cycles) } else { Motion::Behind }
}

/// A time: whole seconds and the nanoseconds that have begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Rounded towards minus infinity.
    pub secs: i64,
    /// 0..=999_999_999.
    pub nanos: u32,
}

impl Timestamp {
    /// From nanoseconds since zero; `None` if the seconds do not fit.
    #[must_use]
    pub fn from_nanos(nanos: i128) -> Option<Self> {
        Some(Self {
            secs: i64::try_from(nanos.div_euclid(NANOS)).ok()?,
            nanos: u32::try_from(nanos.rem_euclid(NANOS)).ok()?,
        })
    }

    /// Nanoseconds since zero.
    #[must_use]
    pub fn nanos(self) -> i128 {
        i128::from(self.secs) * NANOS + i128::from(self.nanos)
    }
}

/// Nanoseconds since zero of a precise clock published at {`secs`, `shifted`} with `scale`.
#[must_use]
pub fn precise_nanos(secs: i64, shifted: u64, scale: Scale, motion: Motion) -> i128 {
    let cycles = match motion {
        Motion::Ahead(cycles) => cycles,
        Motion::Behind => 0,
    };
    // 63 and 32 bits and a 64-bit summand: 96 bits.
    let product = i128::from(cycles) * i128::from(scale.mult) + i128::from(shifted);
    i128::from(secs) * NANOS + product.div_euclid(1 << scale.shift)
}

/// What `clock_gettime_ns` must return for a time in nanoseconds.
#[must_use]
pub fn in_a_register(nanos: i128) -> i64 {
    const EOVERFLOW: i64 = 75;
    match i64::try_from(nanos) {
        // These values are error numbers to every caller of a system call.
        Ok(nanos) if (-4095..0).contains(&nanos) => 0,
        Ok(nanos) => nanos,
        Err(_) => -EOVERFLOW,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_counters_range_is_the_last_that_is_ahead() {
        assert_eq!(motion(0, 0x7fff_ffff, 0xffff_ffff), Motion::Ahead(0x7fff_ffff));
        assert_eq!(motion(0, 0x8000_0000, 0xffff_ffff), Motion::Behind);
        assert_eq!(motion(0xffff_fff0, 0x10, 0xffff_ffff), Motion::Ahead(0x20));
        assert_eq!(motion(5, 4, u64::MAX), Motion::Behind);
        assert_eq!(motion(9, 9, 0), Motion::Ahead(0), "a counter without bits stands still");
    }

    #[test]
    fn a_worked_example() {
        // 2.4 GHz: 12 million cycles are 5 ms, of which the scale loses 0.3 ns.
        let scale = Scale { mask: u64::MAX, mult: 6_990_507, shift: 24 };
        let at = precise_nanos(-1, 999_999_999 << 24, scale, Motion::Ahead(12_000_000));
        assert_eq!(at, -1 + 5_000_000);
        assert_eq!(Timestamp::from_nanos(-1), Some(Timestamp { secs: -1, nanos: 999_999_999 }));
    }

    #[test]
    fn errors_are_not_times() {
        assert_eq!([-4096, -4095, -1, 0].map(in_a_register), [-4096, 0, 0, 0]);
        assert_eq!(in_a_register(i128::from(i64::MAX) + 1), -75);
        assert_eq!(in_a_register(i128::from(i64::MIN)), i64::MIN);
    }
}
