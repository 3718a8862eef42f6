//! The caller's pointers and the structures behind them.

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

/// `struct timespec` with 64-bit seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TimeSpec {
    /// Seconds.
    pub tv_sec: i64,
    /// Nanoseconds, 0..=999_999_999.
    pub tv_nsec: i64,
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

/// `struct timezone`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Timezone {
    /// Minutes west of Greenwich.
    pub tz_minuteswest: i32,
    /// Type of DST correction.
    pub tz_dsttime: i32,
}
