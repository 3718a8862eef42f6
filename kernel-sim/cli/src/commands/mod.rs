//! One file for each subcommand.

pub(crate) mod bench;
pub(crate) mod demo;
pub(crate) mod fuzz;
pub(crate) mod image;
pub(crate) mod layout;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod sandwich;
pub(crate) mod soak;
