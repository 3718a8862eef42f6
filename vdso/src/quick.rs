//! The quick attempt at a clock: the hot path of every call that tells the time.
//!
//! On a 64-bit machine it is inlined into each exported function, which so runs without saving a
//! register. On a 32-bit one it needs every register that there is, so nothing is won by inlining,
//! and five copies of it would not fit into an image of two pages: there it is one function.

use datapage::cycles::WideTime;
use datapage::protocol::Attempt;
use datapage::{ClockId, Coarse, Precise, Route, Time};

use crate::do_coarse::do_coarse;
use crate::do_hres::{do_hres, do_hres_any, do_hres_raw};
use crate::platform::Platform;

/// What a quick attempt came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quick<T> {
    /// What was asked for was answered.
    Done(T),
    /// The page cannot serve it: the kernel is to be asked.
    Unserved,
    /// Anything else, for the slow way to find out.
    Undecided,
}

impl<T> Quick<T> {
    /// An attempt, what `finish` makes of its words (`None` where they are not as usual), and what
    /// `answer` makes of that.
    #[inline(always)] // no instruction
    fn of<const WAY: usize, W, V>(
        attempt: Attempt<W>,
        finish: impl FnOnce(W) -> Option<V>,
        answer: impl FnOnce(V) -> T,
    ) -> Self {
        match attempt {
            Attempt::Stable(words) => {
                keep_apart::<WAY>();
                if let Some(value) = finish(words) {
                    let done = answer(value);
                    keep_apart::<WAY>();
                    return Self::Done(done);
                }
            }
            Attempt::Unserved => return Self::Unserved,
            Attempt::Odd | Attempt::Torn => {}
        }
        keep_apart::<WAY>();
        Self::Undecided
    }
}

const STEERED: usize = 0;
const RAW: usize = 1;
const COARSE: usize = 2;
const RESOLUTION: usize = 3;

/// No instruction, but a different one for each way through a function.
///
/// Ways that end alike are joined by the compiler, and tests that lead to one place become one
/// test: a jump and some instructions more on every read. That is a sixth of a coarse one.
#[inline(always)] // no instruction
fn keep_apart<const WAY: usize>() {
    // A 32-bit image is glad about each byte.
    #[cfg(target_pointer_width = "64")]
    // SAFETY: a comment in the assembly, which every target's assembler writes like this.
    unsafe {
        core::arch::asm!("/* {way} */", way = const WAY, options(nomem, nostack, preserves_flags));
    }
}

/// No instruction, but `nanos` stays in its register until here.
///
/// Behind the two stores of an answer this makes the nanoseconds outlive the seconds, so that they
/// get the lower register, and with them the index that they are loaded by. On x86_64 the lower ones
/// need no prefix: the whole coarse read is 64 bytes then, the unit in which the CPU keeps decoded
/// instructions. One byte more is a cycle more, of six.
#[inline(always)] // no instruction
pub(crate) fn keep(nanos: u64) {
    #[cfg(target_pointer_width = "64")]
    // SAFETY: a comment in the assembly, as in `keep_apart`.
    unsafe {
        core::arch::asm!("/* {nanos} */", nanos = in(reg) nanos, options(nomem, nostack, preserves_flags));
    }
    let _ = nanos;
}

/// The time of a clock, given to `answer`.
#[inline(always)] // the hot path, see above
pub(crate) fn time<P: Platform, T>(
    platform: &P,
    clock: ClockId,
    answer: impl FnOnce(WideTime) -> T,
) -> Quick<T> {
    if cfg!(not(target_pointer_width = "64")) {
        return match compact_time(platform, clock) {
            Some(time) => Quick::Done(answer(time.into())),
            None => Quick::Undecided,
        };
    }
    by_route(platform, clock, |read| read.quick_time(), |read| read.quick_time(), answer)
}

/// The same in nanoseconds, without splitting them into seconds on the way; for 64-bit machines.
#[inline(always)] // the hot path
pub(crate) fn nanos<P: Platform>(platform: &P, clock: ClockId) -> Quick<i64> {
    by_route(platform, clock, |read| read.quick_nanos(), |read| read.quick_nanos(), |nanos| nanos)
}

/// Each kind of clock in its own way.
#[inline(always)] // the hot path
fn by_route<P: Platform, V, T>(
    platform: &P,
    clock: ClockId,
    precise: impl FnOnce(Precise) -> Option<V>,
    coarse: impl FnOnce(Coarse) -> Option<V>,
    answer: impl FnOnce(V) -> T,
) -> Quick<T> {
    match clock.route() {
        Route::Steered(slot) => {
            Quick::of::<STEERED, _, _>(do_hres(platform, slot), precise, answer)
        }
        Route::Raw => Quick::of::<RAW, _, _>(do_hres_raw(platform), precise, answer),
        Route::Coarse(slot) => Quick::of::<COARSE, _, _>(do_coarse(platform, slot), coarse, answer),
        Route::Kernel => Quick::Unserved,
    }
}

/// The time of a clock if one attempt succeeds, in as little code as possible.
#[inline(never)] // one copy for all functions of a 32-bit image, see above
fn compact_time<P: Platform>(platform: &P, clock: ClockId) -> Option<Time> {
    let slot = clock.slot()?;
    let read = if slot.is_coarse() {
        do_coarse(platform, slot).stable()?.standing_still()?
    } else {
        do_hres_any(platform, slot).stable()?
    };
    read.quick_time().map(Time::from)
}

/// The resolution of a clock, given to `answer`. Nobody asks often: a 32-bit image spends no bytes
/// on it.
#[inline(always)] // the hot path
pub(crate) fn resolution<P: Platform, T>(
    platform: &P,
    clock: ClockId,
    answer: impl FnOnce(WideTime) -> T,
) -> Quick<T> {
    if cfg!(not(target_pointer_width = "64")) {
        return Quick::Undecided;
    }
    match clock.slot() {
        Some(slot) => {
            let read = platform.page().try_resolution(slot);
            Quick::of::<RESOLUTION, _, _>(read, |read| read.quick_time(), answer)
        }
        None => Quick::Unserved,
    }
}
