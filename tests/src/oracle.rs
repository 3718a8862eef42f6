//! What a page says the time is, in exact arithmetic.
//!
//! Everything is an `i128` or `u128`: 2^64 cycles times 2^32 plus 2^64 takes 97 bits, and all the
//! seconds of an `i64` in nanoseconds take 94.

use crate::page::RawPage;

/// An answer that needs no kernel, or the news that one is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// The page serves it.
    Served(T),
    /// The call falls back.
    Fallback,
}

const SECOND: i128 = 1_000_000_000;

impl RawPage {
    /// Nanoseconds since zero of clock `id`, without a limit.
    #[must_use]
    pub fn exact_nanos(&self, id: i32) -> Answer<i128> {
        let Ok(index) = usize::try_from(id) else {
            return Answer::Fallback;
        };
        let scale = match id {
            0 | 1 | 7 | 11 => self.cs[0],
            4 => self.cs[1],
            5 | 6 => return self.exact_base(index, 0),
            _ => return Answer::Fallback,
        };
        if self.clock_mode != 0x100 || self.seq % 2 == 1 || scale.shift > 34 {
            return Answer::Fallback;
        }
        let (sec, nsec) = self.basetime[index];
        if (sec, nsec) == (0, 0) {
            return Answer::Fallback;
        }
        let delta = self.memory_counter.wrapping_sub(self.cycle_last) & scale.mask;
        let delta = if delta <= scale.mask / 2 { delta } else { 0 };
        let shifted = i128::from(nsec) + i128::from(delta) * i128::from(scale.mult);
        let nanos = shifted.div_euclid(1 << scale.shift);
        Answer::Served(i128::from(sec.cast_signed()) * SECOND + nanos)
    }

    fn exact_base(&self, index: usize, shift: u32) -> Answer<i128> {
        let (sec, nsec) = self.basetime[index];
        if (sec, nsec) == (0, 0) || self.seq % 2 == 1 || shift > 34 {
            return Answer::Fallback;
        }
        let nanos =
            i128::from(sec.cast_signed()) * SECOND + i128::from(nsec).div_euclid(1 << shift);
        Answer::Served(nanos)
    }

    /// Seconds and nanoseconds that `clock_gettime` stores.
    #[must_use]
    pub fn exact_time(&self, id: i32) -> Answer<(i64, i64)> {
        match self.exact_nanos(id) {
            Answer::Served(nanos) => {
                let secs = i64::try_from(nanos.div_euclid(SECOND));
                let rest = i64::try_from(nanos.rem_euclid(SECOND));
                match (secs, rest) {
                    (Ok(secs), Ok(rest)) => Answer::Served((secs, rest)),
                    _ => Answer::Fallback,
                }
            }
            Answer::Fallback => Answer::Fallback,
        }
    }

    /// What `clock_gettime_ns` returns.
    #[must_use]
    pub fn exact_ns(&self, id: i32) -> Answer<i64> {
        // What clock_gettime leaves to the kernel, this leaves to the kernel too.
        match (self.exact_time(id), self.exact_nanos(id)) {
            (Answer::Served(_), Answer::Served(nanos)) => match i64::try_from(nanos) {
                Ok(-4095..0) => Answer::Served(0),
                Ok(nanos) => Answer::Served(nanos),
                Err(_) => Answer::Served(-i64::from(libc::EOVERFLOW)),
            },
            _ => Answer::Fallback,
        }
    }

    /// What `time` returns, for a slot that a writer may have written.
    ///
    /// `None` for one that lies more than a second beyond its own seconds, of which nothing is
    /// promised.
    #[must_use]
    pub fn exact_seconds(&self) -> Option<Answer<i64>> {
        let (sec, nsec) = self.basetime[0];
        let shift = self.cs[0].shift;
        if (sec, nsec) == (0, 0) {
            return Some(Answer::Fallback);
        }
        let second = 1_000_000_000_u64.checked_shl(shift)?;
        let zero = (u64::MAX, second);
        if shift > 34 || (nsec >= second && (sec, nsec) != zero) {
            return None;
        }
        // One word is one update, so an odd page hinders only the two values that need a second
        // look.
        if self.seq % 2 == 1 && matches!(sec.cast_signed(), 0 | -1) {
            return Some(Answer::Fallback);
        }
        Some(Answer::Served(if (sec, nsec) == zero { 0 } else { sec.cast_signed() }))
    }

    /// What `clock_getres` stores.
    #[must_use]
    pub fn exact_resolution(&self, id: i32) -> Answer<(i64, i64)> {
        let resolution = match id {
            0 | 1 | 4 | 7 | 11 => self.hrtimer_res,
            5 | 6 => self.coarse_res,
            _ => return Answer::Fallback,
        };
        let Ok(index) = usize::try_from(id) else {
            return Answer::Fallback;
        };
        if resolution == 0 || self.seq % 2 == 1 || self.basetime[index] == (0, 0) {
            return Answer::Fallback;
        }
        let nanos = i64::from(resolution);
        Answer::Served((nanos / 1_000_000_000, nanos % 1_000_000_000))
    }
}
