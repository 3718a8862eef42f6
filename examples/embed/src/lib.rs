//! What a kernel adds to itself to have a vDSO: this crate is the whole of it.
//!
//! | file | holds |
//! |---|---|
//! | `uvdso_image.rs` | the image, as `kernel-sim image export --format rust` wrote it |
//! | [`vdso`] | boot, mapping into a process, its auxiliary vector, one call per tick |
//! | [`cpu`] | what every CPU has before it runs a program |
//! | [`fallback`] | the system calls that the image makes for what its page cannot serve |
//! | [`clock`] | the smallest clock to publish |
//! | `main.rs` | no part of a kernel: the machine that this one runs on, and a program |
//!
//! No standard library, no allocator, no build script, no dependency but `datapage`. A kernel with
//! a timekeeper replaces [`clock`]; `docs/porting.md` says what else it owes the image.
#![no_std]

pub mod clock;
pub mod cpu;
pub mod fallback;
#[allow(missing_docs, reason = "exported, with comments of its own")]
pub mod uvdso_image;
pub mod vdso;
