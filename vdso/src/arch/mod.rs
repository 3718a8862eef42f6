//! The architectures: each file defines the same names.
//!
//! | name | contract |
//! |---|---|
//! | `data_page()` | the address of slot -4, computed relative to the program counter, without a relocation; only code of an image may call it |
//! | `counter(mode)` | [`Platform::counter`](crate::Platform::counter) |
//! | `cpu_and_node(features)` | [`Platform::cpu_and_node`](crate::Platform::cpu_and_node) |
//! | `syscall(call, arguments)` | [`Platform::syscall`](crate::Platform::syscall) with the architecture's numbers |

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::{counter, cpu_and_node, data_page, syscall};
