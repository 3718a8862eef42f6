//! System calls that a stopped program makes for the launcher.

use std::ffi::c_int;
use std::ops::RangeInclusive;

use libc::{pid_t, user_regs_struct};
use nix::errno::Errno;
use nix::sys::signal::Signal;

use crate::launch::injected::InjectedCall;
use crate::launch::ptrace::{Event, Stopped, wait_for};

/// Every signal that can be held back.
const ALL_SIGNALS: u64 = u64::MAX;

/// A stopped thread whose registers and signal mask are set aside, so that it can make system calls
/// that its program knows nothing of.
///
/// The thread must stand at the end of a system call, not at the event of an exec: there the kernel
/// still has to store the exec's own result, and would store it over that of an injected call.
pub(crate) struct Injection<'a> {
    thread: Stopped,
    registers: user_regs_struct,
    signal_mask: u64,
    /// Address of a `syscall` instruction in the program.
    instruction: u64,
    /// The call in which the thread ended, and the signal that ended it.
    end: Option<(InjectedCall, c_int)>,
    /// Takes the events of other threads. A filter can have another process asked about a call
    /// (`SECCOMP_RET_USER_NOTIF`), which does not answer while it stands at an event.
    others: &'a mut dyn FnMut(pid_t, Event),
    /// Job control stopped the thread, which runs on for the calls alone.
    is_stopped: bool,
}

/// Why an injected call has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum InjectError {
    /// The kernel answered the call with an error.
    #[error("{call}: {source}")]
    Call {
        /// The call.
        call: InjectedCall,
        /// Its error.
        source: Errno,
    },
    /// The call was answered with a signal, as a seccomp filter can do.
    #[error("{call}: {}", signal_name(*signal))]
    Signal {
        /// The call.
        call: InjectedCall,
        /// The signal, which the program does not get.
        signal: c_int,
    },
    /// The answer says that the call succeeded, but nothing has come of it: a seccomp filter can
    /// answer with an error of 0.
    #[error("{call}: it has no effect")]
    NoEffect {
        /// The call.
        call: InjectedCall,
    },
    /// The program is gone.
    #[error("the program ended while {call} was called for it")]
    Gone {
        /// The call.
        call: InjectedCall,
        /// What ended it.
        signal: c_int,
    },
    /// The tracer cannot do what it has to.
    #[error("tracing: {0}")]
    Trace(#[from] Errno),
}

/// What the kernel leaves in the place of an answer where a call was interrupted and is to be made
/// again (`include/linux/errno.h`): it waited for a process that a filter asks.
const INTERRUPTED: RangeInclusive<i64> = -516..=-512;

/// A filter can give these answers as well, each time.
const MOST_INTERRUPTIONS: u32 = 100;

impl<'a> Injection<'a> {
    /// Sets the thread's state aside. `instruction` is the address of a `syscall` instruction.
    pub(crate) fn begin(
        thread: Stopped,
        instruction: u64,
        others: &'a mut dyn FnMut(pid_t, Event),
    ) -> Result<Self, InjectError> {
        let registers = thread.registers()?;
        let signal_mask = thread.signal_mask()?;
        thread.set_signal_mask(ALL_SIGNALS)?;
        let (end, is_stopped) = (None, false);
        Ok(Self { thread, registers, signal_mask, instruction, end, others, is_stopped })
    }

    /// Uses another `syscall` instruction from now on.
    pub(crate) fn step_at(&mut self, instruction: u64) {
        self.instruction = instruction;
    }

    /// In which call the thread has ended, if it has, whatever the steps between have made of the error.
    pub(crate) fn gone(&self) -> Option<InjectError> {
        self.end.map(|(call, signal)| InjectError::Gone { call, signal })
    }

    /// Makes a system call in the program.
    pub(crate) fn call(
        &mut self,
        call: InjectedCall,
        arguments: [u64; 6],
    ) -> Result<u64, InjectError> {
        // The thread's number may be another's by now.
        if let Some(gone) = self.gone() {
            return Err(gone);
        }
        let [rdi, rsi, rdx, r10, r8, r9] = arguments;
        let registers = user_regs_struct {
            rax: call.number().cast_unsigned(),
            // Not in a system call: nothing is to be restarted.
            orig_rax: u64::MAX,
            rip: self.instruction,
            rdi,
            rsi,
            rdx,
            r10,
            r8,
            r9,
            ..self.registers
        };
        for _ in 0..MOST_INTERRUPTIONS {
            let answer = self.answer_to(call, &registers)?;
            match answer {
                _ if INTERRUPTED.contains(&answer) => {}
                -4095..=-1 => {
                    let source = Errno::from_raw(i32::try_from(-answer).unwrap_or(0));
                    return Err(InjectError::Call { call, source });
                }
                _ => return Ok(answer.cast_unsigned()),
            }
        }
        Err(InjectError::Call { call, source: Errno::EINTR })
    }

    /// Has the thread make the call that these registers say, once.
    fn answer_to(
        &mut self,
        call: InjectedCall,
        registers: &user_regs_struct,
    ) -> Result<i64, InjectError> {
        self.thread.set_registers(registers)?;
        let (mut delivered, mut answered) = (0, None);
        loop {
            self.thread.step(delivered)?;
            delivered = 0;
            match self.next_event()? {
                Event::Signal(_, libc::SIGTRAP) => break,
                // The kernel has to know of it: a SIGCONT that follows takes it back.
                Event::Signal(_, libc::SIGSTOP) => {
                    delivered = libc::SIGSTOP;
                    self.is_stopped = true;
                }
                // A filter's; the end of the step, and with it SIGTRAP, is still to come.
                Event::Signal(_, libc::SIGSYS) => answered = Some(libc::SIGSYS),
                // All others are held back, so this is a fault: there is no call.
                Event::Signal(_, signal) => {
                    answered = Some(signal);
                    break;
                }
                Event::Gone(signal) => {
                    self.end = Some((call, signal));
                    return Err(InjectError::Gone { call, signal });
                }
                // Also a filter that asks its tracer (`SECCOMP_RET_TRACE`), which lets the call pass.
                _ => {}
            }
        }
        if let Some(signal) = answered {
            // The kernel lets it through, to force it on the thread.
            self.thread.set_signal_mask(ALL_SIGNALS)?;
            return Err(InjectError::Signal { call, signal });
        }
        Ok(self.thread.registers()?.rax.cast_signed())
    }

    fn next_event(&mut self) -> nix::Result<Event> {
        loop {
            match wait_for(-1)? {
                (pid, event) if pid == self.thread.0 => return Ok(event),
                (pid, event) => (self.others)(pid, event),
            }
        }
    }

    /// Gives the thread its own state back. One that job control stopped meanwhile, and has not
    /// continued, stops again before it runs.
    pub(crate) fn end(self) -> Result<(), InjectError> {
        self.thread.set_registers(&self.registers)?;
        self.thread.set_signal_mask(self.signal_mask)?;
        if self.is_stopped {
            self.thread.interrupt()?;
        }
        Ok(())
    }
}

fn signal_name(signal: c_int) -> String {
    Signal::try_from(signal)
        .map_or_else(|_| format!("signal {signal}"), |signal| signal.to_string())
}
