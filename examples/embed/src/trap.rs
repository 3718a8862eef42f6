//! System calls of the program come to this kernel, not to the host's.
//!
//! Linux 5.11 and later turn a system call into a signal while a byte of the process says so
//! (`Documentation/admin-guide/syscall-user-dispatch.rst`). The byte does while the program runs.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

use embed::clock::Clock;
use embed::fallback;

use crate::machine::Host;

unsafe extern "C" {
    fn prctl(option: c_int, ...) -> c_int;
    fn sigaction(signal: c_int, new: *const Action, old: *mut c_void) -> c_int;
}

/// The kernel as system calls find it.
pub(crate) struct Kernel {
    pub(crate) host: Host,
    pub(crate) clock: Clock,
    /// System calls that it has answered.
    pub(crate) answered: u64,
}

/// Turns the program's system calls into signals; `false` where the host's kernel cannot, and then
/// answers them itself.
pub(crate) fn install() -> bool {
    const PR_SET_SYSCALL_USER_DISPATCH: c_int = 59;
    const PR_SYS_DISPATCH_ON: usize = 1;
    const SIGSYS: c_int = 31;
    const SA_SIGINFO: c_int = 4;
    type Handler = extern "C" fn(c_int, *mut c_void, *mut c_void);
    let action = Action {
        handler: on_system_call as Handler as usize,
        mask: [0; 16],
        flags: SA_SIGINFO,
        restorer: 0,
    };
    // SAFETY: a whole action, whose handler does what a handler may.
    if unsafe { sigaction(SIGSYS, &raw const action, null_mut()) } != 0 {
        return false;
    }
    let on = PR_SYS_DISPATCH_ON;
    // SAFETY: no code is exempt, and the byte stays where it is.
    unsafe { prctl(PR_SET_SYSCALL_USER_DISPATCH, on, 0_usize, 0_usize, SELECTOR.as_ptr()) == 0 }
}

/// Lets the program run: its system calls find `kernel`.
pub(crate) fn on<R>(kernel: &mut Kernel, program: impl FnOnce() -> R) -> R {
    KERNEL.store(kernel, Ordering::Release);
    SELECTOR.store(BLOCK, Ordering::Release);
    let result = program();
    SELECTOR.store(ALLOW, Ordering::Release);
    KERNEL.store(null_mut(), Ordering::Release);
    result
}

/// `include/uapi/linux/prctl.h`.
const ALLOW: u8 = 0;
const BLOCK: u8 = 1;

static SELECTOR: AtomicU8 = AtomicU8::new(ALLOW);
static KERNEL: AtomicPtr<Kernel> = AtomicPtr::new(null_mut());

/// C's `struct sigaction` on x86_64.
#[repr(C)]
struct Action {
    handler: usize,
    mask: [u64; 16],
    flags: c_int,
    restorer: usize,
}

/// The system call's entry: the program's registers are in the context.
extern "C" fn on_system_call(_: c_int, _: *mut c_void, context: *mut c_void) {
    /// Where the registers are in a `ucontext_t`, and which is which (`sys/ucontext.h`).
    const REGISTERS: usize = 40;
    const RDI: usize = 8;
    const RSI: usize = 9;
    const RDX: usize = 12;
    const RAX: usize = 13;
    // The way back is a system call of its own, and answering may take some.
    SELECTOR.store(ALLOW, Ordering::Release);
    let registers = context.wrapping_byte_add(REGISTERS).cast::<usize>();
    // SAFETY: the kernel gives the handler the interrupted context, which has them.
    let read = |register: usize| unsafe { registers.wrapping_add(register).read() };
    let kernel = KERNEL.load(Ordering::Acquire);
    // SAFETY: null, or what `on` has borrowed for as long as the program runs, and does not touch.
    let Some(kernel) = (unsafe { kernel.as_mut() }) else { return };
    let arguments = [read(RDI), read(RSI), read(RDX)];
    let answer = fallback::answer(read(RAX), arguments, &kernel.clock, &mut kernel.host);
    kernel.answered += 1;
    // SAFETY: as above; the program goes on with it.
    unsafe { registers.wrapping_add(RAX).write(answer.cast_unsigned()) };
}
