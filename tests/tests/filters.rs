//! The images under a seccomp filter that knows no clock call.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test fails by panicking, and registers are 64 bits wide here"
)]

use std::ptr::null_mut;

use kernel_sim::functions::Functions;
use kernel_sim::map::MappedImage;
use tests::child::{Outcome, outcome};
use tests::kernel::number;
use tests::page::RawPage;

const EPERM: isize = -1;

/// Answers the five calls that a vDSO stands for with `action`, and lets every other through.
fn forbid_clock_calls(action: u32) -> bool {
    let load_number = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let equals = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let answer = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    let numbers = [
        number::GETTIMEOFDAY,
        number::TIME,
        number::CLOCK_GETTIME,
        number::CLOCK_GETRES,
        number::GETCPU,
    ];
    let mut program = [step(0, 0, 0); 8];
    program[0] = step(load_number, 0, 0);
    for (at, number) in numbers.into_iter().enumerate() {
        program[at + 1] = step(equals, 5 - at as u8, number as u32);
    }
    program[6] = step(answer, 0, libc::SECCOMP_RET_ALLOW);
    program[7] = step(answer, 0, action);
    let filter = libc::sock_fprog { len: 8, filter: program.as_mut_ptr() };
    // SAFETY: takes no pointer.
    let bound = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: a complete program, which the kernel copies.
    let set =
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) };
    bound == 0 && set == 0
}

/// The answer of each call for the clock `id`, in one go.
fn answers(functions: &Functions, id: i32) -> [isize; 5] {
    let mut words = [0_i64; 2];
    let pointer = (&raw mut words).cast::<libc::timespec>();
    [
        // SAFETY: a live pair of words, which is what a timespec is.
        unsafe { functions.clock_gettime.unwrap()(id, pointer) },
        // SAFETY: as above.
        unsafe { functions.clock_getres.unwrap()(id, pointer) },
        // SAFETY: as above, for a timeval.
        unsafe { functions.gettimeofday.unwrap()(pointer.cast(), null_mut()) },
        // SAFETY: null is legal.
        unsafe { functions.time.unwrap()(null_mut()) as isize },
        // SAFETY: two live words, and a null that is ignored.
        unsafe {
            functions.getcpu.unwrap()(
                pointer.cast(),
                pointer.cast::<u32>().wrapping_add(1),
                null_mut(),
            )
        },
    ]
}

#[test]
fn what_the_page_serves_makes_no_system_call() {
    let mut mapped = MappedImage::new(&linker::SYSCALL).unwrap();
    let (words, mapped) = mapped.split_words();
    let functions = mapped.functions();
    for clock_mode in [1, 0x100, 0x101] {
        RawPage { clock_mode, features: 2, ..RawPage::serving() }.store(words);
        let ends = outcome(|| {
            if !forbid_clock_calls(libc::SECCOMP_RET_KILL_PROCESS) {
                return 2;
            }
            let served = [0, 1, 4, 5, 6, 7, 11]
                .into_iter()
                .all(|id| answers(&functions, id).iter().all(|answer| *answer >= 0));
            i32::from(!served)
        });
        assert_eq!(ends, Outcome::Exited(0), "mode {clock_mode:#x}");
    }
}

#[test]
fn the_filter_kills_who_does_call() {
    // The control of the test above.
    let mut mapped = MappedImage::new(&linker::SYSCALL).unwrap();
    let (words, mapped) = mapped.split_words();
    RawPage { clock_mode: 0, ..RawPage::serving() }.store(words);
    let functions = mapped.functions();
    let ends = outcome(|| {
        let set = forbid_clock_calls(libc::SECCOMP_RET_KILL_PROCESS);
        answers(&functions, 0);
        i32::from(set)
    });
    assert_eq!(ends, Outcome::Signalled(libc::SIGSYS));
}

#[test]
fn whatever_a_filter_answers_is_passed_on_as_it_is() {
    let mut mapped = MappedImage::new(&linker::SYSCALL).unwrap();
    let (_, mapped) = mapped.split_words();
    let functions = mapped.functions();
    let ends = outcome(|| {
        if !forbid_clock_calls(libc::SECCOMP_RET_ERRNO | 1) {
            return 2;
        }
        i32::from(answers(&functions, 0) != [EPERM; 5])
    });
    assert_eq!(ends, Outcome::Exited(0));
}
