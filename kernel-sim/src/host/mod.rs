//! The machine that a keeper follows: its counter, its clocks, what its CPUs promise.
//!
//! Everything here is measured or asked for through documented interfaces. The kernel's own data
//! page is never read: its layout is private and differs between versions.
//!
//! | file | answers |
//! |---|---|
//! | `clocksource.rs` | is the counter a clock at all |
//! | `clocks.rs` | what does a clock of the host say, and between which two counter values |
//! | `mode.rs` | which ordered read of the counter is the faster one |
//! | `getcpu.rs` | which way of asking a CPU for its number holds on all of them |

mod clocks;
mod clocksource;
mod getcpu;
mod mode;

pub use clocks::{Bounds, HostClocks, Pair};
pub use clocksource::{NoCounter, counter_is_a_clock, counter_is_in_use};
pub use getcpu::getcpu_features;
pub(crate) use getcpu::getcpu_ways;
pub use mode::counter_mode;
pub(crate) use mode::has_rdtscp;
