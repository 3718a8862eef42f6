//! What can be asked for, and what comes of it.

use std::ffi::{OsStr, OsString};
use std::io;

use linker::Image;
use nix::errno::Errno;

use crate::keeper::{MemoryError, Shows};
use crate::launch::calls::SystemCalls;

/// A program to be run on the image.
///
/// # Examples
///
/// ```no_run
/// use kernel_sim::launch::{Clock, Command};
///
/// let a_day_ahead = Clock::Offset(86_400 * 1_000_000_000);
/// let output = Command::new("date").arg("-u").clock(a_day_ahead).count(true).output(None)?;
/// assert!(output.outcome.status.success());
/// assert_eq!(output.outcome.calls.total(), 0);
/// # Ok::<(), kernel_sim::launch::LaunchError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Command {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) image: Image,
    pub(crate) clock: Clock,
    pub(crate) hz: Option<u32>,
    pub(crate) count: bool,
    pub(crate) shows: Shows,
    pub(crate) detach: bool,
}

/// What time the program sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Clock {
    /// The host's.
    #[default]
    Host,
    /// REALTIME, its coarse twin, TAI, `gettimeofday` and `time` this many nanoseconds later (or
    /// earlier) than the host's; all other clocks are the host's.
    Offset(i128),
    /// The same, moved so that REALTIME has this value, in nanoseconds since 1970, when the
    /// program starts.
    At(i128),
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It exited with this code.
    Exited(i32),
    /// It was ended by this signal.
    Signaled(i32),
}

impl Status {
    /// Whether it exited with 0.
    #[must_use]
    pub fn success(self) -> bool {
        self == Self::Exited(0)
    }
}

/// What became of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// The clock, time and getcpu calls that reached the kernel, if they were to be counted: those
    /// of the program and of all that it started.
    pub calls: SystemCalls,
}

/// Why a program was not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The kernel gives programs no vDSO, so there is no entry for another one.
    #[error(
        "the kernel gives programs no vDSO (no AT_SYSINFO_EHDR), so none can be put on another \
         one; start the machine without vdso=0, or the sandbox with a vDSO"
    )]
    NoVdso,
    /// What `/proc` says of a process is not of the process with that number here.
    #[error(
        "/proc does not show the processes of this PID namespace, which is how programs are looked \
         into; mount one there (unshare has --mount-proc)"
    )]
    NoProc,
    /// Programs cannot be traced.
    #[error(
        "programs cannot be traced here ({0}); allow ptrace: a container needs --cap-add \
         SYS_PTRACE or a seccomp profile that permits ptrace, Yama wants \
         kernel.yama.ptrace_scope below 2, a debugger or strace around this command has to go, and a \
         run around it needs --detach"
    )]
    NoTracing(Errno),
    /// The program cannot be executed.
    #[error("{}: {source}", program.display())]
    Program {
        /// The program.
        program: OsString,
        /// Why.
        source: io::Error,
    },
    /// A name with a zero byte in it.
    #[error("{0:?} has a zero byte in it, which no argument of a program can have")]
    ZeroByte(OsString),
    /// There is no memory for the page.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The keeper did not start.
    #[error("the keeper of the page ended: {0}")]
    Keeper(String),
    /// REALTIME would leave what a page can hold.
    #[error(
        "the date is out of range: REALTIME would be {found} s since 1970, and a page holds 64 bits of seconds"
    )]
    Date {
        /// Seconds since 1970.
        found: i128,
    },
    /// A moved clock without a counter to make it from.
    #[error(
        "the clock cannot be moved on a page that leaves clocks to the kernel, which has the host's time"
    )]
    MovedWithoutCounter,
    /// The kernel refuses a step.
    #[error("{step}: {source}")]
    Kernel {
        /// The step.
        step: &'static str,
        /// The answer.
        source: io::Error,
    },
}

impl LaunchError {
    /// The code with which a command exits for this: 3 where this machine cannot run programs on
    /// an image at all, 127 and 126 for a program that is not found or not executable, as in a
    /// shell, 1 for the rest.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NoVdso | Self::NoProc | Self::NoTracing(_) => 3,
            Self::Program { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Self::Program { .. } => 126,
            _ => 1,
        }
    }

    pub(crate) fn kernel<E: Into<io::Error>>(step: &'static str) -> impl Fn(E) -> Self {
        move |error| Self::Kernel { step, source: error.into() }
    }
}

impl Command {
    /// A program, found as a shell finds it, with the host's time.
    #[must_use]
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            arguments: Vec::new(),
            image: linker::SYSCALL,
            clock: Clock::Host,
            hz: None,
            count: false,
            shows: Shows::All,
            detach: false,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        for argument in arguments {
            self = self.arg(argument);
        }
        self
    }

    /// The image that the program is put on, in place of [`linker::SYSCALL`].
    #[must_use]
    pub fn image(mut self, image: Image) -> Self {
        self.image = image;
        self
    }

    /// The time that the program sees.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Ticks a second; without it as many as the host's own coarse clocks have.
    #[must_use]
    pub fn hz(mut self, hz: u32) -> Self {
        self.hz = Some(hz);
        self
    }

    /// Whether the clock, time and getcpu calls that reach the kernel are counted. That makes each
    /// system call slower; reads of the clock are none.
    #[must_use]
    pub fn count(mut self, count: bool) -> Self {
        self.count = count;
        self
    }

    /// Publishes the page in mode NONE, so that precise clocks enter the kernel.
    #[must_use]
    pub fn without_counter(mut self) -> Self {
        self.shows = Shows::WithoutCounter;
        self
    }

    /// Publishes nothing, so that each call of each function enters the kernel: the proof that
    /// counting counts.
    #[must_use]
    pub fn on_empty_page(mut self) -> Self {
        self.shows = Shows::Nothing;
        self
    }

    /// Whether the program is let go once it is on the image: it can then trace others itself, and
    /// programs that it execs have the host's time.
    #[must_use]
    pub fn detach(mut self, detach: bool) -> Self {
        self.detach = detach;
        self
    }
}
