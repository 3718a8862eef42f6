//! Reading a coarse clock: the page alone, in any clock mode.

use datapage::protocol::Attempt;
use datapage::{Coarse, Slot};

use crate::platform::Platform;

/// One attempt at a snapshot of a coarse clock.
#[inline(always)] // the body of each exported function that reads a coarse clock
pub(crate) fn do_coarse<P: Platform>(platform: &P, slot: Slot) -> Attempt<Coarse> {
    platform.page().try_coarse(slot)
}
