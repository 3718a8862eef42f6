//! How a program gets the descriptor of the memory that it maps.
//!
//! The descriptor travels over a pair of sockets that the program makes: the launcher takes one end
//! with `pidfd_getfd(2)` and sends through it. It needs no path, so it works in another mount,
//! process or network namespace, and no process of ours has to let others look into it (opening
//! `/proc/PID/fd/N` of the launcher would need just that).

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use libc::{cmsghdr, iovec, msghdr, pid_t};
use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

use crate::launch::inject::{InjectError, Injection};
use crate::launch::injected::InjectedCall;
use crate::launch::pidfd;
use crate::launch::ptrace::{read_memory, write_memory};
use crate::launch::swap::{SwapError, flags, memory};

/// Bytes of a page of the stack.
const PAGE: usize = 4096;

/// Memory on the program's stack that injected calls read and write: the page below that of its stack
/// pointer, where nothing is lost when the tracer is killed meanwhile. That page need not be there: the
/// kernel maps 128 KiB more than the strings of arguments and environment, but their table takes from
/// that, and so does a low limit of the stack. Then it is the page in which the stack pointer stands,
/// all of which is there, since the count of the arguments is.
///
/// That one may hold arguments, environment and auxiliary vector, so the program gets it back as it was.
pub(crate) struct Scratch {
    pub(crate) pid: pid_t,
    pub(crate) base: u64,
    before: [u8; PAGE],
}

/// What stands where the kernel is to put a descriptor, so that it is seen whether it did.
const NO_DESCRIPTOR: [u8; 4] = [0xff; 4];

/// What `recvmsg` needs, in one piece.
#[repr(C)]
#[derive(Clone, Copy)]
struct Message {
    ends: [i32; 2],
    header: msghdr,
    vector: iovec,
    control: cmsghdr,
    descriptor: [i32; 2],
    byte: u64,
}

impl Scratch {
    /// Of a program whose stack pointer is as the kernel set it at exec.
    pub(crate) fn borrow(pid: pid_t, stack_pointer: u64) -> Result<Self, SwapError> {
        let page = stack_pointer & !(PAGE as u64 - 1);
        let mut before = [0; PAGE];
        let mut read = |base| read_memory(pid, base, &mut before).map(|()| base);
        let found = read(page - PAGE as u64).or_else(|_| read(page));
        let base = found.map_err(memory("reading its stack"))?;
        Ok(Self { pid, base, before })
    }

    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), SwapError> {
        // What is written beyond it would stay.
        let written = if offset + bytes.len() <= PAGE {
            write_memory(self.pid, self.base + offset as u64, bytes)
        } else {
            Err(io::ErrorKind::StorageFull.into())
        };
        written.map_err(memory("writing its stack"))
    }

    fn read<const N: usize>(&self, offset: usize) -> Result<[u8; N], SwapError> {
        let mut bytes = [0; N];
        let read = read_memory(self.pid, self.base + offset as u64, &mut bytes);
        read.map_err(memory("reading its stack"))?;
        Ok(bytes)
    }

    /// Leaves it as it was.
    pub(crate) fn give_back(self) -> Result<(), SwapError> {
        let written = write_memory(self.pid, self.base, &self.before);
        written.map_err(memory("giving its stack back"))
    }
}

/// [`receive`], with a higher limit where the program has no room for three more descriptors.
pub(crate) fn receive_with_room(
    injection: &mut Injection<'_>,
    scratch: &Scratch,
    descriptor: BorrowedFd<'_>,
) -> Result<Received, SwapError> {
    match receive(injection, scratch, descriptor) {
        Err(SwapError::Inject(InjectError::Call { source: Errno::EMFILE, .. })) => {}
        other => return other,
    }
    let limit = |new: Option<libc::rlimit>| set_descriptor_limit(scratch.pid, new);
    let before = limit(None).map_err(memory("reading its limit of descriptors"))?;
    let wanted = before.rlim_cur.saturating_add(ROOM);
    // Its own hard limit is enough, or the launcher has CAP_SYS_RESOURCE, which root in a container
    // may lack.
    let raised = libc::rlimit { rlim_cur: wanted, rlim_max: before.rlim_max.max(wanted) };
    limit(Some(raised))
        .map_err(memory("raising its limit of descriptors, which it has used up"))?;
    let received = receive(injection, scratch, descriptor);
    // What is open stays open under a lower limit, and is closed before the program runs.
    limit(Some(before)).map_err(memory("setting back its limit of descriptors"))?;
    received
}

/// Descriptors that a program needs while it is put on the image.
const ROOM: u64 = 3;

/// Sets a program's limit of descriptors, and returns what it was.
fn set_descriptor_limit(pid: pid_t, new: Option<libc::rlimit>) -> io::Result<libc::rlimit> {
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let new = new.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `new` is null or a live limit, `before` is live.
    let answer = unsafe { libc::prlimit(pid, libc::RLIMIT_NOFILE, new, &raw mut before) };
    Errno::result(answer)?;
    Ok(before)
}

/// Descriptors that a program has while it is put on the image.
pub(crate) struct Received {
    /// The memory.
    pub(crate) file: u64,
    /// The pair of sockets over which it came.
    ends: [u64; 2],
}

impl Received {
    /// Closes them, in one call where they lie side by side: each call that a program makes for us
    /// costs it four switches of context.
    pub(crate) fn close(&self, injection: &mut Injection<'_>) -> Result<(), InjectError> {
        let [near, far] = self.ends;
        if far == near + 1 && self.file == far + 1 {
            let range = [near, self.file, 0, 0, 0, 0];
            // Unknown before Linux 5.9.
            if injection.call(InjectedCall::CloseRange, range).is_ok() {
                return Ok(());
            }
        }
        for descriptor in [near, far, self.file] {
            close(injection, descriptor)?;
        }
        Ok(())
    }
}

fn close(injection: &mut Injection<'_>, descriptor: u64) -> Result<(), InjectError> {
    injection.call(InjectedCall::Close, [descriptor, 0, 0, 0, 0, 0]).map(drop)
}

/// Gives the program the descriptor.
fn receive(
    injection: &mut Injection<'_>,
    scratch: &Scratch,
    descriptor: BorrowedFd<'_>,
) -> Result<Received, SwapError> {
    let kind = flags(libc::SOCK_DGRAM | libc::SOCK_CLOEXEC);
    let pair = [flags(libc::AF_UNIX), kind, 0, scratch.base, 0, 0];
    scratch.write(0, &[NO_DESCRIPTOR, NO_DESCRIPTOR].concat())?;
    injection.call(InjectedCall::SocketPair, pair)?;
    let ends = scratch.read::<8>(0)?;
    if ends.starts_with(&NO_DESCRIPTOR) {
        return Err(InjectError::NoEffect { call: InjectedCall::SocketPair }.into());
    }
    let ends = u64::from_ne_bytes(ends);
    let (near, far) = (ends & 0xffff_ffff, ends >> 32);
    let received = send(scratch.pid, far, descriptor)
        .map_err(memory("sending it the page"))
        .and_then(|()| receive_from(injection, scratch, near));
    match received {
        Ok(file) => Ok(Received { file, ends: [near, far] }),
        Err(error) => {
            // What failed first is the cause.
            let _ = close(injection, near).and_then(|()| close(injection, far));
            Err(error)
        }
    }
}

fn receive_from(
    injection: &mut Injection<'_>,
    scratch: &Scratch,
    socket: u64,
) -> Result<u64, SwapError> {
    let at = |offset: usize| scratch.base + offset as u64;
    // A message header of numbers: its pointers are addresses in the program.
    let control = offset_of!(Message, control);
    let mut header = [0_u8; size_of::<msghdr>()];
    let mut put = |offset: usize, value: u64| {
        if let Some(field) = header.get_mut(offset..offset + 8) {
            field.copy_from_slice(&value.to_ne_bytes());
        }
    };
    put(offset_of!(msghdr, msg_iov), at(offset_of!(Message, vector)));
    put(offset_of!(msghdr, msg_iovlen), 1);
    put(offset_of!(msghdr, msg_control), at(control));
    let room = size_of::<cmsghdr>() + size_of::<[i32; 2]>();
    put(offset_of!(msghdr, msg_controllen), room as u64);
    scratch.write(offset_of!(Message, header), &header)?;
    let mut vector = at(offset_of!(Message, byte)).to_ne_bytes().to_vec();
    vector.extend(1_u64.to_ne_bytes());
    scratch.write(offset_of!(Message, vector), &vector)?;
    let receive = [
        socket,
        at(offset_of!(Message, header)),
        flags(libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT),
        0,
        0,
        0,
    ];
    scratch.write(offset_of!(Message, descriptor), &NO_DESCRIPTOR)?;
    injection.call(InjectedCall::ReceiveMessage, receive)?;
    let length =
        scratch.read::<8>(offset_of!(Message, header) + offset_of!(msghdr, msg_controllen));
    let number = scratch.read::<4>(offset_of!(Message, descriptor))?;
    if u64::from_ne_bytes(length?) == 0 {
        // The kernel drops a descriptor for which the table has no room.
        return Err(SwapError::Inject(InjectError::Call {
            call: InjectedCall::ReceiveMessage,
            source: Errno::EMFILE,
        }));
    }
    if number == NO_DESCRIPTOR {
        return Err(InjectError::NoEffect { call: InjectedCall::ReceiveMessage }.into());
    }
    Ok(u64::from(u32::from_ne_bytes(number)))
}

/// Sends the descriptor through the program's socket `end`.
fn send(pid: pid_t, end: u64, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let process = pidfd::open(pid)?;
    let socket = pidfd::descriptor(&process, end)?;
    let message = [io::IoSlice::new(&[0])];
    let descriptors = [descriptor.as_raw_fd()];
    let control = [ControlMessage::ScmRights(&descriptors)];
    sendmsg::<()>(socket.as_fd().as_raw_fd(), &message, &control, MsgFlags::MSG_DONTWAIT, None)?;
    Ok(())
}
