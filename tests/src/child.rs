//! Calls that may end the process, made in a child.

pub use kernel_sim::child::Outcome;

/// Runs `body` in a forked child, as [`kernel_sim::child::outcome`] does.
///
/// # Panics
/// If the kernel grants no child.
pub fn outcome(body: impl FnOnce() -> i32) -> Outcome {
    kernel_sim::child::outcome(body).expect("a child")
}
