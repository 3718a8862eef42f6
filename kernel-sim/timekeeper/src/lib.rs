//! A kernel's timekeeper.
//!
//! | module | answers |
//! |---|---|
//! | [`clocksource`] | what is a counter, and how do its cycles become nanoseconds |
//! | [`timekeeper`] | what is the state, and how does it move with the counter |
//! | [`steer`] | which rate does the page get, and how does it change without a step back |
//! | [`ntp`] | how long shall a second be |
//! | [`discipline`] | how is that, and the resolution, changed |
//! | [`leap`] | what happens at the end of a UTC day |
//! | [`set`] | how are the clocks set, and what is refused |
//! | [`sleep`] | what if nobody looks at the counter for long |
//! | [`switch`] | how does another counter take over |
//! | [`watchdog`] | is a counter still good, and which one is next |
//! | [`vsyscall`] | how does it get into the page |
//! | [`error`] | what is refused, and what would be right |
//!
//! # Examples
//!
//! ```
//! use datapage::{ClockId, ClockMode, Features, Page, SLOT_BYTES, Time, Writer};
//! use timekeeper::{Clocksource, Config, Published, Timekeeper};
//!
//! let mut page = Page::zeroed();
//! let (mut writer, page) = Writer::split(&mut page);
//! writer.format(Features::empty(), SLOT_BYTES);
//!
//! let counter = Clocksource::new("sim", 1_000_000_000, u64::MAX, ClockMode::MEMORY)?;
//! let start = Time { secs: 1_700_000_000, nanos: 0 };
//! let timekeeper = Timekeeper::new(counter, 5_000, start, Config::default())?;
//! let mut clocks = Published::new(timekeeper, writer)?;
//!
//! clocks.tick(4_005_000)?; // 4 ms later
//! clocks.writer().set_memory_counter(4_005_123);
//! let slot = ClockId::REALTIME.slot().expect("REALTIME has a slot");
//! let time = page.precise(slot, |_| None).and_then(|snapshot| snapshot.time());
//! assert_eq!(time, Some(Time { secs: 1_700_000_000, nanos: 4_000_123 }));
//!
//! clocks.update(|clocks| clocks.set_time(4_005_500, Time { secs: 0, nanos: 0 }))?;
//! assert_eq!(clocks.timekeeper().read(ClockId::REALTIME, 4_005_600).unwrap().nanos, 100);
//! # Ok::<(), timekeeper::Error>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![warn(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used
)]

pub mod clocksource;
pub mod discipline;
pub mod error;
pub mod leap;
mod line;
pub mod ntp;
pub mod set;
pub mod sleep;
pub mod steer;
pub mod switch;
pub mod timekeeper;
pub mod vsyscall;
pub mod watchdog;

pub use clocksource::Clocksource;
pub use error::Error;
pub use leap::{Leap, LeapState};
pub use ntp::{Loop, NtpState};
pub use set::Clocks;
pub use sleep::{Idle, SleepClock, Slept};
pub use timekeeper::{Config, Tick, Timekeeper};
pub use vsyscall::{Published, update_vsyscall, update_vsyscall_tz};
pub use watchdog::{Verdict, Watchdog};
