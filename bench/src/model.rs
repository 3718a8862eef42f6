//! What a page of another layout would cost: one reader, generic over where the words are.
//!
//! Every offset is a constant of the reader's type, as it is in a vDSO. The reader is the plain
//! textbook one, so that layouts are compared and not tricks.

use std::arch::asm;
use std::hint::spin_loop;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use datapage::{ClockId, PageValues};

/// Where the words are that describe a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Sequence number, u32.
    pub seq: usize,
    /// Clock mode, u32.
    pub mode: usize,
    /// Counter at the update, u64.
    pub cycle_last: usize,
    /// Width of the counter, u64.
    pub mask: usize,
    /// Scale, u32.
    pub mult: usize,
    /// Scale, u32.
    pub shift: usize,
    /// Seconds and shifted nanoseconds of clock 0, two u64; the next clock is 16 bytes further.
    pub basetime: usize,
}

/// A layout of the page.
pub trait Layout: 'static {
    /// What it is called.
    const NAME: &'static str;
    /// For the steered clocks.
    const STEERED: Counter;
    /// For MONOTONIC_RAW; `None` if the layout cannot serve it.
    const RAW: Option<Counter>;
}

/// The layout of this project's page.
pub enum Ours {}

impl Layout for Ours {
    const NAME: &'static str = "ours (two scales)";
    const STEERED: Counter = ours(0);
    const RAW: Option<Counter> = Some(ours(1));
}

const fn ours(scale: usize) -> Counter {
    use datapage::layout::offset;
    let cs = offset::CS + scale * offset::CS_BYTES;
    Counter {
        seq: offset::SEQ,
        mode: offset::CLOCK_MODE,
        cycle_last: offset::CYCLE_LAST,
        mask: cs + offset::CS_MASK,
        mult: cs + offset::CS_MULT,
        shift: cs + offset::CS_SHIFT,
        basetime: offset::BASETIME,
    }
}

/// Sixteen clocksources of which two are used, as in the patch that the message refuses. The
/// message's offsets leave `cycle_last` out; with it, everything behind is eight bytes further.
pub enum SixteenClocksources {}

impl Layout for SixteenClocksources {
    const NAME: &'static str = "sixteen clocksources";
    const STEERED: Counter = sixteen(0);
    const RAW: Option<Counter> = Some(sixteen(1));
}

const fn sixteen(index: usize) -> Counter {
    let cs = 16 + index * 16;
    Counter {
        seq: 0,
        mode: 4,
        cycle_last: 8,
        mask: cs,
        mult: cs + 8,
        shift: cs + 12,
        basetime: 16 + 16 * 16,
    }
}

/// A whole set for each clocksource, as Linux has it since 5.3.
pub enum SetPerClocksource {}

impl Layout for SetPerClocksource {
    const NAME: &'static str = "one set per clocksource (Linux 5.3)";
    const STEERED: Counter = single(0);
    /// Behind the first set's bases, timezone and resolution.
    const RAW: Option<Counter> = Some(single(32 + 12 * 16 + 16));
}

/// One clocksource, as x86 had it before: REALTIME and MONOTONIC share the first line, and there
/// is no MONOTONIC_RAW.
pub enum SingleClocksource {}

impl Layout for SingleClocksource {
    const NAME: &'static str = "a single clocksource";
    const STEERED: Counter = single(0);
    const RAW: Option<Counter> = None;
}

const fn single(start: usize) -> Counter {
    Counter {
        seq: start,
        mode: start + 4,
        cycle_last: start + 8,
        mask: start + 16,
        mult: start + 24,
        shift: start + 28,
        basetime: start + 32,
    }
}

/// Where the words of one clock are.
#[must_use]
pub const fn counter_of<L: Layout>(clock: ClockId) -> Option<Counter> {
    let mut counter = if clock.0 == ClockId::MONOTONIC_RAW.0 {
        match L::RAW {
            Some(counter) => counter,
            None => return None,
        }
    } else {
        L::STEERED
    };
    counter.basetime += clock.0.unsigned_abs() as usize * 16;
    Some(counter)
}

/// Cache lines of 64 bytes that a read of the clock touches.
#[must_use]
pub fn lines<L: Layout>(clock: ClockId) -> Option<usize> {
    let c = counter_of::<L>(clock)?;
    let words = [
        (c.seq, 4),
        (c.mode, 4),
        (c.cycle_last, 8),
        (c.mask, 8),
        (c.mult, 4),
        (c.shift, 4),
        (c.basetime, 16),
    ];
    let touched = words.iter().flat_map(|&(at, bytes)| [at / 64, (at + bytes - 1) / 64]);
    let mut touched: Vec<usize> = touched.collect();
    touched.sort_unstable();
    touched.dedup();
    Some(touched.len())
}

/// Memory for a page of any layout.
#[repr(C, align(4096))]
pub struct ModelPage([AtomicU64; 128]);

impl ModelPage {
    /// A page of zeros.
    #[must_use]
    pub fn new() -> Box<Self> {
        Box::new(Self([const { AtomicU64::new(0) }; 128]))
    }

    /// Where the page is.
    #[must_use]
    pub fn address(&self) -> *const u8 {
        std::ptr::from_ref(self).cast()
    }

    /// Writes `values` in the layout `L`; nobody reads meanwhile.
    pub fn publish<L: Layout>(&self, values: &PageValues) {
        let base = self.address();
        // SAFETY: each offset of a layout lies in the page and is aligned to its word, and all of
        // the page is atomic words.
        let put = |at: usize, value: u64| unsafe { word(base, at) }.store(value, Ordering::Relaxed);
        // SAFETY: as above.
        let put_half =
            |at: usize, value: u32| unsafe { half(base, at) }.store(value, Ordering::Relaxed);
        for (id, instant) in (0..).zip(&values.instants) {
            let (Some(counter), Some(instant)) = (counter_of::<L>(ClockId(id)), instant) else {
                continue;
            };
            let scale = if id == ClockId::MONOTONIC_RAW.0 { values.raw } else { values.steered };
            put_half(counter.mode, values.clock_mode.0.cast_unsigned());
            put(counter.cycle_last, values.cycle_last);
            put(counter.mask, scale.mask);
            put_half(counter.mult, scale.mult);
            put_half(counter.shift, scale.shift);
            put(counter.basetime, instant.secs.cast_unsigned());
            put(counter.basetime + 8, instant.nanos);
        }
    }
}

/// The word at `offset`.
///
/// # Safety
/// The page is mapped for `'p`, in it is an atomic word at that offset.
#[inline(always)] // an address
unsafe fn word<'p>(page: *const u8, offset: usize) -> &'p AtomicU64 {
    let word = page.wrapping_add(offset).cast::<AtomicU64>();
    // SAFETY: the caller's promise.
    unsafe { &*word }
}

/// The half-word at `offset`.
///
/// # Safety
/// As for [`word`].
#[inline(always)] // an address
unsafe fn half<'p>(page: *const u8, offset: usize) -> &'p AtomicU32 {
    let half = page.wrapping_add(offset).cast::<AtomicU32>();
    // SAFETY: the caller's promise.
    unsafe { &*half }
}

/// When the clock's words are loaded.
pub const BEFORE_THE_COUNTER: bool = true;
/// When the clock's words are loaded.
pub const AFTER_THE_COUNTER: bool = false;

/// The reader of one clock in one layout.
pub struct Reader<L, const CLOCK: i32, const BEFORE: bool>(PhantomData<L>);

impl<L: Layout, const CLOCK: i32, const BEFORE: bool> Reader<L, CLOCK, BEFORE> {
    const COUNTER: Option<Counter> = counter_of::<L>(ClockId(CLOCK));

    /// Reads the clock into `time` as seconds and nanoseconds; returns the retries that it took.
    ///
    /// # Safety
    /// `page` is a page that is mapped, made of atomic words, aligned to 8, and holds this layout.
    #[inline(never)] // every reader is called, as a vDSO's is
    pub unsafe fn read(page: *const u8, time: &mut [u64; 2]) -> u32 {
        let Some(c) = Self::COUNTER else { return 0 };
        // SAFETY: the caller's promise, for all words of the layout.
        let get = |at: usize| unsafe { word(page, at) }.load(Ordering::Relaxed);
        // SAFETY: as above.
        let get_half = |at: usize| unsafe { half(page, at) }.load(Ordering::Relaxed);
        let mut retries = 0;
        loop {
            // SAFETY: as above.
            let before = unsafe { half(page, c.seq) }.load(Ordering::Acquire);
            if before & 1 == 0 && get_half(c.mode) == 1 {
                let early = if BEFORE { 0 } else { lfence_rdtsc() };
                let (sec, nsec) = (get(c.basetime), get(c.basetime + 8));
                let (last, mask) = (get(c.cycle_last), get(c.mask));
                let (mult, shift) = (get_half(c.mult), get_half(c.shift));
                let counter = if BEFORE { lfence_rdtsc() } else { early };
                fence(Ordering::Acquire);
                if get_half(c.seq) == before {
                    let cycles = counter.wrapping_sub(last) & mask;
                    let nanos = nsec.wrapping_add(cycles.wrapping_mul(u64::from(mult)));
                    let nanos = nanos >> (shift & 63);
                    *time = [sec + nanos / 1_000_000_000, nanos % 1_000_000_000];
                    return retries;
                }
            }
            retries += 1;
            spin_loop();
        }
    }
}

#[inline(always)] // two instructions of the loop
fn lfence_rdtsc() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: reads the counter into registers. Not `nomem`: loads stay on their side of it.
    unsafe {
        asm!("lfence", "rdtsc", out("rax") low, out("rdx") high,
             options(nostack, preserves_flags));
    }
    low | (high << 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use datapage::{ClockMode, Instant, Scale};

    #[test]
    fn lines_are_those_that_the_message_counts() {
        let of = |clock| {
            [
                lines::<Ours>(clock),
                lines::<SixteenClocksources>(clock),
                lines::<SetPerClocksource>(clock),
                lines::<SingleClocksource>(clock),
            ]
        };
        assert_eq!(of(ClockId::REALTIME), [Some(1), Some(2), Some(1), Some(1)]);
        assert_eq!(of(ClockId::MONOTONIC), [Some(2), Some(2), Some(1), Some(1)]);
        assert_eq!(of(ClockId::TAI), [Some(2), Some(2), Some(2), Some(2)]);
        assert_eq!(of(ClockId::MONOTONIC_RAW), [Some(2), Some(2), Some(3), None]);
    }

    #[test]
    fn every_layout_tells_the_same_time() {
        let mut values = PageValues {
            clock_mode: ClockMode::COUNTER,
            cycle_last: clock::cycles(),
            // A frozen clock: the counter moves, the time does not.
            steered: Scale { mask: u64::MAX, mult: 0, shift: 4 },
            raw: Scale { mask: u64::MAX, mult: 0, shift: 5 },
            ..PageValues::default()
        };
        for id in [0, 1, 4, 7, 11] {
            let nanos = if id == 4 { 3_500_000_000 << 5 } else { 7 << 4 };
            values.set(ClockId(id), Instant { secs: i64::from(id) + 100, nanos });
        }
        fn told<L: Layout>(values: &PageValues) -> [[u64; 2]; 3] {
            let page = ModelPage::new();
            page.publish::<L>(values);
            let mut times = [[0; 2]; 3];
            let [a, b, c] = &mut times;
            // SAFETY: the page is alive and holds this layout.
            unsafe { Reader::<L, 0, BEFORE_THE_COUNTER>::read(page.address(), a) };
            // SAFETY: as above.
            unsafe { Reader::<L, 11, AFTER_THE_COUNTER>::read(page.address(), b) };
            // SAFETY: as above.
            unsafe { Reader::<L, 4, BEFORE_THE_COUNTER>::read(page.address(), c) };
            times
        }
        let expected = [[100, 7], [111, 7], [107, 500_000_000]];
        assert_eq!(told::<Ours>(&values), expected);
        assert_eq!(told::<SixteenClocksources>(&values), expected);
        assert_eq!(told::<SetPerClocksource>(&values), expected);
        assert_eq!(told::<SingleClocksource>(&values)[..2], expected[..2]);
    }
}
