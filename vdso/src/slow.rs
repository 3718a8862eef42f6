//! The way of a read that the quick attempt could not finish, out of line.
//!
//! An exported function makes one attempt inline: even sequence number, known counter, a product of
//! 63 bits. What it can neither answer nor leave to the kernel at once lands here, begins anew, and
//! may take its time: retries while a writer is at work, pages of a time namespace, long gaps since
//! the last update. Keeping it out of the exported functions is what lets those run without
//! saving a register.

use datapage::{ClockId, ClockSet, Page, Slot, Time, TimeZone};

use crate::platform::Platform;

/// A clock, and the timezone of the same update if the page serves it.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) time: Time,
    pub(crate) zone: Option<TimeZone>,
}

/// Reads a clock by all means that there are; `None` means fallback.
#[cold]
#[inline] // a copy of the image's own, in place of a symbol; being cold, it stays out of line
pub(crate) fn read<P: Platform>(platform: &P, slot: Slot) -> Option<Reading> {
    let offset = platform.page().namespace_offset(slot);
    let page = kernel_page(platform);
    let (precise, zone) = if ClockSet::COARSE.contains(slot.clock().set()) {
        (page.coarse(slot)?.standing_still()?, None)
    } else {
        let counter = |mode| platform.counter(mode);
        page.precise_with_timezone(slot, counter)?
    };
    let time = precise.time()?;
    let time = match offset {
        Some(offset) => offset.apply(time)?,
        None => time,
    };
    Some(Reading { time, zone })
}

/// The resolution of a clock in nanoseconds; `None` means fallback.
#[cold]
#[inline] // as `read`
pub(crate) fn resolution<P: Platform>(platform: &P, clock: ClockId) -> Option<u32> {
    clock.slot().and_then(|slot| kernel_page(platform).resolution(slot))
}

/// The page that the timekeeper writes, be it behind a namespace's or not.
#[inline]
pub(crate) fn kernel_page<P: Platform>(platform: &P) -> &Page<P::Cells> {
    if platform.page().is_namespace() { platform.page_behind_namespace() } else { platform.page() }
}
