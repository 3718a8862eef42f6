//! A machine made of one process: frames are pages of a file in memory, address spaces are ranges.

use std::arch::asm;
use std::ffi::{c_char, c_int, c_long, c_uint, c_void};
use std::time::{Duration, Instant};

use embed::fallback::User;
use embed::uvdso_image::SLOT_BYTES;
use embed::vdso::{Access, Machine};

use crate::processor;

unsafe extern "C" {
    fn getpid() -> c_int;
    fn process_vm_writev(
        process: c_int,
        from: *const Range,
        from_count: usize,
        to: *const Range,
        to_count: usize,
        flags: usize,
    ) -> isize;
    fn memfd_create(name: *const c_char, flags: c_uint) -> c_int;
    fn ftruncate(file: c_int, length: c_long) -> c_int;
    fn mmap(
        address: *mut c_void,
        length: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        offset: c_long,
    ) -> *mut c_void;
}

/// C's `struct iovec`.
#[repr(C)]
struct Range {
    start: *mut c_void,
    bytes: usize,
}

// `include/uapi/asm-generic/mman-common.h`.
const PROT_NONE: c_int = 0;
const PROT_READ: c_int = 1;
const PROT_WRITE: c_int = 2;
const PROT_EXEC: c_int = 4;
const MAP_SHARED: c_int = 1;
const MAP_PRIVATE: c_int = 2;
const MAP_FIXED: c_int = 0x10;
const MAP_ANONYMOUS: c_int = 0x20;

/// The machine.
pub(crate) struct Host {
    file: c_int,
    memory: *mut u8,
    frames: usize,
    taken: usize,
}

impl Host {
    /// A machine with that many frames.
    pub(crate) fn new(frames: usize) -> Result<Self, String> {
        // SAFETY: a name that ends with zero.
        let file = unsafe { memfd_create(c"frames".as_ptr(), 0) };
        let bytes = frames * SLOT_BYTES;
        let length = c_long::try_from(bytes).map_err(|_| "too many frames")?;
        // SAFETY: takes numbers.
        if file < 0 || unsafe { ftruncate(file, length) } != 0 {
            return Err("no memory for frames".to_owned());
        }
        let memory =
            map(std::ptr::null_mut(), bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)?.cast();
        Ok(Self { file, memory, frames, taken: 0 })
    }

    /// Address space of a process that nothing else is in.
    pub(crate) fn free_range(&self, bytes: usize) -> Result<usize, String> {
        let flags = MAP_PRIVATE | MAP_ANONYMOUS;
        Ok(map(std::ptr::null_mut(), bytes, PROT_NONE, flags, -1, 0)?.expose_provenance())
    }

    /// The counter's rate, against the host's clock: good enough for an example.
    pub(crate) fn counter_hz(&self) -> u64 {
        let (start, first) = (Instant::now(), self.counter());
        std::thread::sleep(Duration::from_millis(30));
        let (cycles, nanos) = (self.counter() - first, start.elapsed().as_nanos());
        u64::try_from(u128::from(cycles) * 1_000_000_000 / nanos).unwrap_or(u64::MAX)
    }
}

impl Machine for Host {
    type Frame = usize;

    fn frame(&mut self) -> (usize, *mut u8) {
        assert!(self.taken < self.frames, "the machine has more frames");
        let frame = self.taken;
        self.taken += 1;
        (frame, self.memory.wrapping_add(frame * SLOT_BYTES))
    }

    fn map(&mut self, address: usize, frame: usize, access: Access) {
        let protection = match access {
            Access::Read => PROT_READ,
            Access::ReadExecute => PROT_READ | PROT_EXEC,
        };
        let address = std::ptr::with_exposed_provenance_mut(address);
        let offset = c_long::try_from(frame * SLOT_BYTES).expect("few frames");
        let flags = MAP_SHARED | MAP_FIXED;
        map(address, SLOT_BYTES, protection, flags, self.file, offset).expect("a range was free");
    }

    fn counter(&self) -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: neither instruction touches memory or flags. Not `nomem`, so that no access to
        // the page is moved across.
        unsafe {
            asm!("lfence", "rdtsc", out("rax") low, out("rdx") high,
                 options(nostack, preserves_flags));
        }
        low | (high << 32)
    }
}

impl User for Host {
    /// As a kernel's own copy does, this fails where the program could not write.
    fn copy_to_user(&mut self, address: usize, bytes: &[u8]) -> bool {
        let from = Range { start: bytes.as_ptr().cast_mut().cast(), bytes: bytes.len() };
        let to =
            Range { start: std::ptr::with_exposed_provenance_mut(address), bytes: bytes.len() };
        // SAFETY: takes a number.
        let here = unsafe { getpid() };
        // SAFETY: one range each; the kernel checks that the second can be written.
        let copied = unsafe { process_vm_writev(here, &raw const from, 1, &raw const to, 1, 0) };
        usize::try_from(copied).is_ok_and(|copied| copied == bytes.len())
    }

    fn place(&self) -> u32 {
        processor::place()
    }
}

fn map(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: c_long,
) -> Result<*mut c_void, String> {
    // SAFETY: a new mapping, or one in a range that this machine reserved.
    let mapped = unsafe { mmap(address, length, protection, flags, file, offset) };
    if mapped.addr() == usize::MAX {
        return Err(format!("no mapping: {}", std::io::Error::last_os_error()));
    }
    Ok(mapped)
}
