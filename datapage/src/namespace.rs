//! Time namespaces: a page of offsets in front of the kernel's page.
//!
//! A program in a time namespace sees a page of the namespace in slot -4, and the kernel's page in
//! slot -3. The namespace's page has the same layout: its `seq` is odd for ever, so that the quick
//! path of every reader fails at its first test and pays nothing for the feature; its `clock_mode`
//! is [`ClockMode::TIME_NAMESPACE`]; and the slots of `basetime` hold what to add to each clock,
//! in seconds and plain nanoseconds. Its header is the kernel's: `getcpu` looks there for the features.
//! All else in it is zero.
//!
//! The page is written once, before the first program of the namespace can see it, and never again.
//! Linux freezes the offsets at the same point (`time_namespaces(7)`).

use crate::clocks::{ClockId, ClockMode, Features, Slot};
use crate::cycles::{self, NANOS_PER_SEC, Time};
use crate::layout::{MAGIC, Page};
use crate::protocol::{Cell, Cells};
use crate::writer::Writer;

/// What a namespace adds to a clock.
///
/// # Invariants
/// One that [`Offset::new`] made has fewer than 10^9 nanoseconds; one that was read from a page may
/// have any number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offset {
    secs: i64,
    nanos: u64,
}

impl Offset {
    /// An offset of `secs` seconds and `nanos` nanoseconds, which count upwards: minus half a second
    /// is `{ -1, 500_000_000 }`. `None` if `nanos` is not below 10^9.
    #[must_use]
    pub const fn new(secs: i64, nanos: u32) -> Option<Self> {
        if nanos < NANOS_PER_SEC { Some(Self { secs, nanos: nanos as u64 }) } else { None }
    }

    /// `time` in the namespace; `None` if the seconds do not fit in an `i64`.
    #[inline]
    #[must_use]
    pub fn apply(self, time: Time) -> Option<Time> {
        let secs = time.secs.checked_add(self.secs)?;
        cycles::carry(secs, self.nanos.checked_add(time.nanos.into())?.into(), 0)
    }
}

/// The offsets of a namespace (`/proc/PID/timens_offsets`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offsets {
    /// Added to MONOTONIC, MONOTONIC_RAW and MONOTONIC_COARSE.
    pub monotonic: Offset,
    /// Added to BOOTTIME.
    pub boottime: Offset,
}

impl<C: Cells> Page<C> {
    /// What the namespace of this page adds to the clock of `slot`; `None` if this is the kernel's
    /// own page, whatever state that is in.
    #[inline]
    #[must_use]
    pub fn namespace_offset(&self, slot: Slot) -> Option<Offset> {
        if !self.is_namespace() {
            return None;
        }
        let base = self.base(slot);
        Some(Offset { secs: base.sec.get().cast_signed(), nanos: base.nsec.get() })
    }

    /// Whether this is the page of a time namespace.
    #[inline]
    #[must_use]
    pub fn is_namespace(&self) -> bool {
        ClockMode(self.clock_mode.get_published().cast_signed()) == ClockMode::TIME_NAMESPACE
            && self.seq.is_odd()
    }
}

impl<C: Cells> Writer<'_, C> {
    /// Makes a fresh page one of a time namespace. It is complete then; nothing may be published
    /// through it. `features` are those of the kernel's own page.
    pub fn format_namespace(self, offsets: &Offsets, features: Features, page_bytes: u32) {
        let page = self.page();
        page.seq.leave_odd();
        let slots = [
            (ClockId::MONOTONIC, offsets.monotonic),
            (ClockId::MONOTONIC_RAW, offsets.monotonic),
            (ClockId::MONOTONIC_COARSE, offsets.monotonic),
            (ClockId::BOOTTIME, offsets.boottime),
        ];
        for (clock, offset) in slots {
            if let Some(slot) = clock.slot() {
                let base = page.base(slot);
                base.sec.put(offset.secs.cast_unsigned());
                base.nsec.put(offset.nanos);
            }
        }
        page.magic.put(MAGIC);
        page.abi.put(crate::layout::ABI);
        page.page_bytes.put(page_bytes);
        page.features.put(features.bits());
        page.clock_mode.put_published(ClockMode::TIME_NAMESPACE.0.cast_unsigned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PageValues;
    use crate::protocol::Attempt;

    fn slot(id: i32) -> Slot {
        ClockId(id).slot().unwrap()
    }

    #[test]
    fn offsets_carry_and_borrow() {
        let at = |secs, nanos| Time { secs, nanos };
        let half = Offset::new(-1, 500_000_000).unwrap();
        assert_eq!(half.apply(at(5, 200_000_000)), Some(at(4, 700_000_000)));
        assert_eq!(half.apply(at(5, 700_000_000)), Some(at(5, 200_000_000)));
        assert_eq!(Offset::new(1, 999_999_999).unwrap().apply(at(0, 1)), Some(at(2, 0)));
        assert_eq!(Offset::new(1, 0).unwrap().apply(at(i64::MAX, 0)), None);
        assert_eq!(Offset::new(0, 999_999_999).unwrap().apply(at(i64::MAX, 1)), None);
        assert_eq!(Offset::new(0, 1_000_000_000), None);
        let any = Offset { secs: 0, nanos: u64::MAX };
        assert_eq!(any.apply(at(0, 999_999_999)), None, "any bits in a page are survived");
    }

    #[test]
    fn a_namespace_moves_the_monotonic_and_the_boot_clock_and_no_other() {
        let mut page = Page::zeroed();
        let (writer, page) = Writer::split(&mut page);
        let monotonic = Offset::new(-7, 5).unwrap();
        let boottime = Offset::new(9, 6).unwrap();
        let features = Features::GETCPU_SEGMENT_LIMIT;
        writer.format_namespace(&Offsets { monotonic, boottime }, features, 4096);
        assert!(page.is_namespace() && page.is_odd());
        assert_eq!(page.features(), features, "getcpu asks the page in slot -4");
        for id in [1, 4, 6] {
            assert_eq!(page.namespace_offset(slot(id)), Some(monotonic), "clock {id}");
        }
        assert_eq!(page.namespace_offset(slot(7)), Some(boottime));
        for id in [0, 5, 11] {
            assert_eq!(page.namespace_offset(slot(id)), Some(Offset::default()), "clock {id}");
        }
        assert_eq!(page.try_steered(slot(1), |_| None), Attempt::Odd, "the quick path must fail");
        assert_eq!(page.try_coarse(slot(6)), Attempt::Odd);
    }

    #[test]
    fn a_kernels_page_is_none_of_a_namespace_in_any_state() {
        let mut page = Page::zeroed();
        let (mut writer, page) = Writer::split(&mut page);
        assert!(!page.is_namespace());
        writer.format(Features::empty(), 4096);
        let mut values = PageValues::default();
        writer.publish(&values.validate().unwrap());
        assert!(!page.is_namespace());
        // An even page whose mode says so serves no clock, but is no namespace's either.
        values.clock_mode = ClockMode::TIME_NAMESPACE;
        writer.publish(&values.validate().unwrap());
        assert!(!page.is_namespace());
    }
}
