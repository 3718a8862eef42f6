//! Reading a precise clock: page, counter, arithmetic.

use datapage::protocol::Attempt;
use datapage::{Precise, Slot};

use crate::platform::Platform;

/// One attempt at a snapshot of a clock on the steered scale.
#[inline(always)] // the body of each exported function that reads a precise clock
pub(crate) fn do_hres<P: Platform>(platform: &P, slot: Slot) -> Attempt<Precise> {
    platform.page().try_steered(slot, |mode| platform.counter(mode))
}

/// One attempt at a snapshot of MONOTONIC_RAW.
#[inline(always)] // a second copy of the few instructions above, with the other scale's address
pub(crate) fn do_hres_raw<P: Platform>(platform: &P) -> Attempt<Precise> {
    platform.page().try_raw(|mode| platform.counter(mode))
}

/// Both of the above in one piece of code, for machines where it is short of space.
#[inline(always)] // the body of the one function of a 32-bit image that reads a precise clock
pub(crate) fn do_hres_any<P: Platform>(platform: &P, slot: Slot) -> Attempt<Precise> {
    platform.page().try_precise(slot, |mode| platform.counter(mode))
}
