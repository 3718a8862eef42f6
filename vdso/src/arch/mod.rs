//! The architectures: each file defines the same names.
//!
//! | name | contract |
//! |---|---|
//! | `data_page()` | the address of slot -4, computed relative to the program counter, without a relocation; only code of an image may call it |
//! | `counter(mode)` | [`Platform::counter`](crate::Platform::counter) |
//! | `cpu_and_node(features)` | [`Platform::cpu_and_node`](crate::Platform::cpu_and_node) |
//! | `syscall(call, arguments)` | [`Platform::syscall`](crate::Platform::syscall) with the architecture's numbers |
//!
//! # Ordering a counter against memory
//!
//! Fences order loads and stores, and a counter is neither. Each file says which instruction keeps
//! the counter's read behind the loads before it and before the loads after it:
//!
//! | | before | after |
//! |---|---|---|
//! | x86_64, x86 | `lfence` | nothing: a check that runs ahead of the counter is harmless |
//! | aarch64 | `isb` behind a branch on what was loaded | a load whose address depends on the counter, which the protocol's fence orders |
//! | arm | `isb` behind a branch on what was loaded | `isb` |
//! | riscv64 | `fence r, i` | `fence i, r` |

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
pub use aarch64::{counter, cpu_and_node, data_page, syscall};
#[cfg(target_arch = "arm")]
mod arm;
#[cfg(target_arch = "arm")]
pub use arm::{counter, cpu_and_node, data_page, syscall};
#[cfg(target_arch = "riscv64")]
mod riscv64;
#[cfg(target_arch = "riscv64")]
pub use riscv64::{counter, cpu_and_node, data_page, syscall};
#[cfg(target_arch = "x86")]
mod x86;
#[cfg(target_arch = "x86")]
pub use x86::{counter, cpu_and_node, data_page, syscall};
#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::{counter, cpu_and_node, data_page, syscall};
