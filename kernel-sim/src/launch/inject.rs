//! System calls that a stopped program makes for the launcher.

use std::ffi::c_int;

use libc::user_regs_struct;
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
#[derive(Debug)]
pub(crate) struct Injection {
    thread: Stopped,
    registers: user_regs_struct,
    signal_mask: u64,
    /// Address of a `syscall` instruction in the program.
    instruction: u64,
    /// The call in which the thread ended, and the signal that ended it.
    end: Option<(InjectedCall, c_int)>,
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

impl Injection {
    /// Sets the thread's state aside. `instruction` is the address of a `syscall` instruction.
    pub(crate) fn begin(thread: Stopped, instruction: u64) -> Result<Self, InjectError> {
        let registers = thread.registers()?;
        let signal_mask = thread.signal_mask()?;
        thread.set_signal_mask(ALL_SIGNALS)?;
        Ok(Self { thread, registers, signal_mask, instruction, end: None, is_stopped: false })
    }

    /// Uses another `syscall` instruction from now on.
    pub(crate) fn step_at(&mut self, instruction: u64) {
        self.instruction = instruction;
    }

    /// That the thread has ended, whatever the steps between have made of the error.
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
        self.thread.set_registers(&registers)?;
        let (mut delivered, mut answered) = (0, None);
        loop {
            self.thread.step(delivered)?;
            delivered = 0;
            match wait_for(self.thread.0)?.1 {
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
                _ => {}
            }
        }
        if let Some(signal) = answered {
            // The kernel lets it through, to force it on the thread.
            self.thread.set_signal_mask(ALL_SIGNALS)?;
            return Err(InjectError::Signal { call, signal });
        }
        let answer = self.thread.registers()?.rax.cast_signed();
        match answer {
            -4095..=-1 => Err(InjectError::Call {
                call,
                source: Errno::from_raw(i32::try_from(-answer).unwrap_or(0)),
            }),
            _ => Ok(answer.cast_unsigned()),
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
