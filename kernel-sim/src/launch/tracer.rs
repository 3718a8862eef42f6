//! The process that follows programs over fork and exec.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::fd::{AsFd, OwnedFd};

use libc::pid_t;
use linker::Image;
use nix::errno::Errno;

use crate::launch::calls::{SystemCalls, counted};
use crate::launch::letters::{Letter, Post};
use crate::launch::ptrace::{self, Event, Stopped};
use crate::launch::swap::{Leftovers, Replacement, SwapError, swap};

/// Follows one program and all that it starts.
#[derive(Debug)]
pub(crate) struct Tracer {
    post: Post,
    image: Image,
    memory: OwnedFd,
    count: bool,
    detach: bool,
    /// The program that was started.
    main: pid_t,
    threads: HashMap<pid_t, Thread>,
    calls: SystemCalls,
    said: HashSet<String>,
}

/// What is known of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    /// Its exec has begun a new program, and has not returned yet.
    in_exec: bool,
}

impl Tracer {
    /// A tracer that gives `memory` with `image` to programs.
    pub(crate) fn new(
        post: Post,
        image: Image,
        memory: OwnedFd,
        count: bool,
        detach: bool,
    ) -> Self {
        Self {
            post,
            image,
            memory,
            count,
            detach,
            main: 0,
            threads: HashMap::new(),
            calls: SystemCalls::default(),
            said: HashSet::new(),
        }
    }

    /// Traces `main` until it and all that it started have ended.
    pub(crate) fn run(mut self, main: pid_t) {
        self.main = main;
        if let Err(error) = ptrace::seize(main) {
            self.post.send(&Letter::NotTraced(error as i32));
            return;
        }
        self.threads.insert(main, Thread::default());
        self.post.send(&Letter::Traced);
        while let Ok(Some((pid, event))) = ptrace::wait() {
            // A thread can be killed at any time; then each request for it fails, and the next
            // event says that it is gone.
            let _ = self.handle(pid, event);
        }
        for (call, times) in self.calls.iter() {
            self.post.send(&Letter::Count(call.clone(), times));
        }
    }

    fn handle(&mut self, pid: pid_t, event: Event) -> nix::Result<()> {
        if event == Event::Gone {
            self.threads.remove(&pid);
            if pid == self.main {
                let others = !self.threads.is_empty();
                self.post.send(&Letter::MainGone { others });
            }
            return Ok(());
        }
        let thread = *self.threads.entry(pid).or_default();
        match event {
            Event::Gone => Ok(()),
            Event::Child(stopped) => {
                self.threads.entry(stopped.message()?).or_default();
                self.resume(stopped, 0)
            }
            Event::Exec(stopped) => {
                // An exec ends all other threads; the one that made it takes the leader's id.
                let former = stopped.message()?;
                if former != pid {
                    self.threads.remove(&former);
                }
                self.threads.insert(pid, Thread { in_exec: true });
                stopped.resume_to_system_call(0)
            }
            Event::SystemCall(stopped) if thread.in_exec => {
                self.threads.insert(pid, Thread::default());
                self.put_on_image(stopped);
                if self.detach { stopped.detach(0) } else { self.resume(stopped, 0) }
            }
            Event::SystemCall(stopped) => {
                if let Some(call) = stopped.beginning_call()?.and_then(counted) {
                    self.calls.add(call, 1);
                }
                self.resume(stopped, 0)
            }
            Event::Group(stopped) => stopped.listen(),
            Event::Signal(stopped, signal) => self.resume(stopped, signal),
            Event::Other(stopped) => self.resume(stopped, 0),
        }
    }

    fn resume(&self, stopped: Stopped, signal: i32) -> nix::Result<()> {
        if self.count { stopped.resume_to_system_call(signal) } else { stopped.resume(signal) }
    }

    fn put_on_image(&mut self, stopped: Stopped) {
        let replacement = Replacement { image: &self.image, memory: self.memory.as_fd() };
        let filtered = suspend_filter(stopped);
        let done = swap(stopped, &replacement);
        if filtered {
            let _ = stopped.set_options(0);
        }
        let program = || program_of(stopped.0);
        match done {
            Ok(Leftovers { auxv, mapping }) => {
                if let Some(error) = auxv {
                    self.say(Letter::Warning(format!(
                        "{}: programs that ask the kernel for their auxiliary vector find the \
                         host's vDSO: {error}",
                        program()
                    )));
                }
                if let Some(error) = mapping {
                    self.say(Letter::Note(format!(
                        "{}: the host's vDSO stays mapped beside the image: {error}",
                        program()
                    )));
                }
            }
            Err(error) if is_gone(&error) => {}
            Err(error) => self.say(Letter::Warning(format!(
                "{} keeps the host's vDSO, and so the host's time: {error}",
                program()
            ))),
        }
    }

    /// Sends a warning or note, once.
    fn say(&mut self, letter: Letter) {
        if self.said.insert(letter.to_text()) {
            self.post.send(&letter);
        }
    }
}

/// Lets the calls that are made for a program pass its seccomp filter, where the kernel allows that
/// (it takes CAP_SYS_ADMIN); returns whether it did.
fn suspend_filter(stopped: Stopped) -> bool {
    stopped.set_options(libc::PTRACE_O_SUSPEND_SECCOMP).is_ok()
}

fn is_gone(error: &SwapError) -> bool {
    use crate::launch::inject::InjectError;
    matches!(error, SwapError::Inject(InjectError::Gone { .. } | InjectError::Trace(Errno::ESRCH)))
}

fn program_of(pid: pid_t) -> String {
    match fs::read_link(format!("/proc/{pid}/exe")) {
        Ok(path) => path.display().to_string(),
        Err(_) => format!("process {pid}"),
    }
}
