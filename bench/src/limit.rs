//! How fast a reader of this page can be on this CPU: the same checks in hand-written assembly.
//!
//! Where the image misses a target, these say whether the image is to blame or the CPU. They read
//! the shipped page with nothing that a compiler would add: no frame, no jump on the usual path, one
//! copy of it. What they cannot serve they do not serve at all (they return -1), so they are no
//! replacement; a reader that falls back needs a jump more at each check.
//!
//! They are called where an image would be, in a mapping far from the program: a call over more than
//! 4 GiB and its return cost two cycles more than one inside the program (measured on a Sapphire
//! Rapids guest), which is a third of a whole coarse read.

use std::arch::global_asm;
use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::OnceLock;

use kernel_sim::functions::Functions;
use libc::timespec;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, mprotect};

use crate::callee::Callee;
use crate::setup::Kernel;
use crate::subject::Subject;

/// A hand-written reader: id, place for the answer, page.
type Limit = unsafe extern "C" fn(c_int, *mut timespec, *const datapage::Page) -> isize;

/// A hand-written reader and where its code ends.
macro_rules! reader {
    ($name:literal, $($line:expr),+ $(,)?) => {
        global_asm!(
            ".balign 64",
            // Not local: the caller may be in another object of this crate.
            concat!(".globl ", $name, ", ", $name, "_end"),
            concat!($name, ":"),
            $($line,)+
            concat!($name, "_end:"),
        );
    };
}

// Offsets as in `datapage::layout`: seq 0, mode 4, cycle_last 8, mask 16, mult 24, shift 28,
// basetime 48, hrtimer_res 248. Registers: r8 page, r9 seq, r10 and r11 the clock's base.
macro_rules! precise {
    ($name:literal, $mode:literal, $counter:literal) => {
        reader!(
            $name,
            "mov r8, rdx",
            "cmp edi, 11",
            "ja 9f",
            "mov eax, 0x883",
            "bt eax, edi",
            "jnc 9f",
            "mov r9d, [r8]",
            "test r9b, 1",
            "jne 9f",
            concat!("cmp dword ptr [r8 + 4], ", $mode),
            "jne 9f",
            "mov ecx, edi",
            "shl ecx, 4",
            "mov r10, [r8 + rcx + 48]",
            "mov r11, [r8 + rcx + 56]",
            "test r11, r11",
            "je 9f",
            $counter,
            "shl rdx, 32",
            "or rax, rdx",
            "sub rax, [r8 + 8]",
            "cmp qword ptr [r8 + 16], -1",
            "jne 9f",
            "mov edx, [r8 + 24]",
            "mov ecx, [r8 + 28]",
            "cmp ecx, 34",
            "ja 9f",
            "cmp r9d, [r8]",
            "jne 9f",
            "imul rax, rdx",
            "jo 9f",
            "add rax, r11",
            "jc 9f",
            "shr rax, cl",
            "cmp rax, 1000000000",
            "jae 9f",
            "mov [rsi], r10",
            "mov [rsi + 8], rax",
            "xor eax, eax",
            "ret",
            "9: mov rax, -1",
            "ret",
        );
    };
}

precise!("uvdso_limit_counter", "1", "lfence; rdtsc");
precise!("uvdso_limit_rdtscp", "0x101", "rdtscp");

// The arithmetic alone: what is left if every check goes.
macro_rules! unchecked {
    ($name:literal, $counter:literal) => {
        reader!(
            $name,
            "mov r8, rdx",
            "shl edi, 4",
            "mov r10, [r8 + rdi + 48]",
            "mov r11, [r8 + rdi + 56]",
            $counter,
            "shl rdx, 32",
            "sub rax, [r8 + 8]",
            "add rax, rdx",
            "mov edx, [r8 + 24]",
            "mov ecx, [r8 + 28]",
            "imul rax, rdx",
            "add rax, r11",
            "shr rax, cl",
            "mov [rsi], r10",
            "mov [rsi + 8], rax",
            "xor eax, eax",
            "ret",
        );
    };
}

unchecked!("uvdso_limit_counter_unchecked", "lfence; rdtsc");
unchecked!("uvdso_limit_rdtscp_unchecked", "rdtscp");

reader!(
    "uvdso_limit_coarse",
    "mov r8, rdx",
    "lea eax, [rdi - 5]",
    "cmp eax, 2",
    "jae 9f",
    "shl edi, 4",
    "mov r9d, [r8]",
    "test r9b, 1",
    "jne 9f",
    "mov r10, [r8 + rdi + 48]",
    "mov r11, [r8 + rdi + 56]",
    "cmp r9d, [r8]",
    "jne 9f",
    "lea rax, [r11 - 1]",
    "cmp rax, 999999999",
    "jae 9f",
    "mov [rsi], r10",
    "mov [rsi + 8], r11",
    "xor eax, eax",
    "ret",
    "9: mov rax, -1",
    "ret",
);

// What a call costs that does nothing, whatever its signature.
reader!("uvdso_limit_nothing", "xor eax, eax", "ret");

/// Stores the nanoseconds in `rax`, unless there is nowhere to; `9` is where what is not served goes.
macro_rules! resolution_answer {
    () => {
        "test rsi, rsi; je 8f; mov qword ptr [rsi], 0; mov [rsi + 8], rax; 8: xor eax, eax; ret; \
         9: mov rax, -1; ret"
    };
}

reader!(
    "uvdso_limit_getres",
    "mov r8, rdx",
    "cmp edi, 11",
    "ja 9f",
    "mov eax, 0x893",
    "bt eax, edi",
    "jnc 9f",
    "shl edi, 4",
    "mov r9d, [r8]",
    "test r9b, 1",
    "jne 9f",
    "mov eax, [r8 + 248]",
    "mov r10, [r8 + rdi + 48]",
    "or r10, [r8 + rdi + 56]",
    "je 9f",
    "cmp r9d, [r8]",
    "jne 9f",
    "lea r11d, [rax - 1]",
    "cmp r11d, 999999999",
    "jae 9f",
    resolution_answer!(),
);

// One load and the answer.
reader!(
    "uvdso_limit_getres_unchecked",
    "cmp edi, 11",
    "ja 9f",
    "mov eax, [rdx + 248]",
    resolution_answer!(),
);

macro_rules! far {
    ($($function:ident = $name:ident .. $end:ident;)+) => {
        unsafe extern "C" {
            $(static $name: u8; static $end: u8;)+
        }
        $(
            fn $function() -> Limit {
                static COPY: OnceLock<Limit> = OnceLock::new();
                // SAFETY: the two labels enclose one reader, which refers to nothing outside of itself.
                *COPY.get_or_init(|| unsafe { far(&raw const $name, &raw const $end) })
            }
        )+
    };
}
far! {
    checked_counter = uvdso_limit_counter .. uvdso_limit_counter_end;
    checked_rdtscp = uvdso_limit_rdtscp .. uvdso_limit_rdtscp_end;
    unchecked_counter = uvdso_limit_counter_unchecked .. uvdso_limit_counter_unchecked_end;
    unchecked_rdtscp = uvdso_limit_rdtscp_unchecked .. uvdso_limit_rdtscp_unchecked_end;
    checked_coarse = uvdso_limit_coarse .. uvdso_limit_coarse_end;
    checked_getres = uvdso_limit_getres .. uvdso_limit_getres_end;
    unchecked_getres_code = uvdso_limit_getres_unchecked .. uvdso_limit_getres_unchecked_end;
    nothing_code = uvdso_limit_nothing .. uvdso_limit_nothing_end;
}

/// A copy of a reader in a mapping of its own, which stays.
///
/// # Panics
/// If the system has no page left.
///
/// # Safety
/// `start` and `end` enclose the position-independent code of a [`Limit`].
unsafe fn far(start: *const u8, end: *const u8) -> Limit {
    // SAFETY: both are in one function.
    let length = unsafe { end.byte_offset_from(start) };
    let length = usize::try_from(length).expect("a function does not end before it begins");
    let bytes = NonZeroUsize::new(length).expect("a function has instructions");
    let writable = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: a new mapping, at an address of the kernel's choice: among the libraries and the vDSO.
    let mapping = unsafe { mmap_anonymous(None, bytes, writable, MapFlags::MAP_PRIVATE) };
    let mapping = mapping.expect("a page");
    // SAFETY: `length` bytes can be read there and written here.
    unsafe { mapping.cast::<u8>().as_ptr().copy_from_nonoverlapping(start, length) };
    // SAFETY: the mapping is this function's own.
    unsafe { mprotect(mapping, length, ProtFlags::PROT_READ | ProtFlags::PROT_EXEC) }
        .expect("code may be executed");
    // SAFETY: the caller says that this is the code of a `Limit`.
    unsafe { std::mem::transmute(mapping.as_ptr()) }
}

/// An image whose every function returns at once: the lower bound for anything that is called.
#[must_use]
pub fn nothing() -> Callee<'static> {
    let code = nothing_code() as *const c_void;
    // SAFETY: two instructions that touch neither memory nor a register that a caller keeps, so they
    // are a function of any signature; the copy stays mapped.
    let functions = unsafe { Functions::from_addresses(|_| Some(code)) };
    // SAFETY: as above.
    unsafe { Callee::lasting(functions) }
}

/// A precise clock with every check of the shipped reader, in the mode of the page.
#[must_use]
pub fn precise<'m>(kernel: &'m Kernel<'_>, id: c_int) -> Subject<'m> {
    if kernel.mode() == datapage::ClockMode::RDTSCP {
        subject(kernel, id, checked_rdtscp())
    } else {
        subject(kernel, id, checked_counter())
    }
}

/// A precise clock without any check: a lower bound for every reader.
#[must_use]
pub fn unchecked<'m>(kernel: &'m Kernel<'_>, id: c_int) -> Subject<'m> {
    if kernel.mode() == datapage::ClockMode::RDTSCP {
        subject(kernel, id, unchecked_rdtscp())
    } else {
        subject(kernel, id, unchecked_counter())
    }
}

/// A coarse clock with every check of the shipped reader.
#[must_use]
pub fn coarse<'m>(kernel: &'m Kernel<'_>, id: c_int) -> Subject<'m> {
    subject(kernel, id, checked_coarse())
}

/// The resolution of a precise clock with every check of the shipped reader.
#[must_use]
pub fn getres<'m>(kernel: &'m Kernel<'_>, id: c_int) -> Subject<'m> {
    subject(kernel, id, checked_getres())
}

/// The resolution of a precise clock without a look at the sequence or the clock's slot.
#[must_use]
pub fn unchecked_getres<'m>(kernel: &'m Kernel<'_>, id: c_int) -> Subject<'m> {
    subject(kernel, id, unchecked_getres_code())
}

fn subject<'m>(kernel: &'m Kernel<'_>, id: c_int, read: Limit) -> Subject<'m> {
    let page = kernel.image().page();
    Subject::new("hand-written", move |calls| {
        let mut ts = timespec { tv_sec: 0, tv_nsec: 0 };
        for _ in 0..calls {
            // SAFETY: `ts` and the page are alive; ids of no slot are refused, and the unchecked
            // ones are only called with ids of the page.
            black_box(unsafe { read(id, &raw mut ts, page) });
        }
        black_box(ts);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::Setup;

    fn told(read: Limit, kernel: &Kernel<'_>, id: c_int) -> (isize, timespec) {
        let mut ts = timespec { tv_sec: -1, tv_nsec: -1 };
        // SAFETY: `ts` and the page are alive.
        let answer = unsafe { read(id, &raw mut ts, kernel.image().page()) };
        (answer, ts)
    }

    fn nanos(ts: &timespec) -> i64 {
        ts.tv_sec * 1_000_000_000 + ts.tv_nsec
    }

    #[test]
    fn the_hand_written_readers_tell_the_images_time() {
        Setup::with(|setup| {
            let kernels = [Some(&setup.counter), setup.rdtscp.as_ref()].into_iter().flatten();
            for kernel in kernels {
                let rdtscp = kernel.mode() == datapage::ClockMode::RDTSCP;
                let checked = if rdtscp { checked_rdtscp() } else { checked_counter() };
                let call = kernel.callee().functions().clock_gettime.unwrap();
                for id in [0, 1, 7, 11, 5, 6] {
                    kernel.tick();
                    let read = if (5..=6).contains(&id) { checked_coarse() } else { checked };
                    let mut after = timespec { tv_sec: 0, tv_nsec: 0 };
                    let (answer, ts) = told(read, kernel, id);
                    // SAFETY: the image is mapped, `after` is alive.
                    unsafe { call(id, &raw mut after) };
                    // A second may end in between, which the hand-written ones do not carry.
                    if answer == 0 {
                        let late = nanos(&after) - nanos(&ts);
                        assert!((0..1_000_000_000).contains(&late), "{id}: {late} ns apart");
                    }
                }
                assert_eq!(told(checked, kernel, 4).0, -1);
                assert_eq!(told(checked_getres(), kernel, 1).1.tv_nsec, 1);
                assert_eq!(told(unchecked_getres_code(), kernel, 1).1.tv_nsec, 1);
                assert_eq!(told(nothing_code(), kernel, 1).1.tv_nsec, -1, "written");
            }
        })
        .unwrap();
    }
}
