//! Programs with as much on their stack as there may be, or with as little room on it.

use kernel_sim::launch::{Clock, Command, Output, Status};

use crate::shell;
use crate::unusual::{THERE, assert_moved, moved, out, unusual, unusual_static};

/// FNV-1a of strings, each with a final zero.
fn sum<'a>(strings: impl IntoIterator<Item = &'a String>) -> String {
    let bytes = strings.into_iter().flat_map(|string| string.bytes().chain([0]));
    let add = |sum: u64, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    format!("{:x}", bytes.fold(0xcbf2_9ce4_8422_2325, add))
}

/// Asserts that a program had its arguments, its environment and the moved time, on the image.
fn assert_whole(mut output: Output, wanted: &str) {
    let text = out(&output);
    let (found, shown) = text.split_once(' ').unwrap_or_else(|| panic!("{output:?}"));
    assert_eq!(found, wanted, "{output:?}");
    output.stdout = shown.into();
    assert_moved(&output);
}

/// A run of `env` with this, which then executes the guest with the same.
fn with(arguments: &[String], environment: &[String]) -> Command {
    let command = Command::new("env").arg("-i").args(environment).arg(unusual()).arg("words");
    command.args(arguments).clock(clock())
}

fn clock() -> Clock {
    Clock::At(i128::from(THERE) * 1_000_000_000)
}

pub(crate) fn many_arguments_and_variables_are_whole_and_no_matter(user: Option<u32>) {
    let words = |count: u32| (0..count).map(|at| at.to_string()).collect::<Vec<_>>();
    let variables = |count: u32| (0..count).map(|at| format!("V{at}=x")).collect::<Vec<_>>();
    // Their table leaves room below the stack pointer up to some 15,000, and none beyond.
    let counts = [(0, 0), (14_000, 1), (15_000, 1), (20_000, 1), (100_000, 0), (3, 17_000)];
    for (arguments, environment) in counts {
        let (arguments, environment) = (words(arguments), variables(environment));
        let output = with(&arguments, &environment).output(user).unwrap();
        assert_whole(output, &sum(arguments.iter().chain(&environment)));
    }
}

const MORE: &str = "0123456789abcdef0123456789abcdef";

pub(crate) fn what_a_stack_holds_is_whole_wherever_its_pointer_stands(user: Option<u32>) {
    // Each 32 bytes more move the pointer by as much, through all of a page.
    let script = "word=; more=$1; for i in $(seq 128); do
        env -i \"$0\" words $word; word=$word$more; done";
    let guest = unusual();
    let words = ["fixed", "sh", "-c", script, guest.to_str().unwrap(), MORE];
    let mut output = moved(&words).output(user).unwrap();
    let text = out(&output);
    assert_eq!(text.lines().count(), 128, "{output:?}");
    let mut word = String::new();
    for line in text.lines() {
        let wanted = sum((!word.is_empty()).then_some(&word));
        output.stdout = line.into();
        assert_whole(output.clone(), &wanted);
        word.push_str(MORE);
    }
}

pub(crate) fn a_small_stack_is_no_matter(user: Option<u32>) {
    let program = unusual_static();
    for kilobytes in [4, 8, 12, 16, 20, 32, 64, 128, 132, 136, 256] {
        let script = format!("ulimit -s {kilobytes}; exec env -i \"$0\" words 1 2 3");
        let output = shell(&script).arg(&program).clock(clock()).output(user).unwrap();
        // The smallest may be too small for the program itself.
        if kilobytes < 32 && output.outcome.status == Status::Signaled(libc::SIGSEGV) {
            assert_eq!(output.remarks, [], "{output:?}");
            continue;
        }
        assert_whole(output, &sum(&["1", "2", "3"].map(str::to_owned)));
    }
}
