//! Reading a coarse clock: the page alone, in any clock mode.

use datapage::{Coarse, Slot};

use crate::platform::Platform;

/// One attempt at a snapshot of a coarse clock; `None` means the slow way.
#[inline(always)] // the body of each exported function that reads a coarse clock
pub(crate) fn do_coarse<P: Platform>(platform: &P, slot: Slot) -> Option<Coarse> {
    platform.page().try_coarse(slot)
}
