//! Makes the images: compiles `vdso-image` to an object, links it, strips it, describes it.
//!
//! Everything that could change the image's bytes is set here: the profile `image` of the
//! workspace, the flags below, and an environment without what a developer may have set for the
//! rest of the build. So dev and release, tests and documentation hold the same image.

#[path = "build/compile.rs"]
mod compile;
#[path = "build/describe.rs"]
mod describe;
#[path = "build/link.rs"]
mod link;

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

/// The images of this build, by what they do about a call that the page cannot serve.
const POLICIES: [&str; 2] = ["syscall", "enosys"];

fn main() -> Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").context("cargo sets OUT_DIR")?);
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").context("cargo sets it")?);
    let root = root.parent().context("linker lies in the workspace")?.to_owned();
    for source in ["datapage/src", "vdso/src", "vdso/image/src", "linker/src", "linker/build"] {
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
    let target = match arch.as_str() {
        "x86_64" => "x86_64-unknown-linux-gnu",
        other => bail!(
            "there is no vDSO image for {other} in a plain build; build on x86_64 Linux, \
             or take the exported bytes of an image"
        ),
    };
    let tools = link::Tools::find()?;
    let mut generated = String::new();
    for policy in POLICIES {
        let object = compile::object(&root, &out, target, policy)?;
        let image = link::image(&tools, &root, &out, &object, policy, &arch)?;
        let bytes = fs::read(&image).with_context(|| format!("reading {}", image.display()))?;
        let description = describe::describe(&bytes)
            .with_context(|| format!("describing the image at {}", image.display()))?;
        writeln!(generated, "{}", description.to_rust(policy, &image))?;
    }
    fs::write(out.join("images.rs"), generated).context("writing images.rs")?;
    Ok(())
}
