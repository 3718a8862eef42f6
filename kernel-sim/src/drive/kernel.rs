//! What the kernel answers to a call that the page cannot serve, or what stands for it in the
//! image's policy.

use std::ffi::{c_int, c_long, c_void};
use std::io;
use std::ptr::null_mut;

use linker::Policy;

use super::answer::{Answer, UNTOUCHED, pointer};

const ENOSYS: i64 = 38;

/// The kernel, as an image of a policy sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel {
    policy: Policy,
}

impl Kernel {
    pub(super) fn behind(policy: Policy) -> Self {
        Self { policy }
    }

    /// `clock_gettime` or `clock_getres`.
    pub(super) fn clock(self, number: c_long, id: c_int, is_null: bool) -> Answer {
        let mut time = UNTOUCHED;
        let register = id.cast_unsigned() as usize;
        let returned = self.call(number, register, pointer(&mut time, is_null));
        Answer { time, ..Answer::returned(returned) }
    }

    /// `clock_gettime` in nanoseconds.
    pub(super) fn nanos(self, id: c_int) -> Answer {
        let Answer { returned, time, .. } = self.clock(libc::SYS_clock_gettime, id, false);
        Answer::returned(if returned == 0 { nanos(time) } else { returned })
    }

    pub(super) fn gettimeofday(self, has_tv: bool, has_tz: bool) -> Answer {
        let (mut time, mut other) = (UNTOUCHED, UNTOUCHED);
        let tz = pointer(&mut other, !has_tz);
        let tv = pointer(&mut time, !has_tv);
        let returned = self.call(libc::SYS_gettimeofday, tv.expose_provenance(), tz);
        Answer { returned, time, other }
    }

    pub(super) fn time(self, has_pointer: bool) -> Answer {
        let mut time = UNTOUCHED;
        let t = pointer(&mut time, !has_pointer);
        let returned = self.call(libc::SYS_time, t.expose_provenance(), null_mut());
        Answer { time, ..Answer::returned(returned) }
    }

    pub(super) fn getcpu(self, has_cpu: bool, has_node: bool) -> Answer {
        let mut other = UNTOUCHED;
        let [cpu, node] = &mut other;
        let cpu = pointer(std::slice::from_mut(cpu), !has_cpu);
        let node = pointer(std::slice::from_mut(node), !has_node);
        let returned = self.call(libc::SYS_getcpu, cpu.expose_provenance(), node);
        Answer { other, ..Answer::returned(returned) }
    }

    /// The raw answer of a system call.
    fn call(self, number: c_long, first: usize, second: *mut c_void) -> i64 {
        if self.policy == Policy::Enosys {
            return -ENOSYS;
        }
        let none = null_mut::<c_void>();
        // SAFETY: the callers of this file pass what the call takes: ids, and null or live memory.
        let returned = unsafe { libc::syscall(number, first, second, none) };
        match returned {
            -1 => -i64::from(io::Error::last_os_error().raw_os_error().unwrap_or(0)),
            returned => returned,
        }
    }
}

/// A time in nanoseconds.
pub(super) fn nanos([secs, nanos]: [i64; 2]) -> i64 {
    secs.saturating_mul(1_000_000_000).saturating_add(nanos)
}
