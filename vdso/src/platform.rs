//! What an architecture, a kernel and a mapping supply.

use datapage::protocol::Cells;
use datapage::{ClockMode, Features, Page};

use crate::fallback::Call;

/// The machine below the reader.
///
/// The image's own implementation is a value without size, so a method call is the instruction
/// that the architecture's file holds; tests put scripted counters and kernels in its place.
pub trait Platform {
    /// What the page's words are made of.
    type Cells: Cells;

    /// The page in slot -4: the kernel's, or that of the caller's time namespace.
    fn page(&self) -> &Page<Self::Cells>;

    /// The page in slot -3, which is the kernel's while slot -4 holds a namespace's. It is asked for
    /// in no other case, and need not be mapped otherwise.
    fn page_behind_namespace(&self) -> &Page<Self::Cells>;

    /// The counter that `mode` names, or `None` if it is not one of this machine's.
    ///
    /// # Contract
    /// The read is ordered: it happens after every load before it in program order, and the
    /// compiler moves no access of memory across it. Without that a counter older than the page
    /// could be paired with it, and time would step back across CPUs.
    fn counter(&self, mode: ClockMode) -> Option<u64>;

    /// CPU and node of the caller as `node << 12 | cpu`, read in a way that `features` promises.
    fn cpu_and_node(&self, features: Features) -> Option<u32>;

    /// Makes a system call with the caller's own arguments and returns the kernel's own answer.
    fn syscall(&self, call: Call, arguments: [usize; 3]) -> isize;
}

/// What an image does about a call that its page cannot serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// It enters the kernel.
    Syscall,
    /// It returns `-ENOSYS`, for library operating systems and kernels that want no entry.
    Enosys,
}
