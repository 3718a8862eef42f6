//! Asking to be run before ordinary processes.
//!
//! A kernel's writer is not interrupted in the middle of an update, and its tick comes when it is
//! due. A process that writes a page can be taken off its CPU, and readers then fall back to the
//! kernel; or it is not given one, and coarse clocks stand still meanwhile. The rarer that is the
//! better, and the work takes some microseconds of each tick.

use libc::sched_attr;
use nix::errno::Errno;

/// How a process was scheduled.
#[derive(Clone, Copy)]
pub(crate) struct Before(sched_attr);

/// Asks for real-time priority, where the user may have it.
///
/// Children that are forked from then on have it too. `None` if nothing was changed.
///
/// Short time slices (`sched_runtime`), which every ordinary process may ask for from Linux 6.12 on,
/// were tried in its place: a process that woke every 4 ms beside six that never rested was not run
/// any sooner.
pub(crate) fn ask() -> Option<Before> {
    let before = attributes().ok()?;
    let mut first = before;
    first.sched_policy = libc::SCHED_FIFO.unsigned_abs();
    first.sched_priority = 1;
    let ordinary = before.sched_policy == libc::SCHED_OTHER.unsigned_abs();
    (ordinary && set_attributes(&first).is_ok()).then_some(Before(before))
}

impl Before {
    /// Puts it back.
    pub(crate) fn restore(self) {
        // What a process had it may have again, so there is nothing to report.
        let _ = set_attributes(&self.0);
    }
}

fn attributes() -> nix::Result<sched_attr> {
    let mut attributes = sched_attr {
        size: size().unwrap_or(0),
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: a live structure of the size that is passed; it concerns this thread alone.
    let answer = unsafe {
        libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, attributes.size, 0)
    };
    Errno::result(answer).map(|_| attributes)
}

fn set_attributes(attributes: &sched_attr) -> nix::Result<()> {
    // SAFETY: as above.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, attributes, 0) };
    Errno::result(answer).map(drop)
}

fn size() -> Option<u32> {
    u32::try_from(size_of::<sched_attr>()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_is_put_back() {
        let found = || {
            let found = attributes().unwrap();
            (found.sched_policy, found.sched_priority, found.sched_nice, found.sched_runtime)
        };
        let before = found();
        if let Some(asked) = ask() {
            assert_ne!(found(), before);
            assert_eq!(found().2, before.2, "the nice value stays");
            asked.restore();
        }
        assert_eq!(found(), before);
    }
}
