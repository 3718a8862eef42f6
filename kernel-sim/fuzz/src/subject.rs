//! What is judged: the reader, as Rust code on a page of any words and as the shipped image.
//!
//! Every call is made with memory that holds a known pattern, so an answer also shows what was
//! written and what was not. A call that falls back gets a mark in place of a kernel's answer, which
//! must come out untouched.
//!
//! All `unsafe` of this package is here, but for a `fork` in [`killed`](crate::killed): passing
//! pointers to a function that wants a caller's.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;

use datapage::layout::DATA_BYTES;
use datapage::protocol::{Cells, Native};
use datapage::{ClockMode, Features, Page};
use kernel_sim::functions::Functions;
use kernel_sim::map::MappedImage;
use vdso::{Platform, UserPtr};

/// A call of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// `clock_gettime(id, ts)`.
    ClockGettime(i32),
    /// `clock_gettime_ns(id)`.
    ClockGettimeNs(i32),
    /// `clock_getres(id, res)`.
    ClockGetres(i32),
    /// `gettimeofday(tv, tz)`: which of the two is not null.
    Gettimeofday {
        /// `tv` is not null.
        tv: bool,
        /// `tz` is not null.
        tz: bool,
    },
    /// `time(t)`.
    Time,
}

/// What memory holds before a call.
pub const UNTOUCHED: i64 = 0x5a5a_5a5a_5a5a_5a5a;

/// What came out of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The return value.
    pub returned: i64,
    /// The words behind the pointers, in the order of the arguments; [`UNTOUCHED`] where nothing
    /// was written.
    pub words: [i64; 4],
}

impl Answer {
    /// An answer that touches no memory.
    #[must_use]
    pub fn bare(returned: i64) -> Self {
        Self { returned, words: [UNTOUCHED; 4] }
    }
}

/// A reader of a page with a counter that the test moves.
#[derive(Debug)]
pub enum Subject<'p, C: Cells> {
    /// The reader as Rust code.
    Code(Code<'p, C>),
    /// The shipped image.
    Image(Image<'p>),
}

impl<C: Cells> Subject<'_, C> {
    /// Makes a call.
    #[inline]
    pub fn call(&self, call: Call) -> Answer {
        match self {
            Self::Code(code) => code.call(call),
            Self::Image(image) => image.call(call),
        }
    }

    /// What `call` must answer where it falls back.
    #[must_use]
    pub fn fallback(&self, call: Call) -> Answer {
        Answer::bare(match self {
            Self::Code(_) => Kernel::mark(call) as i64,
            Self::Image(_) => -ENOSYS,
        })
    }
}

const ENOSYS: i64 = 38;

/// The reader as Rust code.
pub struct Code<'p, C: Cells> {
    page: &'p Page<C>,
    /// The kernel's page, where `page` is a namespace's.
    behind: &'p Page<C>,
    counter: Cell<u64>,
    /// Arguments of the last fallback.
    asked: Cell<Option<(vdso::Call, [usize; 3])>>,
}

impl<C: Cells> std::fmt::Debug for Code<'_, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Code at counter {:#x}", self.counter.get())
    }
}

/// What stands for a kernel's answer.
enum Kernel {}

impl Kernel {
    fn answer(call: vdso::Call) -> isize {
        -1001 - call as isize
    }

    fn mark(call: Call) -> isize {
        Self::answer(match call {
            Call::ClockGettime(_) | Call::ClockGettimeNs(_) => vdso::Call::ClockGettime,
            Call::ClockGetres(_) => vdso::Call::ClockGetres,
            Call::Gettimeofday { .. } => vdso::Call::Gettimeofday,
            Call::Time => vdso::Call::Time,
        })
    }
}

impl<C: Cells> Platform for Code<'_, C> {
    type Cells = C;

    #[inline]
    fn page(&self) -> &Page<C> {
        self.page
    }

    #[inline]
    fn page_behind_namespace(&self) -> &Page<C> {
        self.behind
    }

    #[inline]
    fn counter(&self, mode: ClockMode) -> Option<u64> {
        is_readable(mode).then(|| self.counter.get())
    }

    fn cpu_and_node(&self, _: Features) -> Option<u32> {
        None
    }

    fn syscall(&self, call: vdso::Call, arguments: [usize; 3]) -> isize {
        self.asked.set(Some((call, arguments)));
        Kernel::answer(call)
    }
}

/// Whether the simulated machine, one of x86_64, has the counter that `mode` names (the page's own
/// apart).
#[must_use]
pub fn is_readable(mode: ClockMode) -> bool {
    [ClockMode::COUNTER, ClockMode::RDTSCP, ClockMode::COUNTER_64BIT_ONLY].contains(&mode)
}

impl<'p, C: Cells> Code<'p, C> {
    /// A reader of `page`.
    #[must_use]
    pub fn new(page: &'p Page<C>) -> Self {
        Self { page, behind: page, counter: Cell::new(0), asked: Cell::new(None) }
    }

    /// A reader in the time namespace of `page`, in front of the kernel's page.
    #[must_use]
    pub fn in_namespace(page: &'p Page<C>, behind: &'p Page<C>) -> Self {
        Self { behind, ..Self::new(page) }
    }

    /// What the counter shows from now on.
    #[inline]
    pub fn set_counter(&self, value: u64) {
        self.counter.set(value);
    }

    /// The system call that the last fallback made, and forgets it.
    pub fn take_asked(&self) -> Option<(vdso::Call, [usize; 3])> {
        self.asked.take()
    }

    #[inline]
    fn call(&self, call: Call) -> Answer {
        let mut memory = Memory::new();
        let returned = match call {
            Call::ClockGettime(id) => {
                vdso::clock_gettime(self, id, user(&raw mut memory.spec)) as i64
            }
            Call::ClockGettimeNs(id) => vdso::clock_gettime_ns(self, id),
            Call::ClockGetres(id) => {
                vdso::clock_getres(self, id, user(&raw mut memory.spec)) as i64
            }
            Call::Gettimeofday { tv, tz } => {
                let tv = user(or_null(tv, &raw mut memory.val));
                let tz = user(or_null(tz, &raw mut memory.zone));
                vdso::gettimeofday(self, tv, tz) as i64
            }
            Call::Time => vdso::time(self, user(&raw mut memory.secs)),
        };
        memory.answer(call, returned)
    }
}

/// Calls `judge` with a reader of a page that holds `bytes`, in this machine's byte order.
///
/// # Errors
/// What `judge` returns.
pub fn on_bytes<E>(
    bytes: &[u8; DATA_BYTES],
    counter: u64,
    judge: impl FnOnce(&Subject<'_, Native>) -> Result<(), E>,
) -> Result<(), E> {
    // SAFETY: a page is as many bytes, made of atomic words, for which every pattern is a value.
    let page = unsafe { std::mem::transmute_copy::<[u8; DATA_BYTES], Page>(bytes) };
    let code = Code::new(&page);
    code.set_counter(counter);
    judge(&Subject::Code(code))
}

/// The shipped image, in a mapping of its own, built never to enter the host's kernel.
#[derive(Debug)]
pub struct Image<'m> {
    functions: Functions,
    mapped: PhantomData<&'m MappedImage>,
}

impl<'m> Image<'m> {
    /// The functions of a mapped image.
    ///
    /// The borrow is what keeps it mapped for as long as its functions can be called here.
    #[must_use]
    pub fn new(mapped: &'m MappedImage) -> Self {
        Self { functions: mapped.functions(), mapped: PhantomData }
    }

    /// Makes a call.
    #[inline]
    pub fn call(&self, call: Call) -> Answer {
        let mut memory = Memory::new();
        let Functions { clock_gettime, clock_gettime_ns, clock_getres, gettimeofday, time, .. } =
            self.functions;
        let spec = (&raw mut memory.spec).cast();
        let returned = match call {
            // SAFETY: a live local of the C type; the image is mapped while `self` is borrowed.
            Call::ClockGettime(id) => with(clock_gettime, |f| unsafe { f(id, spec) } as i64),
            // SAFETY: no pointer; as above.
            Call::ClockGettimeNs(id) => with(clock_gettime_ns, |f| unsafe { f(id) }),
            // SAFETY: as `clock_gettime`.
            Call::ClockGetres(id) => with(clock_getres, |f| unsafe { f(id, spec) } as i64),
            Call::Gettimeofday { tv, tz } => {
                let tv = or_null(tv, &raw mut memory.val).cast();
                let tz = or_null(tz, &raw mut memory.zone).cast();
                // SAFETY: null, which is legal for both, or live locals of the C types.
                with(gettimeofday, |f| unsafe { f(tv, tz) } as i64)
            }
            // SAFETY: a live local.
            Call::Time => with(time, |f| unsafe { f(&raw mut memory.secs) }),
        };
        memory.answer(call, returned)
    }
}

/// Calls a function that every image of ours has; the mark of one that has not is no legal answer.
#[inline]
fn with<F>(function: Option<F>, call: impl FnOnce(F) -> i64) -> i64 {
    function.map_or(i64::MIN, call)
}

#[inline]
fn user<T: Copy>(pointer: *mut T) -> UserPtr<T> {
    // SAFETY: every caller here passes null or a pointer to a live local of its own.
    unsafe { UserPtr::new(pointer) }
}

#[inline]
fn or_null<T>(is_there: bool, pointer: *mut T) -> *mut T {
    if is_there { pointer } else { ptr::null_mut() }
}

/// The caller's memory.
struct Memory {
    spec: vdso::TimeSpec,
    val: vdso::TimeVal,
    zone: vdso::Timezone,
    secs: i64,
}

/// What a 32-bit word of untouched memory holds.
const UNTOUCHED_HALF: i32 = 0x5a5a_5a5a;

impl Memory {
    #[inline]
    fn new() -> Self {
        Self {
            spec: vdso::TimeSpec { tv_sec: UNTOUCHED, tv_nsec: UNTOUCHED },
            val: vdso::TimeVal { tv_sec: UNTOUCHED, tv_usec: UNTOUCHED },
            zone: vdso::Timezone { tz_minuteswest: UNTOUCHED_HALF, tz_dsttime: UNTOUCHED_HALF },
            secs: UNTOUCHED,
        }
    }

    #[inline]
    fn answer(&self, call: Call, returned: i64) -> Answer {
        let half = |value: i32| {
            if value == UNTOUCHED_HALF { UNTOUCHED } else { i64::from(value) }
        };
        let words = match call {
            Call::ClockGettime(_) | Call::ClockGetres(_) => {
                [self.spec.tv_sec, self.spec.tv_nsec, UNTOUCHED, UNTOUCHED]
            }
            Call::ClockGettimeNs(_) => [UNTOUCHED; 4],
            Call::Gettimeofday { .. } => [
                self.val.tv_sec,
                self.val.tv_usec,
                half(self.zone.tz_minuteswest),
                half(self.zone.tz_dsttime),
            ],
            Call::Time => [self.secs, UNTOUCHED, UNTOUCHED, UNTOUCHED],
        };
        Answer { returned, words }
    }
}
