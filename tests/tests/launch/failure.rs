//! Each process that serves a program can be killed.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use kernel_sim::launch::{Clock, Command, LaunchError, Output};

use crate::{guest, writable};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, gettid};
use tests::processes::{Run, eventually, is_gone, kill_descendants, kill_hard, some};

/// What the guest says of its clocks.
#[derive(Debug)]
struct Said {
    longest_ns: i64,
    still_ns: i64,
    time_still_ns: i64,
    off_ns: i64,
    back_ns: i64,
    coarse_back_ns: i64,
}

impl Said {
    fn from(text: &str) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        let after = |name: &str| {
            let at =
                words.iter().position(|word| *word == name).unwrap_or_else(|| panic!("{text}"));
            words[at + 1].parse().unwrap()
        };
        Self {
            longest_ns: after("longest"),
            still_ns: after("still"),
            time_still_ns: after("time-still"),
            off_ns: after("off"),
            back_ns: after("back"),
            coarse_back_ns: after("coarse-back"),
        }
    }
}

const SECOND_NS: i64 = 1_000_000_000;

/// A read that finds the keeper off its CPU, or killed, in the middle of an update falls back to
/// the kernel, whose coarse clock is as of another tick: it may be ahead by that much.
const TICK_NS: i64 = 10_000_000;

fn assert_never_back(said: &Said) {
    assert_eq!(said.back_ns, 0, "{said:?}");
    assert!(said.coarse_back_ns <= TICK_NS, "{said:?}");
}

/// Runs the guest for `millis`, does something to it, and returns what it said.
fn while_running(name: &str, user: Option<u32>, millis: u32, act: impl FnOnce(&Run)) -> Output {
    let file = writable(&format!("{name}-{}", user.unwrap_or(0)));
    let program = guest("launch_clocks", "");
    let command = Command::new(program).arg(&file).arg(millis.to_string());
    let output = start(command, user);
    act(&Run::read(&file));
    output()
}

/// Far longer than any run may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts a run, and returns what waits for its output: a run that does not end fails the test instead
/// of holding it up.
pub(crate) fn start(command: Command, user: Option<u32>) -> impl FnOnce() -> Output {
    let run = Started::new(command, user);
    move || run.output(PATIENCE).expect("the run ends")
}

/// A run that is under way. It ends with this, however that comes: a run that stayed behind would disturb
/// the tests that follow.
struct Started {
    ended: Receiver<Result<Output, LaunchError>>,
    /// The thread whose child the command is.
    thread: Pid,
    is_over: bool,
}

impl Started {
    fn new(command: Command, user: Option<u32>) -> Self {
        let (id, starts) = mpsc::channel();
        let (sender, ended) = mpsc::channel();
        thread::spawn(move || {
            id.send(gettid()).unwrap();
            sender.send(command.output(user))
        });
        Self { ended, thread: starts.recv().unwrap(), is_over: false }
    }

    /// What comes of it, if it ends in time.
    fn output(mut self, patience: Duration) -> Option<Output> {
        let output = self.ended.recv_timeout(patience).ok()?;
        self.is_over = true;
        Some(output.unwrap())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if !self.is_over {
            kill_descendants(self.thread.as_raw());
        }
    }
}

pub(crate) fn a_run_that_does_not_end_ends_with_its_test(user: Option<u32>) {
    let file = writable(&format!("endless-{}", user.unwrap_or(0)));
    let script = "umask 0; sleep 1000 & echo $PPID $$ $! > \"$0\"; wait";
    let run = Started::new(Command::new("sh").args(["-c", script]).arg(&file), user);
    let found = Run::read(&file);
    let text = std::fs::read_to_string(&file).unwrap();
    let mut all: Vec<i32> = text.split_whitespace().map(|id| id.parse().unwrap()).collect();
    all.extend([found.keeper(), found.next_keeper(), found.tracer()]);
    assert!(all.len() == 6 && !all.iter().any(|pid| is_gone(*pid)), "{all:?}");
    assert!(run.output(Duration::from_millis(1)).is_none());
    eventually("all of it is gone", || all.iter().all(|pid| is_gone(*pid)));
}

fn said(output: &Output) -> Said {
    Said::from(&String::from_utf8(output.stdout.clone()).unwrap())
}

pub(crate) fn a_killed_keeper_is_replaced_and_the_clocks_go_on(user: Option<u32>) {
    let mut keepers = Vec::new();
    let output = while_running("keeper", user, 3_000, |run| {
        for _ in 0..3 {
            let keeper = some("there is another keeper", || {
                run.family.keeper().filter(|pid| !keepers.contains(pid))
            });
            thread::sleep(Duration::from_millis(100));
            kill_hard(keeper);
            keepers.push(keeper);
        }
    });
    let said = said(&output);
    assert_eq!(keepers.len(), 3);
    assert_eq!(output.remarks.len(), 3, "{:?}", output.remarks);
    // A keeper that was not replaced would leave them standing to the end.
    assert!(said.still_ns < SECOND_NS, "{said:?}");
    assert!(said.longest_ns < SECOND_NS && said.off_ns.abs() < 100_000, "{said:?}");
    assert_never_back(&said);
    assert!(keepers.iter().all(|&pid| is_gone(pid)));
}

/// The guest's own words of a run whose command is killed do not come back through the command.
fn without_a_command(name: &str, user: Option<u32>, millis: u32, act: impl FnOnce(&Run)) -> Said {
    let name = format!("{name}-{}", user.unwrap_or(0));
    let (file, words) = (writable(&name), writable(&format!("{name}-words")));
    let script =
        format!("exec \"$0\" {} {millis} > {}", file.to_str().unwrap(), words.to_str().unwrap());
    let guest = guest("launch_clocks", "");
    let command = Command::new("sh").arg("-c").arg(script).arg(guest);
    let run = thread::spawn(move || drop(command.output(user)));
    let running = Run::read(&file);
    let _guest = Guest(running.program);
    act(&running);
    eventually("the guest ends", || is_gone(running.program));
    run.join().unwrap();
    Said::from(&std::fs::read_to_string(words).unwrap())
}

/// A guest whose command is killed. One that hangs ends with its test.
struct Guest(i32);

impl Drop for Guest {
    fn drop(&mut self) {
        if !is_gone(self.0) {
            kill_hard(self.0);
        }
    }
}

pub(crate) fn a_killed_command_leaves_every_clock_running_and_nothing_behind(user: Option<u32>) {
    let mut served = Vec::new();
    let said = without_a_command("command", user, 3_500, |run| {
        served = vec![run.keeper(), run.next_keeper(), run.tracer()];
        kill_hard(run.command);
        eventually("the command is gone", || is_gone(run.command));
        assert!(served.iter().chain([&run.program]).all(|pid| !is_gone(*pid)));
    });
    assert!(said.still_ns < SECOND_NS && said.off_ns.abs() < 100_000, "{said:?}");
    assert!(said.time_still_ns < 2 * SECOND_NS, "{said:?}");
    assert_never_back(&said);
    eventually("keepers and tracer end with the last program", || {
        served.iter().all(|pid| is_gone(*pid))
    });
}

pub(crate) fn a_keeper_is_replaced_although_the_command_is_dead(user: Option<u32>) {
    let mut next = 0;
    let said = without_a_command("next", user, 2_000, |run| {
        next = run.next_keeper();
        for pid in [run.command, run.keeper()] {
            kill_hard(pid);
            eventually("it is gone", || is_gone(pid));
        }
    });
    assert!(said.still_ns < SECOND_NS && said.off_ns.abs() < 100_000, "{said:?}");
    assert_never_back(&said);
    eventually("it ends with the last program", || is_gone(next));
}

pub(crate) fn both_keepers_killed_at_once_are_replaced(user: Option<u32>) {
    let output = while_running("both", user, 2_000, |run| {
        let both = [run.next_keeper(), run.keeper()];
        both.into_iter().for_each(kill_hard);
        eventually("there are others", || {
            run.family.keeper().is_some_and(|pid| !both.contains(&pid))
        });
    });
    let said = said(&output);
    assert!(said.still_ns < SECOND_NS && said.off_ns.abs() < 100_000, "{said:?}");
    assert_never_back(&said);
}

pub(crate) fn a_stopped_keeper_or_tracer_is_continued(user: Option<u32>) {
    let mut served = Vec::new();
    let output = while_running("stopped", user, 3_500, |run| {
        let (keeper, next) = (run.keeper(), run.next_keeper());
        served = vec![keeper, next, run.tracer()];
        for &pid in &served {
            kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
        }
        // A keeper that stayed stopped would leave the clocks standing for longer than is allowed.
        thread::sleep(Duration::from_millis(1_500));
        kill_hard(keeper);
        eventually("the next keeper works", || run.family.keeper() == Some(next));
    });
    let said = said(&output);
    assert!(said.still_ns < SECOND_NS && said.off_ns.abs() < 100_000, "{said:?}");
    assert_never_back(&said);
    eventually("all of them end", || served.iter().all(|pid| is_gone(*pid)));
    // The tracer: each program of a shell waits for it.
    let file = writable(&format!("stopped-tracer-{}", user.unwrap_or(0)));
    let script =
        "umask 0; echo $PPID $$ > \"$0\"; for i in $(seq 50); do sleep 0.01; done; echo done";
    let command = Command::new("sh").args(["-c", script]).arg(&file);
    let output = start(command, user);
    kill(Pid::from_raw(Run::read(&file).tracer()), Signal::SIGSTOP).unwrap();
    assert_eq!(output().stdout, b"done\n");
}

pub(crate) fn with_command_tracer_and_keeper_dead_no_call_hangs(user: Option<u32>) {
    let said = without_a_command("alone", user, 2_000, |run| {
        // The command first, so that it replaces nobody.
        for pid in [run.command, run.next_keeper(), run.keeper(), run.tracer()] {
            kill_hard(pid);
            eventually("it is gone", || is_gone(pid));
        }
        assert!(!is_gone(run.program), "a program outlives its tracer");
    });
    // Precise clocks are extrapolated, coarse ones stand still.
    assert!(said.longest_ns < SECOND_NS && said.off_ns.abs() < 1_000_000, "{said:?}");
    assert!(said.still_ns > SECOND_NS / 2, "{said:?}");
    assert_never_back(&said);
}

/// Whether the kernel's vDSO has a `syscall` instruction with nothing but a return behind it, as some
/// compilers end a function.
fn vdso_has_a_way_back() -> bool {
    let endings: [&[u8]; 5] = [
        &[0xc3],
        &[0x5d, 0xc3],
        &[0xc9, 0xc3],
        // Registers that calls may use are cleared first.
        &[0x31, 0xd2, 0x31, 0xc9, 0x31, 0xf6, 0x31, 0xff, 0x45, 0x31, 0xdb, 0xc3],
        &[0x31, 0xc9, 0x31, 0xf6, 0x31, 0xff, 0x45, 0x31, 0xdb, 0xc3],
    ];
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let vdso = maps.lines().find(|line| line.ends_with("[vdso]")).unwrap();
    let (start, _) = vdso.split_once('-').unwrap();
    let start = u64::from_str_radix(start, 16).unwrap();
    let mut code = [0; 8192];
    let memory = File::open("/proc/self/mem").unwrap();
    let length = memory.read_at(&mut code, start).unwrap();
    endings.iter().any(|ending| {
        let wanted = [&[0x0f, 0x05], *ending].concat();
        code[..length].windows(wanted.len()).any(|bytes| bytes == wanted)
    })
}

pub(crate) fn a_killed_tracer_ends_at_most_the_program_that_just_starts(user: Option<u32>) {
    let may_end = usize::from(!vdso_has_a_way_back());
    for round in 0..10 {
        let file = writable(&format!("starting-{round}-{}", user.unwrap_or(0)));
        let script = "umask 0; echo $PPID $$ > \"$0\"; for loop in 1 2 3; do \
            (for i in $(seq 150); do /bin/true || echo $?; done) & done; wait; echo done";
        let output = start(Command::new("sh").args(["-c", script]).arg(&file), user);
        let tracer = Run::read(&file).tracer();
        thread::sleep(Duration::from_millis(50 + 7 * round));
        kill_hard(tracer);
        let output = output();
        let text = String::from_utf8(output.stdout).unwrap();
        let ended = text.strip_suffix("done\n").unwrap();
        assert!(ended.lines().count() <= may_end, "{text}");
        let said = format!("{:?}", output.remarks);
        assert!(said.contains("the tracer was killed: programs keep their clocks"), "{said}");
    }
}

pub(crate) fn a_program_that_outlives_the_first_keeps_its_clock_and_is_followed(user: Option<u32>) {
    let file = writable(&format!("orphan-{}", user.unwrap_or(0)));
    // The grandchild lives on after the command has returned, and execs then.
    let script = "(read line < \"$0\"; date +%s > \"$0.done\") > /dev/null 2>&1 &";
    let pipe = file.to_str().unwrap();
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::from_bits_truncate(0o666)).unwrap();
    let clock = Clock::At(4_000_000_000 * i128::from(SECOND_NS));
    let command = Command::new("sh").args(["-c", &format!("umask 0; {script}"), pipe]);
    let output = command.clock(clock).output(user).unwrap();
    assert!(output.outcome.status.success());
    std::fs::write(&file, "go\n").unwrap();
    let done = writable(&format!("orphan-{}.done", user.unwrap_or(0)));
    let mut text = String::new();
    eventually("the orphan tells the time", || {
        text = std::fs::read_to_string(&done).unwrap_or_default();
        text.ends_with('\n')
    });
    let told: i64 = text.trim().parse().unwrap();
    assert!((4_000_000_000..4_000_000_100).contains(&told), "{told}");
}
