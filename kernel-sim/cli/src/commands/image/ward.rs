//! How the process that runs an image's code is watched, and ended whatever that code does.
//!
//! The code may stop its process, disarm its timers or fork, so the time is kept here, and at the end
//! the process is killed with its group. That group is not the terminal's: Ctrl-C reaches this process
//! alone, which holds the signal back until the group is gone. If this process is killed, the other
//! one is by the kernel (`PR_SET_PDEATHSIG`), though not what that one forked. What leaves the group
//! on purpose is not found: it runs as the user's own program, not in a jail.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::ptr::null;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use kernel_sim::launch::end_by_signal;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{SigHandler, SigSet, Signal, kill, killpg, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

/// A line that is longer is cut: the image's code may write anything.
const LONGEST: usize = 4096;

/// The process, and what it says.
#[derive(Debug)]
pub(super) struct Ward {
    child: Child,
    said: ChildStdout,
    /// Whether more may be said.
    is_open: bool,
    /// What is no whole line yet.
    rest: Vec<u8>,
    signals: Signals,
    deadline: Instant,
    /// Whether it was waited for, after which its number may be another's.
    is_over: bool,
}

/// What the process did next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It said a line.
    Said(String),
    /// It ended, and has said everything.
    Ended,
    /// It did neither until the deadline.
    Late,
}

impl Ward {
    /// Starts `command` in a group of its own, with `input` to read and `time` to work.
    pub(super) fn start(
        command: &mut Command,
        input: &[u8],
        time: Duration,
    ) -> anyhow::Result<Self> {
        let signals = Signals::held().context("holding signals back")?;
        let mut child = command
            .stdin(file_of(input).context("a file for the image")?)
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .context("starting the process that maps the image")?;
        let said = child.stdout.take().context("the child's output is a pipe")?;
        let deadline = Instant::now() + time;
        let rest = Vec::new();
        Ok(Self { child, said, is_open: true, rest, signals, deadline, is_over: false })
    }

    /// Gives it so much time from now on.
    pub(super) fn give(&mut self, time: Duration) {
        self.deadline = Instant::now() + time;
    }

    /// Waits for what it does next.
    pub(super) fn next(&mut self) -> anyhow::Result<Next> {
        loop {
            if let Some(line) = self.whole_line() {
                return Ok(Next::Said(line));
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Next::Late);
            }
            // Asked before its words: after its end it says no more.
            let has_ended = self.has_ended().context("asking for the child")?;
            let has_said = self.wait(if has_ended { Duration::ZERO } else { left })?;
            if has_said {
                self.read().context("reading what the child says")?;
            } else if has_ended {
                return Ok(Next::Ended);
            }
        }
    }

    /// Ends it and its group, and says how it ended.
    pub(super) fn end(mut self) -> anyhow::Result<ExitStatus> {
        self.kill().context("waiting for the child")
    }

    fn kill(&mut self) -> io::Result<ExitStatus> {
        let leader = pid(&self.child);
        // Before it is waited for, so that both are its own; the group may have no members left.
        let _ = killpg(leader, Signal::SIGKILL);
        // It may have gone to another group.
        let _ = kill(leader, Signal::SIGKILL);
        self.is_over = true;
        self.child.wait()
    }

    /// Waits until there is something to read, or something else has happened.
    fn wait(&mut self, time: Duration) -> anyhow::Result<bool> {
        let said = PollFd::new(self.said.as_fd(), PollFlags::POLLIN);
        let signals = PollFd::new(self.signals.descriptor.as_fd(), PollFlags::POLLIN);
        let all = &mut [signals, said];
        let all = if self.is_open { &mut all[..] } else { &mut all[..1] };
        // Rounded up, so as not to spin within the last millisecond.
        let time = time.saturating_add(Duration::from_millis(u64::from(!time.is_zero())));
        match poll(all, PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error).context("waiting for the child"),
        }
        let is_ready = |end: &PollFd<'_>| end.any().unwrap_or(true);
        let (is_signalled, has_said) = (is_ready(&all[0]), all.get(1).is_some_and(is_ready));
        if is_signalled && let Some(signal) = self.signals.next().context("reading a signal")? {
            let _ = self.kill();
            end_by_signal(signal as i32);
        }
        Ok(has_said)
    }

    fn read(&mut self) -> io::Result<()> {
        let mut some = [0; LONGEST];
        let length = self.said.read(&mut some)?;
        self.is_open = length > 0;
        self.rest.extend(&some[..length]);
        Ok(())
    }

    fn whole_line(&mut self) -> Option<String> {
        let end = self.rest.iter().position(|&byte| byte == b'\n');
        let is_last = !self.is_open && !self.rest.is_empty();
        let is_long = self.rest.len() >= LONGEST;
        let length = end.map(|end| end + 1).or((is_last || is_long).then_some(self.rest.len()))?;
        let line: Vec<u8> = self.rest.drain(..length).collect();
        let line = String::from_utf8_lossy(&line);
        Some(line.strip_suffix('\n').unwrap_or(&line).to_owned())
    }

    /// Whether it has ended; it is still there to be waited for.
    fn has_ended(&self) -> nix::Result<bool> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
        let status = waitid(Id::Pid(pid(&self.child)), flags)?;
        Ok(status != WaitStatus::StillAlive)
    }
}

impl Drop for Ward {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = self.kill();
        }
    }
}

/// The signals that end this process or tell of the other one: held back, and read one by one.
#[derive(Debug)]
struct Signals {
    descriptor: SignalFd,
    before: SigSet,
}

impl Signals {
    fn held() -> nix::Result<Self> {
        const ENDING: [Signal; 4] =
            [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM];
        // Whoever ignores it has no children to wait for, and starts others so.
        // SAFETY: the default action runs no code, and there is no handler to replace.
        unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }?;
        // One that is ignored (`nohup`) would be told nevertheless while it is held back.
        let mut held: SigSet = ENDING.into_iter().filter(|signal| !is_ignored(*signal)).collect();
        held.add(Signal::SIGCHLD);
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let descriptor = SignalFd::with_flags(&held, flags)?;
        let before = SigSet::thread_get_mask()?;
        held.thread_block()?;
        Ok(Self { descriptor, before })
    }

    /// A signal that ends this process, if there was one.
    fn next(&self) -> nix::Result<Option<Signal>> {
        while let Some(found) = self.descriptor.read_signal()? {
            let signal = i32::try_from(found.ssi_signo).ok();
            let signal = signal.and_then(|signal| Signal::try_from(signal).ok());
            if signal != Some(Signal::SIGCHLD) {
                return Ok(signal);
            }
        }
        Ok(None)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let _ = self.before.thread_set_mask();
    }
}

fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks for an action and sets none; the structure is live.
    let answer = unsafe { libc::sigaction(signal as i32, null(), action.as_mut_ptr()) };
    // SAFETY: zeros are a value of it too, in which the action is the default one.
    answer == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

/// A file without a name that holds `input`: a pipe could break, and would end this process.
fn file_of(input: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create(c"image", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(input)?;
    file.rewind()?;
    Ok(file)
}
