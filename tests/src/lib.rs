//! What the tests across crates share: raw pages, an exact oracle, and the live kernel beside the
//! image, guests and how they are built.
//!
//! The oracle computes with 128-bit integers and divisions, from the words of a page; it shares no
//! function with the reader that it judges.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod child;
pub mod code;
pub mod counted;
pub mod golden;
pub mod kernel;
pub mod oracle;
pub mod page;
pub mod processes;
pub mod skip;
pub mod stepped;
pub mod stock;
pub mod users;
pub mod workshop;
