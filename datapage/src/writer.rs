//! The writer's side, for kernels.
//!
//! One writer at a time: whoever calls holds the timekeeper's lock, or is the only CPU that ticks.
//! Nothing here locks, allocates, waits or panics, so it may be called with interrupts off.

use core::fmt;

use crate::clocks::Features;
use crate::layout::{ABI, MAGIC, Page};
use crate::protocol::{Cell, Cells, Native};
use crate::update::{Scale, TimeZone, Update};

/// What a page says of itself, written once by [`Writer::format`].
///
/// Whoever maps an image compares it with the image's note; a read never looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Version of the layout.
    pub abi: u32,
    /// Distance between the page slots below the image, in bytes.
    pub page_bytes: u32,
    /// What the kernel maintains beyond the clocks.
    pub features: Features,
}

/// A page that is not one of ours, or not of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderMismatch {
    /// The magic number is missing: a page that was never formatted, or something else.
    Magic {
        /// What stands in its place.
        found: u64,
    },
    /// Another version of the layout.
    Abi {
        /// The page's version.
        found: u32,
    },
}

impl fmt::Display for HeaderMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Magic { found } => {
                write!(f, "magic is {found:#018x} where a data page has {MAGIC:#018x}")
            }
            Self::Abi { found } => {
                write!(f, "page has ABI version {found}, this writer knows {ABI}")
            }
        }
    }
}

impl core::error::Error for HeaderMismatch {}

impl<C: Cells> Page<C> {
    /// What the page says of itself.
    ///
    /// # Errors
    /// What is wrong, if it is no page of this layout.
    pub fn header(&self) -> Result<Header, HeaderMismatch> {
        let magic = self.magic.get();
        if magic != MAGIC {
            return Err(HeaderMismatch::Magic { found: magic });
        }
        let abi = self.abi.get();
        if abi != ABI {
            return Err(HeaderMismatch::Abi { found: abi });
        }
        Ok(Header { abi, page_bytes: self.page_bytes.get(), features: self.features() })
    }

    /// Whether an update is under way, or was when its writer died.
    #[must_use]
    pub fn is_odd(&self) -> bool {
        self.seq.is_odd()
    }
}

/// The one writer of a page.
///
/// # Invariants
/// The page stays writable for `'p`, and no other `Writer` of it publishes at the same time.
#[doc(alias = "update_vsyscall")]
pub struct Writer<'p, C: Cells = Native> {
    page: &'p Page<C>,
}

impl<'p> Writer<'p> {
    /// The writer of the page at `page`, for memory that came from a mapping.
    ///
    /// The page is left as it is: a fresh one wants [`format`](Self::format), one whose writer died
    /// can be [adopted](Self::adopt).
    ///
    /// # Safety
    /// For all of `'p`, the page is mapped and writable here, and whoever else writes its bytes
    /// does so in whole words.
    pub unsafe fn at(page: *mut Page) -> Self {
        // SAFETY: the caller promises a mapped page, which is aligned as `Page` by its type's
        // contract; all its words are atomic.
        let page = unsafe { Page::at(page.cast_const().cast()) };
        // INVARIANT: writable by the caller's promise.
        Self { page }
    }
}

impl<'p, C: Cells> Writer<'p, C> {
    /// Both sides of a page that the caller owns.
    pub fn split(page: &'p mut Page<C>) -> (Self, &'p Page<C>) {
        let page = &*page;
        // INVARIANT: the exclusive borrow proves that the page is writable and has no other writer.
        (Self { page }, page)
    }

    /// Makes any page one that serves nothing yet; whatever stood in it is gone.
    ///
    /// `page_bytes` is the distance between the page slots below the image.
    pub fn format(&mut self, features: Features, page_bytes: u32) {
        let page = self.page;
        page.seq.publish(|| {
            page.magic.put(MAGIC);
            page.abi.put(ABI);
            page.page_bytes.put(page_bytes);
            page.features.put(features.bits());
            put_timezone(page, TimeZone::default());
            put_update(page, &Update::default());
        });
    }

    /// Takes over a page whose writer died, perhaps in the middle of an update.
    ///
    /// An odd page stays odd, and its readers fall back, until the first [`publish`](Self::publish)
    /// replaces every word that the dead writer may have left half-written.
    ///
    /// # Errors
    /// What is wrong, if it is no page of this layout.
    pub fn adopt(self) -> Result<Self, HeaderMismatch> {
        self.page.header()?;
        Ok(self)
    }

    /// Publishes an update: readers see all of it or nothing of it.
    #[doc(alias = "update_vsyscall")]
    pub fn publish(&mut self, update: &Update) {
        let page = self.page;
        page.seq.publish(|| put_update(page, update));
    }

    /// Publishes a timezone.
    ///
    /// The clocks are untouched, so a page that its writer left odd stays odd.
    #[doc(alias = "update_vsyscall_tz")]
    pub fn set_timezone(&mut self, timezone: TimeZone) {
        let page = self.page;
        page.seq.amend(|| put_timezone(page, timezone));
    }

    /// Moves the counter of [`ClockMode::MEMORY`](crate::ClockMode::MEMORY).
    ///
    /// This is a counter, not an update: it may move at any time, and `seq` does not.
    #[inline]
    pub fn set_memory_counter(&mut self, cycles: u64) {
        self.page.memory_counter.put_moving(cycles);
    }

    /// The page, for reading.
    #[must_use]
    pub fn page(&self) -> &'p Page<C> {
        self.page
    }
}

#[inline]
fn put_update<C: Cells>(page: &Page<C>, update: &Update) {
    let values = update.values();
    page.clock_mode.put(values.clock_mode.0.cast_unsigned());
    page.cycle_last.put(values.cycle_last);
    let [steered, raw] = &page.cs;
    for (cells, scale) in [(steered, values.steered), (raw, values.raw)] {
        let Scale { mask, mult, shift } = scale;
        cells.mask.put(mask);
        cells.mult.put(mult);
        cells.shift.put(shift);
    }
    for (cells, &(sec, nsec)) in page.basetime.iter().zip(update.words()) {
        cells.sec.put(sec);
        cells.nsec.put(nsec);
    }
    page.hrtimer_res.put(values.hrtimer_res);
    page.coarse_res.put(values.coarse_res);
}

#[inline]
fn put_timezone<C: Cells>(page: &Page<C>, timezone: TimeZone) {
    page.tz_minuteswest.put(timezone.minutes_west.cast_unsigned());
    page.tz_dsttime.put(timezone.dst_time.cast_unsigned());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::BASES;
    use crate::protocol::Attempt;
    use crate::protocol::counted::Counted;
    use crate::{ClockId, ClockMode, ClockSet, Instant, PageValues, Slot, Time};

    fn values() -> PageValues {
        let mut values = PageValues {
            clock_mode: ClockMode::MEMORY,
            cycle_last: 100,
            steered: Scale { mask: u64::MAX, mult: 3, shift: 1 },
            raw: Scale { mask: u64::MAX, mult: 7, shift: 2 },
            hrtimer_res: 1,
            coarse_res: 4_000_000,
            ..PageValues::default()
        };
        for id in [0, 1, 4, 5, 6, 7, 11] {
            values.set(ClockId(id), Instant { secs: i64::from(id) - 2, nanos: 8 });
        }
        values
    }

    fn slot(id: i32) -> Slot {
        ClockId(id).slot().unwrap()
    }

    #[test]
    fn what_is_published_is_what_is_read() {
        let mut page = Page::zeroed();
        let (mut writer, page) = Writer::split(&mut page);
        writer.format(Features::GETCPU_RDPID, 4096);
        writer.publish(&values().validate().unwrap());
        writer.set_memory_counter(110);
        writer.set_timezone(TimeZone { minutes_west: -90, dst_time: 1 });

        assert_eq!(page.published(), ClockSet::SERVED);
        let precise = |id| page.precise(slot(id), |_| None).unwrap().time().unwrap();
        assert_eq!(precise(0), Time { secs: -2, nanos: 19 });
        assert_eq!(precise(4), Time { secs: 2, nanos: 19 });
        assert_eq!(
            page.coarse(slot(5)).unwrap().standing_still().unwrap().time(),
            Some(Time { secs: 3, nanos: 8 })
        );
        assert_eq!(page.resolution(slot(7)), Some(1));
        assert_eq!(page.resolution(slot(6)), Some(4_000_000));
        assert_eq!(page.timezone(), Some(TimeZone { minutes_west: -90, dst_time: 1 }));
        assert_eq!(page.realtime_seconds(), Some(-2));
        let header = Header { abi: 1, page_bytes: 4096, features: Features::GETCPU_RDPID };
        assert_eq!(page.header(), Ok(header));
    }

    #[test]
    fn the_instant_zero_is_served_and_an_unpublished_clock_is_not() {
        let mut page = Page::zeroed();
        let (mut writer, page) = Writer::split(&mut page);
        assert_eq!(page.realtime_seconds(), None);
        let mut values = values();
        for id in [0, 5] {
            values.set(ClockId(id), Instant { secs: 0, nanos: 0 });
        }
        values.clear(ClockId(11));
        writer.publish(&values.validate().unwrap());
        writer.set_memory_counter(100);
        let zero = Time { secs: 0, nanos: 0 };
        assert_eq!(page.precise(slot(0), |_| None).unwrap().time(), Some(zero));
        assert_eq!(page.coarse(slot(5)).unwrap().standing_still().unwrap().time(), Some(zero));
        assert_eq!(page.realtime_seconds(), Some(0));
        assert_eq!(page.precise(slot(11), |_| None), None);
        assert_eq!(page.resolution(slot(11)), None);
    }

    #[test]
    fn a_page_left_odd_serves_nothing_until_it_was_rewritten_whole() {
        let mut page = Page::<Counted>::of_zeros();
        let (mut writer, page) = Writer::split(&mut page);
        writer.format(Features::empty(), 4096);
        writer.publish(&values().validate().unwrap());
        // The writer dies in the middle of an update.
        let dies = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            page.seq.publish(|| {
                page.cycle_last.put(77);
                std::panic::resume_unwind(std::boxed::Box::new(()));
            });
        }));
        assert!(dies.is_err() && page.is_odd());
        assert_eq!(page.coarse(slot(5)), None);

        let mut writer = writer.adopt().unwrap();
        writer.set_timezone(TimeZone::default());
        assert!(page.is_odd(), "a partial update must not call the page stable");
        writer.publish(&values().validate().unwrap());
        assert!(!page.is_odd());
        writer.set_memory_counter(100);
        let precise = page.precise(slot(0), |_| None).unwrap();
        assert_eq!((precise.cycles, precise.mult), (0, 3));
    }

    #[test]
    fn an_update_leaves_nothing_of_the_one_before() {
        let words = |page: &Page| {
            let scales = page.cs.iter().flat_map(|scale| {
                [scale.mask.get(), scale.mult.get().into(), scale.shift.get().into()]
            });
            let bases = page.basetime.iter().flat_map(|base| [base.sec.get(), base.nsec.get()]);
            let others = [
                page.clock_mode.get().into(),
                page.cycle_last.get(),
                page.hrtimer_res.get().into(),
                page.coarse_res.get().into(),
            ];
            scales.chain(bases).chain(others).collect::<std::vec::Vec<u64>>()
        };
        let other = PageValues {
            clock_mode: ClockMode::COUNTER,
            cycle_last: 7,
            steered: Scale { mask: u64::MAX >> 8, mult: 5, shift: 3 },
            raw: Scale { mask: u64::MAX >> 9, mult: 9, shift: 4 },
            hrtimer_res: 4_000_000,
            coarse_res: 1_000_000,
            ..PageValues::default()
        };
        let [values, other] = [values(), other].map(|values| values.validate().unwrap());
        for (before, after) in [(&values, &other), (&other, &values)] {
            let [mut fresh, mut used] = [Page::zeroed(), Page::zeroed()];
            let (mut writer, fresh) = Writer::split(&mut fresh);
            writer.publish(after);
            let (mut writer, used) = Writer::split(&mut used);
            writer.publish(before);
            writer.publish(after);
            assert_eq!(words(used), words(fresh));
        }
    }

    #[test]
    fn whatever_changes_a_clock_or_the_timezone_tears_a_read() {
        let mut page = Page::zeroed();
        let (mut writer, page) = Writer::split(&mut page);
        writer.format(Features::empty(), 4096);
        let update = values().validate().unwrap();
        let mut torn_by = |change: &mut dyn FnMut(&mut Writer<'_, Native>)| {
            page.seq.attempt(|| {
                change(&mut writer);
                Some(())
            })
        };
        assert_eq!(torn_by(&mut |writer| writer.publish(&update)), Attempt::Torn);
        assert_eq!(torn_by(&mut |writer| writer.set_timezone(TimeZone::default())), Attempt::Torn);
        // The counter runs on its own, as a real one does.
        assert_eq!(torn_by(&mut |writer| writer.set_memory_counter(7)), Attempt::Stable(()));
    }

    #[test]
    fn a_page_of_another_kind_is_not_adopted() {
        let mut page = Page::zeroed();
        let (writer, _) = Writer::split(&mut page);
        assert_eq!(writer.adopt().err(), Some(HeaderMismatch::Magic { found: 0 }));
        let (mut writer, page) = Writer::split(&mut page);
        writer.format(Features::empty(), 4096);
        page.abi.put(2);
        assert_eq!(writer.adopt().err(), Some(HeaderMismatch::Abi { found: 2 }));
    }

    #[test]
    fn formatting_leaves_nothing_of_what_was_there() {
        let mut page = Page::zeroed();
        let (mut writer, page) = Writer::split(&mut page);
        writer.publish(&values().validate().unwrap());
        writer.set_timezone(TimeZone { minutes_west: 5, dst_time: 5 });
        writer.format(Features::empty(), 4096);
        assert_eq!(page.published(), ClockSet::empty());
        assert_eq!((page.hrtimer_res.get(), page.tz_minuteswest.get()), (0, 0));
        for id in (0..).take(BASES) {
            assert_eq!(ClockId(id).slot().and_then(|slot| page.resolution(slot)), None);
        }
    }
}
