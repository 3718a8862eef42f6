//! A page by its words, whatever they are.

use std::sync::atomic::{AtomicU64, Ordering};

use datapage::layout::offset;
use kernel_sim::map::WORDS;

/// The scale of a counter, as the page holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawScale {
    /// Width of the counter.
    pub mask: u64,
    /// Nanoseconds a cycle, shifted.
    pub mult: u32,
    /// See `mult`.
    pub shift: u32,
}

/// Every field that a reader looks at; no value is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of docs/page.md")]
pub struct RawPage {
    pub seq: u32,
    pub clock_mode: i32,
    pub cycle_last: u64,
    pub cs: [RawScale; 2],
    pub basetime: [(u64, u64); 12],
    pub tz_minuteswest: i32,
    pub tz_dsttime: i32,
    pub hrtimer_res: u32,
    pub coarse_res: u32,
    pub features: u64,
    pub memory_counter: u64,
}

impl RawPage {
    /// A page in mode MEMORY that serves every clock, each with a value of its own.
    #[must_use]
    pub fn serving() -> Self {
        let scale = RawScale { mask: u64::MAX, mult: 6_990_507, shift: 24 };
        let mut page = Self {
            seq: 2,
            clock_mode: 0x100,
            cycle_last: 1_000_000,
            cs: [scale, RawScale { mult: 6_990_000, ..scale }],
            basetime: [(0, 0); 12],
            tz_minuteswest: -60,
            tz_dsttime: 1,
            hrtimer_res: 1,
            coarse_res: 4_000_000,
            features: 0,
            memory_counter: 1_000_000 + 2_400_000,
        };
        for (id, secs) in [(0, 1_700_000_000), (1, 5000), (4, 5001), (7, 6000), (11, 1_700_000_037)]
        {
            page.basetime[id] = (secs, 123_456_789 << 24);
        }
        page.basetime[5] = (1_700_000_000, 120_000_000);
        page.basetime[6] = (5000, 120_000_000);
        page
    }

    /// Writes all of it; there is no reader meanwhile.
    pub fn store(&self, words: &[AtomicU64; WORDS]) {
        for (at, word) in self.words().into_iter().enumerate() {
            words[at].store(word, Ordering::Relaxed);
        }
    }

    fn words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        let mut put = |at: usize, value: u64| words[at / 8] = value;
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        put(offset::SEQ, pair(self.seq, self.clock_mode.cast_unsigned()));
        put(offset::CYCLE_LAST, self.cycle_last);
        for (index, scale) in self.cs.iter().enumerate() {
            let at = offset::CS + index * offset::CS_BYTES;
            put(at + offset::CS_MASK, scale.mask);
            put(at + offset::CS_MULT, pair(scale.mult, scale.shift));
        }
        for (index, (sec, nsec)) in self.basetime.iter().enumerate() {
            let at = offset::BASETIME + index * offset::BASETIME_BYTES;
            put(at + offset::BASETIME_SEC, *sec);
            put(at + offset::BASETIME_NSEC, *nsec);
        }
        put(
            offset::TZ_MINUTESWEST,
            pair(self.tz_minuteswest.cast_unsigned(), self.tz_dsttime.cast_unsigned()),
        );
        put(offset::HRTIMER_RES, pair(self.hrtimer_res, self.coarse_res));
        put(offset::FEATURES, self.features);
        put(offset::MEMORY_COUNTER, self.memory_counter);
        words
    }
}
