//! The reader: every function of the vDSO, written once for all architectures.
//!
//! A kernel maps the image that `vdso-image` makes of this crate; the exported functions there are
//! one call each into the functions here. Everything that differs between machines is behind
//! [`Platform`], so host tests run the same text with a scripted counter and a scripted kernel.
//!
//! | file | holds |
//! |---|---|
//! | `clock_gettime.rs` and so on | one exported call each |
//! | `quick.rs`, `slow.rs` | one attempt, and everything that it cannot do |
//! | `do_hres.rs`, `do_coarse.rs` | the two ways to read a clock, in one quick attempt |
//! | `slow.rs` | whatever one attempt cannot do: retries, time namespaces, long gaps |
//! | `fallback.rs` | the one way out for whatever the page cannot serve |
//! | `user.rs` | the caller's pointers, and the one place that stores through them |
//! | `platform.rs` | what an architecture supplies; `arch/` has one file for each that does |
//!
//! Every function returns 0 (or its value), or a raw negative errno, as a system call does.
#![no_std]
#![warn(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::expect_used
)]

pub mod arch;
mod clock_getres;
mod clock_gettime;
mod clock_gettime_ns;
mod do_coarse;
mod do_hres;
mod fallback;
mod getcpu;
mod gettimeofday;
mod platform;
mod quick;
mod slow;
mod time;
mod user;

pub use clock_getres::clock_getres;
pub use clock_gettime::clock_gettime;
pub use clock_gettime_ns::clock_gettime_ns;
pub use fallback::Call;
pub use getcpu::getcpu;
pub use gettimeofday::gettimeofday;
pub use platform::{Platform, Policy};
pub use time::time;
pub use user::{Seconds, Spec, TimeSpec, TimeSpec32, TimeVal, TimeVal32, Timezone, UserPtr, Val};
