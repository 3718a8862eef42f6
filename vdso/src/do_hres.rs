//! Reading a precise clock: page, counter, arithmetic.

use datapage::{Precise, Slot};

use crate::platform::Platform;

/// One consistent snapshot of a precise clock and its counter; `None` means fallback.
#[inline(always)] // the body of each exported function that reads a precise clock
pub(crate) fn do_hres<P: Platform>(platform: &P, slot: Slot) -> Option<Precise> {
    platform.page().precise(slot, |mode| platform.counter(mode))
}
