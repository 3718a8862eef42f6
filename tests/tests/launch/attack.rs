//! A program of the same user cannot change the page.

use kernel_sim::launch::{Command, Status};

use crate::{guest, ordinary_user};

pub(crate) fn no_way_to_change_the_page_or_to_get_into_a_process_that_can() {
    let attack = guest("launch_attack", "");
    let output = Command::new(&attack).output(ordinary_user()).unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.outcome.status, Status::Exited(0), "{said}");
    // Four processes with some 130 attempts each, and the program's own mapping.
    let attempts: u32 = said.split_whitespace().next().unwrap().parse().unwrap();
    assert!(attempts > 400, "{said}");
}

pub(crate) fn the_same_attempts_succeed_against_a_process_without_protection() {
    let attack = guest("launch_attack", "");
    let control = Command::new(&attack).arg("--control").detach(true);
    let output = control.output(ordinary_user()).unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.outcome.status, Status::Exited(1), "{said}");
    for way in ["PTRACE_SEIZE", "process_vm_writev", "/proc/PID/mem for writing", "pidfd_getfd"] {
        assert!(said.contains(&format!("SUCCEEDED: {way} ")), "{way}: {said}");
    }
}
