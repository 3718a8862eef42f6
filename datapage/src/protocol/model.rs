//! The protocol under loom: the shipped text, run through every order that the memory model allows.
//!
//! Both sides run on spawned threads, since loom's own thread sees fewer stale values. The writer
//! makes two updates of three words, the reader one attempt; what it may conclude is the set of
//! outcomes that all executions together reach. The shipped protocol must reach every legal one
//! and no other. Each weakened variant must reach a wrong one, which the test names.

use std::boxed::Box;
use std::collections::BTreeSet;
use std::format;
use std::string::String;
use std::sync::{Arc, Mutex, PoisonError};

use loom::sync::atomic::Ordering;

use super::{Attempt, Cell, Cells, Sequence};
use crate::{ClockId, ClockMode, Instant, Page, PageValues, Scale, Writer};

/// What a variant does less than the shipped protocol.
mod weaken {
    pub(super) const NOTHING: u8 = 0;
    pub(super) const R1_OPENING_ACQUIRE: u8 = 1;
    pub(super) const R2_READER_FENCE: u8 = 2;
    pub(super) const W1_WRITER_FENCE: u8 = 3;
    pub(super) const W2_CLOSING_RELEASE: u8 = 4;
}

/// Loom's atomics, with one ordering taken away.
enum Modelled<const WEAK: u8> {}

struct Word<A, const WEAK: u8>(A);

impl<const WEAK: u8> Cells for Modelled<WEAK> {
    type U32 = Word<loom::sync::atomic::AtomicU32, WEAK>;
    type U64 = Word<loom::sync::atomic::AtomicU64, WEAK>;

    const ATTEMPTS: u32 = 2;

    fn fence(order: Ordering) {
        match (WEAK, order) {
            (weaken::R2_READER_FENCE, Ordering::Acquire)
            | (weaken::W1_WRITER_FENCE, Ordering::Release) => {}
            _ => loom::sync::atomic::fence(order),
        }
    }
}

macro_rules! word {
    ($atomic:ty, $value:ty) => {
        impl<const WEAK: u8> Cell<$value> for Word<$atomic, WEAK> {
            fn new(value: $value) -> Self {
                Self(<$atomic>::new(value))
            }
            fn load(&self, order: Ordering) -> $value {
                let weak = WEAK == weaken::R1_OPENING_ACQUIRE && order == Ordering::Acquire;
                self.0.load(if weak { Ordering::Relaxed } else { order })
            }
            fn store(&self, value: $value, order: Ordering) {
                let weak = WEAK == weaken::W2_CLOSING_RELEASE && order == Ordering::Release;
                self.0.store(value, if weak { Ordering::Relaxed } else { order });
            }
        }
    };
}
word!(loom::sync::atomic::AtomicU32, u32);
word!(loom::sync::atomic::AtomicU64, u64);

type Words<C> = [<C as Cells>::U64; 3];
type Outcomes = BTreeSet<String>;

/// Loom with a bound on the switches between the threads that the scheduler may force. Without one
/// the small model takes minutes, and reaches no outcome that three switches do not reach.
fn bounded(switches: usize) -> loom::model::Builder {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(switches);
    model.max_branches = 10_000;
    model
}

fn put_all<C: Cells>(words: &Words<C>, value: u64) {
    for word in words {
        word.put(value);
    }
}

fn get_all<C: Cells>(words: &Words<C>) -> [u64; 3] {
    [words[0].get(), words[1].get(), words[2].get()]
}

/// Runs two updates against one attempt, in every order, and collects what the attempt found.
fn explore<C: Cells>(
    update: impl Fn(&Sequence<C>, &Words<C>, u64) + Copy + Send + Sync + 'static,
    attempt: impl Fn(&Sequence<C>, &Words<C>) -> Attempt<[u64; 3]> + Copy + Send + Sync + 'static,
) -> Outcomes
where
    Sequence<C>: Send + Sync,
    Words<C>: Send + Sync,
{
    let outcomes = Arc::new(Mutex::new(Outcomes::new()));
    let collected = Arc::clone(&outcomes);
    bounded(3).check(move || {
        let shared: Arc<(Sequence<C>, Words<C>)> =
            Arc::new((Sequence::new(0), core::array::from_fn(|_| C::U64::new(0))));
        let writers = Arc::clone(&shared);
        let writer = loom::thread::spawn(move || {
            for value in 1..=2 {
                update(&writers.0, &writers.1, value);
            }
        });
        let readers = Arc::clone(&shared);
        let outcomes = Arc::clone(&outcomes);
        let reader = loom::thread::spawn(move || {
            let outcome = match attempt(&readers.0, &readers.1) {
                Attempt::Stable(words) => format!("{}{}{}", words[0], words[1], words[2]),
                Attempt::Odd => "odd".into(),
                Attempt::Torn => "torn".into(),
                Attempt::Unserved => "unserved".into(),
            };
            outcomes.lock().unwrap_or_else(PoisonError::into_inner).insert(outcome);
        });
        writer.join().unwrap();
        reader.join().unwrap();
    });
    let outcomes = collected.lock().unwrap_or_else(PoisonError::into_inner);
    outcomes.clone()
}

fn shipped_update<C: Cells>(seq: &Sequence<C>, words: &Words<C>, value: u64) {
    seq.publish(|| put_all::<C>(words, value));
}

fn shipped_attempt<C: Cells>(seq: &Sequence<C>, words: &Words<C>) -> Attempt<[u64; 3]> {
    seq.attempt(|| Some(get_all::<C>(words)))
}

fn legal() -> Outcomes {
    ["000", "111", "222", "odd", "torn"].map(String::from).into()
}

#[test]
fn the_shipped_protocol_reaches_every_legal_outcome_and_no_other() {
    type Shipped = Modelled<{ weaken::NOTHING }>;
    let outcomes = explore::<Shipped>(shipped_update, shipped_attempt);
    assert_eq!(outcomes, legal());
}

/// Asserts that a variant accepts words of two updates, among them `named`.
#[track_caller]
fn must_mix(outcomes: &Outcomes, named: &str) {
    assert!(outcomes.contains(named), "accepts {named}; it reached {outcomes:?}");
    assert!(!legal().contains(named), "{named} must be a wrong outcome");
}

#[test]
fn without_the_opening_acquire_old_words_pass_for_new() {
    type Weak = Modelled<{ weaken::R1_OPENING_ACQUIRE }>;
    must_mix(&explore::<Weak>(shipped_update, shipped_attempt), "100");
}

#[test]
fn without_the_readers_fence_the_closing_check_sees_the_past() {
    type Weak = Modelled<{ weaken::R2_READER_FENCE }>;
    must_mix(&explore::<Weak>(shipped_update, shipped_attempt), "001");
}

#[test]
fn without_the_writers_fence_words_pass_the_odd_bump() {
    type Weak = Modelled<{ weaken::W1_WRITER_FENCE }>;
    must_mix(&explore::<Weak>(shipped_update, shipped_attempt), "001");
}

#[test]
fn without_the_closing_release_words_lag_behind_the_even_bump() {
    type Weak = Modelled<{ weaken::W2_CLOSING_RELEASE }>;
    must_mix(&explore::<Weak>(shipped_update, shipped_attempt), "100");
}

type Plain = Modelled<{ weaken::NOTHING }>;

#[test]
fn with_the_odd_bump_after_the_data_an_update_goes_unseen() {
    let late = |seq: &Sequence<Plain>, words: &Words<Plain>, value: u64| {
        put_all::<Plain>(words, value);
        seq.publish(|| ());
    };
    must_mix(&explore::<Plain>(late, shipped_attempt), "100");
}

#[test]
fn with_the_even_bump_before_the_data_a_half_update_is_called_stable() {
    let early = |seq: &Sequence<Plain>, words: &Words<Plain>, value: u64| {
        seq.publish(|| ());
        put_all::<Plain>(words, value);
    };
    must_mix(&explore::<Plain>(early, shipped_attempt), "100");
}

#[test]
fn without_the_closing_check_an_update_in_between_is_accepted() {
    let trusting = |seq: &Sequence<Plain>, words: &Words<Plain>| {
        if seq.0.load(Ordering::Acquire) & 1 == 1 {
            return Attempt::Odd;
        }
        Attempt::Stable(get_all::<Plain>(words))
    };
    must_mix(&explore::<Plain>(shipped_update, trusting), "001");
}

/// The shipped reader and writer on a whole page: one update of every word over another, one precise
/// read.
///
/// A page has so many words that one forced switch is what can be explored; which of the two updates
/// each load then sees is still explored in full.
#[test]
fn a_whole_page_is_read_from_one_update() {
    let values = |n: u64| {
        let mut values = PageValues {
            clock_mode: ClockMode::MEMORY,
            steered: Scale { mask: u64::MAX, mult: u32::try_from(n).unwrap(), shift: 0 },
            ..PageValues::default()
        };
        values.set(ClockId::TAI, Instant { secs: n.cast_signed(), nanos: n });
        values.validate().unwrap()
    };
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let collected = Arc::clone(&seen);
    bounded(1).check(move || {
        let page: &'static mut Page<Plain> = Box::leak(Box::new(Page::of_zeros()));
        let (mut writer, page) = Writer::split(page);
        writer.publish(&values(1));
        let writer = loom::thread::spawn(move || writer.publish(&values(2)));
        let seen = Arc::clone(&seen);
        let reader = loom::thread::spawn(move || {
            let slot = ClockId::TAI.slot().unwrap();
            // `None`: the bound on attempts, which is 2 here.
            let read = page.precise(slot, |_| None);
            if let Some(read) = read {
                let words = [u64::from(read.mult), read.sec, read.nsec];
                assert!(words.iter().all(|&word| word == words[0]), "mixed: {words:?}");
            }
            seen.lock().unwrap_or_else(PoisonError::into_inner).insert(read.map(|read| read.sec));
        });
        writer.join().unwrap();
        reader.join().unwrap();
    });
    let seen = collected.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(*seen, BTreeSet::from([None, Some(1), Some(2)]));
}
