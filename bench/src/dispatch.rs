//! What a C library does with a vDSO: pointers looked up once, called where there is one, the
//! system call otherwise, and errno instead of a negative return.
//!
//! This is the change that bionic's `clock_getres` got (the functions it had before are the
//! dispatch [without a vDSO](Libc::without_vdso)). A library OS or a libc port can take it as it is.

mod lookup;

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::ptr::null_mut;

use kernel_sim::functions::{Functions, host_image};
use kernel_sim::map::MappedImage;
use libc::{timespec, timeval, timezone};

/// The lowest errno that a system call returns, negated.
const MAX_ERRNO: isize = 4095;

/// The version node of the functions on x86_64.
const VERSION: &str = "LINUX_2.6";

/// The time functions of a C library, on a vDSO that is mapped for all of `'m` or on none.
///
/// # Invariants
/// Each pointer that is present is a vDSO function of its field's type and may be called for as
/// long as `'m` lasts.
#[derive(Clone, Copy, Debug)]
pub struct Libc<'m> {
    functions: Functions,
    image: PhantomData<&'m [u8]>,
}

impl Libc<'static> {
    /// On the vDSO that the auxiliary vector names, as a libc does when a process starts. Without
    /// one, every call is a system call.
    #[must_use]
    pub fn from_auxv() -> Self {
        match host_image() {
            // SAFETY: the kernel maps its image readable and executable, for good.
            Some(image) => unsafe { Self::from_image(image) },
            None => Self::without_vdso(),
        }
    }

    /// On no vDSO: what a libc did before.
    #[must_use]
    pub fn without_vdso() -> Self {
        // INVARIANT: there is no pointer.
        Self { functions: Functions::default(), image: PhantomData }
    }
}

impl<'m> Libc<'m> {
    /// On an image that this process mapped itself.
    #[must_use]
    pub fn on(mapped: &'m MappedImage) -> Self {
        let length = mapped.image().mapped_bytes();
        // SAFETY: the image is mapped readable in whole pages, and borrowed as long as the slice.
        let image = unsafe { std::slice::from_raw_parts(mapped.base(), length) };
        // SAFETY: `MappedImage` maps it executable, with its page below it.
        unsafe { Self::from_image(image) }
    }

    /// On the vDSO image whose load segment is `image`. A function that it lacks, or has under
    /// another version, becomes the system call; in an image without versions the name suffices.
    ///
    /// # Safety
    /// The slice is the image's own mapping: executable, with its data below it, and what it
    /// exports under the names of vDSO functions are those functions.
    #[must_use]
    pub unsafe fn from_image(image: &'m [u8]) -> Self {
        let address_of = |name: &str| -> Option<*const c_void> {
            let offset = lookup::function(image, name, VERSION)?;
            Some(image.get(offset..)?.as_ptr().cast())
        };
        // SAFETY: the caller promises functions of these types behind these names.
        let functions = unsafe { Functions::from_addresses(address_of) };
        // INVARIANT: found in an image that is mapped for `'m`.
        Self { functions, image: PhantomData }
    }

    /// `clock_gettime(2)` as C has it: 0, or -1 with errno.
    pub fn clock_gettime(&self, id: c_int, ts: Option<&mut timespec>) -> c_int {
        let ts = ts.map_or(null_mut(), std::ptr::from_mut);
        if let Some(call) = self.functions.clock_gettime
            && !ts.is_null()
        {
            // SAFETY: the function is mapped, `ts` is a live timespec.
            return to_errno(unsafe { call(id, ts) });
        }
        // SAFETY: the kernel checks the pointer.
        let answer = unsafe { libc::syscall(libc::SYS_clock_gettime, id, ts) };
        if answer == 0 { 0 } else { -1 }
    }

    /// `clock_getres(2)` as C has it: 0, or -1 with errno. No place for the answer is a legal way
    /// to ask whether the clock exists.
    pub fn clock_getres(&self, id: c_int, res: Option<&mut timespec>) -> c_int {
        let res = res.map_or(null_mut(), std::ptr::from_mut);
        if let Some(call) = self.functions.clock_getres {
            // SAFETY: the function is mapped, `res` is null or a live timespec.
            return to_errno(unsafe { call(id, res) });
        }
        // SAFETY: the kernel checks the pointer.
        let answer = unsafe { libc::syscall(libc::SYS_clock_getres, id, res) };
        if answer == 0 { 0 } else { -1 }
    }

    /// `gettimeofday(2)` as C has it; either part may be left out.
    pub fn gettimeofday(&self, tv: Option<&mut timeval>, tz: Option<&mut timezone>) -> c_int {
        let tv = tv.map_or(null_mut(), std::ptr::from_mut);
        let tz = tz.map_or(null_mut(), std::ptr::from_mut);
        if let Some(call) = self.functions.gettimeofday {
            // SAFETY: the function is mapped, each pointer is null or alive.
            return to_errno(unsafe { call(tv, tz) });
        }
        // SAFETY: the kernel checks the pointers.
        let answer = unsafe { libc::syscall(libc::SYS_gettimeofday, tv, tz) };
        if answer == 0 { 0 } else { -1 }
    }

    /// `getcpu(2)` as C has it; either part may be left out.
    pub fn getcpu(&self, cpu: Option<&mut u32>, node: Option<&mut u32>) -> c_int {
        let cpu = cpu.map_or(null_mut(), std::ptr::from_mut);
        let node = node.map_or(null_mut(), std::ptr::from_mut);
        if let Some(call) = self.functions.getcpu {
            // SAFETY: the function is mapped, each pointer is null or alive, the third is unused.
            return to_errno(unsafe { call(cpu, node, null_mut()) });
        }
        // SAFETY: the kernel checks the pointers.
        let answer = unsafe { libc::syscall(libc::SYS_getcpu, cpu, node, null_mut::<c_void>()) };
        if answer == 0 { 0 } else { -1 }
    }
}

/// A vDSO's raw negative errno as C has it.
#[inline]
fn to_errno(answer: isize) -> c_int {
    if !(-MAX_ERRNO..0).contains(&answer) {
        return 0;
    }
    let errno = c_int::try_from(-answer).unwrap_or(libc::EINVAL);
    // SAFETY: the address of this thread's errno.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: errno belongs to this thread and lives as long.
    unsafe { place.write(errno) };
    -1
}

#[cfg(test)]
mod tests;
