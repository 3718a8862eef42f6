//! How fast a reader of this page can be on this CPU: the same checks in hand-written assembly.
//!
//! Where the image misses a target, these say whether the image is to blame or the CPU. They read
//! the shipped page with nothing that a compiler would add: no frame, no jump on the usual path, one
//! copy of it. What they cannot serve they do not serve at all (they return -1), so they are no
//! replacement; a reader that falls back needs a jump more at each check.

use std::arch::global_asm;
use std::ffi::c_int;
use std::hint::black_box;

use libc::timespec;

use crate::setup::Kernel;
use crate::subject::Subject;

/// A hand-written reader: id, place for the answer, page.
type Limit = unsafe extern "C" fn(c_int, *mut timespec, *const datapage::Page) -> isize;

// Offsets as in `datapage::layout`: seq 0, mode 4, cycle_last 8, mask 16, mult 24, shift 28,
// basetime 48, hrtimer_res 248. Registers: r8 page, r9 seq, r10 and r11 the clock's base.
macro_rules! precise {
    ($name:literal, $mode:literal, $counter:literal) => {
        global_asm!(
            ".balign 64",
            // Not local: the caller may be in another object of this crate.
            concat!(".globl ", $name),
            concat!($name, ":"),
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
            "mov rax, r10",
            "or rax, r11",
            "je 9f",
            $counter,
            "shl rdx, 32",
            "sub rax, [r8 + 8]",
            "add rax, rdx",
            "js 9f",
            "cmp qword ptr [r8 + 16], -1",
            "jne 9f",
            "mov edx, [r8 + 24]",
            "mov ecx, [r8 + 28]",
            "cmp ecx, 34",
            "ja 9f",
            "mul rdx",
            "add rax, r11",
            "adc rdx, 0",
            "jne 9f",
            "shr rax, cl",
            "cmp r9d, [r8]",
            "jne 9f",
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
        global_asm!(
            ".balign 64",
            // Not local: the caller may be in another object of this crate.
            concat!(".globl ", $name),
            concat!($name, ":"),
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

global_asm!(
    ".balign 64",
    ".globl uvdso_limit_coarse",
    "uvdso_limit_coarse:",
    "mov r8, rdx",
    "cmp edi, 11",
    "ja 9f",
    "mov eax, 0x60",
    "bt eax, edi",
    "jnc 9f",
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
    ".balign 64",
    ".globl uvdso_limit_getres",
    "uvdso_limit_getres:",
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
    "test rsi, rsi",
    "je 8f",
    "mov qword ptr [rsi], 0",
    "mov [rsi + 8], rax",
    "8: xor eax, eax",
    "ret",
    "9: mov rax, -1",
    "ret",
);

unsafe extern "C" {
    fn uvdso_limit_counter(id: c_int, ts: *mut timespec, page: *const datapage::Page) -> isize;
    fn uvdso_limit_rdtscp(id: c_int, ts: *mut timespec, page: *const datapage::Page) -> isize;
    fn uvdso_limit_counter_unchecked(
        id: c_int,
        ts: *mut timespec,
        page: *const datapage::Page,
    ) -> isize;
    fn uvdso_limit_rdtscp_unchecked(
        id: c_int,
        ts: *mut timespec,
        page: *const datapage::Page,
    ) -> isize;
    fn uvdso_limit_coarse(id: c_int, ts: *mut timespec, page: *const datapage::Page) -> isize;
    fn uvdso_limit_getres(id: c_int, ts: *mut timespec, page: *const datapage::Page) -> isize;
}

/// A precise clock with every check of the shipped reader, in the mode of the page.
#[must_use]
pub fn precise<'m>(kernel: &'m Kernel<'_>, id: c_int) -> Subject<'m> {
    if kernel.mode() == datapage::ClockMode::RDTSCP {
        subject(kernel, id, uvdso_limit_rdtscp)
    } else {
        subject(kernel, id, uvdso_limit_counter)
    }
}

/// A precise clock without any check: a lower bound for every reader.
#[must_use]
pub fn unchecked<'m>(kernel: &'m Kernel<'_>, id: c_int) -> Subject<'m> {
    if kernel.mode() == datapage::ClockMode::RDTSCP {
        subject(kernel, id, uvdso_limit_rdtscp_unchecked)
    } else {
        subject(kernel, id, uvdso_limit_counter_unchecked)
    }
}

/// A coarse clock with every check of the shipped reader.
#[must_use]
pub fn coarse<'m>(kernel: &'m Kernel<'_>, id: c_int) -> Subject<'m> {
    subject(kernel, id, uvdso_limit_coarse)
}

/// The resolution of a precise clock with every check of the shipped reader.
#[must_use]
pub fn getres<'m>(kernel: &'m Kernel<'_>, id: c_int) -> Subject<'m> {
    subject(kernel, id, uvdso_limit_getres)
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
                let checked = if rdtscp { uvdso_limit_rdtscp } else { uvdso_limit_counter };
                let call = kernel.callee().functions().clock_gettime.unwrap();
                for id in [0, 1, 7, 11, 5, 6] {
                    kernel.tick();
                    let read: Limit =
                        if (5..=6).contains(&id) { uvdso_limit_coarse } else { checked };
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
                assert_eq!(told(uvdso_limit_getres, kernel, 1).1.tv_nsec, 1);
            }
        })
        .unwrap();
    }
}
