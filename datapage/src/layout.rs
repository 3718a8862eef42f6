//! The page, byte by byte (ABI version 1; the specification is `docs/page.md`).
//!
//! The first cache line holds what every precise read needs and the wall clock; [`offset`] names
//! the place of each field, and assertions below hold the places that other programs rely on.

use memoffset::offset_of;
use static_assertions::{const_assert, const_assert_eq};

use crate::protocol::{Cell, Cells, Native, Sequence};

/// Marks a page of this layout (`magic`, offset 256): the bytes `uVDSO-pg` read as a native word.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"uVDSO-pg");

/// Version of the layout (`abi`, offset 264).
pub const ABI: u32 = 1;

/// Page slots below the image, in every build: -4 data, -3 time namespace, -2 and -1 reserved for
/// counter pages.
pub const SLOTS: u32 = 4;

/// Distance between slots, in bytes, for images of 4 KiB pages.
pub const SLOT_BYTES: u32 = 4096;

/// Bytes of a page that this ABI defines; what follows them in the slot is not ours.
pub const DATA_BYTES: usize = 512;

/// Clocks that have a place in `basetime`: ids 0 to 11.
pub const BASES: usize = 12;

/// A counter's scale: `ns = cycles * mult / 2^shift`, cycles taken modulo `mask + 1`.
#[repr(C)]
pub(crate) struct ClockScale<C: Cells> {
    pub(crate) mask: C::U64,
    pub(crate) mult: C::U32,
    pub(crate) shift: C::U32,
}

/// A clock's value at `cycle_last`; `{0, 0}` is unpublished.
#[repr(C)]
pub(crate) struct BaseTime<C: Cells> {
    /// Two's complement seconds.
    pub(crate) sec: C::U64,
    /// Shifted left by the scale's `shift` for precise clocks, plain for coarse ones.
    pub(crate) nsec: C::U64,
}

/// The data page: atomic words in a fixed layout, shared by one writer and any number of readers.
///
/// Every bit pattern is a legal page: none can make a reader fault, panic or wait without bound.
/// `C` chooses what a word is made of; the model checker supplies its own.
#[repr(C, align(64))]
pub struct Page<C: Cells = Native> {
    pub(crate) seq: Sequence<C>,
    pub(crate) clock_mode: C::U32,
    pub(crate) cycle_last: C::U64,
    pub(crate) cs: [ClockScale<C>; 2],
    pub(crate) basetime: [BaseTime<C>; BASES],
    pub(crate) tz_minuteswest: C::U32,
    pub(crate) tz_dsttime: C::U32,
    pub(crate) hrtimer_res: C::U32,
    pub(crate) coarse_res: C::U32,
    pub(crate) magic: C::U64,
    pub(crate) abi: C::U32,
    pub(crate) page_bytes: C::U32,
    pub(crate) features: C::U64,
    reserved_280: [C::U64; 5],
    /// Alone on its cache line: it may change at any time, while the lines above are quiet.
    pub(crate) memory_counter: C::U64,
    reserved_328: [C::U64; 7],
    reserved_384: [C::U64; 16],
}

impl<C: Cells> Page<C> {
    /// A page of zeros made of `C`.
    #[must_use]
    pub fn of_zeros() -> Self {
        let u32s = || C::U32::new(0);
        let u64s = || C::U64::new(0);
        Self {
            seq: Sequence::new(0),
            clock_mode: u32s(),
            cycle_last: u64s(),
            cs: core::array::from_fn(|_| ClockScale { mask: u64s(), mult: u32s(), shift: u32s() }),
            basetime: core::array::from_fn(|_| BaseTime { sec: u64s(), nsec: u64s() }),
            tz_minuteswest: u32s(),
            tz_dsttime: u32s(),
            hrtimer_res: u32s(),
            coarse_res: u32s(),
            magic: u64s(),
            abi: u32s(),
            page_bytes: u32s(),
            features: u64s(),
            reserved_280: core::array::from_fn(|_| u64s()),
            memory_counter: u64s(),
            reserved_328: core::array::from_fn(|_| u64s()),
            reserved_384: core::array::from_fn(|_| u64s()),
        }
    }
}

impl Page {
    /// A page of zeros, which serves nothing: every call falls back.
    #[must_use]
    pub fn zeroed() -> Self {
        Self::of_zeros()
    }

    /// The page at `address`, for reading.
    ///
    /// # Safety
    /// For all of `'p`, [`DATA_BYTES`] bytes at `address` are mapped and readable, `address` is a
    /// multiple of 64, and whoever else writes those bytes does so in whole words (any other
    /// process counts as such).
    #[inline(always)] // it is no instruction at all
    #[must_use]
    pub const unsafe fn at<'p>(address: *const u8) -> &'p Self {
        let page = address.cast::<Self>();
        // SAFETY: the caller promises a mapped, aligned page; each of its words is atomic, and
        // every bit pattern is a legal value of each.
        unsafe { &*page }
    }
}

/// Offsets of the fields, in bytes from the start of the page.
#[allow(
    missing_docs,
    reason = "each name is its field's; docs/page.md gives unit, range and owner"
)]
pub mod offset {
    use super::{BaseTime, ClockScale, Native, Page, offset_of};

    type P = Page<Native>;

    pub const SEQ: usize = offset_of!(P, seq);
    pub const CLOCK_MODE: usize = offset_of!(P, clock_mode);
    pub const CYCLE_LAST: usize = offset_of!(P, cycle_last);
    pub const CS: usize = offset_of!(P, cs);
    pub const CS_MASK: usize = offset_of!(ClockScale<Native>, mask);
    pub const CS_MULT: usize = offset_of!(ClockScale<Native>, mult);
    pub const CS_SHIFT: usize = offset_of!(ClockScale<Native>, shift);
    pub const CS_BYTES: usize = size_of::<ClockScale<Native>>();
    pub const BASETIME: usize = offset_of!(P, basetime);
    pub const BASETIME_SEC: usize = offset_of!(BaseTime<Native>, sec);
    pub const BASETIME_NSEC: usize = offset_of!(BaseTime<Native>, nsec);
    pub const BASETIME_BYTES: usize = size_of::<BaseTime<Native>>();
    pub const TZ_MINUTESWEST: usize = offset_of!(P, tz_minuteswest);
    pub const TZ_DSTTIME: usize = offset_of!(P, tz_dsttime);
    pub const HRTIMER_RES: usize = offset_of!(P, hrtimer_res);
    pub const COARSE_RES: usize = offset_of!(P, coarse_res);
    pub const MAGIC: usize = offset_of!(P, magic);
    pub const ABI: usize = offset_of!(P, abi);
    pub const PAGE_BYTES: usize = offset_of!(P, page_bytes);
    pub const FEATURES: usize = offset_of!(P, features);
    pub const RESERVED_280: usize = offset_of!(P, reserved_280);
    pub const MEMORY_COUNTER: usize = offset_of!(P, memory_counter);
    pub const RESERVED_328: usize = offset_of!(P, reserved_328);
    pub const RESERVED_384: usize = offset_of!(P, reserved_384);
}

const_assert_eq!(offset::SEQ, 0);
const_assert_eq!(offset::CLOCK_MODE, 4);
const_assert_eq!(offset::CYCLE_LAST, 8);
const_assert_eq!(offset::CS, 16);
const_assert_eq!(offset::CS_MASK, 0);
const_assert_eq!(offset::CS_MULT, 8);
const_assert_eq!(offset::CS_SHIFT, 12);
const_assert_eq!(offset::CS_BYTES, 16);
const_assert_eq!(offset::BASETIME, 48);
const_assert_eq!(offset::BASETIME_SEC, 0);
const_assert_eq!(offset::BASETIME_NSEC, 8);
const_assert_eq!(offset::BASETIME_BYTES, 16);
const_assert_eq!(offset::TZ_MINUTESWEST, 240);
const_assert_eq!(offset::TZ_DSTTIME, 244);
const_assert_eq!(offset::HRTIMER_RES, 248);
const_assert_eq!(offset::COARSE_RES, 252);
const_assert_eq!(offset::MAGIC, 256);
const_assert_eq!(offset::ABI, 264);
const_assert_eq!(offset::PAGE_BYTES, 268);
const_assert_eq!(offset::FEATURES, 272);
const_assert_eq!(offset::RESERVED_280, 280);
const_assert_eq!(offset::MEMORY_COUNTER, 320);
const_assert_eq!(offset::RESERVED_328, 328);
const_assert_eq!(offset::RESERVED_384, 384);
const_assert_eq!(size_of::<Page>(), DATA_BYTES);
const_assert_eq!(align_of::<Page>(), 64);
// A 6.12 kernel keeps data of its own from byte 640 of the page.
const_assert!(DATA_BYTES <= 640);
// The slot of REALTIME ends where the first cache line ends.
const_assert_eq!(offset::BASETIME + offset::BASETIME_BYTES, 64);
