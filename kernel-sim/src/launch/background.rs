//! What a process of ours gives up: others' eyes, the terminal, the program's descriptors.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::sys::stat::Mode;
use nix::unistd::{chdir, setsid};

/// Whether another process of the same user may trace this one and read or write its memory.
///
/// Only root can then; an exec of another program makes a process open to its user again.
pub(crate) fn set_dumpable(dumpable: bool) -> nix::Result<()> {
    // SAFETY: sets an attribute of this process.
    let answer = unsafe { libc::prctl(libc::PR_SET_DUMPABLE, i32::from(dumpable), 0, 0, 0) };
    Errno::result(answer).map(drop)
}

/// Makes a forked process one that works in the background: a session of its own, no terminal, no
/// descriptor but those in `keep`, the working directory of nobody, and a name.
pub(crate) fn retire(name: &CStr, keep: &[BorrowedFd<'_>]) -> nix::Result<()> {
    set_dumpable(false)?;
    setsid()?;
    chdir("/")?;
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
    close_all_but(keep);
    let null = open("/dev/null", OFlag::O_RDWR, Mode::empty())?;
    for standard in 0..=2 {
        // SAFETY: the standard descriptors of a process that has just been forked for this.
        Errno::result(unsafe { libc::dup2(null.as_raw_fd(), standard) })?;
    }
    if null.as_raw_fd() <= 2 {
        // It is a standard descriptor itself now.
        std::mem::forget(null);
    }
    set_name(name);
    Ok(())
}

/// Gives this process a name, of which the kernel keeps 15 bytes.
pub(crate) fn set_name(name: &CStr) {
    // SAFETY: the kernel copies at most 16 bytes of the string.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0) };
}

fn close_all_but(keep: &[BorrowedFd<'_>]) {
    let numbers = keep.iter().map(|fd| fd.as_raw_fd().unsigned_abs());
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    let mut from = 0;
    for number in numbers {
        if from < number {
            close_range(from, number - 1);
        }
        from = number + 1;
    }
    close_range(from, u32::MAX);
}

fn close_range(first: u32, last: u32) {
    // SAFETY: closes descriptors that this process, forked for another purpose, does not use.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
}
