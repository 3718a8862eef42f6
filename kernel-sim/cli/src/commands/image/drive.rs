//! `kernel-sim image check --drive`: the image's code runs in a child, which may die of it.
//!
//! The child gets the image as its input and says what it is about to call before it calls, so that a crash or an endless loop has a
//! name. Its lines: `c CALL`, `d DIFFERENCE`, and `n CALLS` when it is through.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, bail};
use kernel_sim::drive::{Event, drive};
use linker::Image;
use linker::judge::{Arch, ImageFile};

/// The most differences that are shown.
const SHOWN: usize = 20;

/// Drives `file` in a child, which is ended after `limit` seconds, and prints what it finds.
pub(crate) fn run(name: &str, file: &ImageFile<'_>, limit: u32) -> anyhow::Result<ExitCode> {
    if file.own_note().is_none() || file.arch != Arch::X86_64 {
        bail!(
            "{name} cannot be driven: only an x86_64 image with a uVDSO note says how its page is \
             laid out"
        );
    }
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
    let (mut last, mut calls, mut differences) = (String::new(), None, Vec::new());
    for line in BufReader::new(output).lines() {
        let line = line.context("reading what the child says")?;
        match line.split_once(' ') {
            Some(("c", call)) => call.clone_into(&mut last),
            Some(("d", what)) => differences.push(format!("{last}: {what}")),
            Some(("n", number)) => calls = Some(number.to_owned()),
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
    let found = match (status.signal(), calls) {
        (Some(libc::SIGALRM), _) => format!("did not return within {limit} seconds from {last}"),
        (Some(signal), _) => format!("was ended by signal {signal} in {last}"),
        (None, Some(calls)) => format!("{calls} calls, {} wrong answers", differences.len()),
        (None, None) => bail!("the child ended with {status}"),
    };
    println!("driven: {found}");
    let is_good = status.success() && differences.is_empty();
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Drives the image that is this process's input: it is the child.
pub(crate) fn here(limit: u32) -> anyhow::Result<ExitCode> {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).context("reading the image")?;
    // Kept for the rest of the process, which does nothing else.
    let file = ImageFile::read(bytes.leak())?;
    let image = Image::of_file(&file).context("its note or its build id is not ours")?;
    // SAFETY: arms a timer of this process, which has no handler for it.
    unsafe { libc::alarm(limit) };
    let calls = drive(&image, |event| match event {
        Event::Call(call) => println!("c {call}"),
        Event::Difference(what) => println!("d {what}"),
    })?;
    println!("n {calls}");
    Ok(ExitCode::SUCCESS)
}
