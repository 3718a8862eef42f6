//! Which images are made, and what must be true of each as a file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use image_build::{Made, Recipe, Tools};
use xtask::tools::root;

use crate::cross::machine::{Machine, Runner};
use crate::cross::sysroot::RUSTC;

/// An image must fit in so many of its slots' pages.
const PAGES: usize = 2;

/// An image that was made.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) machine: &'static Machine,
    pub(crate) path: PathBuf,
    pub(crate) policy: &'static str,
    pub(crate) slot_bytes: u32,
}

/// Makes all images of an architecture.
pub(crate) fn make(
    machine: &'static Machine,
    directory: &Path,
    sysroot: Option<&Path>,
    tools: &Tools,
) -> Result<Vec<Image>> {
    fs::create_dir_all(directory).with_context(|| format!("creating {}", directory.display()))?;
    let root = root();
    let mut images = Vec::new();
    for &slot_bytes in machine.target.slot_bytes {
        for policy in ["syscall", "enosys"] {
            let recipe = Recipe {
                root: &root,
                out: directory,
                target: machine.target,
                policy,
                slot_bytes,
                compiler: sysroot.map(|sysroot| (Path::new(RUSTC), sysroot)),
            };
            // The recipe refuses an image that a consumer would break on.
            let Made { path, warnings } = recipe.make(tools)?;
            for warning in warnings {
                println!("warning: {}: {warning}", path.display());
            }
            images.push(Image { machine, path, policy, slot_bytes });
        }
    }
    Ok(images)
}

impl Image {
    /// Every way to run a program on it: slots of 64 KiB serve pages of 4, 16 and 64 KiB.
    pub(crate) fn runners(&self) -> Vec<Runner> {
        let pages = [4096, 16384, 65536].into_iter().filter(|&bytes| bytes <= self.slot_bytes);
        let native = self.machine.native.then_some(Runner::Native);
        native.into_iter().chain(pages.map(Runner::Emulated)).collect()
    }

    /// Its file's name.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The unstripped image.
    pub(crate) fn debug(&self) -> PathBuf {
        self.path.with_extension("so.dbg")
    }

    /// Checks the file; says what is in it.
    pub(crate) fn check(&self) -> Result<String> {
        let bytes = fs::read(&self.path)?;
        // The pages are those of 4 KiB in every build.
        ensure!(bytes.len() <= PAGES * 4096, "{} bytes are more than {PAGES} pages", bytes.len());
        Ok(format!("{} bytes", bytes.len()))
    }
}
