//! Calls from a signal handler that has a stack of its own.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use kernel_sim::map::MappedImage;

use crate::cases::{Case, address_of, calls, cases, is_of_path, mapped};
use crate::frame::Stack;

/// What the handler calls: a function and its arguments. Then what that returned.
static CALL: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];
static ANSWER: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_: i32) {
    let [function, arguments @ ..] = CALL.each_ref().map(|word| word.load(Ordering::Relaxed));
    ANSWER.store(call(function, arguments), Ordering::Relaxed);
}

fn call(function: u64, [first, second, third]: [u64; 3]) -> u64 {
    type Call = extern "C" fn(u64, u64, u64) -> u64;
    let code = std::ptr::with_exposed_provenance::<c_void>(function as usize);
    // SAFETY: the address of a function of an image that stays mapped; all of them take integers
    // and pointers, three at most.
    let call = unsafe { std::mem::transmute::<*const c_void, Call>(code) };
    call(first, second, third)
}

#[test]
fn a_signal_handler_on_its_own_stack_finds_what_others_find() {
    let memory = Stack::new();
    let stack = memory.for_signals();
    let mut old = stack;
    // SAFETY: the memory is mapped for good.
    assert_eq!(unsafe { libc::sigaltstack(&raw const stack, &raw mut old) }, 0);
    // SAFETY: all zeros is a legal sigaction.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = (handler as extern "C" fn(i32)) as usize;
    action.sa_flags = libc::SA_ONSTACK;
    // SAFETY: the handler touches atomics and the image.
    let set = unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()) };
    assert_eq!(set, 0);
    for image in [&linker::SYSCALL, &linker::ENOSYS] {
        for mut mapped in mapped(image) {
            call_all_from_a_handler(&mut mapped);
        }
    }
    // SAFETY: as above.
    assert_eq!(unsafe { libc::sigaltstack(&raw const old, std::ptr::null_mut()) }, 0);
}

fn call_all_from_a_handler(mapped: &mut MappedImage) {
    let (words, mapped) = mapped.split_words();
    let mut memory = [0_u64; 4];
    for Case { path, page, shown } in cases() {
        page.store(words);
        for (name, function, arguments) in calls(mapped, address_of(&mut memory)) {
            let case = format!("{name} {arguments:x?} on a page for {path}");
            let answer = call(function, arguments) as i64;
            let stored = std::mem::take(&mut memory);
            for (word, value) in CALL.iter().zip([function].into_iter().chain(arguments)) {
                word.store(value, Ordering::Relaxed);
            }
            // SAFETY: raises a signal of this thread.
            assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
            let answer_there = ANSWER.load(Ordering::Relaxed) as i64;
            let stored_there = std::mem::take(&mut memory);
            // What does not move is the same; the rest fails or not as it does elsewhere.
            assert_eq!(answer_there < 0, answer < 0, "{case}");
            let of_cpu = name == "getcpu" || name.starts_with("clock_gettime") && arguments[0] == 2;
            if shown.is_some() && page.clock_mode == 0x100 && !of_cpu {
                assert_eq!((answer_there, stored_there), (answer, stored), "{case}");
            }
            if name == "clock_gettime" && arguments[0] == 0 {
                let took = (answer_there, stored_there[0] as i64);
                assert!(is_of_path(took, shown.as_ref(), mapped.image()), "{case}: {took:?}");
            }
        }
    }
}
