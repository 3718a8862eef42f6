//! Words that end a test whose reader has no end.
//!
//! A reader that lost its bound waits for ever on a page that stays odd, and a test that waits for
//! ever says nothing. These words are the shipped ones; each counts its loads, and panics when there
//! are more than a bounded reader could make.

use std::sync::atomic::AtomicU64;

use super::{ATTEMPTS, AtomicU32, Cell, Cells, Native, Ordering};

/// Loads of one word in one test: an attempt makes two of `seq`, an update one more, and a test
/// reads to the bound a few times at most.
const LOADS: u32 = 16 * ATTEMPTS;

/// The shipped words, counted.
pub(crate) enum Counted {}

impl Cells for Counted {
    type U32 = Word<AtomicU32>;
    type U64 = Word<AtomicU64>;

    fn fence(order: Ordering) {
        Native::fence(order);
    }
}

/// A word of [`Counted`].
pub(crate) struct Word<A> {
    word: A,
    loads: AtomicU32,
}

macro_rules! word {
    ($atomic:ty, $value:ty) => {
        impl Cell<$value> for Word<$atomic> {
            fn new(value: $value) -> Self {
                Self { word: <$atomic>::new(value), loads: AtomicU32::new(0) }
            }
            #[track_caller]
            fn load(&self, order: Ordering) -> $value {
                let before = self.loads.fetch_add(1, Ordering::Relaxed);
                assert!(before < LOADS, "a word was loaded {LOADS} times: the reader has no bound");
                self.word.load(order)
            }
            fn store(&self, value: $value, order: Ordering) {
                self.word.store(value, order);
            }
        }
    };
}
word!(AtomicU32, u32);
word!(AtomicU64, u64);
