//! The few requests of `ptrace(2)` that the launcher makes, with the kernel's own numbers.
//!
//! `nix` has most of them, but takes signals as an enumeration without the real-time ones, which
//! threads of glibc send each other all the time.

use std::ffi::{c_int, c_long, c_uint, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use libc::{pid_t, user_regs_struct};
use nix::errno::Errno;

/// A thread that this process traces and that stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stopped(pub(crate) pid_t);

/// What `waitpid` reports of a traced thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It is gone, by this signal if that is not 0.
    Gone(c_int),
    /// It begins or ends a system call.
    SystemCall(Stopped),
    /// It has a new program.
    Exec(Stopped),
    /// It begins a system call that its filter stops at.
    Filtered(Stopped),
    /// It is stopped by job control, and stays so.
    Group(Stopped),
    /// It is about to get this signal.
    Signal(Stopped, c_int),
    /// It stands still for no reason that matters: it made a child or a thread, is one, or was
    /// interrupted.
    Other(Stopped),
}

const FOLLOW: c_int = libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACESECCOMP
    | libc::PTRACE_O_TRACESYSGOOD;

/// Begins to trace `pid` and whatever it starts.
///
/// Without `PTRACE_O_EXITKILL`: programs outlive their tracer. A child made with `CLONE_UNTRACED` is the
/// one that is not followed: the kernel has no event for it. A seccomp filter would see the flag of
/// `clone`, and not that of `clone3`, which is in memory; and in the child itself, which has the filter
/// and no tracer, the next such call would fail.
pub(crate) fn seize(pid: pid_t) -> nix::Result<()> {
    request(libc::PTRACE_SEIZE, pid, 0, data(FOLLOW))
}

/// The next event of any traced thread, with its id; `None` when there are none left.
pub(crate) fn wait() -> nix::Result<Option<(pid_t, Event)>> {
    match wait_for(-1) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::ECHILD) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The next event of one thread, or of any if `pid` is -1.
pub(crate) fn wait_for(pid: pid_t) -> nix::Result<(pid_t, Event)> {
    let mut status = 0;
    let found = loop {
        // SAFETY: a live word for the status.
        let found = unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) };
        match Errno::result(found) {
            Err(Errno::EINTR) => {}
            other => break other?,
        }
    };
    Ok((found, event(Stopped(found), status)))
}

/// Whether this process traces a thread, whose end it has not been told yet.
pub(crate) fn is_traced(thread: pid_t) -> bool {
    libc::id_t::try_from(thread).is_ok_and(|thread| is_there(libc::P_PID, thread))
}

/// Whether this process traces any thread whose end it has not been told yet.
pub(crate) fn has_traced() -> bool {
    is_there(libc::P_ALL, 0)
}

/// Whether there are threads to wait for; what has become of them stays to be told.
fn is_there(kind: libc::idtype_t, whom: libc::id_t) -> bool {
    let mut told = MaybeUninit::<libc::siginfo_t>::uninit();
    let flags = libc::WEXITED | libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
    // SAFETY: room for what is told, which nobody reads.
    let answer = unsafe { libc::waitid(kind, whom, told.as_mut_ptr(), flags) };
    answer == 0
}

fn event(stopped: Stopped, status: c_int) -> Event {
    if !libc::WIFSTOPPED(status) {
        return Event::Gone(if libc::WIFSIGNALED(status) { libc::WTERMSIG(status) } else { 0 });
    }
    let signal = libc::WSTOPSIG(status);
    match status >> 16 {
        libc::PTRACE_EVENT_EXEC => Event::Exec(stopped),
        libc::PTRACE_EVENT_SECCOMP => Event::Filtered(stopped),
        libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => Event::Group(stopped),
        0 if signal == libc::SIGTRAP | 0x80 => Event::SystemCall(stopped),
        0 => Event::Signal(stopped, signal),
        _ => Event::Other(stopped),
    }
}

impl Stopped {
    /// Lets it run, and get `signal` if that is not 0.
    pub(crate) fn resume(self, signal: c_int) -> nix::Result<()> {
        request(libc::PTRACE_CONT, self.0, 0, data(signal))
    }

    /// Lets it run until the next beginning or end of a system call.
    pub(crate) fn resume_to_system_call(self, signal: c_int) -> nix::Result<()> {
        request(libc::PTRACE_SYSCALL, self.0, 0, data(signal))
    }

    /// Has it stop before it runs again: as job control's, if that has stopped its process and not
    /// continued it.
    pub(crate) fn interrupt(self) -> nix::Result<()> {
        request(libc::PTRACE_INTERRUPT, self.0, 0, 0)
    }

    /// Whether it still stands where it was: a thread that was killed does not.
    pub(crate) fn is_there(self) -> bool {
        self.registers().is_ok()
    }

    /// Leaves it stopped by job control, until it is continued.
    pub(crate) fn listen(self) -> nix::Result<()> {
        request(libc::PTRACE_LISTEN, self.0, 0, 0)
    }

    /// Lets it go for good.
    pub(crate) fn detach(self, signal: c_int) -> nix::Result<()> {
        request(libc::PTRACE_DETACH, self.0, 0, data(signal))
    }

    /// Sets the options, with `more` beyond those of [`seize`].
    pub(crate) fn set_options(self, more: c_int) -> nix::Result<()> {
        request(libc::PTRACE_SETOPTIONS, self.0, 0, data(FOLLOW | more))
    }

    pub(crate) fn registers(self) -> nix::Result<user_regs_struct> {
        let mut registers = MaybeUninit::<user_regs_struct>::uninit();
        let to = registers.as_mut_ptr().expose_provenance();
        request(libc::PTRACE_GETREGS, self.0, 0, to)?;
        // SAFETY: the kernel filled all of it.
        Ok(unsafe { registers.assume_init() })
    }

    /// Has the call at whose beginning a filter stopped the thread fail with ENOSYS, as a kernel does
    /// for a filter that asks a tracer where there is none.
    pub(crate) fn refuse_call(self) -> nix::Result<()> {
        let refused = i64::from(-libc::ENOSYS).cast_unsigned();
        let registers = user_regs_struct { orig_rax: u64::MAX, rax: refused, ..self.registers()? };
        self.set_registers(&registers)
    }

    pub(crate) fn set_registers(self, registers: &user_regs_struct) -> nix::Result<()> {
        let from = ptr::from_ref(registers).expose_provenance();
        request(libc::PTRACE_SETREGS, self.0, 0, from)
    }

    /// Signals that it holds back, as the kernel's 64 bits.
    pub(crate) fn signal_mask(self) -> nix::Result<u64> {
        let mut mask = 0_u64;
        let to = (&raw mut mask).expose_provenance();
        request(libc::PTRACE_GETSIGMASK, self.0, size_of::<u64>(), to)?;
        Ok(mask)
    }

    pub(crate) fn set_signal_mask(self, mask: u64) -> nix::Result<()> {
        let from = (&raw const mask).expose_provenance();
        request(libc::PTRACE_SETSIGMASK, self.0, size_of::<u64>(), from)
    }

    /// Whether the signal that it is about to get is for a fault of its own.
    pub(crate) fn is_at_fault(self) -> nix::Result<bool> {
        let info = self.signal_info()?;
        let is_for_faults =
            matches!(info.si_signo, libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE);
        Ok(is_for_faults && info.si_code > 0)
    }

    /// Whether a process sent the signal that it is about to get.
    pub(crate) fn is_at_sent_signal(self) -> nix::Result<bool> {
        Ok(self.signal_info()?.si_code <= 0)
    }

    fn signal_info(self) -> nix::Result<libc::siginfo_t> {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        let to = info.as_mut_ptr().expose_provenance();
        request(libc::PTRACE_GETSIGINFO, self.0, 0, to)?;
        // SAFETY: it was zeroed, which is a valid value of each field, and the kernel filled it.
        Ok(unsafe { info.assume_init() })
    }

    /// Sends the signal to it, and not to its process, of which it is the only thread.
    pub(crate) fn send_itself(self, signal: c_int) -> nix::Result<()> {
        // SAFETY: takes numbers alone.
        let answer = unsafe { libc::syscall(libc::SYS_tgkill, self.0, self.0, signal) };
        Errno::result(answer).map(drop)
    }

    /// The system call that it begins, at whose beginning or filter it stands; `None` at the end of
    /// one.
    pub(crate) fn beginning_call(self) -> nix::Result<Option<BeginningCall>> {
        let mut info = MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
        let size = size_of::<libc::ptrace_syscall_info>();
        let to = info.as_mut_ptr().expose_provenance();
        request(libc::PTRACE_GET_SYSCALL_INFO, self.0, size, to)?;
        // SAFETY: it was zeroed, which is a valid value of each field, and the kernel filled it.
        let info = unsafe { info.assume_init() };
        let (number, [first, second, ..]) = match info.op {
            libc::PTRACE_SYSCALL_INFO_ENTRY => {
                // SAFETY: `op` says that the kernel filled this variant.
                let entry = unsafe { info.u.entry };
                (entry.nr, entry.args)
            }
            libc::PTRACE_SYSCALL_INFO_SECCOMP => {
                // SAFETY: `op` says that the kernel filled this variant.
                let filtered = unsafe { info.u.seccomp };
                (filtered.nr, filtered.args)
            }
            _ => return Ok(None),
        };
        Ok(Some(BeginningCall { arch: info.arch, number, first, second }))
    }
}

/// A system call that begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BeginningCall {
    /// `AUDIT_ARCH_*`: which table the number belongs to.
    pub(crate) arch: u32,
    /// The call's number.
    pub(crate) number: u64,
    /// The call's first argument.
    pub(crate) first: u64,
    /// Its second.
    pub(crate) second: u64,
}

/// A signal or a set of options, neither of which is negative.
fn data(number: c_int) -> usize {
    usize::try_from(number).unwrap_or(0)
}

fn request(request: c_uint, pid: pid_t, address: usize, data: usize) -> nix::Result<()> {
    let address = ptr::without_provenance_mut::<c_void>(address);
    let data = ptr::with_exposed_provenance_mut::<c_void>(data);
    // SAFETY: each caller passes the address of a live value of the type that the request names,
    // or numbers.
    let answer: c_long = unsafe { libc::ptrace(request, pid, address, data) };
    Errno::result(answer).map(drop)
}

/// Reads memory of another process; short only at its end.
pub(crate) fn read_memory(pid: pid_t, address: u64, buffer: &mut [u8]) -> io::Result<()> {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = remote(address, buffer.len());
    // SAFETY: `local` is a live buffer; the remote side is the kernel's to check.
    let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    whole(read, buffer.len())
}

/// Writes memory of another process.
pub(crate) fn write_memory(pid: pid_t, address: u64, bytes: &[u8]) -> io::Result<()> {
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let remote = remote(address, bytes.len());
    // SAFETY: `local` is a live buffer that is only read; the remote side is the kernel's to check.
    let written =
        unsafe { libc::process_vm_writev(pid, &raw const local, 1, &raw const remote, 1, 0) };
    whole(written, bytes.len())
}

fn remote(address: u64, bytes: usize) -> libc::iovec {
    libc::iovec {
        iov_base: ptr::without_provenance_mut(usize::try_from(address).unwrap_or(0)),
        iov_len: bytes,
    }
}

fn whole(done: isize, wanted: usize) -> io::Result<()> {
    let done = Errno::result(done)?;
    if usize::try_from(done) == Ok(wanted) {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::{Signal, kill};
    use nix::sys::wait::{Id, WaitPidFlag, waitid};
    use nix::unistd::{ForkResult, fork, pause};

    use super::*;
    use crate::child::{Outcome, outcome};

    #[test]
    fn a_thread_is_traced_until_its_end_is_told() {
        // A process of its own, so that all children are those of this test.
        let alone = || i32::from(looks_right() != Ok(true));
        assert_eq!(outcome(alone).unwrap(), Outcome::Exited(0));
    }

    fn looks_right() -> nix::Result<bool> {
        let none_before = !has_traced();
        // SAFETY: the child only waits for its end.
        let child = match unsafe { fork() }? {
            ForkResult::Child => loop {
                pause();
            },
            ForkResult::Parent { child } => child,
        };
        let traces = || has_traced() && is_traced(child.as_raw());
        let seized = seize(child.as_raw());
        let begun = traces() && ![1, 0, -1].map(is_traced).contains(&true);
        kill(child, Signal::SIGKILL)?;
        seized?;
        waitid(Id::Pid(child), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT)?;
        // Whoever asks takes nothing away.
        let stays = traces() && traces();
        let told = wait_for(child.as_raw())? == (child.as_raw(), Event::Gone(libc::SIGKILL));
        let none_after = !has_traced() && !is_traced(child.as_raw());
        Ok(none_before && begun && stays && told && none_after)
    }
}
