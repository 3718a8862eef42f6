//! A simulated kernel around the vDSO.
//!
//! | module | answers |
//! |---|---|
//! | [`map`] | how do a page and an image come into this process, as a kernel would map them |
//! | [`functions`] | how are the functions of a mapped image called, ours or the host's |
//! | [`machine`] | how does a machine with a timekeeper behave when its hardware does not |
//! | [`child`] | how are calls made that may end the process |
//! | [`drive`] | does an image answer every call, id, null and mode as it must |
//! | [`host`] | what do this machine's counter and clocks say, and how are they trusted |
//! | [`keeper`] | who writes the page of running programs, following the host's clocks |
//! | [`launch`] | how does an unmodified program run on an image |
//! | [`sandwich`] | do the clocks of an image agree with the kernel's |
//!
//! All after the first three need an x86_64 Linux to run on, and are not built elsewhere.

pub mod functions;
pub mod machine;
pub mod map;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod child;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod drive;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod host;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod keeper;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod launch;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod precedence;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod sandwich;
