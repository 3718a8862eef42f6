//! The process in which `image check --drive` runs an image's code.
//!
//! It gets the image as its input and says what it is about to call before it calls, so that a crash
//! or an endless loop has a name. Its lines: `c CALL`, `d DIFFERENCE`, and at the end `n CALLS PAGES`;
//! `f` if the last call left another process behind, and `e ERROR` if it could not go on.

use std::io::Read as _;
use std::process::ExitCode;

use anyhow::Context as _;
use kernel_sim::child::end_with;
use kernel_sim::drive::Event;
use linker::judge::ImageFile;
use nix::errno::Errno;
use nix::sys::signal::SigSet;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpid};

use super::drive::drive_of;

/// Drives the image that is this process's input, for `parent`.
pub(super) fn run(parent: i32) -> ExitCode {
    end_with(Pid::from_raw(parent));
    match drive_input() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("e {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn drive_input() -> anyhow::Result<()> {
    // The parent holds back what would end it; the image's code is not to find that.
    SigSet::empty().thread_set_mask().context("taking every signal")?;
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).context("reading the image")?;
    // Kept for the rest of the process, which does nothing else.
    let drive = drive_of(&ImageFile::read(bytes.leak())?)?;
    let process = getpid();
    let made = drive.run(|event| {
        end_unless_alone(process);
        match event {
            Event::Call(call) => println!("c {call}"),
            Event::Difference(what) => println!("d {what}"),
        }
    })?;
    end_unless_alone(process);
    println!("n {} {}", made.calls, made.pages);
    Ok(())
}

/// Goes no further where the last call returned in two processes: each call would double them.
///
/// This process has no children of its own between two calls.
fn end_unless_alone(process: Pid) {
    let any = WaitPidFlag::WNOHANG | WaitPidFlag::__WALL;
    if getpid() != process || waitpid(None, Some(any)) != Err(Errno::ECHILD) {
        println!("f");
        std::process::exit(1);
    }
}
