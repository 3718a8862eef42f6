//! `image check --drive`: what no rule can see of a file is found by calling what is in it.

use std::fs;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigHandler, Signal, kill};
use nix::unistd::Pid;
use object::elf;

use super::patch::{note, put, segment, symbol};
use super::{built, directory, run, stderr, stdout};

/// Our image with a change to its bytes, as a file.
fn changed(directory: &Path, change: impl FnOnce(&mut Vec<u8>)) -> String {
    let file = built(directory, "syscall");
    let mut bytes = fs::read(&file).unwrap();
    change(&mut bytes);
    fs::write(&file, bytes).unwrap();
    file
}

/// What driving a file prints, which no rule refuses.
fn driven(file: &str, code: i32) -> String {
    assert_eq!(run(&["check", file]).status.code(), Some(0), "no rule sees it");
    let output = run(&["check", "--drive", file]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(code), "{text}{}", stderr(&output));
    text
}

/// The calls whose answers differ, of which there are some.
fn differing(text: &str) -> Vec<&str> {
    let calls: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("differs  ")).collect();
    assert!(!calls.is_empty(), "{text}");
    calls
}

#[test]
fn a_driven_image_answers_every_call() {
    let directory = directory("drive");
    for policy in ["syscall", "enosys"] {
        let text = driven(&built(&directory, policy), 0);
        let numbers = text.lines().find_map(|line| {
            let (calls, pages) =
                line.strip_suffix(" pages, 0 wrong answers")?.split_once(" calls on ")?;
            Some((calls.strip_prefix("driven: ")?.parse().ok()?, pages.parse().ok()?))
        });
        let (calls, pages): (u32, u32) = numbers.unwrap_or_else(|| panic!("{text}"));
        // Each id on each page, of five names.
        assert!(pages > 25 && calls > 5 * 600 * pages, "{text}");
        // It says what it calls: every function under each of its names.
        let said = text.split("\ndrives ").nth(1).unwrap();
        let said: Vec<_> = said.split_whitespace().map(|word| word.trim_end_matches(',')).collect();
        for symbol in linker::SYSCALL.symbols {
            assert!(said.contains(&symbol.name), "{}: {text}", symbol.name);
        }
    }
}

/// Our image with other code where `__vdso_clock_getres` begins, which no rule sees.
fn with_code(directory: &Path, code: &[u8]) -> String {
    let file = changed(directory, |bytes| {
        let start = linker::SYSCALL.symbol("__vdso_clock_getres").unwrap().offset;
        bytes[start..start + code.len()].copy_from_slice(code);
    });
    assert_eq!(run(&["check", &file]).status.code(), Some(0));
    file
}

/// xor eax, eax; ret: success, and nothing written.
const SUCCESS: [u8; 3] = [0x31, 0xc0, 0xc3];

/// A jump to itself.
const SPIN: [u8; 2] = [0xeb, 0xfe];

/// mov edi, FIRST; mov eax, NUMBER; syscall.
fn system_call(number: u8, first: u8) -> Vec<u8> {
    vec![0xbf, first, 0, 0, 0, 0xb8, number, 0, 0, 0, 0x0f, 0x05]
}

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

#[test]
fn wrong_code_is_found_by_driving_and_by_no_rule() {
    let directory = directory("drive-wrong");
    for (code, limit, found) in [
        (&SUCCESS[..], "60", "wrong answers"),
        // ud2.
        (&[0x0f, 0x0b][..], "60", "was ended by signal 4 in __vdso_clock_getres("),
        (&SPIN[..], "2", "did not return within 2 seconds from __vdso_clock_getres("),
        (&system_call(231, 0), "60", "ended the process with exit code 0 in __vdso_clock_getres("),
        (&system_call(60, 7), "60", "ended the process with exit code 7 in __vdso_clock_getres("),
        // A line in the name of the process that makes the calls.
        (
            // push "oh\n"; mov rsi, rsp; mov edx, 3; write; pop rdx; xor eax, eax; ret
            &[
                &[0x68, b'o', b'h', b'\n', 0, 0x48, 0x89, 0xe6, 0xba, 3, 0, 0, 0][..],
                &system_call(1, 1),
                &[0x5a],
                &SUCCESS,
            ]
            .concat(),
            "60",
            "wrote \"oh\" to the output in __vdso_clock_getres(",
        ),
    ] {
        let output = run(&["check", "--drive", "--limit", limit, &with_code(&directory, code)]);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(1), "{text}{}", stderr(&output));
        assert!(text.contains(found), "{text}");
    }
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
fn an_alias_is_called_where_it_leads() {
    let file = changed(&directory("drive-alias"), |bytes| {
        // st_value and st_size: all that is wrong to a rule is a "should".
        let (alias, other) =
            (symbol(bytes, "clock_gettime") + 8, symbol(bytes, "clock_getres") + 8);
        bytes.copy_within(other..other + 16, alias);
    });
    let text = driven(&file, 1);
    for call in differing(&text) {
        assert!(call.starts_with("clock_gettime("), "{call}");
    }
}

#[test]
fn an_image_that_knows_no_time_namespace_is_found_on_their_pages() {
    let file = changed(&directory("drive-namespace"), |bytes| {
        // Every comparison of the mode with that of a namespace is one with another mode.
        let mode = i32::MAX.to_le_bytes();
        let text = bytes.len() - mode.len();
        let places: Vec<_> = (0..text).filter(|&at| bytes[at..].starts_with(&mode)).collect();
        assert!(!places.is_empty());
        places.iter().for_each(|&at| bytes[at] = 0xfe);
    });
    let text = driven(&file, 1);
    for call in differing(&text) {
        assert!(call.contains("behind a time namespace's"), "{call}");
    }
}

#[test]
fn a_build_id_of_any_length_that_the_rule_takes_can_be_driven() {
    for length in [8_u32, 16] {
        let file = changed(&directory("drive-build-id"), |bytes| {
            // The last of the notes: it becomes shorter, and the segment with it.
            let contents = note(bytes, b"GNU");
            put(bytes, contents - 12, length.to_le_bytes());
            let notes = segment(bytes, elf::PT_NOTE);
            let start = u64::from_le_bytes(bytes[notes + 8..notes + 16].try_into().unwrap());
            let size = contents as u64 + u64::from(length) - start;
            for field in [32, 40] {
                put(bytes, notes + field, size.to_le_bytes());
            }
        });
        let text = driven(&file, 0);
        assert!(text.contains(" 0 wrong answers"), "{text}");
    }
}

#[test]
fn why_an_image_is_not_driven_is_said_once() {
    type Change = fn(&mut Vec<u8>);
    let cases: [(&str, Change, &str); 3] = [
        (
            "of nobody",
            |bytes| {
                let owner = bytes.windows(6).position(|window| window == b"uVDSO\0").unwrap();
                bytes[owner] = b'x';
            },
            "no uVDSO note",
        ),
        (
            "of a page of another layout",
            |bytes| {
                let contents = note(bytes, b"uVDSO");
                put(bytes, contents + 4, 2_u32.to_le_bytes());
            },
            "the image reads page ABI 2",
        ),
        (
            "of one slot",
            |bytes| {
                let contents = note(bytes, b"uVDSO");
                put(bytes, contents + 8, 1_u32.to_le_bytes());
            },
            "1 page slots",
        ),
    ];
    for (what, change, said) in cases {
        let file = changed(&directory("drive-refused"), change);
        assert_eq!(run(&["check", &file]).status.code(), Some(0), "a note {what}");
        let output = run(&["check", "--drive", &file]);
        assert_eq!(output.status.code(), Some(2), "a note {what}: {}", stdout(&output));
        let error = stderr(&output);
        assert!(error.contains("cannot be driven: ") && error.contains(said), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(!stdout(&output).contains("driven"), "{}", stdout(&output));
    }
}

#[test]
fn what_stops_the_process_that_runs_the_image_is_left_to_its_parent_to_say() {
    let child = Command::new(env!("CARGO_BIN_EXE_kernel-sim"))
        .args(["image", "check", "--drive", "--driven", &std::process::id().to_string()])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(child.status.code(), Some(1));
    assert!(stdout(&child).starts_with("e 0 bytes"), "{}", stdout(&child));
    assert_eq!(stderr(&child), "");
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
