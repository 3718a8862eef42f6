//! The vDSO images as bytes, with what a kernel needs to know to map them.
//!
//! Without features this crate is `no_std` constants: [`SYSCALL`] and [`ENOSYS`] are the images that
//! the build made. With feature `judge` it also judges any image by what its consumers demand.
//!
//! # Examples
//!
//! ```
//! let image = &linker::SYSCALL;
//! assert!(image.bytes.starts_with(b"\x7fELF"));
//! assert_eq!(image.slots * image.slot_bytes, 16384, "the data page lies that far below");
//! assert!(image.symbol("__vdso_clock_gettime").is_some());
//! ```
#![cfg_attr(not(any(test, feature = "judge")), no_std)]

#[cfg(feature = "judge")]
pub mod judge;
#[cfg(feature = "judge")]
mod of_file;

#[cfg(feature = "judge")]
pub use of_file::Unstated;

/// A vDSO image, ready to be mapped: its file is its memory.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Image {
    /// The ELF file. Map whole pages of it, readable and executable, zeros after its end; its
    /// first byte is aligned to a page here too.
    pub bytes: &'static [u8],
    /// What the image does about a call that its page cannot serve.
    pub policy: Policy,
    /// Version of the page layout that the image reads.
    pub page_abi: u32,
    /// Page slots right below the image; the data page is in the lowest.
    pub slots: u32,
    /// Distance between page slots, in bytes.
    pub slot_bytes: u32,
    /// The build id: a SHA-1 over the contents of an image of this build, as many bytes as it has in
    /// another one.
    pub build_id: &'static [u8],
    /// The exported functions, sorted by name.
    pub symbols: &'static [Symbol],
}

/// An exported function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: &'static str,
    /// Bytes from the start of the image.
    pub offset: usize,
    /// Bytes of code.
    pub size: usize,
}

/// What an image does about a call that its page cannot serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// It enters the kernel.
    Syscall,
    /// It returns `-ENOSYS`.
    Enosys,
}

impl Image {
    /// The exported function `name`.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        let at = self.symbols.binary_search_by(|symbol| symbol.name.cmp(name)).ok()?;
        self.symbols.get(at).copied()
    }

    /// Bytes from the start of the data page to the start of the image.
    #[must_use]
    pub const fn data_offset(&self) -> usize {
        self.slots as usize * self.slot_bytes as usize
    }

    /// Bytes of whole pages that the image takes.
    #[must_use]
    pub const fn mapped_bytes(&self) -> usize {
        self.bytes.len().next_multiple_of(self.slot_bytes as usize)
    }
}

/// Puts the image's bytes at the start of a page.
#[repr(C, align(4096))]
struct Aligned<const N: usize>([u8; N]);

include!(concat!(env!("OUT_DIR"), "/images.rs"));
