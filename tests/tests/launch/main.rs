//! The launcher under attack, under failure, and under programs that do unusual things.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod attack;
mod failure;
mod filter;
mod leftovers;
mod room;
mod runs;
mod unusual;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::LazyLock;

use kernel_sim::launch::Command;
use libtest_mimic::{Arguments, Completion, Trial};
use tests::skip::{missing, skip};
use tests::users::{self, User, needs_namespaces, needs_root};
use tests::workshop::{Workshop, finish};

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

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("--alone", words)) = words.split_first().map(|(first, rest)| (&**first, rest)) {
        return match words {
            [word] if word == unusual::IN_VAIN => unusual::in_vain(),
            [word] if word == unusual::NESTED => unusual::nested(),
            words => leftovers::alone(words),
        };
    }
    let mut arguments = Arguments::from_args();
    // A program forks from the harness; two at a time is what the machine has room for.
    arguments.test_threads = arguments.test_threads.or(Some(2));
    let conclusion = libtest_mimic::run(&arguments, trials());
    GUESTS.workshop.clear();
    conclusion.exit_code()
}

/// As whom a test runs its programs.
#[derive(Clone, Copy)]
enum By {
    /// As root and as an ordinary user, a test each.
    Each,
    /// As root.
    Root,
    /// As an ordinary user.
    Ordinary,
    /// As an ordinary user, after root has prepared it.
    Prepared,
    /// As root, in namespaces of their own.
    RootApart,
    /// As root and as an ordinary user, in namespaces that root has prepared.
    EachApart,
}

/// Tests by module, each named after its function, with its users and the tools that it needs.
macro_rules! trials {
    ($($module:ident { $($by:ident $name:ident $(needs $tool:literal)?),* $(,)? })*) => {
        fn trials() -> Vec<Trial> {
            let all = [$($(trials_of(
                concat!(stringify!($module), "::", stringify!($name)),
                By::$by,
                &[$($tool)?],
                $module::$name,
            )),*),*];
            all.into_iter().flatten().collect()
        }
    };
}

trials! {
    runs {
        Each a_pipeline_of_programs_has_the_hosts_time_without_a_system_call,
        Each each_kind_of_call_that_reaches_the_kernel_is_counted needs "perl",
        Each a_moved_clock_moves_at_every_exec_and_by_the_same_amount,
        Each a_date_that_no_page_can_hold_is_refused,
        Each status_and_signals_are_the_programs_own,
        Each a_program_that_cannot_be_executed_is_an_error_with_the_shells_code,
        Each descriptors_and_environment_are_as_without_us,
        Each a_detached_program_is_on_the_image_and_free,
    }
    attack {
        Ordinary no_way_to_change_the_page_or_to_get_into_a_process_that_can,
        Ordinary no_way_for_a_program_that_was_let_go,
        Prepared nobody_has_more_of_the_page_than_it_needs,
        Prepared every_attempt_succeeds_against_a_page_without_protection,
    }
    failure {
        Each a_killed_keeper_is_replaced_and_the_clocks_go_on,
        Each a_killed_command_leaves_every_clock_running_and_nothing_behind,
        Each a_keeper_is_replaced_although_the_command_is_dead,
        Each both_keepers_killed_at_once_are_replaced,
        Each a_stopped_keeper_or_tracer_is_continued,
        Each with_command_tracer_and_keeper_dead_no_call_hangs,
        Each a_run_that_does_not_end_ends_with_its_test,
        Each a_killed_tracer_ends_at_most_the_program_that_just_starts,
        Each a_program_that_outlives_the_first_keeps_its_clock_and_is_followed,
    }
    leftovers {
        RootApart a_stock_shows_each_kind_of_thing_that_is_left,
        EachApart nothing_is_left_of_a_run,
        Each no_keeper_is_left_to_another_after_a_storm_of_children,
    }
    filter {
        Each a_filter_against_clock_calls_does_not_matter,
        Root a_filter_against_being_put_on_the_image_is_suspended,
        Ordinary a_filter_against_being_put_on_the_image_is_named,
        Ordinary a_filter_is_named_at_whatever_moment_it_forbids_a_call,
        Ordinary a_filter_that_claims_success_is_named_where_that_matters,
        Ordinary a_program_that_its_filter_ends_is_named_beside_others,
        Ordinary a_filter_that_leaves_being_put_on_the_image_to_a_tracer_finds_it,
        Each a_filter_that_asks_another_process_has_its_answer,
        Ordinary a_program_that_a_filter_leaves_waiting_can_be_ended,
        Ordinary signals_that_a_program_holds_back_are_kept_when_a_filter_traps,
        Ordinary a_filter_against_being_put_on_the_image_is_no_matter_without_it,
        Each a_filter_that_asks_a_tracer_finds_none,
    }
    room {
        Each many_arguments_and_variables_are_whole_and_no_matter,
        Each what_a_stack_holds_is_whole_wherever_its_pointer_stands,
        Each a_small_stack_is_no_matter,
    }
    unusual {
        Each a_thousand_children_have_the_clock,
        Each a_program_that_is_stopped_at_its_start_can_be_continued,
        Each programs_that_are_killed_at_their_start_are_nobodys_business,
        Each a_program_that_is_sent_a_trap_at_its_start_is_ended_or_right,
        Each signals_that_are_held_back_or_ignored_are_so_over_an_exec,
        Each a_limit_of_file_sizes_is_named,
        RootApart another_namespaces_proc_and_none_are_named,
        RootApart a_program_in_a_time_namespace_keeps_its_clocks_and_is_named,
        Each an_exec_from_another_thread_is_followed,
        Root an_exec_as_another_user_is_followed,
        Each a_program_without_descriptors_or_address_space_has_the_clock,
        Each too_little_address_space_for_the_image_is_named,
        Each the_image_can_be_unmapped,
        Each the_vsyscall_page_has_the_hosts_time_and_is_not_counted,
        Each a_32_bit_program_runs_and_is_named,
        Each a_program_that_asks_to_be_traced_is_told_of_detach,
        Each a_program_that_traces_its_children_is_told_of_detach_once,
        Each a_run_inside_a_run_is_told_of_detach,
        Each a_debugger_is_told_of_detach needs "strace",
        Root a_set_user_id_program_has_the_clock,
        Ordinary a_set_user_id_program_is_named,
        Prepared a_program_with_file_capabilities_is_named,
        Prepared an_unreadable_program_is_named,
        Each valgrind_runs_with_the_hosts_time needs "valgrind",
        Each two_hundred_programs_at_once_see_one_clock,
        Each a_child_that_hides_from_tracers_has_the_hosts_time_after_an_exec,
    }
}

fn trials_of(
    name: &str,
    by: By,
    needs: &'static [&'static str],
    run: fn(Option<u32>),
) -> Vec<Trial> {
    let users = match by {
        By::Each | By::EachApart => vec![User::Root, User::Ordinary],
        By::Root | By::RootApart => vec![User::Root],
        By::Ordinary | By::Prepared => vec![User::Ordinary],
    };
    let trial = |user: User| {
        Trial::ignorable_test(format!("{name} as {}", user.name()), move || {
            let prepared = || match by {
                By::Prepared => needs_root(),
                By::RootApart | By::EachApart => needs_root().or_else(needs_namespaces),
                By::Each | By::Root | By::Ordinary => None,
            };
            match users::missing(user).or_else(prepared).or_else(|| missing(needs)) {
                Some(reason) => skip(&reason),
                None => {
                    run(user.id());
                    Ok(Completion::Completed)
                }
            }
        })
    };
    users.into_iter().map(trial).collect()
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

/// A program's copy. Another process makes it: what a test beside this one forks would inherit a
/// descriptor of it that can write, and while it lives nobody can exec the copy.
fn copy(from: &OsString, name: &str, mode: u32) -> PathBuf {
    let to = GUESTS.workshop.path(name);
    let mut install = std::process::Command::new("install");
    finish(install.arg(format!("--mode={mode:o}")).arg(from).arg(&to)).unwrap();
    to
}
