//! Programs under a seccomp filter of their own: each works, or is told what is the matter.
//!
//! What is tried follows from [`InjectedCall`]: every call that is made for a program when it is put
//! on the image, with every answer that a filter can give by itself.

use kernel_sim::launch::{Command, InjectedCall, Output, Status};

use crate::failure::start;
use crate::shell;
use crate::unusual::{
    assert_moved, moved, moved_with, out, said, signals_without_us, unusual_static,
};

const KILLS: [&str; 2] = ["kill-process", "kill-thread"];

/// Each with how it reads in what is said.
const REFUSALS: [(&str, &str); 3] =
    [("errno", "EPERM"), ("errno-512", "EINTR"), ("trap", "SIGSYS")];

/// Words that forbid a call, and have the launcher come to it.
fn forbidding(action: &str, call: InjectedCall) -> Vec<String> {
    let mut words = Vec::new();
    if call == InjectedCall::Close {
        words.extend(filter("errno", InjectedCall::CloseRange));
    }
    words.extend(filter(action, call));
    words.push("show".to_owned());
    words
}

fn filter(action: &str, call: InjectedCall) -> [String; 4] {
    ["filter", action, &call.number().to_string(), "SELF"].map(str::to_owned)
}

/// The same for one kind of mapping. The page is mapped first, then the code beside it.
fn mapping(action: &str, protection: i32) -> [String; 4] {
    let call = format!("{}:{protection}", InjectedCall::Map.number());
    ["filter", action, &call, "SELF"].map(str::to_owned)
}

const PAGE: i32 = libc::PROT_READ;
const CODE: i32 = libc::PROT_READ | libc::PROT_EXEC;

/// A program that makes none of the calls itself, as one with a dynamic C library would.
fn under_filter(words: &[String]) -> Command {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    moved_with(&unusual_static(), &words)
}

/// Where a program that is refused a call has its time from, and what is said of that.
fn refused(call: InjectedCall) -> (&'static str, Option<&'static str>) {
    match call {
        InjectedCall::SocketPair | InjectedCall::ReceiveMessage | InjectedCall::Map => {
            ("host", Some("keeps the host's vDSO, and so the host's time"))
        }
        InjectedCall::SetLayout => ("image", Some("asks the kernel for its auxiliary vector")),
        InjectedCall::Unmap => ("image", Some("stays mapped beside the image")),
        // Each descriptor is closed by itself then.
        InjectedCall::CloseRange => ("image", None),
        InjectedCall::Close => ("image", Some("three descriptors of this command stay open")),
    }
}

/// Asserts that it is told which program it is, and what a filter has to allow.
fn assert_explained(said: &str) {
    let names = InjectedCall::ALL.iter().map(|call| call.name());
    let needed = ["launch_unusual", "its seccomp filter", "root suspends its filter"];
    let missing: Vec<&str> = names.chain(needed).filter(|word| !said.contains(word)).collect();
    assert!(missing.is_empty() && said.lines().count() == 1, "no {missing:?} in: {said}");
}

fn assert_killed_by(output: &Output, call: InjectedCall) {
    assert_eq!(output.outcome.status, Status::Signaled(libc::SIGSYS), "{call}: {output:?}");
    let said = said(output);
    let cause = format!(" was ended by its seccomp filter, which forbids {call}: ");
    assert!(said.contains(&cause), "{call}: {said}");
    assert_explained(&said);
}

fn assert_refused(output: &Output, call: InjectedCall, answer: &str) {
    assert_eq!(output.outcome.status, Status::Exited(0), "{call}: {output:?}");
    let (place, consequence) = refused(call);
    assert!(out(output).ends_with(&format!(" {place}\n")), "{call}: {output:?}");
    match consequence {
        Some(consequence) => {
            let said = said(output);
            let cause = format!("{call}: {answer}");
            assert!(said.contains(consequence) && said.contains(&cause), "{call}: {said}");
            assert_explained(&said);
        }
        None => assert_eq!(output.remarks, [], "{call}"),
    }
}

pub(crate) fn a_filter_against_clock_calls_does_not_matter(user: Option<u32>) {
    for call in [libc::SYS_clock_gettime, libc::SYS_gettimeofday] {
        for action in ["errno", "kill-process"] {
            let words = ["filter", action, &call.to_string(), "SELF", "show"];
            assert_moved(&moved(&words).output(user).unwrap());
        }
    }
}

pub(crate) fn a_filter_against_being_put_on_the_image_is_suspended(user: Option<u32>) {
    for &call in InjectedCall::ALL {
        for action in
            ["errno", "errno-0", "errno-512", "trap", "trace", "kill-thread", "kill-process"]
        {
            assert_moved(&under_filter(&forbidding(action, call)).output(user).unwrap());
        }
    }
}

pub(crate) fn a_filter_against_being_put_on_the_image_is_named(user: Option<u32>) {
    for &call in InjectedCall::ALL {
        for action in KILLS {
            let output = under_filter(&forbidding(action, call)).output(user).unwrap();
            assert_killed_by(&output, call);
        }
        for (action, answer) in REFUSALS {
            let output = under_filter(&forbidding(action, call)).output(user).unwrap();
            assert_refused(&output, call, answer);
        }
    }
}

pub(crate) fn a_filter_is_named_at_whatever_moment_it_forbids_a_call(user: Option<u32>) {
    let run = |first: &[String], then: &[String]| {
        under_filter(&[first, then].concat()).output(user).unwrap()
    };
    let show = ["show".to_owned()];
    for protection in [PAGE, CODE] {
        for action in KILLS {
            assert_killed_by(&run(&mapping(action, protection), &show), InjectedCall::Map);
        }
        for (action, answer) in REFUSALS {
            let output = run(&mapping(action, protection), &show);
            assert_refused(&output, InjectedCall::Map, answer);
        }
    }
    // While what was made for a call that failed is taken back. Then that call is the cause, unless
    // the program does not outlive it. The second filter is set by a program under the first.
    let receive = filter("errno", InjectedCall::ReceiveMessage);
    for (failed, failing, taken_back) in [
        (InjectedCall::ReceiveMessage, receive, InjectedCall::Close),
        (InjectedCall::Map, mapping("errno", CODE), InjectedCall::Unmap),
    ] {
        let output = run(&filter("trap", taken_back), &[&failing[..], &show].concat());
        let cause = format!("host's time: {failed}: EPERM");
        assert!(said(&output).contains(&cause), "{output:?}");
        let output = run(&failing, &[&filter("kill-thread", taken_back)[..], &show].concat());
        assert_eq!(output.outcome.status, Status::Signaled(libc::SIGSYS), "{output:?}");
        let said = said(&output);
        let end = format!(" was ended by its seccomp filter, which forbids {taken_back}: ");
        assert!(said.contains(&cause) && said.contains(&end), "{said}");
    }
}

pub(crate) fn a_filter_that_claims_success_is_named_where_that_matters(user: Option<u32>) {
    let is_harmless =
        |call| matches!(call, InjectedCall::Unmap | InjectedCall::CloseRange | InjectedCall::Close);
    for &call in InjectedCall::ALL {
        let output = under_filter(&forbidding("errno-0", call)).output(user).unwrap();
        if is_harmless(call) {
            assert_moved(&output);
        } else {
            assert_refused(&output, call, "it has no effect");
        }
    }
    for protection in [PAGE, CODE] {
        let words = [&mapping("errno-0", protection)[..], &["show".to_owned()]].concat();
        let output = under_filter(&words).output(user).unwrap();
        assert_refused(&output, InjectedCall::Map, "it has no effect");
    }
    // What is no descriptor of ours is not closed.
    let socket_pair = InjectedCall::SocketPair.number().to_string();
    let script =
        "\"$0\" filter errno-0 \"$1\" sh -c 'test -e /proc/self/fd/0 && echo open' < /dev/null";
    let output = shell(script).arg(unusual_static()).arg(socket_pair).output(user).unwrap();
    assert_eq!(out(&output), "open\n", "{output:?}");
}

pub(crate) fn a_program_that_its_filter_ends_is_named_beside_others(user: Option<u32>) {
    let call = InjectedCall::ReceiveMessage;
    let script = "\"$0\" filter kill-process \"$1\" \"$0\" show; echo $?";
    let command = shell(script).arg(unusual_static()).arg(call.number().to_string());
    let output = command.output(user).unwrap();
    assert_eq!(out(&output), "159\n", "{output:?}");
    assert!(said(&output).contains(" which forbids recvmsg: "), "{output:?}");
}

pub(crate) fn a_filter_that_leaves_being_put_on_the_image_to_a_tracer_finds_it(user: Option<u32>) {
    for &call in InjectedCall::ALL {
        assert_moved(&under_filter(&forbidding("trace", call)).output(user).unwrap());
    }
}

pub(crate) fn a_filter_that_asks_another_process_has_its_answer(user: Option<u32>) {
    // The launcher follows the process that is asked as well, and counts its calls.
    for is_counted in [false, true] {
        // Of Close nobody is asked, because the other call does.
        for &call in InjectedCall::ALL {
            let run = |answer: &str| {
                let number = call.number().to_string();
                let words = ["notifies", answer, &number, "SELF", "show"].map(str::to_owned);
                start(under_filter(&words).count(is_counted), user)()
            };
            assert_moved(&run("continue"));
            assert_moved(&run("interrupts"));
            assert_moved(&run("disturbs"));
            let output = run("errno");
            if user.is_none() || call == InjectedCall::Close {
                assert_moved(&output);
            } else {
                assert_refused(&output, call, "EPERM");
            }
        }
    }
}

pub(crate) fn a_program_that_a_filter_leaves_waiting_can_be_ended(user: Option<u32>) {
    for &call in InjectedCall::ALL {
        let number = call.number().to_string();
        let words = ["notifies", "terminates", &number, "SELF", "show"].map(str::to_owned);
        let output = start(under_filter(&words), user)();
        if call == InjectedCall::Close {
            assert_moved(&output);
        } else {
            assert_eq!(output.outcome.status, Status::Exited(0), "{call}: {output:?}");
            assert_eq!((out(&output), output.remarks), (String::new(), Vec::new()), "{call}");
        }
    }
}

pub(crate) fn signals_that_a_program_holds_back_are_kept_when_a_filter_traps(user: Option<u32>) {
    for &call in InjectedCall::ALL {
        let mut words = forbidding("trap", call);
        words.pop();
        words.extend(["holds-back", "SELF", "signals"].map(str::to_owned));
        let output = under_filter(&words).output(user).unwrap();
        assert_eq!(out(&output), signals_without_us("holds-back"), "{call}: {output:?}");
    }
}

pub(crate) fn a_filter_against_being_put_on_the_image_is_no_matter_without_it(_: Option<u32>) {
    // Else it would be the program's own call of which the others tell.
    for &call in InjectedCall::ALL {
        let program = unusual_static();
        let words = forbidding("kill-process", call);
        let itself = program.to_str().unwrap();
        let words = words.iter().map(|word| if word == "SELF" { itself } else { word });
        let output = std::process::Command::new(&program).args(words).output().unwrap();
        assert!(output.status.success(), "{call}: {output:?}");
    }
}

pub(crate) fn a_filter_that_asks_a_tracer_finds_none(user: Option<u32>) {
    for is_counted in [false, true] {
        let output = moved(&["asks-tracer"]).count(is_counted).output(user).unwrap();
        assert_eq!(out(&output), "Function not implemented image\n", "{output:?}");
        assert_eq!(output.remarks, []);
    }
}
