//! What the command does while the program runs.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use libc::pid_t;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd, siginfo};

use crate::launch::arrange::{Arrangement, Orders, start_keeper};
use crate::launch::calls::SystemCalls;
use crate::launch::command::{Command, LaunchError, Outcome, Status};
use crate::launch::letters::{Letter, Post};

/// What a command says while a program runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remark {
    /// What a user has to know: something has not the time that was asked for.
    Warning(String),
    /// What a user may want to know.
    Note(String),
}

/// Signals that somebody may send to the command and means for the program.
const PASSED_ON: [Signal; 8] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGWINCH,
];

/// Signals of job control: the terminal sends them to the program as well, and the command stops
/// when the program has.
const STOPS: [Signal; 3] = [Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU];

/// How long the command waits for processes of its own that have nothing left to do.
const FAREWELL: Duration = Duration::from_millis(500);

impl Command {
    /// Runs the program; this process serves it until it ends.
    ///
    /// For the rest of its life this process is closed to others (`PR_SET_DUMPABLE`), and during
    /// the run it must not start or wait for children of its own. Signals sent to it reach the
    /// program.
    ///
    /// # Errors
    /// Why the program could not be started. A program that fails is not an error.
    pub fn run(&self, remark: &mut dyn FnMut(Remark)) -> Result<Outcome, LaunchError> {
        let failed = LaunchError::kernel("taking signals");
        let mut taken = SigSet::empty();
        for signal in PASSED_ON.into_iter().chain(STOPS) {
            taken.add(signal);
        }
        taken.add(Signal::SIGCHLD);
        let mut before = SigSet::empty();
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&taken), Some(&mut before)).map_err(&failed)?;
        let signals = SignalFd::with_flags(&taken, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK);
        let arranged = self.arrange(before);
        let outcome = arranged.and_then(|(arrangement, why_none)| {
            if let Some(why) = why_none {
                remark(Remark::Warning(why_not_precise(&why.to_string(), &arrangement.orders)));
            }
            let supervisor = Supervisor {
                arrangement,
                signals: signals.map_err(&failed)?,
                count: self.count,
                status: None,
                keeper_alive: true,
                keeper_heard: true,
                tracer_alive: true,
                others: None,
                calls: SystemCalls::default(),
                remark,
            };
            supervisor.run()
        });
        let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None);
        outcome
    }
}

struct Supervisor<'a> {
    arrangement: Arrangement,
    signals: SignalFd,
    count: bool,
    status: Option<Status>,
    keeper_alive: bool,
    /// More letters of the keeper may come.
    keeper_heard: bool,
    tracer_alive: bool,
    /// Whether other programs than the first still run; known when that has ended.
    others: Option<bool>,
    calls: SystemCalls,
    remark: &'a mut dyn FnMut(Remark),
}

impl Supervisor<'_> {
    fn run(mut self) -> Result<Outcome, LaunchError> {
        self.start_next();
        let status = loop {
            self.wait(PollTimeout::NONE)?;
            if let Some(status) = self.status
                && !(self.count && self.tracer_alive)
            {
                break status;
            }
        };
        self.take_leave()?;
        Ok(Outcome { status, calls: self.calls })
    }

    /// The program is gone. If it was the last, nothing of ours is left when the command ends.
    fn take_leave(&mut self) -> Result<(), LaunchError> {
        let until = Instant::now() + FAREWELL;
        loop {
            let done = match self.others {
                // The tracer has seen the program's end, or is about to, and says more.
                None if self.tracer_alive => false,
                Some(true) => true,
                _ if self.tracer_alive => false,
                // Others that were let go may still use the page; the keeper stays for them.
                _ => self.keepers_are_gone() || !self.page_is_unused(),
            };
            let left = until.saturating_duration_since(Instant::now());
            if done || left.is_zero() {
                return Ok(());
            }
            self.wait(PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO))?;
        }
    }

    fn keepers_are_gone(&self) -> bool {
        !self.keeper_alive && self.arrangement.next.is_none()
    }

    fn page_is_unused(&self) -> bool {
        let memory = self.arrangement.memory.as_ref();
        memory.is_some_and(|memory| memory.is_alone() == Ok(true))
    }

    /// Waits for a signal or a letter, and acts on it.
    fn wait(&mut self, timeout: PollTimeout) -> Result<(), LaunchError> {
        let Arrangement { post, keeper, .. } = &self.arrangement;
        let mut sources = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        sources.extend(self.tracer_alive.then(|| from(post)));
        sources.extend(self.keeper_heard.then(|| from(&keeper.post)));
        match poll(&mut sources, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(LaunchError::kernel("waiting")(error)),
        }
        let mut ready = sources.iter().map(|source| source.any().unwrap_or(false)).skip(1);
        let from_tracer = self.tracer_alive && ready.next() == Some(true);
        let from_keeper = self.keeper_heard && ready.next() == Some(true);
        drop(ready);
        if from_tracer {
            self.hear_tracer()?;
        }
        if from_keeper {
            self.hear_keeper();
        }
        while let Ok(Some(signal)) = self.signals.read_signal() {
            self.take_signal(&signal);
        }
        self.look_after_children()
    }

    fn hear_tracer(&mut self) -> Result<(), LaunchError> {
        let letter = self.arrangement.post.receive();
        match letter.map_err(LaunchError::kernel("hearing from the tracer"))? {
            Some(Letter::Warning(text)) => (self.remark)(Remark::Warning(text)),
            Some(Letter::Note(text)) => (self.remark)(Remark::Note(text)),
            Some(Letter::Count(call, times)) => self.calls.add(call, times),
            Some(Letter::MainGone { others }) => self.others = Some(others),
            Some(Letter::Ready | Letter::NotTraced(_) | Letter::Failed(_)) => {}
            None => self.tracer_alive = false,
        }
        Ok(())
    }

    fn hear_keeper(&mut self) {
        match self.arrangement.keeper.post.receive() {
            Ok(Some(Letter::Warning(text))) => {
                let text = why_not_precise(&text, &self.arrangement.orders);
                (self.remark)(Remark::Warning(text));
            }
            Ok(Some(Letter::Failed(text))) => {
                let then = if self.arrangement.next.is_some() {
                    "another one takes over"
                } else {
                    "precise clocks go on without corrections, coarse ones stand still"
                };
                (self.remark)(Remark::Warning(format!(
                    "the keeper of the page ended: {text}; {then}"
                )));
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => self.keeper_heard = false,
        }
    }

    fn take_signal(&mut self, signal: &siginfo) {
        let Ok(number) = i32::try_from(signal.ssi_signo) else {
            return;
        };
        let passed_on = PASSED_ON.iter().any(|passed| *passed as i32 == number);
        // What the kernel sends comes from the terminal, which sends it to the program too.
        let from_kernel = signal.ssi_code == libc::SI_KERNEL;
        if passed_on && !from_kernel && self.status.is_none() {
            send(self.arrangement.program, number);
        }
    }

    fn look_after_children(&mut self) -> Result<(), LaunchError> {
        while let Some(change) = change_of(self.arrangement.program) {
            if libc::WIFSTOPPED(change) {
                self.stop_with_program();
            } else if libc::WIFEXITED(change) {
                self.status = Some(Status::Exited(libc::WEXITSTATUS(change)));
            } else if libc::WIFSIGNALED(change) {
                self.status = Some(Status::Signaled(libc::WTERMSIG(change)));
            }
        }
        // That its work is done is seen by the end of its letters.
        if end_of(self.arrangement.tracer) == Some(true) {
            (self.remark)(Remark::Warning(
                "the tracer was killed: programs keep their clocks, those that are started from \
                 now on have the host's, and one that was starting at that moment may have died"
                    .to_owned(),
            ));
        }
        while self.keeper_alive
            && let Some(killed) = end_of(self.arrangement.keeper.pid)
        {
            self.replace_keeper(killed)?;
        }
        let next = self.arrangement.next.as_ref().map(|next| next.pid);
        if let Some(killed) = next.and_then(end_of) {
            self.arrangement.next = None;
            if killed {
                self.start_next();
            }
        }
        Ok(())
    }

    /// The shell that waits for this command sees what it would see of the program.
    fn stop_with_program(&mut self) {
        // SAFETY: stops this process until somebody continues it.
        unsafe { libc::raise(libc::SIGSTOP) };
        // A shell continues the whole job; whoever continues the command alone means the program.
        send(self.arrangement.program, libc::SIGCONT);
    }

    /// Has a process wait for the keeper's end. Where there can be none, a keeper that is killed is
    /// replaced by this process itself.
    fn start_next(&mut self) {
        let Arrangement { memory, orders, keeper, .. } = &mut self.arrangement;
        self.arrangement.next = start_keeper(memory, *orders, Some(keeper.pid)).ok();
    }

    /// The next keeper has begun already; where it was killed too, another one begins now.
    fn replace_keeper(&mut self, killed: bool) -> Result<(), LaunchError> {
        let Arrangement { memory, orders, next, .. } = &mut self.arrangement;
        self.arrangement.keeper = match next.take() {
            Some(next) => next,
            None if killed => start_keeper(memory, *orders, None)?,
            None => {
                self.keeper_alive = false;
                return Ok(());
            }
        };
        self.keeper_heard = true;
        // One that ended by itself has no work left, or said why it cannot do it; so will the next.
        if !killed {
            return Ok(());
        }
        self.start_next();
        (self.remark)(Remark::Note(
            "the keeper of the page was killed; another one took over".to_owned(),
        ));
        Ok(())
    }
}

/// How a child that serves the program ended, if it has: whether by a signal. One that somebody
/// stopped is continued: coarse clocks stand still without a keeper, and each exec without a tracer.
fn end_of(child: pid_t) -> Option<bool> {
    std::iter::from_fn(|| change_of(child))
        .inspect(|change| {
            if libc::WIFSTOPPED(*change) {
                send(child, libc::SIGCONT);
            }
        })
        .find(|change| libc::WIFEXITED(*change) || libc::WIFSIGNALED(*change))
        .map(|change| libc::WIFSIGNALED(change))
}

fn from(post: &Post) -> PollFd<'_> {
    PollFd::new(post.descriptor().as_fd(), PollFlags::POLLIN)
}

/// Why precise clocks are not what they should be, and what they are instead.
fn why_not_precise(why: &str, orders: &Orders) -> String {
    if orders.is_moved() {
        format!("{why}; precise clocks move once a tick, like coarse ones")
    } else {
        format!("{why}; precise clocks enter the kernel")
    }
}

/// Ends this process by a signal, as the program that it served was ended; returns if the signal
/// does not end a process.
pub fn end_by_signal(signal: i32) {
    // SAFETY: the default action runs no code.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
    let mut only = SigSet::empty();
    if let Ok(signal) = Signal::try_from(signal) {
        only.add(signal);
    }
    let _ = sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&only), None);
    // SAFETY: sends a signal to this process, which is closed to others and so dumps no core.
    unsafe { libc::raise(signal) };
}

fn send(pid: pid_t, signal: i32) {
    // SAFETY: sends a signal to a child of this process that has not been waited for.
    unsafe { libc::kill(pid, signal) };
}

/// The next change of a child, if there is one.
fn change_of(child: pid_t) -> Option<i32> {
    let mut status = 0;
    let flags = libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED;
    // SAFETY: a live word for the status.
    let changed = unsafe { libc::waitpid(child, &raw mut status, flags) };
    (changed == child).then_some(status)
}
