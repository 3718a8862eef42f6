//! Running a program from a process that has other things to do, and looking at all of it: what tests and
//! bench do.

mod user;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::thread;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::unistd::{ForkResult, Gid, Uid, fork, pipe2, setgid, setgroups, setuid};

use crate::launch::background::set_dumpable;
use crate::launch::calls::SystemCalls;
use crate::launch::command::{Command, LaunchError, Outcome, Status};
use crate::launch::letters::Letter;
use crate::launch::supervise::Remark;

pub use user::User;

/// What a program wrote, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Output {
    /// How it ended, and the calls that were counted.
    pub outcome: Outcome,
    /// What it wrote to its standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to its standard error.
    pub stderr: Vec<u8>,
    /// What the command would have said.
    pub remarks: Vec<Remark>,
}

impl Command {
    /// Runs the program in a child of this process, as `user` if there is one, and waits for it and
    /// for whatever holds its standard output open.
    ///
    /// # Errors
    /// As [`run`](Self::run) has.
    pub fn output(&self, user: Option<u32>) -> Result<Output, LaunchError> {
        let failed = LaunchError::kernel("starting the command");
        let pipe = || pipe2(OFlag::O_CLOEXEC).map_err(&failed);
        let (stdout, stderr, report) = (pipe()?, pipe()?, pipe()?);
        // SAFETY: the child runs code of ours only. It allocates, which the C library's fork
        // allows, and takes no other lock that a thread of this process could hold.
        let child = match unsafe { fork() }.map_err(&failed)? {
            ForkResult::Child => self.run_and_report(user, [&stdout.1, &stderr.1], report.1),
            ForkResult::Parent { child } => child,
        };
        drop((stdout.1, stderr.1, report.1));
        let stderr = thread::spawn(move || read_all(stderr.0));
        let stdout = thread::spawn(move || read_all(stdout.0));
        let report = read_all(report.0);
        let _ = nix::sys::wait::waitpid(child, None);
        let report = Report::from_text(&String::from_utf8_lossy(&report), self)?;
        Ok(Output {
            outcome: report.outcome,
            stdout: stdout.join().unwrap_or_default(),
            stderr: stderr.join().unwrap_or_default(),
            remarks: report.remarks,
        })
    }

    fn run_and_report(&self, user: Option<u32>, [out, err]: [&OwnedFd; 2], report: OwnedFd) -> ! {
        let done = become_user(user)
            .and_then(|()| put_in_place(out, libc::STDOUT_FILENO))
            .and_then(|()| put_in_place(err, libc::STDERR_FILENO));
        let mut remarks = Vec::new();
        let outcome = match done {
            Ok(()) => self.run(&mut |remark| remarks.push(remark)),
            Err(error) => Err(LaunchError::kernel("becoming the user")(error)),
        };
        let _ = File::from(report).write_all(to_text(&outcome, &remarks).as_bytes());
        // SAFETY: ends this forked process without what its parent registered for its exit.
        unsafe { libc::_exit(0) }
    }
}

fn become_user(user: Option<u32>) -> nix::Result<()> {
    let Some(user) = user else { return Ok(()) };
    setgroups(&[])?;
    setgid(Gid::from_raw(user))?;
    setuid(Uid::from_raw(user))?;
    // A change of user closes a process to that user. A command that the user starts is open, as
    // every program that was exec'ed is, until it closes itself.
    set_dumpable(true)
}

fn put_in_place(pipe: &OwnedFd, standard: i32) -> nix::Result<()> {
    // SAFETY: the standard descriptors of a process that has just been forked for this.
    Errno::result(unsafe { libc::dup2(pipe.as_raw_fd(), standard) }).map(drop)
}

fn read_all(pipe: OwnedFd) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = File::from(pipe).read_to_end(&mut bytes);
    bytes
}

struct Report {
    outcome: Outcome,
    remarks: Vec<Remark>,
}

/// A report as lines: how it ended, then what was counted and said.
fn to_text(outcome: &Result<Outcome, LaunchError>, remarks: &[Remark]) -> String {
    let mut text = String::new();
    match outcome {
        Ok(Outcome { status, calls }) => {
            let _ = match status {
                Status::Exited(code) => writeln!(text, "exited {code}"),
                Status::Signaled(signal) => writeln!(text, "signaled {signal}"),
            };
            for (call, times) in calls.iter() {
                let _ = writeln!(text, "{}", Letter::Count(call.clone(), times).to_text());
            }
        }
        Err(error) => {
            let _ = writeln!(text, "failed {}", failure_to_text(error));
        }
    }
    for remark in remarks {
        let letter = match remark.clone() {
            Remark::Warning(text) => Letter::Warning(text),
            Remark::Note(text) => Letter::Note(text),
        };
        let _ = writeln!(text, "{}", letter.to_text().replace('\n', " "));
    }
    text
}

/// A word for the variant, then what belongs to it.
fn failure_to_text(error: &LaunchError) -> String {
    match error {
        LaunchError::NoVdso => "no-vdso".to_owned(),
        LaunchError::NoProc => "no-proc".to_owned(),
        LaunchError::NoTracing(errno) => format!("no-tracing {}", *errno as i32),
        LaunchError::Program { source, .. } => {
            format!("program {}", source.raw_os_error().unwrap_or(0))
        }
        LaunchError::Keeper(text) => format!("keeper {text}"),
        other => format!("other {other}"),
    }
}

impl Report {
    fn from_text(text: &str, command: &Command) -> Result<Self, LaunchError> {
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let (keyword, rest) = first.split_once(' ').unwrap_or_default();
        let status = match keyword {
            "exited" => rest.parse().ok().map(Status::Exited),
            "signaled" => rest.parse().ok().map(Status::Signaled),
            "failed" => return Err(failure_from_text(rest, command)),
            _ => None,
        };
        let killed = LaunchError::Keeper("the command was killed".to_owned());
        let status = status.ok_or(killed)?;
        let (mut calls, mut remarks) = (SystemCalls::default(), Vec::new());
        for letter in lines.filter_map(Letter::from_text) {
            match letter {
                Letter::Count(call, times) => calls.add(call, times),
                Letter::Warning(text) => remarks.push(Remark::Warning(text)),
                Letter::Note(text) => remarks.push(Remark::Note(text)),
                _ => {}
            }
        }
        let outcome = Outcome { status, calls };
        Ok(Self { outcome, remarks })
    }
}

/// The error that the child reported. What has no word of its own is told by its text.
fn failure_from_text(text: &str, command: &Command) -> LaunchError {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let errno = rest.parse().unwrap_or(0);
    match word {
        "no-vdso" => LaunchError::NoVdso,
        "no-proc" => LaunchError::NoProc,
        "no-tracing" => LaunchError::NoTracing(Errno::from_raw(errno)),
        "program" => LaunchError::Program {
            program: command.program.clone(),
            source: std::io::Error::from_raw_os_error(errno),
        },
        _ => LaunchError::Keeper(rest.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_arrives_as_what_it_was() {
        let command = Command::new("a program");
        let program = |errno| LaunchError::Program {
            program: command.program.clone(),
            source: std::io::Error::from_raw_os_error(errno),
        };
        for error in [
            LaunchError::NoVdso,
            LaunchError::NoProc,
            LaunchError::NoTracing(Errno::EPERM),
            LaunchError::NoTracing(Errno::from_raw(0)),
            program(libc::ENOENT),
            program(libc::EACCES),
            LaunchError::Keeper("it was killed".to_owned()),
        ] {
            let wanted = (format!("{error:?}"), error.exit_code());
            let text = to_text(&Err(error), &[Remark::Note("said before".to_owned())]);
            let found = Report::from_text(&text, &command).err().unwrap();
            assert_eq!((format!("{found:?}"), found.exit_code()), wanted);
        }
        let date = LaunchError::Date { found: 7 };
        let text = to_text(&Err(date), &[]);
        let found = Report::from_text(&text, &command).err().unwrap();
        assert!(found.to_string().contains("7 s since 1970"), "{found}");
    }
}
