//! The memory that programs map: the page slots and the image, in one sealed file without a name.
//!
//! The file has two open descriptions. One is writable and belongs to
//! the keeper, the command and the next keeper; the one writable
//! mapping is made through it, and then the file is sealed: no descriptor of it, not even one that
//! is opened anew for writing, can be written, mapped for writing, shrunk or grown from then on.
//! The other is read-only, and is what programs get.
//!
//! Two descriptions also tell the keeper when it is alone. A write lease on the writable one is
//! granted exactly while no other description is open or mapped anywhere (`fcntl(2)`,
//! `F_SETLEASE`), so the keeper asks for one at each tick and ends when it gets it: it needs to
//! know nothing of the processes that use the page, and cannot be left behind by one that it
//! missed.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::ptr::NonNull;

use datapage::{Page, Writer};
use linker::Image;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, munmap};

/// The writable side of the memory, and the image that is in it.
#[derive(Debug)]
pub struct PageMemory {
    image: Image,
    page: NonNull<Page>,
    writable: File,
}

/// Why there is no memory for a page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The image reads another page than this program writes.
    #[error(
        "the image reads page ABI {found_abi} with slots of {found_slot} bytes, this keeper \
         writes ABI {} with slots of {} bytes",
        datapage::ABI,
        datapage::SLOT_BYTES
    )]
    Image {
        /// The image's page ABI.
        found_abi: u32,
        /// The image's slot size.
        found_slot: u32,
    },
    /// The memory is a file, and files may not be as large.
    #[error(
        "the page and the image take {wanted} bytes, and files are limited to {limit} (ulimit -f)"
    )]
    FileSize {
        /// The limit.
        limit: u64,
        /// What is needed.
        wanted: u64,
    },
    /// The kernel refuses a step.
    #[error("{step}: {source}")]
    Kernel {
        /// What was asked for.
        step: &'static str,
        /// Its answer.
        source: io::Error,
    },
}

impl PageMemory {
    /// Memory for `image`, with a zeroed page, and the descriptor for programs.
    ///
    /// # Errors
    /// What the kernel refused, or that image and page do not fit.
    ///
    /// # Panics
    /// If the image has slots of no size, which none has.
    pub fn new(image: &Image) -> Result<(Self, OwnedFd), MemoryError> {
        if image.page_abi != datapage::ABI || image.slot_bytes != datapage::SLOT_BYTES {
            return Err(MemoryError::Image {
                found_abi: image.page_abi,
                found_slot: image.slot_bytes,
            });
        }
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let first = memfd_create(c"uvdso", flags).map_err(kernel("creating shared memory"))?;
        // A description of its own, because only one that was opened counts for a lease.
        let writable =
            reopen(&first, true).map_err(kernel("reopening shared memory in /proc/self/fd"))?;
        drop(first);
        let bytes = (image.data_offset() + image.mapped_bytes()) as u64;
        // A file that grows beyond it ends its process by a signal.
        if let Some(limit) = file_size_limit().filter(|limit| *limit < bytes) {
            return Err(MemoryError::FileSize { limit, wanted: bytes });
        }
        let sized = writable.set_len(bytes);
        sized.map_err(kernel("sizing shared memory"))?;
        let written = writable.write_all_at(image.bytes, image.data_offset() as u64);
        written.map_err(kernel("writing the image"))?;
        let slot = NonZeroUsize::new(image.slot_bytes as usize).expect("slots have a size");
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let page = unsafe { mmap(None, slot, access, MapFlags::MAP_SHARED, &writable, 0) };
        let page = page.map_err(kernel("mapping the page"))?.cast();
        let memory = Self { image: *image, page, writable };
        memory.seal().map_err(kernel("sealing the page"))?;
        let readable = reopen(&memory.writable, false);
        let readable = readable.map_err(kernel("reopening the page for reading"))?;
        Ok((memory, readable.into()))
    }

    /// From here on no new mapping and no descriptor can write; the one mapping stays.
    fn seal(&self) -> nix::Result<()> {
        let seals = SealFlag::from_bits_retain(libc::F_SEAL_FUTURE_WRITE)
            | SealFlag::F_SEAL_SHRINK
            | SealFlag::F_SEAL_GROW
            | SealFlag::F_SEAL_SEAL;
        fcntl(&self.writable, FcntlArg::F_ADD_SEALS(seals)).map(drop)
    }

    /// The image in the memory, behind its slots.
    #[must_use]
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// The writable descriptor, for a process that closes all others.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.writable.as_fd()
    }

    /// The page, for reading.
    #[must_use]
    pub fn page(&self) -> &Page {
        // SAFETY: mapped as long as `self` lives, aligned to a page, made of atomic words.
        unsafe { Page::at(self.page.as_ptr().cast_const().cast()) }
    }

    /// The page's writer.
    ///
    /// The exclusive borrow makes it the only one in this process; that no other process has one at
    /// the same time is for whoever forks to see to.
    pub fn writer(&mut self) -> Writer<'_> {
        // SAFETY: the mapping is writable and lives as long as `self`.
        unsafe { Writer::at(self.page.as_ptr()) }
    }

    /// Leaves the page as a keeper does that is killed in the middle of an update.
    #[cfg(test)]
    pub(crate) fn leave_odd(&mut self) {
        use std::sync::atomic::{AtomicU32, Ordering};
        // SAFETY: the page's first word is `seq` (docs/page.md), mapped and atomic.
        let seq = unsafe { AtomicU32::from_ptr(self.page.as_ptr().cast()) };
        seq.fetch_or(1, Ordering::SeqCst);
    }

    /// Whether nobody but the holders of this side has the memory open or mapped.
    ///
    /// # Errors
    /// That the kernel does not give leases (`fs.leases-enable`).
    pub fn is_alone(&self) -> nix::Result<bool> {
        is_alone(self.writable.as_fd())
    }

    /// Whether children that are forked from now on have the writable mapping.
    ///
    /// # Errors
    /// What the kernel says of the advice.
    pub fn inherit(&self, inherited: bool) -> nix::Result<()> {
        let advice = if inherited { MmapAdvise::MADV_DOFORK } else { MmapAdvise::MADV_DONTFORK };
        // SAFETY: this value's own mapping; the advice changes nothing for this process.
        unsafe { madvise(self.page.cast(), self.image.slot_bytes as usize, advice) }
    }
}

impl Drop for PageMemory {
    fn drop(&mut self) {
        // SAFETY: this value's own mapping, to which no reference can be left.
        let unmapped = unsafe { munmap(self.page.cast(), self.image.slot_bytes as usize) };
        // A child into which the mapping was not inherited has nothing to unmap, which is no error.
        debug_assert!(unmapped.is_ok());
    }
}

fn kernel<E: Into<io::Error>>(step: &'static str) -> impl Fn(E) -> MemoryError {
    move |error| MemoryError::Kernel { step, source: error.into() }
}

/// Another open description of the same file.
fn reopen(file: &impl AsRawFd, writable: bool) -> io::Result<File> {
    File::options()
        .read(true)
        .write(writable)
        .custom_flags(libc::O_CLOEXEC)
        .open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// How large a file of this process may become; `None` if that is not limited.
fn file_size_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a live limit.
    let answer = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    (answer == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// The kernel gives a lease for writing on what nobody else has open.
fn is_alone(writable: BorrowedFd<'_>) -> nix::Result<bool> {
    match lease(writable, libc::F_WRLCK) {
        Ok(()) => match lease(writable, libc::F_UNLCK) {
            // Keepers and command share this descriptor and its lease: another one that asked at the
            // same moment has given it back already.
            Ok(()) | Err(Errno::EAGAIN) => Ok(true),
            Err(error) => Err(error),
        },
        Err(Errno::EAGAIN) => Ok(false),
        Err(error) => Err(error),
    }
}

fn lease(file: BorrowedFd<'_>, kind: i32) -> nix::Result<()> {
    // SAFETY: the descriptor is open; the argument is a plain number.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) };
    Errno::result(answer).map(drop)
}

#[cfg(test)]
mod tests {
    use nix::fcntl::{FallocateFlags, fallocate};

    use super::*;

    /// Runs `test`, which is called `name`, in a process where no other test does: a child that one
    /// forks has every descriptor of its process for a while, and memory is not alone meanwhile.
    fn in_a_process_of_its_own(name: &str, test: impl FnOnce()) {
        const VARIABLE: &str = "TEST_IN_A_PROCESS_OF_ITS_OWN";
        if std::env::var_os(VARIABLE).is_some() {
            return test();
        }
        let path = format!("{}::{name}", module_path!().split_once("::").unwrap().1);
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args([&path, "--exact", "--nocapture"])
            .env(VARIABLE, "")
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }

    #[test]
    fn two_that_ask_at_once_are_both_told() {
        in_a_process_of_its_own("two_that_ask_at_once_are_both_told", two_ask_at_once);
    }

    fn two_ask_at_once() {
        let (memory, readable) = PageMemory::new(&linker::SYSCALL).unwrap();
        drop(readable);
        let descriptor = memory.descriptor();
        let ask =
            || (0..100_000).try_for_each(|_| is_alone(descriptor).map(|alone| assert!(alone)));
        std::thread::scope(|scope| {
            let other = scope.spawn(ask);
            assert_eq!(ask(), Ok(()));
            assert_eq!(other.join().unwrap(), Ok(()));
        });
    }

    #[test]
    fn the_memory_is_sealed_and_knows_when_it_is_alone() {
        in_a_process_of_its_own("the_memory_is_sealed_and_knows_when_it_is_alone", is_sealed);
    }

    fn is_sealed() {
        let (mut memory, readable) = PageMemory::new(&linker::SYSCALL).unwrap();
        memory.writer().format(datapage::Features::empty(), 4096);
        assert!(memory.page().header().is_ok(), "the keeper can write");
        assert_eq!(memory.is_alone(), Ok(false));

        let again = reopen(&readable, true).unwrap();
        let denied = |result: io::Result<()>| result.unwrap_err().raw_os_error().unwrap();
        assert_eq!(denied(again.write_all_at(b"x", 0)), libc::EPERM);
        assert_eq!(denied(again.set_len(0)), libc::EPERM);
        assert_eq!(denied(again.set_len(1 << 20)), libc::EPERM);
        let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        assert_eq!(fallocate(&again, hole, 0, 4096), Err(Errno::EPERM));
        let slot = NonZeroUsize::new(4096).unwrap();
        // SAFETY: a new mapping at an address of the kernel's choice, if it were granted.
        let mapped =
            unsafe { mmap(None, slot, ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED, &again, 0) };
        assert_eq!(mapped.unwrap_err(), Errno::EPERM);
        drop(again);

        // SAFETY: as above.
        let mapped =
            unsafe { mmap(None, slot, ProtFlags::PROT_READ, MapFlags::MAP_SHARED, &readable, 0) };
        let mapped = mapped.unwrap();
        drop(readable);
        assert_eq!(memory.is_alone(), Ok(false), "a mapping counts");
        // SAFETY: the mapping made above.
        unsafe { munmap(mapped, 4096) }.unwrap();
        assert_eq!(memory.is_alone(), Ok(true));
    }

    #[test]
    fn an_image_for_another_page_is_refused_by_name() {
        let mut other = linker::SYSCALL;
        other.page_abi = 7;
        let error = PageMemory::new(&other).unwrap_err().to_string();
        assert!(error.contains("ABI 7") && error.contains("ABI 1"), "{error}");
    }
}
