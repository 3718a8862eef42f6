//! Counting the instructions of a call one by one, on the processor itself.
//!
//! With the trap flag set the processor traps after each instruction, and the kernel sends SIGTRAP
//! (Intel SDM volume 3, 17.3.2, single-step exceptions). Each instruction of the image is the next
//! one of exactly one trap. This counts what an emulator does not know.

use std::arch::asm;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use kernel_sim::map::MappedImage;
use nix::errno::Errno;

use crate::counted::Case;

/// What the handler counts, and where.
static SEEN: AtomicU64 = AtomicU64::new(0);
static START: AtomicU64 = AtomicU64::new(0);
static END: AtomicU64 = AtomicU64::new(0);

/// One call is counted at a time.
static ONE: Mutex<()> = Mutex::new(());

/// The instructions of one call, from the function's first to its return; `None` where the image
/// has no such function.
///
/// # Errors
/// That the kernel takes no handler.
pub fn instructions(case: &Case, mapped: &MappedImage) -> nix::Result<Option<u64>> {
    let Some(function) = case.function(mapped) else { return Ok(None) };
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let base = mapped.base().addr() as u64;
    watch(base..base + mapped.image().mapped_bytes() as u64);
    let before = set_handler(&handler())?;
    let mut place = [0; 2];
    let [first, second] = case.arguments.words(&mut place);
    // SAFETY: an exported function of a mapped image, with arguments of its C signature; all that
    // the C ABI lets it change is declared. The flag is set and cleared here, on this stack, which
    // is as it was at the call; the handler below takes the traps in between.
    unsafe {
        asm!(
            "pushfq",
            "or qword ptr [rsp], {flag}",
            "popfq",
            "call r12",
            "pushfq",
            "and qword ptr [rsp], {mask}",
            "popfq",
            flag = const TRAP_FLAG,
            mask = const !TRAP_FLAG,
            in("r12") function,
            inout("rdi") first => _,
            inout("rsi") second => _,
            inout("rdx") 0_usize => _,
            clobber_abi("C"),
        );
    }
    std::hint::black_box(place);
    set_handler(&before)?;
    Ok(Some(SEEN.load(Ordering::Relaxed)))
}

/// TF in the flags register.
const TRAP_FLAG: i32 = 1 << 8;

fn watch(code: Range<u64>) {
    SEEN.store(0, Ordering::Relaxed);
    START.store(code.start, Ordering::Relaxed);
    END.store(code.end, Ordering::Relaxed);
}

/// Counts a trap whose next instruction is one of the image.
extern "C" fn on_trap(_: c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let context: *const libc::ucontext_t = context.cast_const().cast();
    // SAFETY: the kernel gives a handler with SA_SIGINFO the interrupted context.
    let registers = unsafe { &(*context).uc_mcontext.gregs };
    let next = registers[libc::REG_RIP as usize].cast_unsigned();
    if (START.load(Ordering::Relaxed)..END.load(Ordering::Relaxed)).contains(&next) {
        SEEN.fetch_add(1, Ordering::Relaxed);
    }
}

type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::c_void);

fn handler() -> libc::sigaction {
    // SAFETY: an action without handler, flags and mask is a value of this type.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = (on_trap as Handler) as usize;
    action.sa_flags = libc::SA_SIGINFO;
    action
}

/// Sets the handler of SIGTRAP; returns the one before.
fn set_handler(action: &libc::sigaction) -> nix::Result<libc::sigaction> {
    let mut before = MaybeUninit::uninit();
    // SAFETY: a whole action, and a place for the one before. The handler is async-signal-safe.
    let answer =
        unsafe { libc::sigaction(libc::SIGTRAP, std::ptr::from_ref(action), before.as_mut_ptr()) };
    Errno::result(answer)?;
    // SAFETY: the kernel filled it.
    Ok(unsafe { before.assume_init() })
}
