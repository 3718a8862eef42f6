//! The sequence protocol: how one writer and any number of readers share the page.
//!
//! `seq` is even while the page is stable and odd while it is being written. A reader takes `seq`,
//! loads what it needs, and takes `seq` again; if both are the same even number, no update began
//! or ended in between and what it loaded belongs to one update.
//!
//! # Why it is right
//!
//! All words are atomic, so there is no data race; what remains is which loads may be mixed. Four
//! orderings pair up, and every memory ordering of the project stands in this file:
//!
//! | in the writer | in the reader | together they forbid |
//! |---|---|---|
//! | W1 `fence(Release)` between the odd bump and the data | R2 `fence(Acquire)` between the data and the closing check | accepting a word of an update that had begun: having loaded one of its words, the closing check must see its odd bump or something later |
//! | W2 the even bump is a `Release` store | R1 the opening load is an `Acquire` load | loading words older than the update whose even number was taken |
//!
//! A page of a time namespace is written once and never made even, so it needs none of the four. Its
//! mode is what publishes it: W3 stores it with `Release` after the offsets, R3 loads it with
//! `Acquire` before them.
//!
//! A `Release` *store* of the odd number would not do instead of W1: it keeps earlier accesses
//! before it and lets the later data stores pass it. For the same reason an `Acquire` *load* in the
//! closing check would not do instead of R2.
//!
//! What they are on each machine:
//!
//! | | R1 | R2 | W1 | W2 |
//! |---|---|---|---|---|
//! | x86_64, i386 | a load | nothing | nothing | a store |
//! | aarch64 | `ldar` | `dmb ishld` | `dmb ish` | `stlr` |
//! | arm | `ldr`, `dmb ish` | `dmb ish` | `dmb ish` | `dmb ish`, `str` |
//! | riscv64 | `lw`, `fence r, rw` | `fence r, rw` | `fence rw, w` | `fence rw, w`, `sw` |
//!
//! On x86 all four cost nothing: they only bind the compiler. The counter, which no fence orders, is
//! the matter of the architecture's file in `vdso`. `protocol/model.rs` runs this very code under loom,
//! with a load and a comparison where x86's closing check is one instruction, and shows for each of
//! the four, and for each misplaced step, the wrong outcome that appears without it.
//!
//! A reader may run into `seq` returning to the same value after 2^31 updates within one read. At
//! a million updates a second that takes 35 minutes in which the reader stands still between two
//! loads and then finds the page stable; it is accepted.

use core::sync::atomic::{AtomicU32, Ordering, fence};

/// What the words of a page are made of.
///
/// The shipped one is [`Native`]. Tests put their own in its place, so that the model checker sees
/// every access of the shipped code.
pub trait Cells: 'static {
    /// A 32-bit word.
    type U32: Cell<u32>;
    /// A 64-bit word: one machine word, or two halves where the machine has only 32 bits.
    type U64: Cell<u64>;

    /// Attempts at a consistent read before the reader gives up and falls back.
    const ATTEMPTS: u32 = ATTEMPTS;

    /// A memory fence.
    fn fence(order: Ordering);
}

/// One word of the page.
pub trait Cell<T> {
    /// A word that holds `value`.
    fn new(value: T) -> Self;
    /// Loads the word.
    fn load(&self, order: Ordering) -> T;
    /// Stores into the word.
    fn store(&self, value: T, order: Ordering);

    /// Loads a word of the payload: whether it may be used is for the closing check to say.
    #[inline(always)] // a load instruction
    fn get(&self) -> T {
        self.load(Ordering::Relaxed)
    }
    /// Whether the word is `value`.
    #[inline(always)] // a comparison
    fn is(&self, value: T) -> bool
    where
        T: PartialEq,
    {
        self.get() == value
    }
    /// Stores a word of the payload.
    #[inline(always)] // a store instruction
    fn put(&self, value: T) {
        self.store(value, Ordering::Relaxed);
    }
    /// Loads a word that was stored once by [`put_published`](Self::put_published): whoever sees it
    /// sees what was stored before it.
    #[inline(always)] // a load instruction
    fn get_published(&self) -> T {
        // R3, partner of W3.
        self.load(Ordering::Acquire)
    }
    /// Stores a word that says that the words stored before it are complete.
    #[inline(always)] // a store instruction
    fn put_published(&self, value: T) {
        // W3, partner of R3.
        self.store(value, Ordering::Release);
    }
    /// Loads a word that also changes outside of critical sections, so that `seq` does not guard
    /// it. Where a word is two halves, they are made consistent here.
    #[inline(always)] // a load instruction
    fn get_moving(&self) -> T {
        self.get()
    }
    /// Stores a word that readers load with [`get_moving`](Self::get_moving).
    #[inline(always)] // a store instruction
    fn put_moving(&self, value: T) {
        self.put(value);
    }
}

/// The cells of the shipped page: atomics, in units of at most the machine word.
#[derive(Debug)]
pub enum Native {}

impl Cells for Native {
    type U32 = AtomicU32;
    #[cfg(target_pointer_width = "64")]
    type U64 = core::sync::atomic::AtomicU64;
    #[cfg(not(target_pointer_width = "64"))]
    type U64 = Halves<AtomicU32>;

    #[inline(always)] // a fence is at most one instruction, on x86_64 none
    fn fence(order: Ordering) {
        fence(order);
    }
}

impl Cell<u32> for AtomicU32 {
    fn new(value: u32) -> Self {
        Self::new(value)
    }
    #[inline(always)] // a load instruction
    fn load(&self, order: Ordering) -> u32 {
        self.load(order)
    }
    #[inline(always)] // a store instruction
    fn store(&self, value: u32, order: Ordering) {
        self.store(value, order);
    }
    /// Compilers load an atomic into a register before they compare it, which costs an instruction
    /// and a register on every read.
    #[cfg(all(
        any(all(target_arch = "x86_64", target_pointer_width = "64"), target_arch = "x86"),
        not(miri)
    ))]
    #[inline(always)] // a comparison
    fn is(&self, value: u32) -> bool {
        // SAFETY: `cmp` loads an aligned word, which is a relaxed atomic load on this architecture,
        // from a live reference; it writes the flags and nothing else. Not `nomem`, so that it stays
        // behind the fence before it, which holds the loads before that.
        unsafe {
            core::arch::asm!("cmp dword ptr [{word}], {value:e}", "jne {other}",
                 word = in(reg) self.as_ptr(), value = in(reg) value,
                 other = label { return false }, options(nostack, readonly));
        }
        true
    }
}

#[cfg(target_pointer_width = "64")]
impl Cell<u64> for core::sync::atomic::AtomicU64 {
    fn new(value: u64) -> Self {
        Self::new(value)
    }
    #[inline(always)] // a load instruction
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }
    #[inline(always)] // a store instruction
    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }
}

/// A 64-bit word as two 32-bit words, in the machine's byte order.
///
/// On a 32-bit machine a 64-bit atomic load may be a compare-and-swap, which faults on a read-only
/// page. Two halves never fault, and `seq` makes them consistent. It is compiled and tested on
/// every machine, used on those of 32 bits.
#[derive(Debug)]
#[repr(C, align(8))]
pub struct Halves<W> {
    /// In memory order: which of the two is the low half depends on the machine's byte order.
    words: [W; 2],
}

impl<W> Halves<W> {
    #[inline(always)] // a choice of address
    fn low(&self) -> &W {
        let [first, second] = &self.words;
        if cfg!(target_endian = "little") { first } else { second }
    }
    #[inline(always)] // a choice of address
    fn high(&self) -> &W {
        let [first, second] = &self.words;
        if cfg!(target_endian = "little") { second } else { first }
    }
}

/// How often a half-word pair that keeps moving is read again before the last value is taken.
///
/// The high half changes once in 2^32 counts. Two changes within one read mean a counter that is
/// no clock; what is returned then is one of the values that it passed through.
const MOVING_ATTEMPTS: u32 = 4;

impl<W: Cell<u32>> Cell<u64> for Halves<W> {
    #[allow(clippy::cast_possible_truncation, reason = "the halves of a word are meant")]
    fn new(value: u64) -> Self {
        let (low, high) = (W::new(value as u32), W::new((value >> 32) as u32));
        Self { words: if cfg!(target_endian = "little") { [low, high] } else { [high, low] } }
    }

    #[inline(always)] // two load instructions
    fn load(&self, order: Ordering) -> u64 {
        u64::from(self.low().load(order)) | (u64::from(self.high().load(order)) << 32)
    }

    #[inline(always)] // two store instructions
    #[allow(clippy::cast_possible_truncation, reason = "the halves of a word are meant")]
    fn store(&self, value: u64, order: Ordering) {
        self.low().store(value as u32, order);
        self.high().store((value >> 32) as u32, order);
    }

    /// High, low, high again: if the high half stood still, the low one belongs to it. `Acquire`
    /// keeps the three loads in order; the writer stores both halves as one 64-bit word.
    #[inline(always)] // part of the counter's read
    fn get_moving(&self) -> u64 {
        let mut high = self.high().load(Ordering::Acquire);
        let mut low = 0;
        for _ in 0..MOVING_ATTEMPTS {
            low = self.low().load(Ordering::Acquire);
            let again = self.high().load(Ordering::Relaxed);
            if again == high {
                break;
            }
            high = again;
        }
        u64::from(low) | (u64::from(high) << 32)
    }
}

/// Attempts at a consistent read in the shipped reader.
///
/// The longest publication is some 45 stores, under 100 ns; an attempt that fails costs between
/// 20 ns (an ordered counter read) and some 60 ns (a `pause` in a virtual machine). So the bound is
/// a hundred publications or more, and a page whose writer died in the middle of an update costs a
/// caller 10 to 40 microseconds and a system call, not its life.
pub const ATTEMPTS: u32 = 512;

/// What an attempt at a read found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt<T> {
    /// The value belongs to one update.
    Stable(T),
    /// An update was under way when the attempt began.
    Odd,
    /// An update began or ended during the attempt.
    Torn,
    /// One update says that what is asked for cannot be served.
    Unserved,
}

impl<T> Attempt<T> {
    /// The value of a stable attempt.
    #[inline(always)] // no instruction
    pub fn stable(self) -> Option<T> {
        match self {
            Self::Stable(value) => Some(value),
            Self::Odd | Self::Torn | Self::Unserved => None,
        }
    }
}

/// The sequence number of a page.
#[repr(transparent)]
pub struct Sequence<C: Cells>(C::U32);

impl<C: Cells> Sequence<C> {
    /// A sequence that stands at `value`.
    pub fn new(value: u32) -> Self {
        Self(C::U32::new(value))
    }

    /// Whether an update is under way, or was when its writer died.
    #[inline]
    pub fn is_odd(&self) -> bool {
        self.0.get() & 1 == 1
    }

    /// Makes the sequence odd for ever, for a page that is read in another way.
    #[inline]
    pub fn leave_odd(&self) {
        self.0.put(self.0.get() | 1);
    }

    /// One attempt at a consistent read of what `load` loads.
    ///
    /// `load` may see any mixture of updates, so it must neither trust what it loads nor have an
    /// effect of its own. When it returns `None`, it found nothing that can be served; that verdict
    /// is checked like a value, since a mixture may look unpublished although no update ever was.
    #[inline(always)] // the loads must be scheduled together with the caller's
    pub fn attempt<T>(&self, load: impl FnOnce() -> Option<T>) -> Attempt<T> {
        // R1, partner of W2: no load of the payload moves before this one.
        let before = self.0.load(Ordering::Acquire);
        if before & 1 == 1 {
            core::hint::cold_path();
            return Attempt::Odd;
        }
        let Some(value) = load() else {
            core::hint::cold_path();
            return if self.still(before) { Attempt::Unserved } else { Attempt::Torn };
        };
        if !self.still(before) {
            core::hint::cold_path();
            return Attempt::Torn;
        }
        Attempt::Stable(value)
    }

    /// The closing check: whether no update has touched the page since `before` was taken.
    #[inline(always)] // a comparison
    fn still(&self, before: u32) -> bool {
        // R2, partner of W1: no load of the payload moves below this fence, and the check is.
        C::fence(Ordering::Acquire);
        self.0.is(before)
    }

    /// A consistent read of what `load` loads, or `None` when that cannot be served or after
    /// [`Cells::ATTEMPTS`] failures.
    #[inline]
    pub fn read<T>(&self, load: impl Fn() -> Option<T>) -> Option<T> {
        for _ in 0..C::ATTEMPTS {
            match self.attempt(&load) {
                Attempt::Stable(value) => return Some(value),
                Attempt::Unserved => return None,
                Attempt::Odd | Attempt::Torn => core::hint::spin_loop(),
            }
        }
        None
    }

    /// Runs `store`, which writes every word that an update writes, inside a critical section. For
    /// the one writer of the page only.
    ///
    /// A page that a dead writer left odd is odd already; the first complete update makes it even
    /// again. Nothing in `store` may fail: whatever can be refused was refused before.
    #[inline]
    pub fn publish(&self, store: impl FnOnce()) {
        let odd = self.0.get() | 1;
        self.0.store(odd, Ordering::Relaxed);
        // W1, partner of R2: no store of the payload moves above this fence, and the bump is.
        C::fence(Ordering::Release);
        store();
        // W2, partner of R1: no store of the payload moves below this one.
        self.0.store(odd.wrapping_add(1), Ordering::Release);
    }

    /// Runs `store`, which writes a part of what an update writes, inside a critical section. For
    /// the one writer of the page only.
    ///
    /// A page that a dead writer left odd stays odd: its other words may be half-written, and only
    /// a complete update may call them stable.
    #[inline]
    pub fn amend(&self, store: impl FnOnce()) {
        if self.is_odd() {
            store();
        } else {
            self.publish(store);
        }
    }
}

#[cfg(test)]
pub(crate) mod counted;
#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use super::counted::Counted;
    use super::*;
    use core::cell::Cell as StdCell;

    #[test]
    fn an_update_moves_seq_by_two_and_wraps() {
        for start in [0, 2, 0x7fff_fffe, 0xffff_fffc, 0xffff_fffe] {
            let seq = Sequence::<Native>::new(start);
            seq.publish(|| assert!(seq.is_odd()));
            assert_eq!(seq.0.get(), start.wrapping_add(2));
        }
    }

    #[test]
    fn an_odd_page_is_adopted_by_the_next_update() {
        let seq = Sequence::<Native>::new(7);
        assert_eq!(seq.attempt(|| Some(())), Attempt::Odd);
        seq.publish(|| assert_eq!(seq.0.get(), 7));
        assert_eq!(seq.0.get(), 8);
    }

    #[test]
    fn what_is_left_odd_is_odd_whatever_it_was() {
        for (before, after) in [(0, 1), (7, 7), (u32::MAX, u32::MAX), (u32::MAX - 1, u32::MAX)] {
            let seq = Sequence::<Native>::new(before);
            seq.leave_odd();
            assert_eq!(seq.0.get(), after);
        }
    }

    #[test]
    fn only_a_stable_attempt_has_a_value() {
        let seq = Sequence::<Native>::new(0);
        assert_eq!(seq.attempt(|| Some(5)).stable(), Some(5));
        seq.leave_odd();
        assert_eq!(seq.attempt(|| Some(5)).stable(), None);
    }

    #[test]
    fn an_odd_page_stays_odd_under_a_partial_update() {
        let seq = Sequence::<Native>::new(7);
        seq.amend(|| ());
        assert_eq!(seq.0.get(), 7);
        let seq = Sequence::<Native>::new(8);
        seq.amend(|| assert!(seq.is_odd()));
        assert_eq!(seq.0.get(), 10);
    }

    #[test]
    fn a_read_that_overlaps_an_update_is_torn() {
        let seq = Sequence::<Native>::new(0);
        assert_eq!(
            seq.attempt(|| {
                seq.publish(|| ());
                Some(())
            }),
            Attempt::Torn
        );
        assert_eq!(seq.attempt(|| Some(5)), Attempt::Stable(5));
        assert_eq!(seq.attempt(|| None::<()>), Attempt::Unserved);
        assert_eq!(
            seq.attempt(|| {
                seq.publish(|| ());
                None::<()>
            }),
            Attempt::Torn,
            "a mixture that looks unpublished"
        );
    }

    #[test]
    fn a_read_is_repeated_until_stable_and_no_longer_than_the_bound() {
        let seq = Sequence::<Counted>::new(0);
        let left = StdCell::new(3);
        let value = seq.read(|| {
            if left.get() > 0 {
                left.set(left.get() - 1);
                seq.publish(|| ());
            }
            Some(left.get())
        });
        assert_eq!(value, Some(0));

        let attempts = StdCell::new(0);
        let gave_up = seq.read(|| {
            attempts.set(attempts.get() + 1);
            seq.publish(|| ());
            Some(())
        });
        assert_eq!((gave_up, attempts.get()), (None, ATTEMPTS));

        let dead = Sequence::<Counted>::new(1);
        assert_eq!(dead.read(|| unreachable!("an odd page is not loaded")), None::<()>);
    }

    #[test]
    fn halves_hold_a_word_in_the_machines_byte_order() {
        let halves = Halves::<AtomicU32>::new(0x0123_4567_89ab_cdef);
        assert_eq!(halves.get(), 0x0123_4567_89ab_cdef);
        assert_eq!(halves.get_moving(), 0x0123_4567_89ab_cdef);
        halves.put(u64::MAX - 1);
        assert_eq!(halves.get(), u64::MAX - 1);
        let [first, second] = &halves.words;
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&first.load(Ordering::Relaxed).to_ne_bytes());
        bytes[4..].copy_from_slice(&second.load(Ordering::Relaxed).to_ne_bytes());
        assert_eq!(u64::from_ne_bytes(bytes), u64::MAX - 1);
    }

    /// A word that another value follows after each load.
    struct Script(StdCell<&'static [u32]>);
    impl Cell<u32> for Script {
        fn new(_: u32) -> Self {
            Self(StdCell::new(&[]))
        }
        fn load(&self, _: Ordering) -> u32 {
            let [now, later @ ..] = self.0.get() else { panic!("script is over") };
            self.0.set(later);
            *now
        }
        fn store(&self, _: u32, _: Ordering) {}
    }

    #[test]
    fn a_moving_pair_never_mixes_two_values() {
        // The low half wraps while the high half is read: 0x0_ffff_ffff, then 0x1_0000_0000.
        let pair = |low: &'static [u32], high: &'static [u32]| Halves {
            words: [Script(StdCell::new(low)), Script(StdCell::new(high))],
        };
        assert_eq!(pair(&[0xffff_ffff], &[0, 0]).get_moving(), 0xffff_ffff);
        assert_eq!(pair(&[0xffff_ffff, 3], &[0, 1, 1]).get_moving(), 0x1_0000_0003);
        assert_eq!(pair(&[0, 0], &[0, 1, 1]).get_moving(), 0x1_0000_0000);
    }
}
