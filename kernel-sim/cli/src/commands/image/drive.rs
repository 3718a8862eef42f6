//! `kernel-sim image check --drive`: the image's code runs in a child, which may die of it.
//!
//! The child gets the image as its input and says what it is about to call before it calls, so that
//! a crash or an endless loop has a name. Its lines: `c CALL`, `d DIFFERENCE`, and at the end
//! `n CALLS PAGES`, or `e ERROR` if it could not go on.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, bail};
use kernel_sim::drive::{Drive, Event, NEIGHBOURS, ids};
use linker::Image;
use linker::judge::{Arch, ImageFile};

use super::print_wrapped;

/// The most differences that are shown.
const SHOWN: usize = 20;

/// Drives `file` in a child, which is ended after `limit` seconds, and prints what it finds.
pub(crate) fn run(name: &str, file: &ImageFile<'static>, limit: u32) -> anyhow::Result<ExitCode> {
    let drive = drive_of(file).with_context(|| format!("{name} cannot be driven"))?;
    announce(&drive);
    let mut child = Command::new(std::env::current_exe().context("finding this program")?)
        .args(["image", "check", "--driven", "--drive", "--limit", &limit.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("starting the process that maps the image")?;
    let mut input = child.stdin.take().context("the child's input is a pipe")?;
    input.write_all(file.bytes).context("giving the child the image")?;
    drop(input);
    let output = child.stdout.take().context("the child's output is a pipe")?;
    let (mut last, mut made, mut differences) = (String::new(), None, Vec::new());
    for line in BufReader::new(output).lines() {
        let line = line.context("reading what the child says")?;
        match line.split_once(' ') {
            Some(("c", call)) => call.clone_into(&mut last),
            Some(("d", what)) => differences.push(format!("{last}: {what}")),
            Some(("n", numbers)) => {
                made = numbers.split_once(' ').map(|(c, p)| [c, p].map(str::to_owned))
            }
            Some(("e", error)) => bail!("driving {name}: {error}"),
            _ => bail!("the child said {line:?}"),
        }
    }
    let status = child.wait().context("waiting for the child")?;
    for difference in differences.iter().take(SHOWN) {
        println!("differs  {difference}");
    }
    if differences.len() > SHOWN {
        println!("and {} more", differences.len() - SHOWN);
    }
    let found = match (status.signal(), made) {
        (Some(libc::SIGALRM), _) => format!("did not return within {limit} seconds from {last}"),
        (Some(signal), _) => format!("was ended by signal {signal} in {last}"),
        (None, Some([calls, pages])) => {
            format!("{calls} calls on {pages} pages, {} wrong answers", differences.len())
        }
        (None, None) => bail!("the child ended with {status}"),
    };
    println!("driven: {found}");
    let is_good = status.success() && differences.is_empty();
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Drives the image that is this process's input: it is the child.
pub(crate) fn here(limit: u32) -> ExitCode {
    match drive_input(limit) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("e {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn drive_input(limit: u32) -> anyhow::Result<()> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).context("reading the image")?;
    // Kept for the rest of the process, which does nothing else.
    let drive = drive_of(&ImageFile::read(bytes.leak())?)?;
    // SAFETY: arms a timer of this process, which has no handler for it.
    unsafe { libc::alarm(limit) };
    let made = drive.run(|event| match event {
        Event::Call(call) => println!("c {call}"),
        Event::Difference(what) => println!("d {what}"),
    })?;
    println!("n {} {}", made.calls, made.pages);
    Ok(())
}

/// What an image has to be for it: of this machine, and one that says how its page is laid out.
fn drive_of(file: &ImageFile<'static>) -> anyhow::Result<Drive> {
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
        "each clock mode, unpublished, torn, all of these behind the page of a time namespace, and \
         each way of getcpu that this machine has",
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
