//! Asking to be run before ordinary processes.
//!
//! A kernel's writer is not interrupted in the middle of an update, and its tick comes when it is
//! due. A process that writes a page can be taken off its CPU, and readers then fall back to the
//! kernel; or it is not given one, and coarse clocks stand still meanwhile. The rarer that is the
//! better, and the work takes some microseconds of each tick.

/// Asks for real-time priority, where the user may have it.
///
/// Short time slices (`sched_runtime`), which every ordinary process may ask for from Linux 6.12 on,
/// were tried in its place: a process that woke every 4 ms beside six that never rested was not run
/// any sooner.
pub(crate) fn ask() {
    let first = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: a live parameter; it concerns this thread alone, and a refusal changes nothing.
    unsafe { libc::sched_setscheduler(0, policy, &raw const first) };
}
