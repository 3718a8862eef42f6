//! Programs that do unusual things: each works, or is told what is the matter.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::process::ExitCode;

use kernel_sim::launch::{Clock, Command, LaunchError, Output, Remark, Status};

use crate::{copy, guest, shell};

/// Seconds since 1970 of the clock that these programs see.
pub(crate) const THERE: i64 = 4_000_000_000;

pub(crate) fn unusual() -> OsString {
    guest("launch_unusual", "-pthread")
}

/// A dynamic C library needs descriptors of its own.
pub(crate) fn unusual_static() -> OsString {
    guest("launch_unusual", "-static -pthread")
}

pub(crate) fn moved(words: &[&str]) -> Command {
    moved_with(&unusual(), words)
}

pub(crate) fn moved_with(program: &OsString, words: &[&str]) -> Command {
    // Each `SELF` is the guest itself.
    let itself = program.to_str().unwrap().to_owned();
    let words =
        words.iter().map(|word| if *word == "SELF" { itself.clone() } else { (*word).to_owned() });
    Command::new(program).args(words).clock(Clock::At(i128::from(THERE) * 1_000_000_000))
}

pub(crate) fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Asserts that the last program showed the moved time and was on the image.
pub(crate) fn assert_moved(output: &Output) {
    let text = out(output);
    let (seconds, place) = text.trim().split_once(' ').unwrap_or_else(|| panic!("{output:?}"));
    let seconds: i64 = seconds.parse().unwrap();
    assert!((THERE..THERE + 1_000).contains(&seconds) && place == "image", "{output:?}");
    assert_eq!(output.remarks, []);
}

/// All that was said.
pub(crate) fn said(output: &Output) -> String {
    let remarks = output.remarks.iter().map(|remark| match remark {
        Remark::Warning(text) | Remark::Note(text) => text.clone(),
        other => panic!("{other:?}"),
    });
    remarks.collect::<Vec<_>>().join("\n")
}

fn warning(output: &Output) -> String {
    let warnings = output.remarks.iter().map(|remark| match remark {
        Remark::Warning(text) => text.clone(),
        other => panic!("{other:?}"),
    });
    warnings.collect::<Vec<_>>().join("\n")
}

pub(crate) fn a_thousand_children_have_the_clock(user: Option<u32>) {
    let mut output = moved(&["forks", "1000"]).output(user).unwrap();
    let text = out(&output);
    let shown = text.strip_prefix("1000\n").unwrap_or_else(|| panic!("{output:?}"));
    output.stdout = shown.into();
    assert_moved(&output);
}

pub(crate) fn a_program_that_is_stopped_at_its_start_can_be_continued(user: Option<u32>) {
    let output = moved(&["stops", "600", "SELF", "show"]).output(user).unwrap();
    assert_eq!(out(&output), "600 0\n", "{output:?}");
    assert_eq!(output.remarks, []);
}

pub(crate) fn programs_that_are_killed_at_their_start_are_nobodys_business(user: Option<u32>) {
    // A process that is gone keeps no vDSO, and is no reason for a remark.
    let script = "for i in $(seq 300); do \"$0\" show > /dev/null & kill -KILL $!; done; wait";
    let output = shell(script).arg(unusual()).output(user).unwrap();
    assert_eq!(output.remarks, [], "{output:?}");
}

pub(crate) fn a_program_that_is_sent_a_trap_at_its_start_is_ended_or_right(user: Option<u32>) {
    let output = moved(&["traps", "600", "SELF", "clean"]).output(user).unwrap();
    assert_eq!(out(&output), "600\n", "{output:?}");
    assert_eq!(output.remarks, []);
}

/// What a program finds of the signals that were blocked, pending or ignored before its exec.
pub(crate) fn signals_without_us(what: &str) -> String {
    let program = unusual_static();
    let mut command = std::process::Command::new(&program);
    let output = command.arg(what).arg(&program).arg("signals").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn signals_that_are_held_back_or_ignored_are_so_over_an_exec(user: Option<u32>) {
    for (what, field) in [("holds-back", "SigPnd"), ("ignores", "SigIgn")] {
        let signals = signals_without_us(what);
        let set = signals.lines().find_map(|line| line.strip_prefix(field));
        let set = u64::from_str_radix(set.unwrap().trim(), 16).unwrap();
        assert!(set & 1 << (libc::SIGTRAP - 1) != 0, "{signals}");
        let output = moved(&[what, "SELF", "signals"]).output(user).unwrap();
        assert_eq!(out(&output), signals, "{what}: {output:?}");
        assert_eq!(output.remarks, []);
    }
}

pub(crate) fn an_exec_from_another_thread_is_followed(user: Option<u32>) {
    assert_moved(&moved(&["thread", "SELF", "show"]).output(user).unwrap());
}

pub(crate) fn an_exec_as_another_user_is_followed(user: Option<u32>) {
    assert_moved(&moved(&["user", "65533", "SELF", "show"]).output(user).unwrap());
}

pub(crate) fn a_program_without_descriptors_or_address_space_has_the_clock(user: Option<u32>) {
    let program = unusual_static();
    let itself = program.to_str().unwrap();
    let run = |what: &str| {
        let clock = Clock::At(i128::from(THERE) * 1_000_000_000);
        Command::new(&program).args([what, itself, "show"]).clock(clock).output(user).unwrap()
    };
    assert_moved(&run("descriptors"));
    let hard = run("hard");
    // CAP_SYS_RESOURCE makes room, which also root may lack.
    if out(&hard).ends_with(" host\n") {
        assert!(warning(&hard).contains("limit of descriptors"), "{hard:?}");
    } else {
        assert_moved(&hard);
    }
    assert_moved(&moved(&["space"]).output(user).unwrap());
}

pub(crate) fn too_little_address_space_for_the_image_is_named(user: Option<u32>) {
    // Enough for the program, not for the page and the image beside it.
    let program = unusual_static();
    let clock = Clock::At(i128::from(THERE) * 1_000_000_000);
    let found = (500..2_000).step_by(4).find_map(|kilobytes| {
        let script = format!("ulimit -v {kilobytes}; exec \"$0\" show");
        let command = Command::new("sh").arg("-c").arg(script).arg(&program).clock(clock);
        let output = command.output(user).unwrap();
        (!output.stdout.is_empty()).then_some(output)
    });
    let output = found.expect("the program runs in two megabytes");
    let on_host = out(&output).ends_with(" host\n");
    assert!(on_host == warning(&output).contains("mmap"), "{output:?}");
}

pub(crate) fn the_image_can_be_unmapped(user: Option<u32>) {
    let output = moved(&["unmap"]).output(user).unwrap();
    assert_eq!(output.outcome.status, Status::Exited(0), "{output:?}");
}

pub(crate) fn the_vsyscall_page_has_the_hosts_time_and_is_not_counted(user: Option<u32>) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let has_page = maps.contains("[vsyscall]");
    let before = tests::kernel::clock_gettime(libc::CLOCK_REALTIME).0;
    let output = moved(&["vsyscall"]).count(true).output(user).unwrap();
    if !has_page {
        // Linux with vsyscall=none: nothing is there, with or without a launcher.
        assert_eq!(output.outcome.status, Status::Signaled(libc::SIGSEGV), "{output:?}");
        return;
    }
    // The kernel serves it, by a fault that is no system call and that no tracer sees.
    let text = out(&output);
    let (seconds, place) = text.trim().split_once(' ').unwrap();
    let seconds: i64 = seconds.parse().unwrap();
    assert!((before - 1..before + 100).contains(&seconds), "{seconds} is not the host's time");
    assert_eq!((place, output.outcome.calls.total()), ("image", 0), "{output:?}");
}

pub(crate) fn a_32_bit_program_runs_and_is_named(user: Option<u32>) {
    let program = guest("launch_32bit", "-m32 -static -nostdlib -ffreestanding -fno-pie -no-pie");
    let output = Command::new(&program).output(user).unwrap();
    assert_eq!(output.outcome.status, Status::Exited(7), "{output:?}");
    let said = warning(&output);
    assert!(said.contains("32-bit") && said.contains("launch_32bit"), "{said}");
    assert!(said.contains("run puts 64-bit ones alone on an image"), "{said}");
    assert!(said.contains(" asks to be traced"), "{said}");
}

pub(crate) fn a_program_that_asks_to_be_traced_is_told_of_detach(user: Option<u32>) {
    let command = moved(&["traceme"]);
    let output = command.output(user).unwrap();
    assert_eq!(out(&output), "Operation not permitted image\n");
    let said = warning(&output);
    assert!(said.contains(" asks to be traced"), "{said}");
    assert!(said.contains("EPERM") && said.contains("--detach"), "{said}");
    let output = command.detach(true).output(user).unwrap();
    assert_eq!(out(&output), "traced image\n");
    assert_eq!(output.remarks, []);
}

pub(crate) fn a_program_that_traces_its_children_is_told_of_detach_once(user: Option<u32>) {
    for what in ["traces", "seizes"] {
        let command = moved(&[what]);
        let output = command.output(user).unwrap();
        assert_eq!(out(&output), "Operation not permitted image\n", "{output:?}");
        let said = warning(&output);
        let asks =
            if what == "traces" { "asks to be traced" } else { "asks to trace another process" };
        assert_eq!(said.matches(asks).count(), 1, "{said}");
        assert!(said.contains("--detach"), "{said}");
        let output = command.detach(true).output(user).unwrap();
        assert_eq!(out(&output), "traced image\n");
        assert_eq!(output.remarks, []);
    }
    // One that was never ours is none of our business.
    let output = moved(&["seizes", "1"]).output(user).unwrap();
    assert_eq!(output.remarks, [], "{output:?}");
}

pub(crate) fn a_debugger_is_told_of_detach(user: Option<u32>) {
    let strace = shell("exec strace -o /dev/null true");
    let output = strace.output(user).unwrap();
    let said = warning(&output);
    assert!(said.contains("strace asks to") && said.contains("--detach"), "{output:?}");
    let output = Command::new("strace").args(["-qq", "-e", "trace=none", "date", "+%s"]);
    let output = output.detach(true).output(user).unwrap();
    assert_eq!(output.outcome.status, Status::Exited(0), "{output:?}");
}

/// What this program is told to do inside a run.
pub(crate) const NESTED: &str = "--nested";

pub(crate) fn a_run_inside_a_run_is_told_of_detach(user: Option<u32>) {
    let this = std::env::current_exe().unwrap().into();
    let program = copy(&this, &format!("nested-{user:?}"), 0o755);
    let command = Command::new(&program).args(["--alone", NESTED]);
    let output = command.output(user).unwrap();
    assert_eq!(out(&output), "refused\n", "{output:?}");
    let said = warning(&output);
    assert!(said.starts_with("a run inside this run cannot trace its program"), "{said}");
    assert!(said.ends_with("start the outer one with --detach"), "{said}");
    let output = command.detach(true).output(user).unwrap();
    assert_eq!(out(&output), "ran\n", "{output:?}");
    assert_eq!(output.remarks, []);
}

/// Runs a program, and says how that went.
pub(crate) fn nested() -> ExitCode {
    match Command::new("true").output(None) {
        Err(error @ LaunchError::NoTracing(_)) => {
            assert!(error.to_string().ends_with("a run around it needs --detach"), "{error}");
            println!("refused");
        }
        Ok(output) if output.outcome.status.success() => println!("ran"),
        other => panic!("{other:?}"),
    }
    ExitCode::SUCCESS
}

fn set_user_id(name: &str) -> Command {
    let program = copy(&unusual(), name, 0o4755);
    Command::new(&program).arg("show").clock(Clock::At(i128::from(THERE) * 1_000_000_000))
}

pub(crate) fn a_set_user_id_program_has_the_clock(user: Option<u32>) {
    assert_moved(&set_user_id("set-user-id").output(user).unwrap());
}

pub(crate) fn a_set_user_id_program_is_named(user: Option<u32>) {
    // The kernel runs it as who launched it.
    let output = set_user_id("set-user-id-named").output(user).unwrap();
    assert!(out(&output).ends_with(" image\n"), "{output:?}");
    assert!(warning(&output).contains("set-user-ID"), "{output:?}");
}

pub(crate) fn a_program_with_file_capabilities_is_named(user: Option<u32>) {
    let program = copy(&unusual(), "capable", 0o755);
    // CAP_NET_RAW, permitted and effective (`struct vfs_cap_data`, second revision).
    let words: [u32; 5] = [0x0200_0001, 1 << 13, 0, 0, 0];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let path = CString::new(program.as_os_str().as_bytes()).unwrap();
    let name = c"security.capability".as_ptr();
    // SAFETY: two strings that end in a zero, and live bytes.
    let set = unsafe { libc::setxattr(path.as_ptr(), name, bytes.as_ptr().cast(), bytes.len(), 0) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    let output = Command::new(&program).arg("show").output(user).unwrap();
    assert!(out(&output).ends_with(" image\n"), "{output:?}");
    assert!(warning(&output).contains("capable has file capabilities"), "{output:?}");
}

pub(crate) fn a_program_in_a_time_namespace_keeps_its_clocks_and_is_named(user: Option<u32>) {
    let unshare = ["--time", "--monotonic", "5000", "--fork"];
    let inside = Command::new("unshare").args(unshare).arg(unusual()).arg("apart");
    let output = inside.output(user).unwrap();
    let text = out(&output);
    assert!(text == "0 host\n" || text == "1 host\n", "{output:?}");
    assert!(warning(&output).contains("time namespace"), "{output:?}");
    let output = Command::new(unusual()).arg("apart").output(user).unwrap();
    assert!(out(&output).ends_with(" image\n") && output.remarks.is_empty(), "{output:?}");
}

/// What this program is told to try where it must not succeed.
pub(crate) const IN_VAIN: &str = "--in-vain";

pub(crate) fn another_namespaces_proc_and_none_are_named(_: Option<u32>) {
    let this = std::env::current_exe().unwrap();
    let as_is = "exec \"$0\" --alone --in-vain";
    for script in [as_is, &format!("umount --lazy /proc; {as_is}")] {
        // A process 1 whose /proc has another one.
        let mut unshare = std::process::Command::new("unshare");
        unshare.args(["--pid", "--fork", "--mount", "sh", "-c", script]).arg(&this);
        let output = unshare.output().unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
    }
}

/// Succeeds if nothing can be launched, for want of a `/proc`.
pub(crate) fn in_vain() -> ExitCode {
    match Command::new("true").output(None) {
        Err(LaunchError::NoProc) => ExitCode::SUCCESS,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn a_limit_of_file_sizes_is_named(user: Option<u32>) {
    // The limit is the command's own, so this process starts it with one.
    let limited = || {
        let limit = libc::rlimit { rlim_cur: 1024, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: a live limit.
        unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
        match Command::new("true").output(user) {
            Err(error) if error.to_string().contains("ulimit -f") => 0,
            _ => 1,
        }
    };
    assert_eq!(tests::child::outcome(limited), tests::child::Outcome::Exited(0));
}

pub(crate) fn an_unreadable_program_is_named(user: Option<u32>) {
    let program = copy(&unusual(), "unreadable", 0o711);
    let output = Command::new(&program).arg("show").output(user).unwrap();
    assert!(out(&output).ends_with(" host\n"), "{output:?}");
    assert!(warning(&output).contains("unreadable"), "{output:?}");
}

pub(crate) fn valgrind_runs_with_the_hosts_time(user: Option<u32>) {
    // It hides the vDSO from its program, which then asks the kernel.
    let command = Command::new("valgrind").args(["-q", "--tool=none"]).arg(unusual()).arg("show");
    let output = command.output(user).unwrap();
    assert_eq!(output.outcome.status, Status::Exited(0), "{output:?}");
    assert!(warning(&output).contains("valgrind hides every vDSO"), "{output:?}");
}

pub(crate) fn two_hundred_programs_at_once_see_one_clock(user: Option<u32>) {
    let itself = unusual();
    let itself = itself.to_str().unwrap();
    // Not at once, so that a clock that began anew for each program would be seen.
    let script =
        format!("sleep 2; for i in $(seq 200); do {itself} place & done; wait; {itself} place");
    let clock = Clock::At(i128::from(THERE) * 1_000_000_000);
    let output = shell(&script).clock(clock).output(user).unwrap();
    let text = out(&output);
    let all: Vec<[&str; 4]> =
        text.lines().map(|line| line.split(' ').collect::<Vec<_>>().try_into().unwrap()).collect();
    assert_eq!(all.len(), 201, "{output:?}");
    let [_, file, last, _] = all[200];
    let last: i64 = last.parse().unwrap();
    let moved: Vec<i64> = all.iter().map(|[moved, ..]| moved.parse().unwrap()).collect();
    for [_, its_file, seconds, place] in &all {
        let seconds: i64 = seconds.parse().unwrap();
        assert!((THERE + 2..=last).contains(&seconds) && *place == "image", "{text}");
        // One page, and not one for each with the same offset.
        assert!(*its_file == file && file.contains(':'), "{text}");
    }
    let apart = moved.iter().max().unwrap() - moved.iter().min().unwrap();
    assert!(apart < 2_000_000, "they are up to {apart} ns apart: {text}");
}

pub(crate) fn a_child_that_hides_from_tracers_has_the_hosts_time_after_an_exec(user: Option<u32>) {
    // `CLONE_UNTRACED`: the kernel tells no tracer of it.
    let before = tests::kernel::clock_gettime(libc::CLOCK_REALTIME).0;
    let output = moved(&["untraced", "SELF", "show"]).output(user).unwrap();
    let text = out(&output);
    let seconds: i64 = text.strip_suffix(" host\n").unwrap().parse().unwrap();
    let after = tests::kernel::clock_gettime(libc::CLOCK_REALTIME).0;
    assert!((before..=after).contains(&seconds), "{output:?}");
    assert_eq!(output.remarks, []);
}
