//! The shipped images on any stack, with any registers.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "a test fails by panicking, and registers are 64 bits wide here"
)]

use std::arch::{asm, global_asm};
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};

use kernel_sim::map::{MappedImage, WORDS};
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, mprotect};
use tests::child::{Outcome, outcome};
use tests::page::RawPage;

/// What a call of the image finds and leaves.
#[repr(C)]
#[derive(Debug)]
struct Frame {
    own_stack: u64,
    stack: u64,
    function: u64,
    arguments: [u64; 3],
    /// RBX, RBP, R12 to R15.
    registers: [u64; 6],
    flags: u64,
    answer: u64,
    registers_after: [u64; 6],
    stack_after: u64,
    flags_after: u64,
}

// Loads registers and flags from a `Frame`, calls its function on its stack, stores what is left.
// Only the frame's own address lies on the foreign stack; every other word of it is the callee's.
global_asm!(
    ".pushsection .text.call_with_frame, \"ax\", @progbits",
    ".type call_with_frame, @function",
    "call_with_frame:",
    "push rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "pushfq",
    "mov [rdi], rsp",
    "push qword ptr [rdi + 96]",
    "popfq",
    "mov rsp, [rdi + 8]",
    "push rdi",
    "mov rax, [rdi + 16]",
    "mov rsi, [rdi + 32]",
    "mov rdx, [rdi + 40]",
    "mov rbx, [rdi + 48]",
    "mov rbp, [rdi + 56]",
    "mov r12, [rdi + 64]",
    "mov r13, [rdi + 72]",
    "mov r14, [rdi + 80]",
    "mov r15, [rdi + 88]",
    "mov rdi, [rdi + 24]",
    "call rax",
    "mov rcx, [rsp]",
    "mov [rcx + 104], rax",
    "mov [rcx + 112], rbx",
    "mov [rcx + 120], rbp",
    "mov [rcx + 128], r12",
    "mov [rcx + 136], r13",
    "mov [rcx + 144], r14",
    "mov [rcx + 152], r15",
    "mov [rcx + 160], rsp",
    "mov rsp, [rcx]",
    "pushfq",
    "pop qword ptr [rcx + 168]",
    "popfq",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    ".popsection",
);

unsafe extern "C" {
    fn call_with_frame(frame: *mut Frame);
}

/// Direction and identification: what a function has to keep.
const KEPT_FLAGS: u64 = 1 << 10 | 1 << 21;
const REGISTERS: [u64; 6] = [
    0x1111_1111_1111_1111,
    0x2222_2222_2222_2222,
    0xcccc_cccc_cccc_cccc,
    0xdddd_dddd_dddd_dddd,
    0xeeee_eeee_eeee_eeee,
    0xffff_ffff_ffff_ffff,
];
const FILL: u8 = 0xa5;

/// A page of stack above a guard page.
struct Stack {
    base: *mut u8,
}

impl Stack {
    fn new() -> Self {
        let bytes = NonZeroUsize::new(8192).unwrap();
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a mapping of its own.
        let start = unsafe { mmap_anonymous(None, bytes, access, MapFlags::MAP_PRIVATE) }.unwrap();
        // SAFETY: the lower page of that mapping.
        unsafe { mprotect(start, 4096, ProtFlags::PROT_NONE) }.unwrap();
        Self { base: start.as_ptr().cast::<u8>().wrapping_add(4096) }
    }

    /// Bytes below `top` that a call has written, its return address included.
    fn used(&self, top: usize) -> usize {
        // SAFETY: the upper page of the mapping.
        let page = unsafe { std::slice::from_raw_parts(self.base, top) };
        page.iter().position(|byte| *byte != FILL).map_or(0, |lowest| top - lowest)
    }

    fn fill(&self) {
        // SAFETY: the upper page of the mapping.
        unsafe { self.base.write_bytes(FILL, 4096) };
    }
}

/// Pages that send a call down each of its paths.
fn pages() -> Vec<(&'static str, RawPage)> {
    let serving = RawPage { features: 2, ..RawPage::serving() };
    let mut cases = vec![
        ("served", serving),
        ("counter", RawPage { clock_mode: 1, ..serving }),
        ("rdtscp", RawPage { clock_mode: 0x101, ..serving }),
        (
            "fallback",
            RawPage { clock_mode: 0, features: 0, hrtimer_res: 0, coarse_res: 0, ..serving },
        ),
        ("retry", RawPage { seq: 1, features: 0, ..serving }),
        ("carry", RawPage { memory_counter: 1 << 40, ..serving }),
        ("wide carry", RawPage { memory_counter: 1 << 62, ..serving }),
        ("namespace", RawPage { seq: 1, clock_mode: i32::MAX, features: 0, ..serving }),
    ];
    let mut zero = RawPage { features: 0, ..serving };
    zero.basetime = [(0, 0); 12];
    cases.push(("unpublished", zero));
    cases
}

/// Every exported call with its arguments; `memory` takes what is stored.
fn calls(mapped: &MappedImage, memory: u64) -> Vec<(String, u64, [u64; 3])> {
    let mut calls = Vec::new();
    for symbol in mapped.image().symbols {
        let Some(name) = symbol.name.strip_prefix("__vdso_") else { continue };
        let function = mapped.base().addr() as u64 + symbol.offset as u64;
        let arguments: Vec<[u64; 3]> = match name {
            "clock_gettime" | "clock_getres" => {
                [0, 1, 2, 4, 5, 6, 7, 11, 99].map(|id| [id, memory, 0]).to_vec()
            }
            "clock_gettime_ns" => [0, 1, 2, 4, 5, 7, 11, 99].map(|id| [id, 0, 0]).to_vec(),
            "gettimeofday" => {
                vec![[memory, memory + 16, 0], [memory, 0, 0], [0, memory, 0], [0, 0, 0]]
            }
            "time" => vec![[memory, 0, 0], [0, 0, 0]],
            "getcpu" => vec![[memory, memory + 8, 0], [0, 0, 0]],
            other => panic!("a new export, {other}, wants a case here"),
        };
        calls.extend(arguments.into_iter().map(|arguments| (name.to_owned(), function, arguments)));
    }
    assert!(calls.len() > 20);
    calls
}

/// Every call on every page, on a stack that ends at `top` bytes above a guard page; returns the
/// most that one has used, and who.
fn call_all(
    mapped: &MappedImage,
    words: &[AtomicU64; WORDS],
    top: usize,
    flags: u64,
) -> (usize, String) {
    let stack = Stack::new();
    let mut memory = [0_u64; 4];
    let mut most = (0, String::new());
    for (path, page) in pages() {
        page.store(words);
        for (name, function, arguments) in
            calls(mapped, (&raw mut memory).expose_provenance() as u64)
        {
            stack.fill();
            let mut frame = Frame {
                own_stack: 0,
                stack: (stack.base.addr() + top) as u64,
                function,
                arguments,
                registers: REGISTERS,
                flags: flags | 0x202,
                answer: 0,
                registers_after: [0; 6],
                stack_after: 0,
                flags_after: 0,
            };
            // SAFETY: the frame is complete; the function gets arguments that it may be given.
            unsafe { call_with_frame(&raw mut frame) };
            let case = format!("{name} {arguments:x?} on a page for {path}");
            assert_eq!(frame.registers_after, REGISTERS, "{case}");
            assert_eq!(frame.stack_after, frame.stack - 8, "{case}");
            assert_eq!(frame.flags_after & KEPT_FLAGS, flags & KEPT_FLAGS, "{case}");
            // What the trampoline itself pushed is not the callee's.
            let used = stack.used(top - 8);
            assert!(used >= 8, "{case}: not even a return address on that stack");
            if used > most.0 {
                most = (used, case);
            }
        }
    }
    most
}

/// The room that a function of the image may take, return address included.
const BUDGET: usize = 224;

#[test]
fn a_call_needs_little_stack_and_keeps_registers_and_flags() {
    for image in [&linker::SYSCALL, &linker::ENOSYS] {
        let mut mapped = MappedImage::new(image).unwrap();
        let (words, mapped) = mapped.split_words();
        for top in [4096, 4088] {
            let (used, case) = call_all(mapped, words, top, 1 << 21);
            assert!(used <= BUDGET, "{case} used {used} bytes");
        }
    }
}

#[test]
fn a_call_runs_on_256_bytes_above_a_guard_page_aligned_or_not() {
    for image in [&linker::SYSCALL, &linker::ENOSYS] {
        let mut mapped = MappedImage::new(image).unwrap();
        let (words, mapped) = mapped.split_words();
        // At a function's entry the ABI has RSP at 8 modulo 16; both are tried.
        for top in [256, 256 - 8] {
            let ends = outcome(|| {
                call_all(mapped, words, top, 0);
                0
            });
            assert_eq!(ends, Outcome::Exited(0), "{top} bytes");
        }
    }
}

#[test]
fn the_guard_page_is_one() {
    // The control of the test above: a stack that is too small does fault.
    let mut mapped = MappedImage::new(&linker::SYSCALL).unwrap();
    let (words, mapped) = mapped.split_words();
    let ends = outcome(|| {
        call_all(mapped, words, 8, 0);
        0
    });
    assert_eq!(ends, Outcome::Signalled(libc::SIGSEGV));
}

#[test]
fn the_floating_point_environment_is_kept() {
    let mut mapped = MappedImage::new(&linker::SYSCALL).unwrap();
    let (words, mapped) = mapped.split_words();
    // Round up, flush to zero; round down in the x87.
    let (rounding, control): (u32, u16) = (0xdf80, 0x077f);
    let (mut rounding_after, mut control_after): (u32, u16) = (0, 0);
    let (mut old_rounding, mut old_control): (u32, u16) = (0, 0);
    // SAFETY: stores both control words; live variables.
    unsafe {
        asm!("stmxcsr [{}]", "fnstcw [{}]", in(reg) &raw mut old_rounding, in(reg) &raw mut old_control)
    };
    // SAFETY: loads legal control words; they are put back below.
    unsafe {
        asm!("ldmxcsr [{}]", "fldcw [{}]", in(reg) &raw const rounding, in(reg) &raw const control)
    };
    call_all(mapped, words, 4096, 0);
    // SAFETY: as above.
    unsafe {
        asm!("stmxcsr [{}]", "fnstcw [{}]", in(reg) &raw mut rounding_after, in(reg) &raw mut control_after)
    };
    // SAFETY: as above.
    unsafe {
        asm!("ldmxcsr [{}]", "fldcw [{}]", in(reg) &raw const old_rounding, in(reg) &raw const old_control)
    };
    assert_eq!((rounding_after & 0xffc0, control_after), (rounding & 0xffc0, control));
}

static HANDLED: AtomicU64 = AtomicU64::new(0);
static FUNCTION: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_: i32) {
    let mut spec = [0_i64; 2];
    type Call = extern "C" fn(i32, *mut c_void) -> isize;
    let function = FUNCTION.load(Ordering::Relaxed) as usize;
    // SAFETY: the test stored the address of `clock_gettime` of an image that stays mapped.
    let call = unsafe {
        std::mem::transmute::<*const c_void, Call>(std::ptr::with_exposed_provenance(function))
    };
    if call(1, (&raw mut spec).cast()) == 0 && spec[0] > 0 {
        HANDLED.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_signal_handler_on_its_own_stack_tells_the_time() {
    let mut mapped = MappedImage::new(&linker::SYSCALL).unwrap();
    let (words, mapped) = mapped.split_words();
    RawPage::serving().store(words);
    let symbol = mapped.image().symbol("__vdso_clock_gettime").unwrap();
    let function = mapped.base().expose_provenance() + symbol.offset;
    FUNCTION.store(function as u64, Ordering::Relaxed);
    let mut memory = vec![0_u8; 16 * 1024];
    let stack =
        libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
    let mut old = stack;
    // SAFETY: the memory lives until the old stack is back.
    assert_eq!(unsafe { libc::sigaltstack(&raw const stack, &raw mut old) }, 0);
    // SAFETY: all zeros is a legal sigaction.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = (handler as extern "C" fn(i32)) as usize;
    action.sa_flags = libc::SA_ONSTACK;
    // SAFETY: the handler touches atomics and the image.
    let set = unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()) };
    assert_eq!(set, 0);
    for _ in 0..100 {
        // SAFETY: raises a signal of this thread.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR1) }, 0);
    }
    // SAFETY: as above.
    assert_eq!(unsafe { libc::sigaltstack(&raw const old, std::ptr::null_mut()) }, 0);
    assert_eq!(HANDLED.load(Ordering::Relaxed), 100);
}
