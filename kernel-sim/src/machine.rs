//! A simulated machine: hardware that misbehaves as told, and a kernel whose timekeeper must cope.
//!
//! | module | answers |
//! |---|---|
//! | [`hardware`] | what does a counter show, and to which CPU |
//! | [`setup`] | what is the machine made of |
//! | [`event`] | what can happen to it |
//! | [`kernel`] | what does the kernel do about it |
//! | `watch` | and about a counter that goes bad |
//!
//! Nothing here takes real time: a month of sleep is one addition. The page is a real one, and
//! whoever reads it with the machine's counter is a program on that machine.

pub mod event;
pub mod hardware;
pub mod kernel;
pub mod setup;
mod watch;

pub use event::Event;
pub use hardware::Hardware;
pub use kernel::{Machine, Operation};
