//! What it costs a program to be launched: an exec, and a keeper that is killed.
//!
//! Both are measured from outside, on the command as a user starts it, by small programs that run
//! under it: this program's own executable once more, as one of the [`Guest`]s.

mod guest;

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use kernel_sim::launch::output::User;
use kernel_sim::launch::{Family, is_gone};
use nix::sys::signal::{Signal, kill};
use nix::time::ClockId;
use nix::unistd::{Pid, geteuid, mkdtemp};

use guest::{HOST, IMAGE, now};

pub use guest::{Guest, PROGRAM};

/// Why the launcher's cost cannot be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchingError {
    /// The programs cannot be put where any user can run them.
    #[error("preparing the programs that measure: {0}")]
    Prepare(io::Error),
    /// Launching fails where it should not.
    #[error("launching {PROGRAM}: {status}: {said}")]
    Launcher {
        /// How the command ended.
        status: ExitStatus,
        /// What it said.
        said: String,
    },
    /// A guest cannot be started, or talked to.
    #[error("the guest `{guest}`: {source}")]
    Guest {
        /// The guest.
        guest: &'static str,
        /// What failed.
        source: io::Error,
    },
    /// It runs on the wrong vDSO, so its figures would be of something else.
    #[error("the guest `{guest}` runs on the vDSO of the {found}, not of the {wanted}")]
    Place {
        /// The guest.
        guest: &'static str,
        /// Where it runs.
        found: String,
        /// Where it should.
        wanted: &'static str,
    },
    /// A keeper, or the one after it, is not there.
    #[error("no keeper that could be killed after {found} of {wanted} kills")]
    NoKeeper {
        /// Kills so far.
        found: usize,
        /// Kills that were to be made.
        wanted: usize,
    },
}

/// The executable that is launched, where any user can run it.
#[derive(Debug)]
pub struct Launching {
    directory: PathBuf,
}

impl Launching {
    /// Copies this program's own executable.
    ///
    /// # Errors
    /// What cannot be copied.
    pub fn new() -> Result<Self, LaunchingError> {
        let prepare = || {
            let directory = mkdtemp(&std::env::temp_dir().join("uvdso-bench-XXXXXX"))?;
            let launching = Self { directory };
            let open = fs::Permissions::from_mode(0o755);
            fs::set_permissions(&launching.directory, open.clone())?;
            fs::copy(std::env::current_exe()?, launching.executable())?;
            fs::set_permissions(launching.executable(), open)?;
            Ok(launching)
        };
        prepare().map_err(LaunchingError::Prepare)
    }

    fn executable(&self) -> PathBuf {
        self.directory.join("kernel-sim")
    }

    /// Why nothing can be launched on this machine as `user`; `None` if it can.
    ///
    /// # Errors
    /// That the launcher fails for another reason than the machine.
    pub fn cannot(&self, user: User) -> Result<Option<String>, LaunchingError> {
        if user == User::Root && !geteuid().is_root() {
            return Ok(Some("this is not root".to_owned()));
        }
        let mut command = self.command(user);
        let output = command.args(["run", "--", PROGRAM]).stdin(Stdio::null()).output();
        let output = output.map_err(LaunchingError::Prepare)?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        match output.status.code() {
            Some(0) => Ok(None),
            // No vDSO, no tracing, or not this program.
            Some(3 | 126 | 127) => Ok(Some(said)),
            _ => Err(LaunchingError::Launcher { status: output.status, said }),
        }
    }

    fn command(&self, user: User) -> Command {
        let mut command = Command::new(self.executable());
        command.current_dir("/");
        if let Some(id) = user.id() {
            command.uid(id).gid(id);
        }
        command
    }

    /// A spawner that runs as `user`, bare or launched.
    ///
    /// # Errors
    /// Why it does not run.
    pub fn spawner(&self, user: User, is_launched: bool) -> Result<Spawner, LaunchingError> {
        self.start(Guest::Spawner, user, is_launched).map(Spawner)
    }

    /// Kills keepers of a program that runs all the while: for each kill the milliseconds between
    /// the ticks before and after it that the program saw, and the same for as many moments at
    /// which nothing was killed.
    ///
    /// # Errors
    /// Why it cannot be measured.
    pub fn kills(
        &self,
        user: User,
        busy: usize,
        kills: usize,
        mut step: impl FnMut(),
    ) -> Result<[Vec<f64>; 2], LaunchingError> {
        let spin = |_| self.start(Guest::Spinner, User::Ordinary, false);
        let spinners = (0..busy).map(spin).collect::<Result<Vec<Running>, _>>()?;
        let watcher = self.start(Guest::Watcher, user, true)?;
        watcher.put_first();
        let family = Family::of(watcher.pid());
        let (mut killed, mut left_alone) = (Vec::new(), Vec::new());
        let mut last = None;
        for number in 0..kills {
            let no_keeper = LaunchingError::NoKeeper { found: number, wanted: kills };
            let keeper = next_victim(family, last).ok_or(no_keeper)?;
            // Anywhere between two ticks, and not at the same place each time.
            let phase = Duration::from_micros(number as u64 * 1_237 % 4_000);
            sleep(APART + phase);
            left_alone.push(now(ClockId::CLOCK_MONOTONIC));
            sleep(APART);
            killed.push(now(ClockId::CLOCK_MONOTONIC));
            // A keeper that is gone already is no kill, and is seen as no new keeper.
            let _ = kill(keeper, Signal::SIGKILL);
            last = Some(keeper);
            step();
        }
        sleep(AFTERWARDS);
        let mut ticks = watcher.finish()?;
        // A moment that no tick follows counts until here.
        ticks.push(now(ClockId::CLOCK_MONOTONIC));
        drop(spinners);
        Ok([gaps(&ticks, &killed), gaps(&ticks, &left_alone)])
    }

    fn start(
        &self,
        guest: Guest,
        user: User,
        is_launched: bool,
    ) -> Result<Running, LaunchingError> {
        let failed = |source| LaunchingError::Guest { guest: guest.name(), source };
        let mut command = self.command(user);
        if is_launched {
            command.args(["run", "--"]).arg(self.executable());
        }
        command.args(["bench", "--guest", guest.name()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        let mut running = Running { guest, child, guest_pid: 0, stdin, stdout };
        let said = running.line()?;
        let (found, pid) = said.split_once(' ').unwrap_or((&said, ""));
        let wanted = if is_launched { IMAGE } else { HOST };
        if found != wanted {
            return Err(LaunchingError::Place { guest: guest.name(), found: found.into(), wanted });
        }
        let strange = |_| running.failed()(io::Error::other(format!("it said {said:?}")));
        running.guest_pid = pid.parse().map_err(strange)?;
        Ok(running)
    }
}

impl Drop for Launching {
    fn drop(&mut self) {
        // Two files of a temporary directory; what cannot be removed is of no use to anybody.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Time between a kill and a moment without one. Twice this is more than a keeper may take until it
/// ticks, so that none is killed before it did.
const APART: Duration = Duration::from_millis(55);

/// How long the last keeper is watched.
const AFTERWARDS: Duration = Duration::from_millis(500);

/// How long a keeper is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// The keeper, once it is another than `last` and has a successor.
fn next_victim(family: Family, last: Option<Pid>) -> Option<Pid> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        let keeper = family.keeper().map(Pid::from_raw).filter(|pid| Some(*pid) != last);
        if keeper.is_some() && family.next_keeper().is_some() {
            return keeper;
        }
        sleep(Duration::from_millis(2));
    }
    None
}

/// Milliseconds between the last tick before each moment and the first one after it; moments between
/// the same two ticks count once. There are infinitely many where a moment has no such tick.
fn gaps(ticks: &[Duration], moments: &[Duration]) -> Vec<f64> {
    let next = moments.iter().map(|at| ticks.partition_point(|tick| tick <= at));
    let mut next: Vec<usize> = next.collect();
    next.dedup();
    let gap = |next: usize| match (ticks.get(next.wrapping_sub(1)), ticks.get(next)) {
        (Some(before), Some(after)) => after.saturating_sub(*before).as_secs_f64() * 1e3,
        _ => f64::INFINITY,
    };
    next.into_iter().map(gap).collect()
}

/// A program that starts others, and times them.
#[derive(Debug)]
pub struct Spawner(Running);

impl Spawner {
    /// Nanoseconds from before a program is started until its end was waited for.
    ///
    /// # Errors
    /// That the spawner is gone.
    pub fn spawn(&mut self) -> Result<f64, LaunchingError> {
        self.0.say("\n")?;
        self.0.number()
    }
}

/// A guest that runs.
#[derive(Debug)]
struct Running {
    guest: Guest,
    /// The guest, or the command that runs it.
    child: Child,
    guest_pid: libc::pid_t,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Running {
    fn failed(&self) -> impl Fn(io::Error) -> LaunchingError + use<> {
        let guest = self.guest.name();
        move |source| LaunchingError::Guest { guest, source }
    }

    /// Has the guest, and nothing that it or its command starts, run before ordinary processes, where
    /// this user may do that: what looks at others must not be late itself.
    fn put_first(&self) {
        let first = libc::sched_param { sched_priority: 1 };
        let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
        // SAFETY: a live parameter; it concerns the guest's first thread, and a refusal changes
        // nothing.
        unsafe { libc::sched_setscheduler(self.guest_pid, policy, &raw const first) };
    }

    /// The process that was started.
    fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    fn say(&mut self, text: &str) -> Result<(), LaunchingError> {
        let failed = self.failed();
        let stdin = self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe.into());
        stdin.and_then(|stdin| stdin.write_all(text.as_bytes())).map_err(failed)
    }

    fn line(&mut self) -> Result<String, LaunchingError> {
        let failed = self.failed();
        let mut line = String::new();
        let stdout = self.stdout.as_mut().ok_or(io::ErrorKind::BrokenPipe.into());
        match stdout.and_then(|stdout| stdout.read_line(&mut line)) {
            Ok(0) => Err(failed(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(failed(error)),
        }
    }

    fn number(&mut self) -> Result<f64, LaunchingError> {
        let line = self.line()?;
        line.parse().map_err(|_| self.failed()(io::Error::other(format!("it said {line:?}"))))
    }

    /// Ends its input, and returns the times that it says then.
    fn finish(mut self) -> Result<Vec<Duration>, LaunchingError> {
        self.stdin = None;
        let failed = self.failed();
        let lines = self.stdout.take().into_iter().flat_map(io::BufRead::lines);
        lines
            .map(|line| {
                let line = line?;
                let nanos = line.parse();
                nanos.map(Duration::from_nanos).map_err(|_| io::Error::other(line))
            })
            .collect::<io::Result<_>>()
            .map_err(failed)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A guest ends with its input, and a command with its guest; a spinner has to be told.
        self.stdin = None;
        if self.guest == Guest::Spinner && !is_gone(self.pid()) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_lies_between_the_ticks_around_a_moment_and_counts_once() {
        let ms = Duration::from_millis;
        let ticks = [ms(10), ms(14), ms(114), ms(118)];
        let gaps =
            |moments: &[u64]| gaps(&ticks, &moments.iter().map(|at| ms(*at)).collect::<Vec<_>>());
        assert_eq!(gaps(&[13, 14, 60, 113, 117]), [4.0, 100.0, 4.0]);
        assert_eq!(gaps(&[9, 118]), [f64::INFINITY; 2]);
    }
}
