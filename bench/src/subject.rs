//! The measured loops.
//!
//! Whatever is compared runs through the same machine code: one loop for each C signature, which
//! gets the function as a pointer. Two copies of a loop can differ by a cycle through nothing but
//! their addresses.

use std::arch::asm;
use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::ptr::null_mut;

use libc::{timespec, timeval, timezone};

use crate::callee::Callee;
use crate::clock;

/// A name and a loop that can be timed.
pub struct Subject<'m> {
    name: String,
    sample: Box<dyn FnMut(u32) -> f64 + 'm>,
}

const EMPTY: timespec = timespec { tv_sec: 0, tv_nsec: 0 };

impl<'m> Subject<'m> {
    /// A loop that runs a number of calls; the whole loop is timed.
    pub fn new(name: impl Into<String>, mut run: impl FnMut(u32) + 'm) -> Self {
        Self::timed(name, move |calls| {
            let start = clock::cycles();
            run(calls);
            (clock::cycles() - start) as f64
        })
    }

    /// A loop that times itself: it gets a number of calls and returns their cycles.
    pub fn timed(name: impl Into<String>, sample: impl FnMut(u32) -> f64 + 'm) -> Self {
        Self { name: name.into(), sample: Box::new(sample) }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same loop under another name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Cycles of `calls` calls.
    pub fn sample(&mut self, calls: u32) -> f64 {
        (self.sample)(calls)
    }
}

/// `clock_gettime(id, &ts)` of an image.
#[must_use]
pub fn clock_gettime<'m>(callee: &Callee<'m>, id: c_int) -> Option<Subject<'m>> {
    let call = callee.functions().clock_gettime?;
    Some(Subject::new("clock_gettime", move |calls| {
        let mut ts = EMPTY;
        for _ in 0..calls {
            // SAFETY: the callee is mapped, `ts` is alive.
            black_box(unsafe { call(id, &raw mut ts) });
        }
        black_box(ts);
    }))
}

/// `clock_getres(id, &ts)` of an image.
#[must_use]
pub fn clock_getres<'m>(callee: &Callee<'m>, id: c_int) -> Option<Subject<'m>> {
    let call = callee.functions().clock_getres?;
    Some(Subject::new("clock_getres", move |calls| {
        let mut ts = EMPTY;
        for _ in 0..calls {
            // SAFETY: the callee is mapped, `ts` is alive.
            black_box(unsafe { call(id, &raw mut ts) });
        }
        black_box(ts);
    }))
}

/// `gettimeofday(&tv, NULL)` of an image.
#[must_use]
pub fn gettimeofday<'m>(callee: &Callee<'m>) -> Option<Subject<'m>> {
    let call = callee.functions().gettimeofday?;
    Some(Subject::new("gettimeofday", move |calls| {
        let mut tv = timeval { tv_sec: 0, tv_usec: 0 };
        for _ in 0..calls {
            // SAFETY: the callee is mapped, `tv` is alive, the timezone may be null.
            black_box(unsafe { call(&raw mut tv, null_mut::<timezone>()) });
        }
        black_box(tv);
    }))
}

/// `time(NULL)` of an image.
#[must_use]
pub fn time<'m>(callee: &Callee<'m>) -> Option<Subject<'m>> {
    let call = callee.functions().time?;
    Some(Subject::new("time", move |calls| {
        for _ in 0..calls {
            // SAFETY: the callee is mapped, and the pointer may be null.
            black_box(unsafe { call(null_mut()) });
        }
    }))
}

/// `getcpu(&cpu, &node, NULL)` of an image.
#[must_use]
pub fn getcpu<'m>(callee: &Callee<'m>) -> Option<Subject<'m>> {
    let call = callee.functions().getcpu?;
    Some(Subject::new("getcpu", move |calls| {
        let (mut cpu, mut node) = (0, 0);
        for _ in 0..calls {
            // SAFETY: the callee is mapped, both words are alive, the third pointer may be null.
            black_box(unsafe { call(&raw mut cpu, &raw mut node, null_mut::<c_void>()) });
        }
        black_box((cpu, node));
    }))
}

/// `clock_gettime_ns(id)` of an image, summed up as a program would use it.
#[must_use]
pub fn clock_gettime_ns<'m>(callee: &Callee<'m>, id: c_int) -> Option<Subject<'m>> {
    let call = callee.functions().clock_gettime_ns?;
    Some(Subject::new("clock_gettime_ns", move |calls| {
        let mut sum = 0_i64;
        for _ in 0..calls {
            // SAFETY: the callee is mapped.
            sum = sum.wrapping_add(black_box(unsafe { call(id) }));
        }
        black_box(sum);
    }))
}

/// `clock_gettime(id, &ts)` of an image and the caller's conversion to nanoseconds, summed up.
#[must_use]
pub fn clock_gettime_converted<'m>(callee: &Callee<'m>, id: c_int) -> Option<Subject<'m>> {
    let call = callee.functions().clock_gettime?;
    Some(Subject::new("clock_gettime and conversion", move |calls| {
        let mut ts = EMPTY;
        let mut sum = 0_i64;
        for _ in 0..calls {
            // SAFETY: the callee is mapped, `ts` is alive.
            black_box(unsafe { call(id, &raw mut ts) });
            // The loads are real: the call may have written `ts`.
            sum = sum.wrapping_add(black_box(nanos_of(&ts)));
        }
        black_box(sum);
    }))
}

/// The machine's libc and the caller's conversion to nanoseconds, summed up.
#[must_use]
pub fn libc_converted(id: c_int) -> Subject<'static> {
    Subject::new("libc and conversion", move |calls| {
        let mut ts = EMPTY;
        let mut sum = 0_i64;
        for _ in 0..calls {
            // SAFETY: `ts` is alive.
            black_box(unsafe { libc::clock_gettime(id, &raw mut ts) });
            sum = sum.wrapping_add(black_box(nanos_of(&ts)));
        }
        black_box(sum);
    })
}

/// The system call and the caller's conversion to nanoseconds, summed up.
#[must_use]
pub fn syscall_converted(id: c_int) -> Subject<'static> {
    Subject::new("system call and conversion", move |calls| {
        let mut ts = EMPTY;
        let mut sum = 0_i64;
        for _ in 0..calls {
            // SAFETY: `ts` is alive.
            black_box(unsafe { libc::syscall(libc::SYS_clock_gettime, id, &raw mut ts) });
            sum = sum.wrapping_add(black_box(nanos_of(&ts)));
        }
        black_box(sum);
    })
}

#[inline]
fn nanos_of(ts: &timespec) -> i64 {
    ts.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(ts.tv_nsec)
}

/// What a system call gets: a clock's id or nothing, and places for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arguments {
    /// An id, then a structure of two words.
    Clock(c_int),
    /// A structure of two words, then null.
    Structure,
    /// Two words, then null.
    TwoWords,
}

/// The system call itself, without a wrapper.
#[must_use]
pub fn syscall(number: libc::c_long, arguments: Arguments) -> Subject<'static> {
    Subject::new("system call", move |calls| {
        let mut out = [0_u64; 2];
        for _ in 0..calls {
            let first = (&raw mut out).expose_provenance();
            let (a, b) = match arguments {
                Arguments::Clock(id) => (register(id), first),
                Arguments::Structure => (first, 0),
                Arguments::TwoWords => (first, first + size_of::<u64>()),
            };
            let answer: i64;
            // SAFETY: the calls that are measured write two words at most, which `out` has.
            unsafe {
                asm!("syscall", inlateout("rax") number => answer, in("rdi") a, in("rsi") b,
                     in("rdx") 0, lateout("rcx") _, lateout("r11") _, options(nostack));
            }
            black_box(answer);
        }
        black_box(out);
    })
}

/// A C `int` in a register.
fn register(value: c_int) -> usize {
    (value as isize).cast_unsigned()
}

/// The ordered counter read alone, without a call: what no clock can be faster than.
#[must_use]
pub fn bare_lfence_rdtsc() -> Subject<'static> {
    Subject::new("lfence; rdtsc", |calls| {
        for _ in 0..calls {
            let (low, high): (u64, u64);
            // SAFETY: reads the counter into registers.
            unsafe {
                asm!("lfence", "rdtsc", out("rax") low, out("rdx") high,
                     options(nostack, preserves_flags));
            }
            black_box(low | (high << 32));
        }
    })
}

/// The other ordered counter read alone, without a call.
#[must_use]
pub fn bare_rdtscp() -> Subject<'static> {
    Subject::new("rdtscp", |calls| {
        for _ in 0..calls {
            let (low, high): (u64, u64);
            // SAFETY: reads the counter and the CPU's number into registers.
            unsafe {
                asm!("rdtscp", out("rax") low, out("rdx") high, out("rcx") _,
                     options(nostack, preserves_flags));
            }
            black_box(low | (high << 32));
        }
    })
}
