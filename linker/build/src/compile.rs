//! One object per policy, from a nested `cargo rustc`.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::Recipe;

/// Variables of the outer build that would change the object, or deadlock on its target directory.
const SCRUBBED: [&str; 12] = [
    "RUSTFLAGS",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOCFLAGS",
    "LLVM_PROFILE_FILE",
    "OUT_DIR",
    "TARGET",
    "HOST",
    "PROFILE",
    "OPT_LEVEL",
    "DEBUG",
    "NUM_JOBS",
];
const SCRUBBED_PREFIXES: [&str; 9] = [
    "CARGO_PROFILE_",
    "CARGO_TARGET_",
    "CARGO_BUILD_",
    "CARGO_CFG_",
    "CARGO_FEATURE_",
    "CARGO_PKG_",
    "CARGO_INCREMENTAL",
    "CARGO_MANIFEST_",
    "DEP_",
];

/// Compiles `vdso-image`; returns the object's path.
pub(crate) fn object(recipe: &Recipe<'_>) -> Result<PathBuf> {
    let Recipe { root, out, target, policy, .. } = *recipe;
    let object = out.join(format!("{}.o", recipe.name()));
    let cargo = env::var_os("CARGO").context("cargo sets CARGO")?;
    let home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")))
        .context("neither CARGO_HOME nor HOME is set")?;
    let mut flags = vec![
        format!("-Crelocation-model={}", target.relocation_model),
        // A jump table is read-only data with addresses, or relative ones behind an indirect jump.
        "-Cjump-tables=no".to_owned(),
        // The loops of an image are retries: their second copy would only cost cache.
        "-Cllvm-args=-unroll-allow-partial=false".to_owned(),
        "-Cembed-bitcode=no".to_owned(),
        "-Csymbol-mangling-version=v0".to_owned(),
        // Paths of the builder must not reach the image (or its debug file).
        format!("--remap-path-prefix={}=/cargo", home.display()),
        format!("--remap-path-prefix={}=/uvdso", root.display()),
    ];
    if target.small {
        // Behind the profile's own level on the command line, so it is the one that counts. With a
        // frame pointer, pushing arguments needs no row in the unwind tables.
        flags.push("-Copt-level=s".to_owned());
        flags.push("-Cforce-frame-pointers=yes".to_owned());
    }
    flags.extend(target.flags().into_iter().map(str::to_owned));
    let mut command = Command::new(cargo);
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if SCRUBBED.contains(&&*text) || SCRUBBED_PREFIXES.iter().any(|p| text.starts_with(p)) {
            command.env_remove(&name);
        }
    }
    if let Some((rustc, sysroot)) = recipe.compiler {
        flags.push(format!("--sysroot={}", sysroot.display()));
        // Flags of a target (`Target::flags`) may be unstable ones.
        command.env("RUSTC", rustc).env("RUSTC_BOOTSTRAP", "1");
    }
    let nested = out.join("image-build");
    let mut emit = std::ffi::OsString::from("--emit=obj=");
    emit.push(&object);
    let status = command
        .current_dir(root)
        .env("CARGO_TARGET_DIR", &nested)
        .env("CARGO_BUILD_BUILD_DIR", &nested)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .args(["rustc", "--quiet", "--locked", "--package", "vdso-image", "--lib"])
        .args(["--profile", "image", "--target", target.triple, "--"])
        .arg(format!("--cfg=vdso_fallback=\"{policy}\""))
        .arg(format!("--cfg=vdso_slots=\"{}k\"", recipe.slot_bytes / 1024))
        .arg(emit)
        // Cargo asks `rustc -` about the target, and rustc then reads what it inherits.
        .stdin(Stdio::null())
        .status()
        .context("running cargo for the image")?;
    if !status.success() {
        bail!("compiling the image for {} with policy {policy} failed: {status}", target.triple);
    }
    Ok(object)
}
