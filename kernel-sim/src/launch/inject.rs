//! System calls that a stopped program makes for the launcher.

use std::ffi::c_int;
use std::mem;
use std::ops::RangeInclusive;

use libc::{pid_t, user_regs_struct};
use nix::errno::Errno;
use nix::sys::signal::Signal;

use crate::launch::injected::InjectedCall;
use crate::launch::instruction::Instruction;
use crate::launch::proc_stat::Stat;
use crate::launch::ptrace::{Event, Stopped, wait_for, write_memory};

/// A stopped thread that can make system calls that its program knows nothing of.
///
/// The thread must stand at the end of a system call, not at the event of an exec: there the kernel
/// still has to store the exec's own result, and would store it over that of an injected call.
///
/// A call is followed from its beginning to its end (`PTRACE_SYSCALL`), and not stepped over: the kernel
/// forces the SIGTRAP of a step on the thread, which unblocks that signal, no longer ignores it, and
/// takes the place of one that is pending.
///
/// Signals take their course. A program has no handlers yet, so each of them ends it, stops it, or is
/// nothing to it, as it would be without us, also while a call waits.
///
/// When the tracer is killed meanwhile, the thread begins its program: between two calls it has its own
/// registers, and in a call a return address on its stack, which suits most instructions
/// ([`Instruction::taken`]). A static program of glibc may still end badly, when it exits: it takes what
/// is left in `rdx` for a function to call then.
pub(crate) struct Injection<'a> {
    thread: Stopped,
    registers: user_regs_struct,
    signal_mask: u64,
    instruction: Instruction,
    /// The call in which the thread ended, and whether a filter ended it.
    end: Option<(InjectedCall, bool)>,
    /// Takes the events of other threads. A filter can have another process asked about a call
    /// (`SECCOMP_RET_USER_NOTIF`), which does not answer while it stands at an event.
    others: &'a mut dyn FnMut(pid_t, Event),
    /// Job control stopped the thread, which runs on for the calls alone.
    is_stopped: bool,
    /// How many events the thread had that are no part of a call.
    disturbances: u64,
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
        /// A filter ended it, for that call.
        by_filter: bool,
    },
    /// The tracer cannot do what it has to.
    #[error("tracing: {0}")]
    Trace(#[from] Errno),
}

/// What the kernel leaves in the place of an answer where a call was interrupted and is to be made
/// again (`include/linux/errno.h`): it waited for a process that a filter asks.
const INTERRUPTED: RangeInclusive<i64> = -516..=-512;

/// Fields of [`Stat`]: signals that are pending for a thread alone, and those that it holds back.
const PENDING_SIGNALS: usize = 31;
const BLOCKED_SIGNALS: usize = 32;

/// Bytes of the end of a stack frame.
const FRAME: u64 = 16;

/// A filter can give these answers as well, each time, and without a reason to interrupt.
const MOST_INTERRUPTIONS: u32 = 100;

impl<'a> Injection<'a> {
    /// Notes the thread's state. `instruction` lies in the program.
    pub(crate) fn begin(
        thread: Stopped,
        instruction: Instruction,
        others: &'a mut dyn FnMut(pid_t, Event),
    ) -> Result<Self, InjectError> {
        let registers = thread.registers()?;
        let injection = Self {
            thread,
            registers,
            signal_mask: thread.signal_mask()?,
            instruction,
            end: None,
            others,
            is_stopped: false,
            disturbances: 0,
        };
        injection.lay_way_back(registers.rip);
        Ok(injection)
    }

    /// Uses another instruction from now on.
    pub(crate) fn step_at(&mut self, instruction: Instruction) {
        self.instruction = instruction;
        self.lay_way_back(self.registers.rip);
    }

    /// Lays the end of a stack frame below the thread's stack: the caller's `rbp`, and where it goes on.
    /// Calls can be made without it, also where there is no stack to lay it on.
    fn lay_way_back(&self, caller: u64) {
        let frame = (u128::from(caller) << 64).to_le_bytes();
        let _ = write_memory(self.thread.0, self.registers.rsp - FRAME, &frame);
    }

    /// In which call the thread has ended, if it has, whatever the steps between have made of the error.
    pub(crate) fn gone(&self) -> Option<InjectError> {
        self.end.map(|(call, by_filter)| InjectError::Gone { call, by_filter })
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
            rip: self.instruction.address,
            rsp: self.registers.rsp - self.instruction.taken.unwrap_or(0),
            rbp: self.registers.rsp - FRAME,
            rdi,
            rsi,
            rdx,
            r10,
            r8,
            r9,
            ..self.registers
        };
        let mut without_reason = 0;
        while without_reason < MOST_INTERRUPTIONS {
            let disturbances = self.disturbances;
            let answer = self.answer_to(call, &registers);
            if self.end.is_none() {
                self.thread.set_registers(&self.registers)?;
            }
            match answer? {
                answer if INTERRUPTED.contains(&answer) => {
                    // What interrupts a call is seen when the thread runs again.
                    without_reason += u32::from(self.disturbances == disturbances);
                }
                answer @ -4095..=-1 => {
                    let source = Errno::from_raw(i32::try_from(-answer).unwrap_or(0));
                    return Err(InjectError::Call { call, source });
                }
                answer => return Ok(answer.cast_unsigned()),
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
        let (mut next, mut is_trapped) = (0, false);
        loop {
            let delivered = mem::take(&mut next);
            self.thread.resume_to_system_call(delivered)?;
            match self.next_event()? {
                Event::SystemCall(_) if self.thread.beginning_call()?.is_some() => {}
                Event::SystemCall(_) => {
                    let answer = self.thread.registers()?.rax.cast_signed();
                    is_trapped = answer == call.number() && self.has_forced_sigsys();
                    if !is_trapped {
                        return Ok(answer);
                    }
                }
                Event::Signal(_, libc::SIGSYS) if is_trapped => {
                    self.take_back_sigsys()?;
                    return Err(InjectError::Signal { call, signal: libc::SIGSYS });
                }
                Event::Signal(_, signal) if self.thread.is_at_fault()? => {
                    return Err(InjectError::Signal { call, signal });
                }
                Event::Signal(_, signal) => {
                    self.disturbances += 1;
                    next = signal;
                }
                Event::Group(_) => {
                    self.disturbances += 1;
                    self.is_stopped = true;
                }
                Event::Gone(signal) => {
                    let by_filter = signal == libc::SIGSYS && delivered != libc::SIGSYS;
                    self.end = Some((call, by_filter));
                    return Err(InjectError::Gone { call, by_filter });
                }
                // A filter that asks its tracer (`SECCOMP_RET_TRACE`), which lets the call pass.
                Event::Filtered(_) => {}
                _ => self.disturbances += 1,
            }
        }
    }

    /// Whether a filter has SIGSYS forced on the thread (`SECCOMP_RET_TRAP`, or `SECCOMP_RET_KILL_*`):
    /// it is the thread's own, and nothing holds it back. The registers are then as when the call
    /// began, and so the answer is the call's number.
    fn has_forced_sigsys(&self) -> bool {
        let has = |stat: &Stat, field| {
            stat.field::<u64>(field).is_ok_and(|set| set & bit(libc::SIGSYS) != 0)
        };
        Stat::of(self.thread.0)
            .is_ok_and(|stat| has(&stat, PENDING_SIGNALS) && !has(&stat, BLOCKED_SIGNALS))
    }

    /// The program does not get the SIGSYS of a filter at which the thread stands.
    fn take_back_sigsys(&self) -> nix::Result<()> {
        // The kernel lets it through, to force it on the thread.
        self.thread.set_signal_mask(self.signal_mask)?;
        if self.thread.is_at_sent_signal()? {
            // One that the program held back stands for both.
            self.thread.send_itself(libc::SIGSYS)?;
        }
        Ok(())
    }

    fn next_event(&mut self) -> nix::Result<Event> {
        loop {
            match wait_for(-1)? {
                (pid, event) if pid == self.thread.0 => return Ok(event),
                (pid, event) => (self.others)(pid, event),
            }
        }
    }

    /// Ends it. A thread that job control stopped meanwhile, and has not continued, stops again before
    /// it runs.
    pub(crate) fn end(self) -> Result<(), InjectError> {
        self.lay_way_back(0);
        if self.is_stopped {
            self.thread.interrupt()?;
        }
        Ok(())
    }
}

/// A signal in a set of signals.
fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

fn signal_name(signal: c_int) -> String {
    Signal::try_from(signal)
        .map_or_else(|_| format!("signal {signal}"), |signal| signal.to_string())
}
