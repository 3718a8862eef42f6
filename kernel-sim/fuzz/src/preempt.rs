//! Words of a page at whose every access the one who makes it can be preempted.
//!
//! The reader and the writer are generic over what a page is made of ([`Cells`]). These words count
//! the accesses of the current thread and, at a chosen one, run whatever the test wants to happen
//! there: an update in the middle of a read, a read in the middle of an update, the death of the
//! writer. No timing is involved, so every such run can be repeated exactly.

use std::cell::{Cell as Slot, RefCell};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use datapage::protocol::{Cell, Cells};

/// Which kind of access is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A reader's.
    Load,
    /// The writer's.
    Store,
}

/// Atomic words that can be interrupted.
#[derive(Debug)]
pub enum Preemptible {}

impl Cells for Preemptible {
    type U32 = Word<AtomicU32>;
    type U64 = Word<AtomicU64>;

    /// Fewer than the shipped bound: what is tried here is that there is one.
    const ATTEMPTS: u32 = 6;

    fn fence(order: Ordering) {
        std::sync::atomic::fence(order);
    }
}

/// A word of [`Preemptible`].
#[derive(Debug)]
pub struct Word<A>(A);

macro_rules! word {
    ($atomic:ty, $value:ty) => {
        impl Cell<$value> for Word<$atomic> {
            fn new(value: $value) -> Self {
                Self(<$atomic>::new(value))
            }
            #[inline]
            fn load(&self, order: Ordering) -> $value {
                pass(Access::Load);
                self.0.load(order)
            }
            #[inline]
            fn store(&self, value: $value, order: Ordering) {
                pass(Access::Store);
                self.0.store(value, order);
            }
        }
    };
}
word!(AtomicU32, u32);
word!(AtomicU64, u64);

type Interruption = Box<dyn FnOnce()>;

thread_local! {
    static ARMED: Slot<Option<(Access, u32)>> = const { Slot::new(None) };
    static INTERRUPTION: RefCell<Option<Interruption>> = const { RefCell::new(None) };
}

/// Runs `body`; right before its access number `at` (counted from 0) of the kind `access`,
/// `interruption` runs. Says whether it did: `body` may have made fewer accesses.
///
/// Accesses of the interruption itself are not counted, and nothing interrupts it.
pub fn interrupted<T>(
    access: Access,
    at: u32,
    interruption: impl FnOnce() + 'static,
    body: impl FnOnce() -> T,
) -> (T, bool) {
    INTERRUPTION.set(Some(Box::new(interruption)));
    ARMED.set(Some((access, at)));
    // Disarmed also when `body` unwinds, as a writer that dies does.
    let guard = Disarm;
    let value = body();
    drop(guard);
    let happened = INTERRUPTION.take().is_none();
    (value, happened)
}

struct Disarm;

impl Drop for Disarm {
    fn drop(&mut self) {
        ARMED.set(None);
    }
}

/// One access passes by.
#[inline]
fn pass(access: Access) {
    if let Some((kind, left)) = ARMED.get()
        && kind == access
    {
        if left == 0 {
            ARMED.set(None);
            if let Some(interruption) = INTERRUPTION.take() {
                interruption();
            }
        } else {
            ARMED.set(Some((kind, left - 1)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn the_interruption_comes_right_before_the_chosen_access_and_once() {
        let word = Rc::new(<Preemptible as Cells>::U64::new(1));
        let inside = Rc::clone(&word);
        let (seen, happened) = interrupted(
            Access::Load,
            1,
            move || inside.put(inside.get() + 10),
            || [word.get(), word.get(), word.get()],
        );
        assert_eq!((seen, happened), ([1, 11, 11], true));
    }

    #[test]
    fn a_body_with_fewer_accesses_is_not_interrupted_later() {
        let word = <Preemptible as Cells>::U32::new(1);
        let ((), happened) = interrupted(Access::Store, 2, || panic!("too late"), || word.put(2));
        assert!(!happened);
        word.put(3);
        word.put(4);
        assert_eq!(word.get(), 4);
    }
}
