//! `kernel-sim run` as a user meets it: messages, exit codes, the count.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod forbidden;

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Output};

fn kernel_sim(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kernel-sim")).args(words).output().unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn the_exit_status_is_the_programs() {
    assert_eq!(kernel_sim(&["run", "--", "sh", "-c", "exit 3"]).status.code(), Some(3));
    let killed = kernel_sim(&["run", "--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(killed.status.signal(), Some(libc::SIGTERM));
    let missing = kernel_sim(&["run", "--", "/no/such/program"]);
    assert_eq!(missing.status.code(), Some(127));
    assert!(err(&missing).contains("/no/such/program"), "{missing:?}");
    let no_program = kernel_sim(&["run", "--", "/etc"]);
    assert_eq!(no_program.status.code(), Some(126), "{no_program:?}");
}

#[test]
fn a_quiet_run_writes_only_what_the_program_writes() {
    let output = kernel_sim(&["run", "--", "date", "-u", "+%s"]);
    assert!(output.status.success());
    assert_eq!((err(&output), out(&output).lines().count()), (String::new(), 1));
}

#[test]
fn the_count_is_printed_by_name_and_proven() {
    let output = kernel_sim(&["run", "--count", "--", "sh", "-c", "date; date"]);
    assert!(err(&output).contains("0 clock, time and getcpu calls"), "{output:?}");
    let output =
        kernel_sim(&["run", "--count", "--without-counter", "--", "sh", "-c", "date; date"]);
    assert!(err(&output).contains("2 clock_gettime(clock 0)"), "{output:?}");
    assert!(err(&output).contains("2 clock, time and getcpu calls"), "{output:?}");
}

#[test]
fn a_date_and_a_span_move_the_clock() {
    let output = kernel_sim(&["run", "--at", "2038-01-19 03:14:00", "--", "date", "-u", "+%F %T"]);
    assert!(out(&output).starts_with("2038-01-19 03:14:0"), "{output:?}");
    let output = kernel_sim(&["run", "--offset", "-1000 years", "--", "date", "-u", "+%Y"]);
    let year: i32 = out(&output).trim().parse().unwrap();
    assert!((1000..1200).contains(&year), "{output:?}");
}

#[test]
fn wrong_options_are_told_what_is_right() {
    for (words, right) in [
        (vec!["--at", "soon"], "2038-01-19 03:14:00"),
        (vec!["--offset", "later"], "-1h30m"),
        (vec!["--hz", "0"], "1..=1000"),
        (vec!["--at", "2038-01-19", "--offset", "1s"], "cannot be used with"),
        (vec!["--at", "2038-01-19", "--without-counter"], "cannot be used with"),
    ] {
        let words: Vec<&str> = ["run"].into_iter().chain(words).chain(["--", "true"]).collect();
        let output = kernel_sim(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(err(&output).contains(right), "{words:?}: {output:?}");
    }
    assert_eq!(kernel_sim(&["run"]).status.code(), Some(2));
}

#[test]
fn verbose_says_what_keeps_the_hosts_time() {
    let output = kernel_sim(&["run", "--verbose", "--offset", "1h", "--", "true"]);
    for kept in [
        "direct system calls",
        "the vsyscall page",
        "waits with an absolute REALTIME deadline",
        "times of files",
        "raw reads of the counter",
        "32-bit programs",
        "programs in a time namespace of their own",
        "children that were made with CLONE_UNTRACED",
    ] {
        assert!(err(&output).contains(kept), "{kept}: {output:?}");
    }
}

#[test]
fn where_programs_cannot_be_traced_the_remedy_is_shown() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kernel-sim"));
    command.args(["run", "--", "true"]);
    // SAFETY: the function makes two system calls and touches no lock.
    unsafe { command.pre_exec(forbidden::forbid_ptrace) };
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(err(&output).contains("allow ptrace"), "{output:?}");
}
