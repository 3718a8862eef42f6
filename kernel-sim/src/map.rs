//! Mapping a data page and an image into this process, as a kernel maps them into every process.

use std::ffi::c_void;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use datapage::layout::DATA_BYTES;
use datapage::namespace::Offsets;
use datapage::{Features, Page, Writer};
use linker::Image;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};

use crate::functions::Functions;

/// 64-bit words of a page that the ABI defines.
pub const WORDS: usize = DATA_BYTES / 8;

/// An image with its slots in this process: the page read-only below it, and a second, writable
/// mapping of the same memory for the writer.
#[derive(Debug)]
pub struct MappedImage {
    image: Image,
    start: NonNull<c_void>,
    bytes: usize,
    writable: NonNull<c_void>,
    memory: OwnedFd,
}

// SAFETY: the mappings belong to the value, and everything reached through them is either constant
// or made of atomic words.
unsafe impl Send for MappedImage {}
// SAFETY: as above; the only writer is borrowed exclusively.
unsafe impl Sync for MappedImage {}

impl MappedImage {
    /// Maps `image` with a zeroed data page.
    ///
    /// # Errors
    /// What the kernel says of the mappings.
    ///
    /// # Panics
    /// If the image is empty, which none is.
    pub fn new(image: &Image) -> io::Result<Self> {
        Self::map(image, None)
    }

    /// Maps `image` as a program of a time namespace has it: a page of `offsets` in slot -4, and
    /// the zeroed data page in slot -3.
    ///
    /// # Errors
    /// What the kernel says of the mappings.
    ///
    /// # Panics
    /// If the image is empty, which none is.
    pub fn in_namespace(image: &Image, offsets: &Offsets) -> io::Result<Self> {
        Self::map(image, Some(offsets))
    }

    fn map(image: &Image, namespace: Option<&Offsets>) -> io::Result<Self> {
        let memory = memfd_create(c"uvdso-page", MFdFlags::MFD_CLOEXEC)?;
        let slot = NonZeroUsize::new(image.slot_bytes as usize).expect("slots have a size");
        nix::unistd::ftruncate(&memory, i64::from(image.slot_bytes))?;
        // SAFETY: a new shared mapping at an address of the kernel's choice.
        let writable = unsafe {
            mmap(
                None,
                slot,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_SHARED,
                &memory,
                0,
            )
        }?;
        let bytes = image.data_offset() + image.mapped_bytes();
        let length = NonZeroUsize::new(bytes).expect("an image is not empty");
        // Readable zeros, not a hole: whatever the page says, a reader may look into every slot.
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start =
            unsafe { mmap_anonymous(None, length, ProtFlags::PROT_READ, MapFlags::MAP_PRIVATE) }?;
        let mapped = Self { image: *image, start, bytes, writable, memory };
        if let Some(offsets) = namespace {
            mapped.put_namespace(slot, offsets)?;
        }
        mapped.fill(slot, usize::from(namespace.is_some()))?;
        Ok(mapped)
    }

    /// Makes the first slot a namespace's page.
    fn put_namespace(&self, slot: NonZeroUsize, offsets: &Offsets) -> io::Result<()> {
        // SAFETY: the first page of the range that this value reserved.
        unsafe { mprotect(self.start, slot.get(), ProtFlags::PROT_READ | ProtFlags::PROT_WRITE) }?;
        // SAFETY: a writable page of zeros, which nobody else knows yet.
        let writer: Writer<'_> = unsafe { Writer::at(self.start.as_ptr().cast()) };
        writer.format_namespace(offsets, Features::empty(), self.image.slot_bytes);
        // SAFETY: the same page, which is complete now.
        unsafe { mprotect(self.start, slot.get(), ProtFlags::PROT_READ) }?;
        Ok(())
    }

    /// Puts page and image into the reserved range; the page into slot number `place`.
    fn fill(&self, slot: NonZeroUsize, place: usize) -> io::Result<()> {
        let fixed = MapFlags::MAP_SHARED | MapFlags::MAP_FIXED;
        let address = self.start.as_ptr().addr() + place * slot.get();
        let address = NonZeroUsize::new(address);
        // SAFETY: replaces a slot of the range that this value reserved.
        unsafe { mmap(address, slot, ProtFlags::PROT_READ, fixed, self.memory.as_fd(), 0) }?;
        let base = self.base_pointer();
        let length = self.image.mapped_bytes();
        // SAFETY: pages of the range that this value reserved.
        unsafe { mprotect(base, length, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE) }?;
        let bytes = self.image.bytes;
        // SAFETY: writable pages of at least the image's length, which nobody else knows yet.
        unsafe {
            base.cast::<u8>().copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len())
        };
        // SAFETY: the same pages, which are complete now.
        unsafe { mprotect(base, length, ProtFlags::PROT_READ | ProtFlags::PROT_EXEC) }?;
        Ok(())
    }

    fn base_pointer(&self) -> NonNull<c_void> {
        // SAFETY: the image begins inside the range, behind the slots.
        unsafe { self.start.byte_add(self.image.data_offset()) }
    }

    /// Where the image begins, as `AT_SYSINFO_EHDR` would say.
    #[must_use]
    pub fn base(&self) -> *const u8 {
        self.base_pointer().as_ptr().cast_const().cast()
    }

    /// The image that is mapped.
    #[must_use]
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// The data page as a program sees it, in slot -4: the kernel's, or that of the namespace.
    #[must_use]
    pub fn page(&self) -> &Page {
        // SAFETY: the page is mapped for as long as `self` is, aligned, and made of atomic words.
        unsafe { Page::at(self.start.as_ptr().cast_const().cast()) }
    }

    /// The page's writer and, with it, everything that only reads.
    pub fn split(&mut self) -> (Writer<'_>, &Self) {
        // SAFETY: the second mapping is writable for as long as `self` is, and the exclusive borrow
        // makes this the one writer.
        let writer = unsafe { Writer::at(self.writable.as_ptr().cast()) };
        (writer, self)
    }

    /// The page's words for writing as they are and, with them, everything that only reads.
    ///
    /// Tests and tools write what no [`Writer`] would: half an update, or noise.
    pub fn split_words(&mut self) -> (&[AtomicU64; WORDS], &Self) {
        let words = self.writable.as_ptr().cast_const().cast();
        // SAFETY: the second mapping is writable for as long as `self` is, aligned to a page and at
        // least as long as the page's data; the words of the page are atomic there too.
        let words = unsafe { &*words };
        (words, self)
    }

    /// The exported functions.
    #[must_use]
    pub fn functions(&self) -> Functions {
        self.find(|name| name)
    }

    /// The exported functions under their names without the prefix: the addresses that those have.
    #[must_use]
    pub fn aliases(&self) -> Functions {
        self.find(|name| name.strip_prefix(Functions::PREFIX).unwrap_or(name))
    }

    fn find(&self, exported: impl Fn(&str) -> &str) -> Functions {
        let base = self.base();
        let address_of = |name: &str| {
            let symbol = self.image.symbol(exported(name))?;
            Some(base.wrapping_add(symbol.offset).cast())
        };
        // SAFETY: the image's functions have these signatures; they are mapped as long as `self` is,
        // which the documentation of the result's use demands.
        unsafe { Functions::from_addresses(address_of) }
    }
}

impl Drop for MappedImage {
    fn drop(&mut self) {
        // SAFETY: the range of this value, which nothing else refers to.
        let image = unsafe { munmap(self.start, self.bytes) };
        // SAFETY: as above.
        let page = unsafe { munmap(self.writable, self.image.slot_bytes as usize) };
        debug_assert!(image.is_ok() && page.is_ok(), "unmapping own ranges cannot fail");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datapage::{ClockId, ClockMode, Features, Instant, PageValues, Scale};

    #[test]
    fn an_image_reads_the_page_below_it() {
        let mut mapped = MappedImage::new(&linker::SYSCALL).unwrap();
        let (mut writer, mapped) = mapped.split();
        writer.format(Features::empty(), 4096);
        let mut values = PageValues {
            clock_mode: ClockMode::MEMORY,
            steered: Scale { mask: u64::MAX, mult: 1, shift: 0 },
            ..PageValues::default()
        };
        values.set(ClockId::REALTIME, Instant { secs: 5, nanos: 0 });
        writer.publish(&values.validate().unwrap());
        writer.set_memory_counter(7);
        let functions = mapped.functions();
        let mut spec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a live timespec, and the image is mapped.
        let answer = unsafe { functions.clock_gettime.unwrap()(0, &raw mut spec) };
        assert_eq!((answer, spec.tv_sec, spec.tv_nsec), (0, 5, 7));
        // SAFETY: the image is mapped.
        let nanos = unsafe { functions.clock_gettime_ns.unwrap()(0) };
        assert_eq!(nanos, 5_000_000_007);
    }
}
