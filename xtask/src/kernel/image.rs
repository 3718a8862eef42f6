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

use super::process::run;
use super::tree::Tree;

/// The kernel's names for the slots below the image, lowest first. The two between data and image
/// that we reserve are where the kernel would map the counters of its hypervisors.
const SLOTS: [&str; 4] = ["vvar_page", "timens_page", "pvclock_page", "hvclock_page"];

/// Puts the image in the place of the kernel's.
pub(crate) fn exchange(tree: &Tree) -> Result<()> {
    let image = &linker::SYSCALL;
    let plain = tree.own.join("image.so");
    let named = tree.own.join("image.so.dbg");
    fs::write(&plain, image.bytes)?;
    let mut objcopy = Command::new("objcopy");
    let lowest = i64::from(image.slots) * i64::from(image.slot_bytes);
    let places = (0..).map(|slot| slot * i64::from(image.slot_bytes) - lowest);
    for (name, place) in [("vvar_start", -lowest)].into_iter().chain(SLOTS.into_iter().zip(places))
    {
        // Decimal: a hexadecimal number that large is cut to the largest positive one.
        objcopy.arg("--add-symbol").arg(format!("{name}={place},global"));
    }
    run(objcopy.arg(&plain).arg(&named))?;
    let target = tree.build.join("arch/x86/entry/vdso/vdso64.so.dbg");
    install(&named, &target).with_context(|| format!("writing {}", target.display()))
}

/// The kernel's build keeps a target that is newer than what it is made from.
fn install(from: &Path, to: &Path) -> Result<()> {
    if fs::read(from)? != fs::read(to).unwrap_or_default() {
        fs::copy(from, to)?;
        fs::File::options().append(true).open(to)?.set_modified(SystemTime::now())?;
    }
    Ok(())
}
