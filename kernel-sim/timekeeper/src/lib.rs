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
//! # In a kernel
//!
//! The kernel supplies a lock (or a CPU that alone ticks), a read of its counter, and the calls.
//! Nothing here allocates, waits, or takes time that depends on its input, and nothing panics; it
//! may run with interrupts off. Each call takes the counter's value: read it as late as possible,
//! with the lock held, because [`Config::publication_delay_ns`] counts from there.
//!
//! | when | call |
//! |---|---|
//! | boot: a counter has been calibrated, the wall clock has been read | [`Clocksource::new`], [`Timekeeper::new`], [`Published::new`] |
//! | each tick, on one CPU | [`Published::tick`] |
//! | anything else | [`Published::update`], with one or more of the calls below |
//! | `settimeofday`, `clock_settime` | [`Timekeeper::set_time`], [`Timekeeper::set_timezone`] |
//! | `adjtimex`: `ADJ_SETOFFSET`, `ADJ_TAI` | [`Timekeeper::inject_offset`], [`Timekeeper::set_tai_offset`] |
//! | `ADJ_FREQUENCY`, `ADJ_TICK` | [`Timekeeper::set_frequency`], [`Timekeeper::set_tick_length`] |
//! | `ADJ_OFFSET`, `ADJ_OFFSET_SINGLESHOT` | [`Timekeeper::adjust_phase`], [`Timekeeper::slew`] |
//! | `ADJ_STATUS` with `STA_INS`, `STA_DEL` or neither | [`Timekeeper::set_leap`] |
//! | what `adjtimex` returns | [`Timekeeper::ntp`], [`Timekeeper::leap`], [`Timekeeper::tai_offset`] |
//! | ticks stop for a while | [`Timekeeper::max_idle_ns`], [`Timekeeper::enter_idle`], [`Timekeeper::rebase`] |
//! | suspend and resume | [`Timekeeper::suspend`], [`Timekeeper::resume`] |
//! | a counter goes bad, or a better one is found | [`Watchdog`], [`watchdog::best`], [`Timekeeper::set_clocksource`] |
//! | `clock_gettime` as a system call | [`Timekeeper::read`], or a read of the page, which needs no lock |
//!
//! `maxerror`, `esterror` and the other numbers that a daemon leaves in the kernel for others to
//! read have no effect on a clock, and are not kept here.
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
