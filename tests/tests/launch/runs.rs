//! Programs run on the image: their time, their status, and what reaches the kernel.

use std::os::unix::process::CommandExt as _;

use kernel_sim::launch::{Clock, Command, LaunchError, Output, Status};

use crate::shell;

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn seconds(output: &Output) -> Vec<i64> {
    let text = text(output);
    text.lines().map(|line| line.parse().unwrap()).collect()
}

fn now() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(now.unwrap().as_secs()).unwrap()
}

pub(crate) fn a_pipeline_of_programs_has_the_hosts_time_without_a_system_call(user: Option<u32>) {
    let script = "date +%s; date +%s & wait; (date +%s | cat); exec date +%s";
    let before = now();
    let output = shell(script).count(true).output(user).unwrap();
    let found = seconds(&output);
    assert_eq!(output.outcome.status, Status::Exited(0), "{output:?}");
    assert_eq!(found.len(), 4);
    assert!(found.iter().all(|at| (before..=now()).contains(at)), "{found:?}");
    assert_eq!(output.outcome.calls.total(), 0, "{output:?}");
    assert_eq!(output.remarks, [], "nothing to be said of it");

    // The proof that counting counts: the same on a page that serves no precise clock.
    let output = shell(script).count(true).without_counter().output(user);
    let output = output.unwrap();
    assert_eq!(output.outcome.calls.of("clock_gettime"), 4, "{output:?}");
}

pub(crate) fn each_kind_of_call_that_reaches_the_kernel_is_counted(user: Option<u32>) {
    let script = "$buffer = chr(0) x 16;
        syscall 228, 1, $buffer for 1..2;
        syscall 229, 6, 0 for 1..3;
        syscall 96, 0, 0 for 1..4;
        syscall 201, 0 for 1..5;
        syscall 309, 0, 0, 0 for 1..6;";
    let output = Command::new("perl").args(["-e", script]).count(true).output(user).unwrap();
    assert_eq!(output.outcome.status, Status::Exited(0), "{output:?}");
    let calls = output.outcome.calls.iter();
    let found: Vec<_> = calls.map(|(call, count)| (call.to_string(), count)).collect();
    let wanted = [
        ("clock_getres(clock 6)", 3),
        ("clock_gettime(clock 1)", 2),
        ("getcpu", 6),
        ("gettimeofday", 4),
        ("time", 5),
    ];
    assert_eq!(found, wanted.map(|(call, count)| (call.to_owned(), count)));
}

pub(crate) fn a_moved_clock_moves_at_every_exec_and_by_the_same_amount(user: Option<u32>) {
    let offset = -987_654_321;
    let script = "date +%s; sh -c 'date +%s'; exec date +%s";
    let clock = Clock::Offset(i128::from(offset) * 1_000_000_000);
    let before = now();
    let output = shell(script).clock(clock).count(true).output(user).unwrap();
    let found = seconds(&output);
    let range = before + offset..=now() + offset;
    assert!(found.len() == 3 && found.iter().all(|at| range.contains(at)), "{output:?}");
    assert_eq!(output.outcome.calls.total(), 0);

    let output = Command::new("date")
        .args(["-u", "+%FT%T"])
        .clock(Clock::At(2_147_483_640 * 1_000_000_000))
        .output(user)
        .unwrap();
    assert!(text(&output).starts_with("2038-01-19T03:14:0"), "{output:?}");
}

pub(crate) fn a_date_that_no_page_can_hold_is_refused(user: Option<u32>) {
    let command = Command::new("date").clock(Clock::Offset(i128::MAX / 2));
    assert!(
        matches!(command.output(user), Err(LaunchError::Keeper(text)) if text.contains("range"))
    );
}

pub(crate) fn status_and_signals_are_the_programs_own(user: Option<u32>) {
    let status = |script: &str| shell(script).output(user).unwrap().outcome.status;
    assert_eq!(status("exit 0"), Status::Exited(0));
    assert_eq!(status("exit 42"), Status::Exited(42));
    assert_eq!(status("kill -TERM $$"), Status::Signaled(libc::SIGTERM));
    assert_eq!(status("kill -KILL $$"), Status::Signaled(libc::SIGKILL));
    // A signal sent to the command reaches the program; the shell's parent is the command.
    let passed = "trap 'exit 7' TERM; kill -TERM $PPID; for i in 1 2 3 4 5 6 7 8 9; do sleep 0.1; done; exit 1";
    assert_eq!(status(passed), Status::Exited(7));
    let usr = "trap 'exit 9' USR1; kill -USR1 $PPID; for i in 1 2 3 4 5 6 7 8 9; do sleep 0.1; done; exit 1";
    assert_eq!(status(usr), Status::Exited(9));
    // Rust ignores SIGPIPE; the program must not inherit that.
    let pipe = "sh -c 'kill -PIPE $$'; echo $? >&2";
    let output = shell(pipe).output(user).unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr).trim(), "141");
}

pub(crate) fn a_program_that_cannot_be_executed_is_an_error_with_the_shells_code(
    user: Option<u32>,
) {
    let error = Command::new("/nonexistent/program").output(user).unwrap_err();
    assert_eq!(error.exit_code(), 127, "{error}");
    assert!(error.to_string().contains("/nonexistent/program"), "{error}");
    let error = Command::new("/etc/passwd").output(user).unwrap_err();
    assert_eq!(error.exit_code(), 126, "{error}");
}

pub(crate) fn descriptors_and_environment_are_as_without_us(user: Option<u32>) {
    let script = "ls /proc/self/fd | wc -l; ulimit -n; env | sort; pwd; cat /proc/self/wchan";
    let with = shell(script).output(user).unwrap();
    let mut without = std::process::Command::new("sh");
    if let Some(user) = user {
        without.uid(user).gid(user);
    }
    let without = without.args(["-c", script]).output().unwrap();
    assert_eq!(text(&with), String::from_utf8(without.stdout).unwrap());
}

pub(crate) fn a_detached_program_is_on_the_image_and_free(user: Option<u32>) {
    // `PTRACE_TRACEME` of a program that is traced fails.
    let script = "grep TracerPid /proc/self/status; grep -c uvdso /proc/$$/maps";
    let output = shell(script).detach(true).output(user).unwrap();
    assert_eq!(text(&output), "TracerPid:\t0\n2\n", "{output:?}");
    let output = shell(script).output(user).unwrap();
    assert!(!text(&output).starts_with("TracerPid:\t0\n"), "{output:?}");
}
