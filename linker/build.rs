//! Makes the images that this crate offers as constants (the recipe is `image-build`).

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use image_build::{Made, Recipe, Target, Tools};

/// The images of this build, by what they do about a call that the page cannot serve.
const POLICIES: [&str; 2] = ["syscall", "enosys"];

fn main() -> Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").context("cargo sets OUT_DIR")?);
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").context("cargo sets it")?);
    let root = root.parent().context("linker lies in the workspace")?.to_owned();
    for source in ["datapage/src", "vdso/src", "vdso/image/src", "linker/src"] {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
    }
    for manifest in
        ["Cargo.toml", "datapage/Cargo.toml", "vdso/Cargo.toml", "vdso/image/Cargo.toml"]
    {
        println!("cargo::rerun-if-changed={}", root.join(manifest).display());
    }
    println!("cargo::rerun-if-env-changed=RUSTC");
    println!("cargo::rerun-if-env-changed=VDSO_TOOLS");

    let arch = env::var("CARGO_CFG_TARGET_ARCH").context("cargo sets it")?;
    let Some(target) = Target::of(&arch).filter(|target| target.arch == "x86_64") else {
        bail!(
            "there is no vDSO image for {arch} in a plain build; build on x86_64 Linux and take \
             what `cargo xtask cross` leaves, or the exported bytes of an image"
        );
    };
    let tools = Tools::find()?;
    let mut generated = String::new();
    for policy in POLICIES {
        let recipe =
            Recipe { root: &root, out: &out, target, policy, slot_bytes: 4096, compiler: None };
        let Made { path: image, warnings } = recipe.make(&tools)?;
        // That the image takes two pages is decided (docs/decisions/0006); the judge still says it.
        for warning in warnings.iter().filter(|warning| !warning.starts_with("one-page:")) {
            println!("cargo::warning=image {policy}: {warning}");
        }
        let bytes = fs::read(&image).with_context(|| format!("reading {}", image.display()))?;
        let description = image_build::describe(&bytes)
            .with_context(|| format!("describing the image at {}", image.display()))?;
        writeln!(generated, "{}", description.to_rust(policy, &image))?;
    }
    fs::write(out.join("images.rs"), generated).context("writing images.rs")?;
    Ok(())
}
