//! A program of the same user cannot change the page.

use std::collections::BTreeMap;
use std::{fs, thread};

use kernel_sim::launch::{Command, Output, Status};

use crate::{guest, writable};
use tests::processes::Run;

/// How often each kind of attempt was made, and how often it succeeded.
type Kinds = BTreeMap<String, [u32; 2]>;

pub(crate) fn no_way_to_change_the_page_or_to_get_into_a_process_that_can(user: Option<u32>) {
    // Keeper, next keeper and tracer, beside the command.
    let kinds = attack(Command::new(guest("launch_attack", "")).arg("3"), user);
    assert_eq!(kinds["PTRACE_SEIZE"][0], 4);
}

pub(crate) fn no_way_for_a_program_that_was_let_go(user: Option<u32>) {
    // The tracer has nothing left to do.
    let command = Command::new(guest("launch_attack", "")).arg("2").detach(true);
    let kinds = attack(command, user);
    assert_eq!(kinds["PTRACE_SEIZE"][0], 3);
}

pub(crate) fn nobody_has_more_of_the_page_than_it_needs(user: Option<u32>) {
    let file = writable("needs");
    let command = Command::new(guest("launch_clocks", "")).arg(&file).arg("1000");
    let running = thread::spawn(move || command.output(user).unwrap());
    let run = Run::read(&file);
    // The writers have the mapping from before the seals, and a descriptor that cannot write.
    for pid in [run.command, run.keeper(), run.next_keeper()] {
        assert_eq!(mappings(pid), ["rw-s"]);
    }
    assert_eq!((mappings(run.tracer()), descriptors(run.tracer())), (vec![], vec![libc::O_RDONLY]));
    // Slots, and the image above them.
    assert_eq!(mappings(run.program), ["r--s", "r-xp"]);
    assert!(descriptors(run.program).is_empty());
    running.join().unwrap();
}

/// The access of each mapping of the page's file that a process has.
fn mappings(pid: i32) -> Vec<String> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let of_page = maps.lines().filter(|line| line.contains("/memfd:uvdso"));
    of_page.map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect()
}

/// The access mode of each descriptor of the page's file that a process has.
fn descriptors(pid: i32) -> Vec<i32> {
    let all = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let of_page = all.filter(|entry| {
        let target = fs::read_link(entry.path()).unwrap_or_default();
        target.display().to_string().starts_with("/memfd:uvdso")
    });
    let mode = |entry: fs::DirEntry| {
        let number = entry.file_name().into_string().unwrap();
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).unwrap();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
        i32::from_str_radix(flags.trim(), 8).unwrap() & libc::O_ACCMODE
    };
    of_page.map(mode).collect()
}

/// Asserts that no attempt succeeds.
fn attack(command: Command, user: Option<u32>) -> Kinds {
    let output = command.output(user).unwrap();
    let kinds = kinds(&output);
    assert!(kinds.values().all(|[made, succeeded]| *made > 0 && *succeeded == 0), "{output:?}");
    assert_eq!(output.outcome.status, Status::Exited(0), "{output:?}");
    kinds
}

pub(crate) fn every_attempt_succeeds_against_a_page_without_protection(user: Option<u32>) {
    let control = |user| {
        let control = Command::new(guest("launch_attack", "")).arg("--control").detach(true);
        let output = control.output(user).unwrap();
        assert_eq!(output.outcome.status, Status::Exited(1), "{output:?}");
        kinds(&output)
    };
    let (ordinary, root) = (control(user), control(None));
    // What the kernel allows nobody but root, whatever the page: so root makes the attempt.
    let of_root =
        ["opening its own map_files", "opening its own map_files for writing"].map(str::to_owned);
    for (kind, [made, succeeded]) in &ordinary {
        let by_whom = if of_root.contains(kind) { root[kind][1] } else { *succeeded };
        assert!(*made > 0 && by_whom > 0, "{kind}: {ordinary:?} {root:?}");
    }
    // Each kind that fails against the page is one of these.
    let followed = attack(Command::new(guest("launch_attack", "")).arg("3"), user);
    let detached = attack(Command::new(guest("launch_attack", "")).arg("2").detach(true), user);
    for kind in followed.keys().chain(detached.keys()) {
        assert!(ordinary.contains_key(kind), "{kind} is made without a control");
    }
    assert!(followed.len() > 40, "{followed:?}");
}

/// From lines such as `PTRACE_SEIZE: 4 made, 0 succeeded`.
fn kinds(output: &Output) -> Kinds {
    let said = String::from_utf8_lossy(&output.stdout);
    let kinds = said.lines().map(|line| {
        let (kind, counts) = line.rsplit_once(": ").unwrap_or_else(|| panic!("{said}"));
        let (made, succeeded) = counts.split_once(" made, ").unwrap_or_else(|| panic!("{said}"));
        let succeeded = succeeded.strip_suffix(" succeeded").unwrap();
        (kind.to_owned(), [made, succeeded].map(|count| count.parse().unwrap()))
    });
    kinds.collect()
}
