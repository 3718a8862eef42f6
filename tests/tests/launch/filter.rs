//! Programs under a seccomp filter of their own: each works, or is told what is the matter.
//!
//! What is tried follows from [`InjectedCall`]: every call that is made for a program when it is put
//! on the image, with every answer that a filter can give by itself.

use kernel_sim::launch::{Command, InjectedCall, Output, Status};

use crate::shell;
use crate::unusual::{assert_moved, moved, moved_with, out, said, unusual_static};

const KILLS: [&str; 2] = ["kill-process", "kill-thread"];

/// Each with how it reads in what is said.
const REFUSALS: [(&str, &str); 2] = [("errno", "EPERM"), ("trap", "SIGSYS")];

/// Words that forbid a call, and have the launcher come to it.
fn forbidding(action: &str, call: InjectedCall) -> Vec<String> {
    let filter = |action: &str, call: InjectedCall| {
        [String::from("filter"), action.to_owned(), call.number().to_string(), "SELF".to_owned()]
    };
    let mut words = Vec::new();
    if call == InjectedCall::Close {
        words.extend(filter("errno", InjectedCall::CloseRange));
    }
    words.extend(filter(action, call));
    words.push("show".to_owned());
    words
}

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
        InjectedCall::Close => ("image", Some("three descriptors open")),
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
        for action in ["errno", "trap", "trace", "kill-thread", "kill-process"] {
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
    // The page is mapped first, then the code beside it.
    for protection in [libc::PROT_READ, libc::PROT_READ | libc::PROT_EXEC] {
        let mapping = format!("{}:{protection}", InjectedCall::Map.number());
        let run = |action: &str| {
            let words = ["filter", action, &mapping, "SELF", "show"].map(str::to_owned);
            under_filter(&words).output(user).unwrap()
        };
        for action in KILLS {
            assert_killed_by(&run(action), InjectedCall::Map);
        }
        for (action, answer) in REFUSALS {
            assert_refused(&run(action), InjectedCall::Map, answer);
        }
    }
    // While what was made for a call that failed is taken back.
    let receive = InjectedCall::ReceiveMessage.number().to_string();
    let mut words = ["filter", "errno", &receive, "SELF"].map(str::to_owned).to_vec();
    words.extend(forbidding("kill-process", InjectedCall::Close));
    let output = under_filter(&words).output(user).unwrap();
    assert_eq!(output.outcome.status, Status::Signaled(libc::SIGSYS), "{output:?}");
    assert!(said(&output).contains(" which forbids close: "), "{output:?}");
    // In a program that another one waits for.
    let script = "\"$0\" filter kill-process \"$1\" \"$0\" show; echo $?";
    let output = shell(script).arg(unusual_static()).arg(receive).output(user).unwrap();
    assert_eq!(out(&output), "159\n", "{output:?}");
    assert!(said(&output).contains(" which forbids recvmsg: "), "{output:?}");
}

pub(crate) fn a_filter_that_leaves_being_put_on_the_image_to_a_tracer_finds_it(user: Option<u32>) {
    for &call in InjectedCall::ALL {
        assert_moved(&under_filter(&forbidding("trace", call)).output(user).unwrap());
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
