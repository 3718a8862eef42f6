//! Our image in the form in which the kernel's build takes its own.
//!
//! The kernel strips the image, checks it (one load segment, no relocation) and turns it into an
//! array with the distances of its pages, which it finds by their symbols. Our image is stripped
//! already, so the symbols are added to a copy; not a byte of what is mapped changes.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context as _, Result};
use linker::Image;
use linker::judge::ImageFile;

use super::machine::{Arch, Machine};
use super::process::run;
use super::tree::Tree;
use crate::cross;

/// x86's names for the slots below the image, lowest first. The two between data and image that we
/// reserve are where the kernel would map the counters of its hypervisors.
const SLOTS: [&str; 4] = ["vvar_page", "timens_page", "pvclock_page", "hvclock_page"];

const ELF_HEADER: usize = 64;

/// Our image for a machine: the one of this build, or one that is made now.
pub(crate) fn of(machine: &Machine) -> Result<Image> {
    if machine.arch == Arch::X86_64 {
        return Ok(linker::SYSCALL);
    }
    let file = cross::syscall_image(machine.name)?;
    let bytes = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
    let image = ImageFile::read(bytes.leak())?;
    Image::of_file(&image).with_context(|| format!("mapping {}", file.display()))
}

/// Puts the image in the place of the kernel's.
pub(crate) fn exchange(tree: &Tree, image: &Image) -> Result<()> {
    let plain = tree.own.join("image.so");
    let named = tree.own.join("image.so.dbg");
    fs::write(&plain, image.bytes)?;
    let mut objcopy = Command::new(tree.machine.program("objcopy"));
    for (name, place) in symbols(tree.machine, image)? {
        // Decimal: a hexadecimal number that large is cut to the largest positive one.
        objcopy.arg("--add-symbol").arg(format!("{name}={place},global"));
    }
    run(objcopy.arg(&plain).arg(&named))?;
    let target = tree.build.join(tree.machine.image);
    install(&named, &target).with_context(|| format!("writing {}", target.display()))
}

/// What the kernel's build looks for in an image, and where it is.
fn symbols(machine: &Machine, image: &Image) -> Result<Vec<(&'static str, i64)>> {
    match machine.arch {
        Arch::X86_64 => {
            let lowest = -i64::try_from(image.data_offset())?;
            let places = (0..).map(|slot| slot * i64::from(image.slot_bytes) + lowest);
            let start = [("vvar_start", lowest)].into_iter();
            Ok(start.chain(SLOTS.into_iter().zip(places)).collect())
        }
        Arch::Aarch64 => {
            let sigreturn = image.symbol("__kernel_rt_sigreturn").context("no signal return")?;
            Ok(vec![("VDSO_sigtramp", i64::try_from(sigreturn.offset)?)])
        }
    }
}

/// Whether the image that was built into the kernel is `image` in every byte that is loaded.
pub(crate) fn is_built_in(tree: &Tree, image: &Image) -> Result<bool> {
    let built = fs::read(tree.build.join(tree.machine.stripped)).context("reading the image")?;
    let file = ImageFile::read(image.bytes)?;
    let loaded = file.segments_of(object::elf::PT_LOAD).map(|segment| segment.file_bytes).max();
    let loaded = usize::try_from(loaded.context("our image has no load segment")?)?;
    // The ELF header says where the sections are, which stripping may move.
    let code = ELF_HEADER..loaded;
    Ok(built.get(code.clone()).is_some_and(|built| image.bytes.get(code) == Some(built)))
}

/// The kernel's build keeps a target that is newer than what it is made from.
fn install(from: &Path, to: &Path) -> Result<()> {
    if fs::read(from)? != fs::read(to).unwrap_or_default() {
        fs::copy(from, to)?;
        fs::File::options().append(true).open(to)?.set_modified(SystemTime::now())?;
    }
    Ok(())
}
