//! The caller's pointers and the structures behind them.
//!
//! A 64-bit machine has one `timespec`, one `timeval` and one `time_t`. A 32-bit one has the old
//! structures, whose seconds end in 2038, and a `timespec` with 64-bit seconds; each function there
//! exists once for each, with a system call of its own to fall back to. Both families are compiled
//! and tested on every machine.

use datapage::cycles::WideTime;

use crate::fallback::Call;

/// A pointer that a program passed: a claim, not a fact.
///
/// The functions store through it as the caller's own code would. If it is wrong, the caller
/// faults, as with Linux's vDSO (a system call would return `-EFAULT`); nothing else is at stake,
/// since the image runs with the caller's rights.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct UserPtr<T>(*mut T);

impl<T: Copy> UserPtr<T> {
    /// Takes a pointer from a caller.
    ///
    /// # Safety
    /// By passing it, the caller claims that it is null or may be written as a `T`, aligned as the
    /// platform's C ABI wants it. A fault is the caller's.
    #[inline(always)] // no instruction
    #[must_use]
    pub const unsafe fn new(pointer: *mut T) -> Self {
        Self(pointer)
    }

    /// Whether the caller passed no pointer.
    #[inline(always)] // one test
    #[must_use]
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The pointer as a system call's argument.
    #[inline(always)] // no instruction
    #[must_use]
    pub fn address(self) -> usize {
        self.0.expose_provenance()
    }

    /// Stores `value`.
    #[inline(always)] // the stores
    pub fn write(self, value: T) {
        // SAFETY: `new`'s caller claimed that the pointer may be written; null is not excluded,
        // and faults in the caller's own name as the documented behaviour is.
        unsafe { self.0.write_volatile(value) }
    }
}

/// A `timespec` of C, and the system calls that fill it.
pub trait Spec: Copy {
    /// The `clock_gettime` of this structure.
    const CLOCK_GETTIME: Call;
    /// The `clock_getres` of this structure.
    const CLOCK_GETRES: Call;

    /// The structure that holds `time`.
    fn of(time: WideTime) -> Self;
}

/// A `timeval` of C.
pub trait Val: Copy {
    /// The structure that holds `time`, without the digits below a microsecond.
    fn of(time: WideTime) -> Self;
}

/// A `time_t` of C.
pub trait Seconds: Copy {
    /// The seconds, in as many bits as the type has.
    fn of(secs: i64) -> Self;
    /// What `time` returned.
    fn from_register(answer: isize) -> Self;
}

/// `struct timespec` with 64-bit seconds.
///
/// On a 32-bit machine the C type has 32 bits of nanoseconds and as many of padding behind them
/// (before them, on a big-endian one); the kernel reads and writes both as this one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TimeSpec {
    /// Seconds.
    pub tv_sec: i64,
    /// Nanoseconds, 0..=999_999_999.
    pub tv_nsec: i64,
}

impl Spec for TimeSpec {
    const CLOCK_GETTIME: Call = Call::ClockGettime;
    const CLOCK_GETRES: Call = Call::ClockGetres;

    #[inline(always)] // no instruction on 64-bit machines
    fn of(WideTime { secs, nanos }: WideTime) -> Self {
        Self { tv_sec: secs, tv_nsec: nanos.cast_signed() }
    }
}

/// The `struct timespec` of 32-bit programs that were not rebuilt for the year 2038.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TimeSpec32 {
    /// Seconds, modulo 2^32.
    pub tv_sec: i32,
    /// Nanoseconds, 0..=999_999_999.
    pub tv_nsec: i32,
}

impl Spec for TimeSpec32 {
    const CLOCK_GETTIME: Call = Call::ClockGettime32;
    const CLOCK_GETRES: Call = Call::ClockGetres32;

    #[inline(always)] // no instruction
    #[allow(clippy::cast_possible_truncation, reason = "nanoseconds are below 10^9")]
    fn of(WideTime { secs, nanos }: WideTime) -> Self {
        Self { tv_sec: <i32 as Seconds>::of(secs), tv_nsec: nanos as i32 }
    }
}

/// `struct timeval` with 64-bit seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TimeVal {
    /// Seconds.
    pub tv_sec: i64,
    /// Microseconds, 0..=999_999.
    pub tv_usec: i64,
}

impl Val for TimeVal {
    #[inline(always)] // a multiplication by the inverse of 1000
    fn of(time: WideTime) -> Self {
        Self { tv_sec: time.secs, tv_usec: i64::from(micros(time)) }
    }
}

/// The `struct timeval` of 32-bit programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TimeVal32 {
    /// Seconds, modulo 2^32.
    pub tv_sec: i32,
    /// Microseconds, 0..=999_999.
    pub tv_usec: i32,
}

impl Val for TimeVal32 {
    #[inline(always)] // as for `TimeVal`
    fn of(time: WideTime) -> Self {
        Self { tv_sec: <i32 as Seconds>::of(time.secs), tv_usec: micros(time).cast_signed() }
    }
}

#[inline(always)] // a multiplication by the inverse of 1000
#[allow(clippy::arithmetic_side_effects, reason = "a division by a constant")]
#[allow(clippy::cast_possible_truncation, reason = "nanoseconds are below 10^9")]
fn micros(time: WideTime) -> u32 {
    time.nanos as u32 / 1000
}

impl Seconds for i64 {
    #[inline(always)] // no instruction
    fn of(secs: i64) -> Self {
        secs
    }
    #[inline(always)] // no instruction on 64-bit machines
    fn from_register(answer: isize) -> Self {
        answer as Self
    }
}

impl Seconds for i32 {
    #[inline(always)] // no instruction
    #[allow(
        clippy::cast_possible_truncation,
        reason = "as Linux's functions do it: a program of 32-bit seconds gets them modulo 2^32, \
                  not an error that its system call would not give either"
    )]
    fn of(secs: i64) -> Self {
        secs as Self
    }
    #[inline(always)] // no instruction
    #[allow(
        clippy::cast_possible_truncation,
        reason = "only 32-bit images use it, whose registers have 32 bits"
    )]
    fn from_register(answer: isize) -> Self {
        answer as Self
    }
}

/// `struct timezone`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Timezone {
    /// Minutes west of Greenwich.
    pub tz_minuteswest: i32,
    /// Type of DST correction.
    pub tz_dsttime: i32,
}
