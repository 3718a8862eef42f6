//! The oracle: what a clock must show, from events and counter values alone.
//!
//! It depends on nothing, shares no function with the page, the reader or the timekeeper, and never
//! sees a page. What it computes in unbounded or 128-bit arithmetic, they compute in words.
//!
//! | module | answers |
//! |---|---|
//! | [`published`], [`publication`] | what must a reader make of one publication |
//! | [`event`] | what is the oracle told of a kernel |
//! | [`watchdog`] | which counters may a kernel trust |
//! | [`clocks`] | what must the clocks of a kernel show after all of that, and what may an observer see |
//!
//! The rules are in `docs/oracle.md`.
#![forbid(unsafe_code)]

pub mod clocks;
pub mod event;
mod fine;
mod ntp;
pub mod publication;
pub mod published;
mod state;
mod steering;
pub mod watchdog;

pub use clocks::{Clocks, Disagreement};
pub use event::{Event, Source};
pub use state::Config;
pub use watchdog::Verdict;
