//! The vDSO data page: a specified ABI, its sequence protocol, and both of its sides.
//!
//! A kernel maps this page read-only into every process, right below the vDSO image, and rewrites
//! it at each tick. The functions of the image read it and so tell the time without a system call.
//!
//! | module | answers |
//! |---|---|
//! | [`clocks`] | which clocks are there, which of them does a page serve, and how |
//! | [`layout`] | where is each byte, how large is it, what does it mean |
//! | [`fields`] | which call reads which of those bytes, as data for drawings and tests |
//! | [`protocol`] | how do one writer and many readers share those bytes (every memory ordering of the project is there) |
//! | [`snapshot`] | what does a reader take out of the page |
//! | [`cycles`] | how do a base and a counter become a time |
//! | [`update`] | what is a complete update, and which ones are refused |
//! | [`writer`] | how does a kernel publish it |
//! | [`namespace`] | how does a program in a time namespace see other clocks |
//!
//! # Examples
//!
//! A kernel's side and a reader's side, on a page that both share:
//!
//! ```
//! use datapage::{ClockId, ClockMode, Features, Instant, Page, PageValues, Scale, Writer};
//!
//! let mut page = Page::zeroed();
//! let (mut writer, page) = Writer::split(&mut page);
//! writer.format(Features::empty(), 4096);
//!
//! let mut values = PageValues::default();
//! values.clock_mode = ClockMode::MEMORY;
//! values.cycle_last = 1_000;
//! values.steered = Scale { mask: u64::MAX, mult: 1 << 20, shift: 20 }; // one cycle is one ns
//! values.set(ClockId::REALTIME, Instant { secs: 1_700_000_000, nanos: 5 << 20 });
//! writer.publish(&values.validate()?);
//! writer.set_memory_counter(1_250);
//!
//! let slot = ClockId::REALTIME.slot().expect("REALTIME has a slot");
//! let snapshot = page.precise(slot, |_mode| None).expect("the page serves REALTIME");
//! let time = snapshot.time().expect("the time fits");
//! assert_eq!((time.secs, time.nanos), (1_700_000_000, 255));
//! # Ok::<(), datapage::UpdateError>(())
//! ```
#![no_std]
#![warn(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used
)]
#![cfg_attr(
    test,
    allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::expect_used,
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        reason = "the hot path's rules do not bind its tests"
    )
)]

#[cfg(test)]
extern crate std;

pub mod clocks;
pub mod cycles;
pub mod fields;
pub mod layout;
pub mod namespace;
pub mod protocol;
pub mod snapshot;
pub mod update;
pub mod writer;

pub use clocks::{ClockId, ClockMode, ClockSet, Features, Route, Slot};
pub use cycles::{NANOS_PER_SEC, Time};
pub use layout::{ABI, MAGIC, Page, SLOT_BYTES, SLOTS};
pub use namespace::{Offset, Offsets};
pub use snapshot::{Coarse, Precise};
pub use update::{Instant, PageValues, Scale, TimeZone, Update, UpdateError};
pub use writer::{Header, HeaderMismatch, Writer};
