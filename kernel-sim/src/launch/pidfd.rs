//! Processes as descriptors (`pidfd_open(2)`), which no other process can take the place of.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use libc::pid_t;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// A descriptor of a process that is there, and not waited for meanwhile.
pub(crate) fn open(pid: pid_t) -> io::Result<OwnedFd> {
    // SAFETY: opens a descriptor of a process; plain numbers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })
}

/// A copy of a process's own descriptor `number`.
pub(crate) fn descriptor(process: &OwnedFd, number: u64) -> io::Result<OwnedFd> {
    // SAFETY: duplicates a descriptor of that process; plain numbers.
    owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0) })
}

/// Waits for the process's end.
pub(crate) fn wait_for_end(process: BorrowedFd<'_>) -> nix::Result<()> {
    let mut end = [PollFd::new(process, PollFlags::POLLIN)];
    loop {
        match poll(&mut end, PollTimeout::NONE) {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}

fn owned(answer: i64) -> io::Result<OwnedFd> {
    let number = Errno::result(answer)?;
    let number = i32::try_from(number).map_err(|_| io::ErrorKind::InvalidData)?;
    // SAFETY: the kernel just opened it for this process, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
