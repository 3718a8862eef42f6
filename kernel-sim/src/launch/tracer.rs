//! The process that follows programs over fork and exec.

use std::collections::{HashSet, VecDeque};
use std::ffi::CString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::ptr;
use std::rc::Rc;

use libc::pid_t;
use linker::Image;

use crate::launch::calls::{SystemCalls, counted};
use crate::launch::family::is_tracer;
use crate::launch::filter;
use crate::launch::inject::InjectError;
use crate::launch::letters::{Letter, Post};
use crate::launch::ptrace::{self, BeginningCall, Event, Stopped};
use crate::launch::swap::{Leftovers, Replacement, SwapError, swap};
use crate::launch::tracing::{Wish, is_announced, wish};

/// Follows one program and all that it starts.
#[derive(Debug)]
pub(crate) struct Tracer {
    post: Post,
    replacement: Rc<Replacement>,
    count: bool,
    detach: bool,
    /// The program that was started.
    main: pid_t,
    /// Those whose exec has begun a new program, and has not returned yet. All else that is to be known
    /// of a thread is the kernel's: its events come in no order between threads, so that the end of a
    /// child may be told before its beginning.
    in_exec: HashSet<pid_t>,
    /// Programs whose exec ended while another one was put on the image.
    waiting: VecDeque<(pid_t, Event)>,
    calls: SystemCalls,
    said: HashSet<String>,
    /// How many seccomp filters the first program has, and with it each that follows.
    inherited_filters: Option<u32>,
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
            replacement: Rc::new(Replacement { image, memory }),
            count,
            detach,
            main: 0,
            in_exec: HashSet::new(),
            waiting: VecDeque::new(),
            calls: SystemCalls::default(),
            said: HashSet::new(),
            inherited_filters: None,
        }
    }

    /// Traces `main` until it and all that it started have ended.
    pub(crate) fn run(mut self, main: pid_t) {
        self.main = main;
        if let Err(error) = ptrace::seize(main) {
            self.post.send(&Letter::NotTraced(error as i32));
            return;
        }
        self.post.send(&Letter::Ready);
        while let Some((pid, event)) = self.next_event() {
            // A thread can be killed at any time; then each request for it fails, and the next
            // event says that it is gone.
            let _ = self.handle(pid, event);
        }
        // By the end of the letters this no longer uses the page: the command looks then who does.
        drop(self.replacement);
        for (call, times) in self.calls.iter() {
            self.post.send(&Letter::Count(call.clone(), times));
        }
    }

    fn next_event(&mut self) -> Option<(pid_t, Event)> {
        let waiting = self.waiting.pop_front();
        waiting.or_else(|| ptrace::wait().ok().flatten())
    }

    fn handle(&mut self, pid: pid_t, event: Event) -> nix::Result<()> {
        match event {
            Event::Gone(_) => {
                self.forget(pid);
                Ok(())
            }
            Event::Exec(stopped) => {
                // An exec ends all other threads; the one that made it has the leader's id now.
                self.in_exec.insert(pid);
                stopped.resume_to_system_call(0)
            }
            Event::SystemCall(stopped) if self.in_exec.remove(&pid) => {
                match self.put_on_image(stopped) {
                    Err(Gone) => {
                        self.forget(pid);
                        Ok(())
                    }
                    Ok(()) if self.detach => stopped.detach(0),
                    Ok(()) => self.resume(stopped, 0),
                }
            }
            Event::SystemCall(stopped) => {
                if let Some(call) = stopped.beginning_call()?.and_then(counted) {
                    self.calls.add(call, 1);
                }
                self.resume(stopped, 0)
            }
            Event::Filtered(stopped) => {
                match stopped.beginning_call()? {
                    // A filter of the program's own asks its tracer, which it does not have.
                    Some(call) if !is_announced(call) => stopped.refuse_call()?,
                    Some(call) => self.hear_wish(stopped, call),
                    None => {}
                }
                self.resume(stopped, 0)
            }
            Event::Group(stopped) => stopped.listen(),
            Event::Signal(stopped, signal) => self.resume(stopped, signal),
            Event::Other(stopped) => self.resume(stopped, 0),
        }
    }

    /// Handles an event while a program is put on the image, which is done for one after the other.
    fn handle_meanwhile(&mut self, pid: pid_t, event: Event) {
        if self.in_exec.contains(&pid) && matches!(event, Event::SystemCall(_)) {
            self.waiting.push_back((pid, event));
        } else {
            let _ = self.handle(pid, event);
        }
    }

    /// A thread is gone.
    fn forget(&mut self, pid: pid_t) {
        self.in_exec.remove(&pid);
        self.waiting.retain(|(waiting, _)| *waiting != pid);
        if pid == self.main {
            let others = ptrace::has_traced();
            self.post.send(&Letter::MainGone { others });
        }
    }

    fn resume(&self, stopped: Stopped, signal: i32) -> nix::Result<()> {
        if self.count { stopped.resume_to_system_call(signal) } else { stopped.resume(signal) }
    }

    /// Puts a program on the image, or says why not.
    fn put_on_image(&mut self, stopped: Stopped) -> Result<(), Gone> {
        let program = program_of(stopped.0);
        let filters = || filter::filters_of(stopped.0);
        let inherited = *self.inherited_filters.get_or_insert_with(filters);
        let is_suspended = filter::suspend(stopped);
        let replacement = Rc::clone(&self.replacement);
        let done = swap(stopped, &replacement, &mut |pid, event| self.handle_meanwhile(pid, event));
        if is_suspended {
            let _ = stopped.set_options(0);
        }
        let Program { name, gains } = program;
        let explained =
            |error: &SwapError| filter::explained(error, !is_suspended && filters() > inherited);
        match done {
            // What is left to do fails for a program that somebody ended.
            Ok(_) if !stopped.is_there() => {}
            Ok(Leftovers { auxv, descriptors, mapping }) => {
                let of = |what: &str, error| format!("{name}: {what}: {}", explained(&error));
                if let Some(error) = auxv {
                    let what = "a runtime that asks the kernel for its auxiliary vector finds the \
                                host's vDSO, and the host's time";
                    self.say(Letter::Warning(of(what, error)));
                }
                if let Some(error) = descriptors {
                    let what = "three descriptors of this command stay open until its next exec";
                    self.say(Letter::Warning(of(what, error)));
                }
                if let Some(error) = mapping {
                    let what = "the host's vDSO stays mapped beside the image";
                    self.say(Letter::Note(of(what, error)));
                }
            }
            Err(SwapError::Inject(InjectError::Gone { call, by_filter })) => {
                if by_filter {
                    let needs = filter::needs();
                    self.say(Letter::Warning(format!(
                        "{name} was ended by its seccomp filter, which forbids {call}: {needs}"
                    )));
                }
                return Err(Gone);
            }
            // Ended by somebody, which each step meets as an error of its own; that is no business
            // of ours.
            Err(_) if !stopped.is_there() => {}
            Err(error) => self.say(Letter::Warning(format!(
                "{name} keeps the host's vDSO, and so the host's time: {}",
                explained(&error)
            ))),
        }
        if let Some(gains) = gains
            && !nix::unistd::geteuid().is_root()
        {
            self.say(Letter::Warning(format!(
                "{name} {gains}, which the kernel ignores for a program that is traced without \
                 privilege; run this command as root to run it"
            )));
        }
        if name.contains("/valgrind") {
            self.say(Letter::Warning(
                "valgrind hides every vDSO from the program that it runs, which has the host's time"
                    .into(),
            ));
        }
        Ok(())
    }

    /// Says why a program that wants to trace, or to be traced, gets EPERM.
    fn hear_wish(&mut self, stopped: Stopped, call: BeginningCall) {
        let asks = match wish(call, ptrace::is_traced) {
            Some(Wish::ToBeTraced) => "to be traced".to_owned(),
            // Without its number: a debugger that asks for many is told of once.
            Some(Wish::ToTrace) => "to trace another process".to_owned(),
            None => return,
        };
        if is_tracer(stopped.0) {
            self.say(Letter::Warning(
                "a run inside this run cannot trace its program (EPERM), because a program has one \
                 tracer, which is that of the outer run; start the outer one with --detach"
                    .into(),
            ));
            return;
        }
        let Program { name, .. } = program_of(stopped.0);
        self.say(Letter::Warning(format!(
            "{name} asks {asks} and gets EPERM, because a program has one tracer, which is this \
             command; run it with --detach"
        )));
    }

    /// Sends a warning or note, once.
    fn say(&mut self, letter: Letter) {
        if self.said.insert(letter.to_text()) {
            self.post.send(&letter);
        }
    }
}

/// A program ended while it was put on the image, and its end has been waited for.
struct Gone;

struct Program {
    name: String,
    /// By what its file gives it more than its user has.
    gains: Option<&'static str>,
}

fn program_of(pid: pid_t) -> Program {
    let link = format!("/proc/{pid}/exe");
    let name = match fs::read_link(&link) {
        Ok(path) => path.display().to_string(),
        // Of a program that its user may not read, only the name of the process is known.
        Err(_) => match fs::read_to_string(format!("/proc/{pid}/comm")) {
            Ok(name) => name.trim_end().to_owned(),
            Err(_) => format!("process {pid}"),
        },
    };
    let mode = fs::metadata(&link).map_or(0, |file| file.mode());
    let gains = if mode & (libc::S_ISUID | libc::S_ISGID) != 0 {
        Some("is set-user-ID or set-group-ID")
    } else if has_capabilities(link) {
        Some("has file capabilities")
    } else {
        None
    };
    Program { name, gains }
}

/// Whether a file gives its program capabilities (`capabilities(7)`, file capabilities).
fn has_capabilities(path: String) -> bool {
    let Ok(path) = CString::new(path) else {
        return false;
    };
    let name = c"security.capability".as_ptr();
    // SAFETY: two strings that end in a zero; a size of 0 asks for the length alone.
    unsafe { libc::getxattr(path.as_ptr(), name, ptr::null_mut(), 0) > 0 }
}
