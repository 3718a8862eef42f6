//! `kernel-sim image check --drive`: the image's code runs in a child, which may die of it.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::{Context as _, bail};
use kernel_sim::drive::{Drive, NEIGHBOURS, ids};
use linker::Image;
use linker::judge::{Arch, ImageFile};

use super::print_wrapped;
use super::ward::{Next, Ward};

/// The most differences that are shown.
const SHOWN: usize = 20;

/// How long the child may take before its first call, which is none of the image's doing.
const READY: Duration = Duration::from_secs(60);

/// What the child said, and how it came to its end.
struct Heard {
    /// The last call that it was about to make; empty before the first one.
    last: String,
    /// Wrong answers, of which the first are shown.
    wrong: usize,
    shown: Vec<String>,
    end: End,
}

enum End {
    /// All calls were made: how many, and on how many pages.
    Driven(String, String),
    /// One of them did more than return, in words that stand before it.
    Stopped(String),
    /// The child could not go on, for its own reason.
    Error(String),
}

/// Drives `file` in a child, which is ended `limit` seconds after its first call, and prints what it
/// finds.
pub(super) fn run(name: &str, file: &ImageFile<'static>, limit: u32) -> anyhow::Result<ExitCode> {
    let drive = drive_of(file).with_context(|| format!("{name} cannot be driven"))?;
    announce(&drive);
    let mut command = Command::new(std::env::current_exe().context("finding this program")?);
    let parent = std::process::id().to_string();
    command.args(["image", "check", "--drive", "--driven", &parent]);
    let Heard { last, wrong, shown, end } =
        hear(Ward::start(&mut command, file.bytes, READY)?, limit)?;
    for difference in &shown {
        println!("differs  {difference}");
    }
    if wrong > shown.len() {
        println!("and {} more", wrong - shown.len());
    }
    match end {
        End::Driven(calls, pages) => {
            println!("driven: {calls} calls on {pages} pages, {wrong} wrong answers");
            return Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        // None of the image's code has run, so nothing is said of it.
        End::Stopped(how) if last.is_empty() => {
            bail!("{name} cannot be driven: the child {how} its beginning")
        }
        End::Stopped(how) => println!("driven: {how} {last}"),
        End::Error(error) if wrong == 0 => bail!("{name} cannot be driven: {error}"),
        End::Error(error) => println!("driven: no further than {last}: {error}"),
    }
    Ok(ExitCode::FAILURE)
}

/// Listens to the child until there is no more to hear, and ends it.
fn hear(mut ward: Ward, limit: u32) -> anyhow::Result<Heard> {
    let (mut last, mut made) = (String::new(), None);
    let (mut wrong, mut shown) = (0, Vec::new());
    let end = loop {
        let line = match ward.next()? {
            Next::Said(line) => line,
            Next::Ended => break None,
            Next::Late if last.is_empty() => {
                break Some(End::Stopped(format!("took {} seconds for", READY.as_secs())));
            }
            Next::Late => {
                break Some(End::Stopped(format!("did not return within {limit} seconds from")));
            }
        };
        match line.split_once(' ') {
            Some(("c", call)) => {
                if last.is_empty() {
                    ward.give(Duration::from_secs(limit.into()));
                }
                call.clone_into(&mut last);
            }
            Some(("d", what)) => {
                wrong += 1;
                if shown.len() < SHOWN {
                    shown.push(format!("{last}: {what}"));
                }
            }
            Some(("n", numbers)) => {
                made = numbers.split_once(' ').map(|(c, p)| [c, p].map(str::to_owned));
            }
            Some(("e", error)) => break Some(End::Error(error.to_owned())),
            _ if line == "f" => {
                break Some(End::Stopped("left another process behind in".to_owned()));
            }
            _ => break Some(End::Stopped(format!("wrote {line:?} to the output in"))),
        }
    };
    let status = ward.end()?;
    let end = end.unwrap_or_else(|| match made {
        Some([calls, pages]) if status.success() => End::Driven(calls, pages),
        _ => End::Stopped(ended(status)),
    });
    Ok(Heard { last, wrong, shown, end })
}

/// How a process ended by itself.
fn ended(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was ended by signal {signal} in"),
        (None, code) => format!("ended the process with exit code {} in", code.unwrap_or(0)),
    }
}

/// What an image has to be for it: of this machine, and one that says how its page is laid out.
pub(super) fn drive_of(file: &ImageFile<'static>) -> anyhow::Result<Drive> {
    if file.arch != Arch::X86_64 {
        bail!("it is for {}, and its code would have to run on this x86_64", file.arch.name());
    }
    Ok(Drive::of(&Image::of_file(file)?)?)
}

/// Says what is called.
fn announce(drive: &Drive) {
    let [first, last] = [NEIGHBOURS.start(), NEIGHBOURS.end()];
    println!();
    print_wrapped("drives", "functions", &drive.called().join(", "));
    print_wrapped(
        "",
        "clock ids",
        &format!(
            "{}: {first} to {last}, the ends of an i32, what a narrower type takes for a served \
             clock, CPU clocks of the process, clocks of descriptors; each also under an upper \
             half of its register that is not zero",
            ids().len()
        ),
    );
    print_wrapped(
        "",
        "pointers",
        "each NULL and not; for NULL in a clock_gettime that the page serves, a fault is wanted",
    );
    print_wrapped(
        "",
        "pages",
        "each clock mode, zeroed, unpublished, torn, all of these behind the page of a time \
         namespace, and each way of getcpu that this machine has",
    );
    if !drive.not_called().is_empty() {
        let what =
            format!("{}: what they have to do is not known here", drive.not_called().join(", "));
        print_wrapped("", "not called", &what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_another_machine_is_not_run_whatever_its_note_says() {
        let mut bytes = linker::SYSCALL.bytes.to_vec();
        // e_machine: EM_AARCH64.
        bytes[18..20].copy_from_slice(&183_u16.to_le_bytes());
        let file = ImageFile::read(bytes.leak()).expect("the same file");
        assert!(file.own_note().is_some());
        let error = drive_of(&file).expect_err("it is for another machine").to_string();
        assert!(error.contains("for aarch64"), "{error}");
        let file = ImageFile::read(linker::SYSCALL.bytes).expect("an image of this build");
        assert!(drive_of(&file).is_ok());
    }
}
