//! The sixteen calls of vdsotest, and the ways that each can be made.

use std::ffi::c_int;
use std::hint::black_box;
use std::ptr::null_mut;

use libc::{timespec, timeval};

use crate::callee::Callee;
use crate::dispatch::Libc;
use crate::subject::{self, Subject};

/// A call that a program makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `clock_gettime` of a clock.
    Gettime(c_int),
    /// `clock_getres` of a clock.
    Getres(c_int),
    /// `getcpu`.
    Getcpu,
    /// `gettimeofday` without a timezone.
    Gettimeofday,
}

/// A call under vdsotest's name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedCall {
    /// The name.
    pub name: &'static str,
    /// The call.
    pub call: Call,
}

const fn named(name: &'static str, call: Call) -> NamedCall {
    NamedCall { name, call }
}

/// The calls in vdsotest's order.
pub const ALL: [NamedCall; 16] = [
    named("clock-gettime-monotonic", Call::Gettime(libc::CLOCK_MONOTONIC)),
    named("clock-getres-monotonic", Call::Getres(libc::CLOCK_MONOTONIC)),
    named("clock-gettime-monotonic-coarse", Call::Gettime(libc::CLOCK_MONOTONIC_COARSE)),
    named("clock-getres-monotonic-coarse", Call::Getres(libc::CLOCK_MONOTONIC_COARSE)),
    named("clock-gettime-monotonic-raw", Call::Gettime(libc::CLOCK_MONOTONIC_RAW)),
    named("clock-getres-monotonic-raw", Call::Getres(libc::CLOCK_MONOTONIC_RAW)),
    named("clock-gettime-tai", Call::Gettime(libc::CLOCK_TAI)),
    named("clock-getres-tai", Call::Getres(libc::CLOCK_TAI)),
    named("clock-gettime-boottime", Call::Gettime(libc::CLOCK_BOOTTIME)),
    named("clock-getres-boottime", Call::Getres(libc::CLOCK_BOOTTIME)),
    named("clock-gettime-realtime", Call::Gettime(libc::CLOCK_REALTIME)),
    named("clock-getres-realtime", Call::Getres(libc::CLOCK_REALTIME)),
    named("clock-gettime-realtime-coarse", Call::Gettime(libc::CLOCK_REALTIME_COARSE)),
    named("clock-getres-realtime-coarse", Call::Getres(libc::CLOCK_REALTIME_COARSE)),
    named("getcpu", Call::Getcpu),
    named("gettimeofday", Call::Gettimeofday),
];

/// The function of an image; `None` if the image lacks it.
#[must_use]
pub fn through_image<'m>(callee: &Callee<'m>, call: Call) -> Option<Subject<'m>> {
    match call {
        Call::Gettime(id) => subject::clock_gettime(callee, id),
        Call::Getres(id) => subject::clock_getres(callee, id),
        Call::Getcpu => subject::getcpu(callee),
        Call::Gettimeofday => subject::gettimeofday(callee),
    }
}

/// The system call itself.
#[must_use]
pub fn through_syscall(call: Call) -> Subject<'static> {
    use subject::Arguments::{Clock, Structure, TwoWords};
    match call {
        Call::Gettime(id) => subject::syscall(libc::SYS_clock_gettime, Clock(id)),
        Call::Getres(id) => subject::syscall(libc::SYS_clock_getres, Clock(id)),
        Call::Getcpu => subject::syscall(libc::SYS_getcpu, TwoWords),
        Call::Gettimeofday => subject::syscall(libc::SYS_gettimeofday, Structure),
    }
}

/// The C library of this machine, on the host's vDSO.
#[must_use]
pub fn through_libc(call: Call) -> Subject<'static> {
    match call {
        Call::Gettime(id) => Subject::new("libc", move |calls| {
            let mut ts = EMPTY;
            for _ in 0..calls {
                // SAFETY: `ts` is alive.
                black_box(unsafe { libc::clock_gettime(id, &raw mut ts) });
            }
            black_box(ts);
        }),
        Call::Getres(id) => Subject::new("libc", move |calls| {
            let mut ts = EMPTY;
            for _ in 0..calls {
                // SAFETY: `ts` is alive.
                black_box(unsafe { libc::clock_getres(id, &raw mut ts) });
            }
            black_box(ts);
        }),
        Call::Getcpu => Subject::new("libc", |calls| {
            for _ in 0..calls {
                // SAFETY: takes nothing.
                black_box(unsafe { libc::sched_getcpu() });
            }
        }),
        Call::Gettimeofday => Subject::new("libc", |calls| {
            let mut tv = EMPTY_TIMEVAL;
            for _ in 0..calls {
                // SAFETY: `tv` is alive, the timezone may be null.
                black_box(unsafe { libc::gettimeofday(&raw mut tv, null_mut()) });
            }
            black_box(tv);
        }),
    }
}

/// This project's C library side, on whatever vDSO it was given.
#[must_use]
pub fn through_dispatch<'m>(libc: &Libc<'m>, call: Call) -> Subject<'m> {
    let libc = *libc;
    match call {
        Call::Gettime(id) => Subject::new("libc", move |calls| {
            let mut ts = EMPTY;
            for _ in 0..calls {
                black_box(libc.clock_gettime(id, Some(&mut ts)));
            }
            black_box(ts);
        }),
        Call::Getres(id) => Subject::new("libc", move |calls| {
            let mut ts = EMPTY;
            for _ in 0..calls {
                black_box(libc.clock_getres(id, Some(&mut ts)));
            }
            black_box(ts);
        }),
        Call::Getcpu => Subject::new("libc", move |calls| {
            let (mut cpu, mut node) = (0, 0);
            for _ in 0..calls {
                black_box(libc.getcpu(Some(&mut cpu), Some(&mut node)));
            }
            black_box((cpu, node));
        }),
        Call::Gettimeofday => Subject::new("libc", move |calls| {
            let mut tv = EMPTY_TIMEVAL;
            for _ in 0..calls {
                black_box(libc.gettimeofday(Some(&mut tv), None));
            }
            black_box(tv);
        }),
    }
}

const EMPTY: timespec = timespec { tv_sec: 0, tv_nsec: 0 };

const EMPTY_TIMEVAL: timeval = timeval { tv_sec: 0, tv_usec: 0 };
