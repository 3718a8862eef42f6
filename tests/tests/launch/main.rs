//! The launcher under attack, under failure, and under programs that do unusual things.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod attack;
mod failure;
mod unusual;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use kernel_sim::launch::Command;
use libtest_mimic::{Arguments, Trial};
use tests::skip::{missing, skip};
use tests::workshop::Workshop;

/// Where the guests are, and where any user may write.
struct Guests {
    workshop: Workshop,
    writable: PathBuf,
}

static GUESTS: LazyLock<Guests> = LazyLock::new(|| {
    use std::os::unix::fs::PermissionsExt as _;
    let workshop = Workshop::new();
    let writable = workshop.path("writable");
    std::fs::create_dir(&writable).unwrap();
    std::fs::set_permissions(&writable, std::fs::Permissions::from_mode(0o777)).unwrap();
    Guests { workshop, writable }
});

fn main() {
    let mut arguments = Arguments::from_args();
    // A program forks from the harness; two at a time is what the machine has room for.
    arguments.test_threads = arguments.test_threads.or(Some(2));
    let conclusion = libtest_mimic::run(&arguments, trials());
    GUESTS.workshop.clear();
    conclusion.exit()
}

/// Tests by module, each named after its function, with the tools that it needs.
macro_rules! trials {
    ($($module:ident { $($name:ident $(needs $tool:literal)?),* $(,)? })*) => {
        fn trials() -> Vec<Trial> {
            vec![$($(trial(
                concat!(stringify!($module), "::", stringify!($name)),
                &[$($tool)?],
                $module::$name,
            )),*),*]
        }
    };
}

trials! {
    attack {
        no_way_to_change_the_page_or_to_get_into_a_process_that_can,
        the_same_attempts_succeed_against_a_process_without_protection,
    }
    failure {
        a_killed_keeper_is_replaced_and_the_clocks_go_on,
        a_killed_command_leaves_every_clock_running_and_nothing_behind,
        a_keeper_is_replaced_although_the_command_is_dead,
        both_keepers_killed_at_once_are_replaced,
        with_command_tracer_and_keeper_dead_no_call_hangs,
        a_program_that_outlives_the_first_keeps_its_clock_and_is_followed,
    }
    unusual {
        a_thousand_children_have_the_clock,
        an_exec_from_another_thread_and_as_another_user_is_followed,
        a_filter_against_clock_calls_does_not_matter,
        a_filter_against_being_put_on_the_image_is_named,
        a_program_without_descriptors_or_address_space_has_the_clock,
        too_little_address_space_for_the_image_is_named,
        the_image_can_be_unmapped,
        the_vsyscall_page_has_the_hosts_time_and_is_not_counted,
        a_32_bit_program_runs_and_is_named,
        a_program_that_asks_to_be_traced_is_told_of_detach,
        a_program_that_traces_its_children_is_told_of_detach_once,
        a_filter_that_asks_a_tracer_finds_none,
        a_debugger_is_told_of_detach needs "strace",
        a_set_user_id_program_runs_as_the_kernel_allows,
        an_unreadable_program_is_named,
        valgrind_runs_with_the_hosts_time needs "valgrind",
        two_hundred_programs_at_once_see_one_clock,
    }
}

fn trial(name: &str, needs: &'static [&'static str], run: fn()) -> Trial {
    let missing = missing(needs);
    Trial::ignorable_test(name, move || match missing {
        Some(reason) => skip(&reason),
        None => {
            run();
            Ok(libtest_mimic::Completion::Completed)
        }
    })
}

/// A guest written in C, compiled.
fn guest(name: &str, flags: &str) -> OsString {
    let source = format!("c/{name}.c");
    let out = format!("{name}{}", flags.replace([' ', '-'], "_"));
    if GUESTS.workshop.path(&out).exists() {
        return GUESTS.workshop.path(&out).into();
    }
    // Compiled under another name, because tests run side by side.
    let unique = format!("{out}.{:?}", std::thread::current().id());
    let command = format!("cc -O1 -Wall -Wextra -Werror {flags} -o OUT SRC");
    let made = GUESTS.workshop.compile(&unique, &source, command.replace("  ", " ").as_str());
    let made = made.unwrap().remove(0);
    std::fs::rename(&made, GUESTS.workshop.path(&out)).unwrap();
    GUESTS.workshop.path(&out).into()
}

fn writable(name: &str) -> PathBuf {
    GUESTS.writable.join(name)
}

fn shell(script: &str) -> Command {
    Command::new("sh").args(["-c", script])
}

fn copy(from: &OsString, name: &str, mode: u32) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let to = GUESTS.workshop.path(name);
    std::fs::copy(Path::new(from), &to).unwrap();
    std::fs::set_permissions(&to, std::fs::Permissions::from_mode(mode)).unwrap();
    to
}

/// An ordinary user, where the tests run as root and can become one.
fn users() -> Vec<Option<u32>> {
    if nix::unistd::geteuid().is_root() { vec![None, Some(65534)] } else { vec![None] }
}

/// The user for what root could do.
fn ordinary_user() -> Option<u32> {
    nix::unistd::geteuid().is_root().then_some(65534)
}
