//! The keeper: the process that writes the page of running programs, following the host's clocks.
//!
//! | file | answers |
//! |---|---|
//! | `memory.rs` | what is the memory that programs map, and why can they only read it |
//! | `line.rs` | how is a clock extrapolated between two ticks |
//! | `observe.rs` | what does a series of readings say of a clock of the host |
//! | `follow.rs` | how is one clock of the host followed without ever going back |
//! | `clocks.rs` | how do all clocks of the page come from two that are followed |
//! | `shown.rs` | what does a page show that a keeper before this one has left behind |
//! | `uncounted.rs` | what does the page show when the counter is no clock |
//! | `begin.rs` | with which clocks does a keeper begin |
//! | `ticks.rs` | when does the keeper tick, and how long is a tick |
//! | `process.rs` | what does it do at each tick, and when does it end |
//! | `pretended.rs` | on which clocks is this tested |

mod begin;
mod clocks;
mod follow;
mod line;
mod memory;
mod observe;
#[cfg(test)]
mod pretended;
mod process;
mod shown;
mod ticks;
mod uncounted;

pub use clocks::{Bends, Clocks, FirstLook, Shift};
pub use follow::Follower;
pub use line::Line;
pub use memory::{MemoryError, PageMemory};
pub use process::{Keeper, KeeperError, News, Shows};
