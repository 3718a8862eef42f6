//! Scenarios for simulated machines, an oracle over every read, and a fuzzer that writes them.
//!
//! | module | answers |
//! |---|---|
//! | [`scenario`] | what happens to a machine, as a value and as a text |
//! | [`generate`] | which scenarios does the fuzzer think of |
//! | [`run`] | how is a scenario run, and what came of it |
//! | [`subject`] | what is judged: the reader as Rust code, and the shipped image |
//! | [`preempt`] | how is a reader or a writer interrupted at a chosen access |
//! | [`campaign`] | how are very many scenarios run, and what is done with one that goes wrong |
//! | [`minimise`] | how does a long scenario that goes wrong become a short one |
//! | [`bytes`] | what do any bytes at all do to a reader |
//! | [`report`] | what has a run come to, and what has it never |
//! | [`demo`] | how do many threads verify each read of an image that a machine drives |
//! | [`soak`] | and of one that runs by this machine's own counter |
//! | [`killed`] | and what if its writer is killed |
//!
//! What is due is computed by the package `oracle`; its rules are in `docs/oracle.md`.

mod bare;
pub mod bytes;
pub mod campaign;
pub mod demo;
pub mod expect;
pub mod generate;
mod interrupt;
mod judge;
pub mod killed;
pub mod minimise;
pub mod preempt;
pub mod report;
pub mod rng;
pub mod run;
pub mod scenario;
mod simulated;
pub mod soak;
pub mod subject;
mod world;

pub use run::{Outcome, Stage};
pub use scenario::Scenario;
pub use world::{Unusable, Violation};
