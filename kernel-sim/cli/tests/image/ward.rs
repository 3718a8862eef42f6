//! `image check --drive`: its time is kept and its processes are ended, whatever an image does.

use std::fs;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigHandler, Signal, kill};
use nix::unistd::Pid;

use super::drive::{SPIN, SUCCESS, system_call, with_code};
use super::{built, directory, stderr, stdout};

/// A file mode mask that only an image's code sets.
const MASK: u8 = 0o133;

/// Forks, once in all and whoever runs it: only where the file mode mask is not yet an odd one. The
/// second process goes on with `second`.
fn fork_once(second: &[u8]) -> Vec<u8> {
    let (umask, fork) = (system_call(95, MASK), system_call(57, 0));
    let second_length = u8::try_from(second.len()).unwrap();
    let rest = u8::try_from(fork.len()).unwrap() + 4 + second_length;
    // cmp eax, MASK; je to the end
    let once = [0x83, 0xf8, MASK, 0x74, rest];
    // test eax, eax; jne to the end
    let is_second = [0x85, 0xc0, 0x75, second_length];
    [&umask[..], &once, &fork, &is_second, second, &SUCCESS].concat()
}

/// A command that drives, told from all others by a word in its environment.
struct Driving {
    mark: String,
    command: Option<Child>,
}

impl Driving {
    fn start(name: &str, code: &[u8], limit: &str) -> Self {
        Self::start_ignoring(&[], name, code, limit)
    }

    /// Started by a process that ignores some signals, which is inherited.
    fn start_ignoring(ignored: &'static [Signal], name: &str, code: &[u8], limit: &str) -> Self {
        let file = with_code(&directory(name), code);
        let mark = format!("{name}-{}", std::process::id());
        let mut command = Command::new(env!("CARGO_BIN_EXE_kernel-sim"));
        command
            .args(["image", "check", "--drive", "--limit", limit, &file])
            .env("DRIVEN_BY_TEST", &mark)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let ignore = || {
            for which in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGCHLD] {
                let is_ignored = ignored.contains(&which);
                let action = if is_ignored { SigHandler::SigIgn } else { SigHandler::SigDfl };
                // SAFETY: neither action runs code.
                unsafe { nix::sys::signal::signal(which, action) }?;
            }
            Ok(())
        };
        // SAFETY: sets actions, which is safe between fork and exec.
        let command = unsafe { command.pre_exec(ignore) }.spawn().unwrap();
        Self { mark, command: Some(command) }
    }

    /// Its processes that have not ended.
    fn processes(&self) -> Vec<Pid> {
        let word = format!("DRIVEN_BY_TEST={}", self.mark);
        let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        // One that has ended has no environment.
        let is_ours = |number: &i32| {
            let environment = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
            environment.split(|&byte| byte == 0).any(|variable| variable == word.as_bytes())
        };
        numbers.filter(is_ours).map(Pid::from_raw).collect()
    }

    /// Waits until it has so many processes.
    fn wait_for(&self, count: usize) {
        let begin = Instant::now();
        while self.processes().len() != count {
            assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", self.processes());
            sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the image's code has set [`MASK`].
    fn wait_until_called(&self) {
        let begin = Instant::now();
        let has_mask = |process: &Pid| {
            let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
            status.contains(&format!("Umask:\t0{MASK:o}\n"))
        };
        while !self.processes().iter().any(has_mask) {
            assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", self.processes());
            sleep(Duration::from_millis(5));
        }
    }

    fn signal(&self, signal: Signal) {
        let command = self.command.as_ref().unwrap().id().cast_signed();
        kill(Pid::from_raw(command), signal).unwrap();
    }

    /// How it ended, after which nothing of it is left.
    fn end(mut self) -> Output {
        let begin = Instant::now();
        while self.command.as_mut().unwrap().try_wait().unwrap().is_none() {
            assert!(begin.elapsed() < Duration::from_secs(60), "it hangs");
            sleep(Duration::from_millis(5));
        }
        self.wait_for(0);
        self.command.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Driving {
    fn drop(&mut self) {
        for process in self.processes() {
            let _ = kill(process, Signal::SIGKILL);
        }
        if let Some(command) = &mut self.command {
            let _ = command.wait();
        }
    }
}

#[test]
fn the_limit_is_kept_whatever_the_image_does_to_its_own_process() {
    // getpid; mov edi, eax; mov esi, SIGSTOP; mov eax, kill; syscall
    let stop = [0x89, 0xc7, 0xbe, 19, 0, 0, 0, 0xb8, 62, 0, 0, 0, 0x0f, 0x05];
    // close(1), so that nothing more is heard, and spin
    let silent = [&system_call(3, 1)[..], &SPIN].concat();
    for (name, code) in [
        ("drive-stop", [&system_call(39, 0)[..], &stop, &SUCCESS].concat()),
        ("drive-alarm", [&system_call(37, 0)[..], &SPIN].concat()),
        ("drive-silent", silent),
    ] {
        let output = Driving::start(name, &code, "2").end();
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(1), "{name}: {text}");
        let found = "driven: did not return within 2 seconds from __vdso_clock_getres(";
        assert!(text.contains(found), "{name}: {text}");
    }
}

#[test]
fn an_image_that_forks_is_told_and_nothing_is_left_of_it() {
    for (name, second) in [
        // The second process returns from the call too, spins, or ends at once.
        ("drive-fork", &SUCCESS[..]),
        ("drive-fork-spin", &SPIN),
        ("drive-fork-end", &system_call(60, 0)),
    ] {
        let output = Driving::start(name, &fork_once(second), "60").end();
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(1), "{name}: {text}");
        let found = "driven: left another process behind in __vdso_clock_getres(";
        assert!(text.contains(found), "{name}: {text}");
    }
}

#[test]
fn a_crash_is_told_at_once_while_a_forked_process_holds_the_output() {
    // The first process meets ud2 right after.
    let mut code = fork_once(&SPIN);
    let end = code.len() - SUCCESS.len();
    code.splice(end.., [0x0f, 0x0b]);
    let output = Driving::start("drive-fork-crash", &code, "100").end();
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("driven: was ended by signal 4 in __vdso_clock_getres("), "{text}");
}

#[test]
fn a_signal_that_ends_the_command_ends_what_it_drives() {
    // A terminal's Ctrl-C reaches the command alone: the image's process is in another group.
    let spin = [&system_call(95, MASK)[..], &SPIN].concat();
    let mut fork_and_spin = fork_once(&SPIN);
    fork_and_spin.truncate(fork_and_spin.len() - SUCCESS.len());
    fork_and_spin.extend(SPIN);
    for (signal, processes, code) in [
        (Signal::SIGINT, 2, &spin),
        (Signal::SIGKILL, 2, &spin),
        (Signal::SIGTERM, 3, &fork_and_spin),
    ] {
        let driving = Driving::start(&format!("drive-{signal}"), code, "100");
        driving.wait_until_called();
        driving.wait_for(processes);
        driving.signal(signal);
        assert_eq!(driving.end().status.signal(), Some(signal as i32));
    }
}

#[test]
fn a_signal_that_the_command_was_started_to_ignore_is_ignored() {
    let spin = [&system_call(95, MASK)[..], &SPIN].concat();
    // As by nohup, by a shell that starts a command in the background, and by who waits for nobody.
    let ignored = &[Signal::SIGHUP, Signal::SIGINT, Signal::SIGCHLD];
    let driving = Driving::start_ignoring(ignored, "drive-ignored", &spin, "5");
    driving.wait_until_called();
    driving.signal(Signal::SIGHUP);
    driving.signal(Signal::SIGINT);
    let output = driving.end();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).contains("did not return within 5 seconds"), "{}", stdout(&output));
}

#[test]
fn a_process_whose_parent_was_gone_before_it_began_drives_nothing() {
    let gone = Command::new("true").spawn().unwrap();
    let parent = gone.id().to_string();
    assert!(gone.wait_with_output().unwrap().status.success());
    let child = Command::new(env!("CARGO_BIN_EXE_kernel-sim"))
        .args(["image", "check", "--drive", "--driven", &parent])
        .stdin(fs::File::open(built(&directory("drive-orphan"), "syscall")).unwrap())
        .output()
        .unwrap();
    assert_eq!(child.status.signal(), Some(libc::SIGKILL), "{}", stdout(&child));
}
