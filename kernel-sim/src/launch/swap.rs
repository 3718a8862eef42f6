//! Putting a program on the image: what happens between its exec and its first instruction.
//!
//! The program gets the memory of the page and the image, the auxiliary vector says where the image
//! is, and the kernel's own vDSO is unmapped. Nothing is traced for time after that.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;

use libc::pid_t;
use linker::Image;

use crate::launch::auxv::{self, VdsoEntry};
use crate::launch::handover::{Scratch, receive_with_room};
use crate::launch::inject::{InjectError, Injection};
use crate::launch::injected::InjectedCall;
use crate::launch::instruction::{self, Instruction};
use crate::launch::proc_stat::Stat;
use crate::launch::ptrace::{Event, Stopped, read_memory, write_memory};

/// What programs are put on.
#[derive(Debug)]
pub(crate) struct Replacement {
    /// The image that lies in the memory.
    pub(crate) image: Image,
    /// The read-only descriptor of the memory.
    pub(crate) memory: OwnedFd,
}

/// Why a program keeps the kernel's own vDSO, and so the host's time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum SwapError {
    /// Only x86_64 has an image here.
    #[error("it is a 32-bit program, and run puts 64-bit ones alone on an image")]
    ThirtyTwoBit,
    /// Its clocks are not those of the page.
    #[error("it is in a time namespace of its own, whose offsets the page does not have")]
    TimeNamespace,
    /// Nothing to put the image's address into.
    #[error("the kernel gave it no vDSO (no AT_SYSINFO_EHDR)")]
    NoVdso,
    /// What lies at AT_SYSINFO_EHDR is not what a vDSO is.
    #[error("its vDSO at {base:#x} has no system call instruction")]
    NoInstruction {
        /// Where it lies.
        base: u64,
    },
    /// A call that was made for it failed.
    #[error(transparent)]
    Inject(#[from] InjectError),
    /// Its memory, or what the kernel says of it, cannot be read or written.
    #[error("{step}: {source}")]
    Memory {
        /// What was tried.
        step: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// What of a swap did not work, although the program runs on the image.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    /// The kernel's copy of the auxiliary vector could not be changed.
    pub(crate) auxv: Option<SwapError>,
    /// The descriptors over which the image came could not be closed.
    pub(crate) descriptors: Option<SwapError>,
    /// A mapping of the kernel's vDSO could not be removed.
    pub(crate) mapping: Option<SwapError>,
}

/// Code segment of 64-bit programs (`arch/x86/include/asm/segment.h`, `__USER_CS`).
const USER_CS: u64 = 0x33;

/// Puts a program that stands at the end of its exec on the image. What happens to other threads
/// meanwhile is for `others`.
pub(crate) fn swap(
    thread: Stopped,
    replacement: &Replacement,
    others: &mut dyn FnMut(pid_t, Event),
) -> Result<Leftovers, SwapError> {
    let registers = thread.registers().map_err(InjectError::Trace)?;
    if registers.cs != USER_CS {
        return Err(SwapError::ThirtyTwoBit);
    }
    let pid = thread.0;
    if let (Some(its), Some(ours)) = (time_namespace(&pid.to_string()), time_namespace("self"))
        && its != ours
    {
        return Err(SwapError::TimeNamespace);
    }
    let entry = auxv::find_on_stack(pid, registers.rsp);
    let entry = entry.map_err(memory("reading its stack"))?;
    let entry = entry.filter(|entry| entry.base != 0).ok_or(SwapError::NoVdso)?;
    let old = mappings_of_vdso(pid).map_err(memory("reading its mappings"))?;
    let instruction = find_instruction(pid, entry.base)?;
    let scratch = Scratch::borrow(pid, registers.rsp)?;
    let mut injection = Injection::begin(thread, instruction, others)?;
    let given = give(&mut injection, &scratch, replacement);
    // Also when that failed, the program gets its stack and its registers back; and before its
    // auxiliary vector changes, which may lie on what was borrowed.
    let returned = scratch.give_back();
    let image = &replacement.image;
    let done = given.and_then(|given| {
        returned?;
        place(&mut injection, given, image, entry, &old)
    });
    if let Some(gone) = injection.gone() {
        return Err(gone.into());
    }
    let ended = injection.end();
    // What failed first is the cause.
    let leftovers = done?;
    ended?;
    Ok(leftovers)
}

/// What a program has that knows nothing of it yet.
struct Given {
    pid: pid_t,
    /// Where the image begins.
    base: u64,
    leftovers: Leftovers,
}

/// Gives the program the image, and makes the kernel's copy of its auxiliary vector say so.
fn give(
    injection: &mut Injection<'_>,
    scratch: &Scratch,
    replacement: &Replacement,
) -> Result<Given, SwapError> {
    let received = receive_with_room(injection, scratch, replacement.memory.as_fd())?;
    let base = map(injection, &replacement.image, received.file);
    let closed = received.close(injection);
    let base = base?;
    let descriptors = closed.err().map(SwapError::from);
    let auxv = change_saved_auxv(injection, scratch, base).err();
    let leftovers = Leftovers { auxv, descriptors, mapping: None };
    Ok(Given { pid: scratch.pid, base, leftovers })
}

/// Has the program find the image, and nothing else.
fn place(
    injection: &mut Injection<'_>,
    given: Given,
    image: &Image,
    entry: VdsoEntry,
    old: &[(u64, u64)],
) -> Result<Leftovers, SwapError> {
    let Given { pid, base, mut leftovers } = given;
    let written = write_memory(pid, entry.slot, &base.to_ne_bytes());
    written.map_err(memory("changing its auxiliary vector"))?;
    if leftovers.auxv.is_some() {
        // Who asks the kernel for the auxiliary vector still finds the old vDSO: it has to stay.
        return Ok(leftovers);
    }
    // The instruction that was used so far is about to go.
    if let Some(own) = instruction::find(image.bytes, base) {
        injection.step_at(own);
        for &(start, end) in old {
            let unmap = [start, end - start, 0, 0, 0, 0];
            if let Err(error) = injection.call(InjectedCall::Unmap, unmap) {
                leftovers.mapping = Some(error.into());
            }
        }
    }
    Ok(leftovers)
}

/// Maps slots and image, and returns where the image begins.
fn map(injection: &mut Injection<'_>, image: &Image, file: u64) -> Result<u64, InjectError> {
    let offset = image.data_offset() as u64;
    let length = image.mapped_bytes() as u64;
    let shared = [0, offset + length, flags(libc::PROT_READ), flags(libc::MAP_SHARED), file, 0];
    let start = injection.call(InjectedCall::Map, shared)?;
    if start == 0 {
        return Err(InjectError::NoEffect { call: InjectedCall::Map });
    }
    // The image's code is private to the program, so that a debugger can set breakpoints in it.
    let private = [
        start + offset,
        length,
        flags(libc::PROT_READ | libc::PROT_EXEC),
        flags(libc::MAP_PRIVATE | libc::MAP_FIXED),
        file,
        offset,
    ];
    let error = match injection.call(InjectedCall::Map, private) {
        Ok(base) if base == start + offset => return Ok(base),
        Ok(_) => InjectError::NoEffect { call: InjectedCall::Map },
        Err(error) => error,
    };
    let all = [start, offset + length, 0, 0, 0, 0];
    let _ = injection.call(InjectedCall::Unmap, all);
    Err(error)
}

/// Bits as a system call's argument.
pub(crate) fn flags(bits: i32) -> u64 {
    u64::from(bits.cast_unsigned())
}

/// Makes the kernel's copy of the auxiliary vector say the same as the program's.
///
/// `PR_SET_MM_AUXV` alone needs a capability; replacing everything that the kernel keeps of the
/// program's layout, with all else as it was, needs none.
fn change_saved_auxv(
    injection: &mut Injection<'_>,
    scratch: &Scratch,
    base: u64,
) -> Result<(), SwapError> {
    let auxv = auxv::saved_with(scratch.pid, base);
    let auxv = auxv.map_err(memory("reading the kernel's auxiliary vector"))?;
    let layout = layout_of(scratch.pid).map_err(memory("reading its layout"))?;
    let at = size_of::<MemoryLayout>();
    let mut bytes: Vec<u8> = layout.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes.extend((scratch.base + at as u64).to_ne_bytes());
    let length = u32::try_from(auxv.len()).unwrap_or(0);
    bytes.extend(length.to_ne_bytes());
    // No other executable.
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(&auxv);
    scratch.write(0, &bytes)?;
    let set = [flags(libc::PR_SET_MM), flags(libc::PR_SET_MM_MAP), scratch.base, at as u64, 0, 0];
    injection.call(InjectedCall::SetLayout, set)?;
    let saved = auxv::saved(scratch.pid);
    if saved.map_err(memory("reading the kernel's auxiliary vector"))?.starts_with(&auxv) {
        Ok(())
    } else {
        Err(InjectError::NoEffect { call: InjectedCall::SetLayout }.into())
    }
}

/// The kernel's `struct prctl_mm_map`: eleven addresses, the vector's address, its length, and a
/// descriptor.
type MemoryLayout = [u64; 13];

/// The eleven addresses as they are, from `/proc/PID/stat` (`proc_pid_stat(5)`).
fn layout_of(pid: pid_t) -> io::Result<[u64; 11]> {
    let stat = Stat::of(pid)?;
    let field = |number| stat.field(number);
    let start_brk = field(47)?;
    Ok([
        field(26)?, // start_code
        field(27)?, // end_code
        field(45)?, // start_data
        field(46)?, // end_data
        start_brk,
        start_brk,  // the program has not run, so its break is where it began
        field(28)?, // start_stack
        field(48)?, // arg_start
        field(49)?, // arg_end
        field(50)?, // env_start
        field(51)?, // env_end
    ])
}

/// What tells the time namespace of a process from others (`time_namespaces(7)`); `None` where that
/// cannot be seen. One that a program has unshared holds for what it forks or execs, so a process that
/// enters one by a fork alone, without an exec, goes on with the page.
fn time_namespace(process: &str) -> Option<(u64, u64)> {
    let namespace = fs::metadata(format!("/proc/{process}/ns/time")).ok()?;
    Some((namespace.dev(), namespace.ino()))
}

/// Where the kernel mapped its vDSO and the pages that belong to it; neighbours are one range.
fn mappings_of_vdso(pid: pid_t) -> io::Result<Vec<(u64, u64)>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for line in maps.lines() {
        if !line.ends_with("[vdso]") && !line.contains("[vvar") {
            continue;
        }
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let address = |text| u64::from_str_radix(text, 16).ok();
        let Some((Some(start), Some(end))) = range.map(|(a, b)| (address(a), address(b))) else {
            continue;
        };
        match ranges.last_mut() {
            Some((_, last)) if *last == start => *last = end,
            _ => ranges.push((start, end)),
        }
    }
    Ok(ranges)
}

/// A `syscall` instruction in the kernel's vDSO of the program.
fn find_instruction(pid: pid_t, base: u64) -> Result<Instruction, SwapError> {
    for page in 0..2 {
        let start = base + page * 4096;
        let mut bytes = [0; 4096];
        let read = read_memory(pid, start, &mut bytes);
        read.map_err(memory("reading its vDSO"))?;
        if let Some(found) = instruction::find(&bytes, start) {
            return Ok(found);
        }
    }
    Err(SwapError::NoInstruction { base })
}

/// Says at which step a program's memory failed.
pub(crate) fn memory<E: Into<io::Error>>(step: &'static str) -> impl Fn(E) -> SwapError {
    move |error| SwapError::Memory { step, source: error.into() }
}
