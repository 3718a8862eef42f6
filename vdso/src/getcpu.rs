//! `getcpu`.

use crate::fallback::{Call, fallback};
use crate::platform::Platform;
use crate::user::UserPtr;

/// Number of CPUs that the register holds: the node's number begins above it.
const CPU_BITS: u32 = 12;

/// CPU and node of the caller (`getcpu(2)`); either may be null, `unused` is passed on as it is.
///
/// # Errors
/// Those of the system call, where the page promises no way to ask the CPU.
#[inline(always)] // the exported function is this body
#[allow(clippy::arithmetic_side_effects, reason = "shifts by a constant")]
pub fn getcpu<P: Platform>(
    platform: &P,
    cpu: UserPtr<u32>,
    node: UserPtr<u32>,
    unused: usize,
) -> isize {
    let Some(both) = platform.cpu_and_node(platform.page().features()) else {
        return fallback(platform, Call::Getcpu, [cpu.address(), node.address(), unused]);
    };
    if !cpu.is_null() {
        cpu.write(both & ((1 << CPU_BITS) - 1));
    }
    if !node.is_null() {
        node.write(both >> CPU_BITS);
    }
    0
}
