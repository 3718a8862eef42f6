//! Who starts whom, in which order.
//!
//! 1. Memory with the page and the image, sealed.
//! 2. The keeper; it says when the page tells the time.
//! 3. The tracer, with the read-only descriptor, which the command then closes.
//! 4. The program's process, which waits; the tracer seizes it; it is let go and execs.
//! 5. The next keeper, which waits for the keeper's end (`supervise.rs` asks for it).

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use libc::pid_t;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal, sigprocmask};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::unistd::{ForkResult, execvp, fork, getpid, pipe2};

use crate::host::{HostClocks, NoCounter, counter_is_a_clock};
use crate::keeper::{Keeper, News, PageMemory, Shift, Shows};
use crate::launch::background::{retire, set_dumpable, set_name};
use crate::launch::command::{Clock, Command, LaunchError};
use crate::launch::family::{KEEPER, NEXT_KEEPER, TRACER};
use crate::launch::letters::{Letter, Post};
use crate::launch::pidfd;
use crate::launch::tracer::Tracer;
use crate::launch::tracing;
use crate::precedence;

/// What every keeper of a run is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Orders {
    hz: u32,
    shift: Shift,
    shows: Shows,
}

impl Orders {
    /// Whether REALTIME is not the host's.
    pub(crate) fn is_moved(&self) -> bool {
        self.shift != Shift::default()
    }
}

/// A keeper's process.
#[derive(Debug)]
pub(crate) struct KeeperProcess {
    pub(crate) pid: pid_t,
    /// From which it says that it is ready, what changed, or why it ended.
    pub(crate) post: Post,
}

/// A program that runs, and the processes that serve it.
#[derive(Debug)]
pub(crate) struct Arrangement {
    pub(crate) orders: Orders,
    pub(crate) memory: Option<PageMemory>,
    pub(crate) keeper: KeeperProcess,
    /// Waits for the keeper's end, to take over.
    pub(crate) next: Option<KeeperProcess>,
    pub(crate) tracer: pid_t,
    pub(crate) post: Post,
    pub(crate) program: pid_t,
}

/// Why the counter is not used, where it is not.
pub(crate) type WhyNone = Option<NoCounter>;

impl Command {
    /// Starts everything. `mask` is what the program's signal mask is to be.
    pub(crate) fn arrange(&self, mask: SigSet) -> Result<(Arrangement, WhyNone), LaunchError> {
        let host = HostClocks::new().ok_or(LaunchError::NoVdso)?;
        let arguments = self.arguments_for_exec()?;
        if !proc_is_ours() {
            return Err(LaunchError::NoProc);
        }
        let found = counter_is_a_clock();
        let orders = Orders {
            hz: self.hz.unwrap_or_else(|| host_hz(&host)),
            shift: self.shift(&host)?,
            shows: match self.shows {
                Shows::All if found.is_err() => Shows::WithoutCounter,
                asked => asked,
            },
        };
        if self.shows != Shows::All && orders.is_moved() {
            return Err(LaunchError::MovedWithoutCounter);
        }
        set_dumpable(false).map_err(LaunchError::kernel("closing this process to others"))?;
        let (memory, readable) = PageMemory::new(&self.image)?;
        let step = LaunchError::kernel("hiding the page from children");
        memory.inherit(false).map_err(step)?;
        let mut memory = Some(memory);
        let keeper = start_keeper(&mut memory, orders, None)?;
        keeper.wait_until_ready()?;
        let (post, far) = Post::pair().map_err(LaunchError::kernel("connecting the tracer"))?;
        let (tracer, pid_to_tracer) = self.start_tracer(far, readable)?;
        let program = self.start_program(&arguments, mask, tracer, pid_to_tracer, &post)?;
        let next = None;
        let arrangement = Arrangement { orders, memory, keeper, next, tracer, post, program };
        Ok((arrangement, found.err()))
    }

    fn shift(&self, host: &HostClocks) -> Result<Shift, LaunchError> {
        let now = host.nanos(libc::CLOCK_REALTIME);
        let shift = match self.clock {
            Clock::Host => 0,
            Clock::Offset(nanos) => nanos,
            Clock::At(nanos) => nanos.saturating_sub(now),
        };
        let found = now.saturating_add(shift) / 1_000_000_000;
        // A century from the end of what a page can hold is far enough for any program.
        if found.unsigned_abs() > u128::from(u64::MAX >> 1) - 100 * 366 * 86_400 {
            return Err(LaunchError::Date { found });
        }
        Ok(Shift(shift))
    }

    fn arguments_for_exec(&self) -> Result<Vec<CString>, LaunchError> {
        let all = std::iter::once(&self.program).chain(&self.arguments);
        all.map(|argument| {
            CString::new(argument.as_bytes()).map_err(|error| {
                LaunchError::ZeroByte(std::ffi::OsString::from_vec(error.into_vec()))
            })
        })
        .collect()
    }

    /// Starts the tracer; it waits for the program's id on the returned pipe.
    fn start_tracer(&self, post: Post, memory: OwnedFd) -> Result<(pid_t, File), LaunchError> {
        let (id, to_tracer) = pipe2(OFlag::O_CLOEXEC).map_err(LaunchError::kernel("a pipe"))?;
        // SAFETY: the child only runs code of ours, which takes no lock that another thread of this
        // process could hold, and ends without returning.
        match unsafe { fork() }.map_err(LaunchError::kernel("starting the tracer"))? {
            ForkResult::Parent { child } => Ok((child.as_raw(), to_tracer.into())),
            ForkResult::Child => {
                drop(to_tracer);
                let keep = [post.descriptor().as_fd(), memory.as_fd(), id.as_fd()];
                let retired = retire(TRACER, &keep);
                let mut bytes = [0; size_of::<pid_t>()];
                if retired.is_ok() && File::from(id).read_exact(&mut bytes).is_ok() {
                    let tracer = Tracer::new(post, self.image, memory, self.count, self.detach);
                    tracer.run(pid_t::from_ne_bytes(bytes));
                }
                end_process(0)
            }
        }
    }

    /// Starts the program's process, has it traced, and lets it exec.
    fn start_program(
        &self,
        arguments: &[CString],
        mask: SigSet,
        tracer: pid_t,
        mut pid_to_tracer: File,
        post: &Post,
    ) -> Result<pid_t, LaunchError> {
        let (near, far) =
            socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)
                .map_err(LaunchError::kernel("connecting the program"))?;
        // SAFETY: as for the tracer, until the child execs.
        let pid = match unsafe { fork() }.map_err(LaunchError::kernel("starting the program"))? {
            ForkResult::Child => {
                drop(near);
                become_program(arguments, mask, tracer, !self.detach, far.into())
            }
            ForkResult::Parent { child } => child.as_raw(),
        };
        drop(far);
        let mut near = File::from(near);
        let started = LaunchError::kernel("starting the program");
        near.read_exact(&mut [0]).map_err(&started)?;
        pid_to_tracer.write_all(&pid.to_ne_bytes()).map_err(&started)?;
        match post.receive().map_err(&started)? {
            Some(Letter::Ready) => {}
            Some(Letter::NotTraced(errno)) => {
                return Err(LaunchError::NoTracing(Errno::from_raw(errno)));
            }
            _ => return Err(LaunchError::NoTracing(Errno::ESRCH)),
        }
        near.write_all(&[1]).map_err(&started)?;
        let mut errno = [0; size_of::<i32>()];
        match near.read_exact(&mut errno) {
            Ok(()) => Err(LaunchError::Program {
                program: self.program.clone(),
                source: std::io::Error::from_raw_os_error(i32::from_ne_bytes(errno)),
            }),
            // The exec closed it.
            Err(_) => Ok(pid),
        }
    }
}

/// What the program's process does until it is the program.
fn become_program(
    arguments: &[CString],
    mask: SigSet,
    tracer: pid_t,
    is_followed: bool,
    mut command: File,
) -> ! {
    // A traced process has to be open to its tracer, and is about to be the user's own anyway.
    let _ = set_dumpable(true);
    // SAFETY: names the process that may trace this one, where Yama restricts that.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, tracer, 0, 0, 0) };
    let ready = command.write_all(&[1]);
    if ready.is_err() || command.read_exact(&mut [0]).is_err() {
        end_process(1);
    }
    // Rust ignores SIGPIPE in every program; the one that is run does not expect that.
    // SAFETY: the default action runs no code.
    let _ = unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) };
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&mask), None);
    if is_followed {
        tracing::announce();
    }
    let error = match arguments.first().map(|program| execvp(program, arguments)) {
        Some(Err(error)) => error,
        _ => Errno::ENOENT,
    };
    let _ = command.write_all(&(error as i32).to_ne_bytes());
    end_process(127)
}

/// Starts a keeper that inherits the writable mapping: one that works at once, or one that begins
/// when the process `after`, a child of this one that has not been waited for, has ended.
pub(crate) fn start_keeper(
    memory: &mut Option<PageMemory>,
    orders: Orders,
    after: Option<pid_t>,
) -> Result<KeeperProcess, LaunchError> {
    let failed = LaunchError::kernel("starting the keeper");
    // Before the fork: here the process has not been waited for, so the number is still its own.
    let before = after.map(pidfd::open).transpose();
    let before =
        before.map_err(|_| LaunchError::Keeper("nobody can wait for its end".to_owned()))?;
    let connected = Post::pair();
    let (post, of_keeper) = connected.map_err(LaunchError::kernel("connecting the keeper"))?;
    let Some(page) = memory.as_ref() else {
        return Err(LaunchError::Keeper("the page is gone".to_owned()));
    };
    page.inherit(true).map_err(&failed)?;
    // SAFETY: as for the tracer.
    let forked = unsafe { fork() };
    if let Ok(ForkResult::Child) = forked {
        if let Some(memory) = memory.take() {
            keep(memory, orders, of_keeper, before);
        }
        end_process(1);
    }
    page.inherit(false).map_err(&failed)?;
    match forked.map_err(&failed)? {
        ForkResult::Parent { child } => Ok(KeeperProcess { pid: child.as_raw(), post }),
        ForkResult::Child => end_process(1),
    }
}

fn keep(memory: PageMemory, orders: Orders, post: Post, before: Option<OwnedFd>) {
    let name = if before.is_some() { NEXT_KEEPER } else { KEEPER };
    let mut own = vec![memory.descriptor(), post.descriptor().as_fd()];
    own.extend(before.as_ref().map(OwnedFd::as_fd));
    let retired = retire(name, &own);
    // What waits is in a session of its own now, and so (where the kernel groups processes by
    // session) run before a busy neighbour of the program, of which the command is one as well.
    precedence::ask();
    if let Some(before) = before {
        // Who cannot tell whether the keeper has ended must not write beside it.
        if pidfd::wait_for_end(before.as_fd()).is_err() {
            end_process(1);
        }
        set_name(KEEPER);
        if memory.is_alone() == Ok(true) {
            // It ended because its work was done.
            end_process(0);
        }
    }
    let Orders { hz, shift, shows } = orders;
    let keeper = Keeper { memory, hz, shift, shows };
    let done = match retired {
        Ok(()) => keeper
            .run(&mut |news| {
                post.send(&match news {
                    News::Ready => Letter::Ready,
                    News::CounterLost(why) => Letter::Warning(why.to_string()),
                });
            })
            .map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    if let Err(text) = done {
        post.send(&Letter::Failed(text));
        end_process(1);
    }
    end_process(0);
}

impl KeeperProcess {
    /// Waits until the page tells the time.
    fn wait_until_ready(&self) -> Result<(), LaunchError> {
        match self.post.receive() {
            Ok(Some(Letter::Ready)) => Ok(()),
            Ok(Some(Letter::Failed(text))) => Err(LaunchError::Keeper(text)),
            _ => Err(LaunchError::Keeper("it was killed".to_owned())),
        }
    }
}

/// Whether `/proc` has this process under its own number: not where it is not mounted, or is another
/// PID namespace's, whose processes have these numbers too.
fn proc_is_ours() -> bool {
    fs::read_link("/proc/self").is_ok_and(|own| own.as_os_str() == getpid().to_string().as_str())
}

/// Ticks a second of the host's coarse clocks.
fn host_hz(host: &HostClocks) -> u32 {
    let tick = host.resolution(libc::CLOCK_REALTIME_COARSE);
    match tick {
        0 => 250,
        tick => (1_000_000_000 / tick).clamp(1, 1000),
    }
}

/// Ends a forked process without running what its parent registered to be run at exit.
fn end_process(code: i32) -> ! {
    // SAFETY: ends this process.
    unsafe { libc::_exit(code) }
}
