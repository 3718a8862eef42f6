//! From an object to the stripped image, with the linker and objcopy of the Rust toolchain.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::{Recipe, Target, Toolchain};

/// Where `rust-lld` and `rust-objcopy` are.
#[derive(Debug)]
pub struct Tools {
    directory: PathBuf,
    libraries: PathBuf,
}

impl Tools {
    /// Finds them in the toolchain of `RUSTC` (or `rustc`), or in `VDSO_TOOLS`.
    ///
    /// # Errors
    /// A sentence that says where they were looked for.
    pub fn find() -> Result<Self> {
        let Toolchain { sysroot, host } = Toolchain::find()?;
        let directory = match env::var_os("VDSO_TOOLS") {
            Some(directory) => PathBuf::from(directory),
            None => sysroot.join("lib/rustlib").join(host).join("bin"),
        };
        for tool in ["rust-lld", "rust-objcopy"] {
            if !directory.join(tool).exists() {
                bail!(
                    "no {tool} in {}: this Rust toolchain was packaged without it; set \
                     VDSO_TOOLS to a directory that has rust-lld and rust-objcopy (rustup's \
                     toolchains have both under lib/rustlib/HOST/bin)",
                    directory.display()
                );
            }
        }
        Ok(Self { directory, libraries: sysroot.join("lib") })
    }

    fn run<I: AsRef<OsStr>>(
        &self,
        tool: &str,
        arguments: impl IntoIterator<Item = I>,
    ) -> Result<()> {
        let output = Command::new(self.directory.join(tool))
            .env("LD_LIBRARY_PATH", &self.libraries)
            .args(arguments)
            .output()
            .with_context(|| format!("running {tool}"))?;
        if !output.status.success() {
            bail!("{tool} failed: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }
}

/// Links and strips the image.
pub(crate) fn image(recipe: &Recipe<'_>, tools: &Tools, object: &Path) -> Result<PathBuf> {
    let Recipe { root, out, target, .. } = *recipe;
    let sources = root.join("linker/src");
    let script = out.join(format!("{}.lds", recipe.name()));
    let text = fs::read_to_string(sources.join("vdso.lds")).context("reading vdso.lds")?;
    fs::write(&script, script_for(&text, target, recipe.slot_bytes))
        .with_context(|| format!("writing {}", script.display()))?;
    let image = out.join(format!("{}.so", recipe.name()));
    let debug = out.join(format!("{}.so.dbg", recipe.name()));
    let page_size = format!("max-page-size={}", recipe.slot_bytes);
    let mut flags = vec![
        "-flavor",
        "gnu",
        "-shared",
        "-Bsymbolic",
        "-soname",
        target.soname,
        "--hash-style=both",
        "--build-id=sha1",
        "--gc-sections",
        "--no-undefined",
        "--orphan-handling=error",
        "--fatal-warnings",
        "-z",
        "noexecstack",
        "-z",
        &page_size,
        "-z",
        "norelro",
        "-z",
        "defs",
    ];
    if target.unwind {
        flags.push("--eh-frame-hdr");
    }
    if let Some(entry) = target.entry {
        flags.extend(["-e", entry]);
    }
    let mut arguments: Vec<&OsStr> = flags.iter().map(OsStr::new).collect();
    let map = sources.join(format!("{}.map", target.arch));
    arguments.extend(["-T".as_ref(), script.as_os_str()]);
    arguments.extend(["--version-script".as_ref(), map.as_os_str()]);
    arguments.extend([object.as_os_str(), "-o".as_ref(), debug.as_os_str()]);
    tools.run("rust-lld", arguments)?;
    tools.run("rust-objcopy", ["--strip-all".as_ref(), debug.as_os_str(), image.as_os_str()])?;
    Ok(image)
}

/// The linker script with its parameters filled in.
fn script_for(text: &str, target: &Target, slot_bytes: u32) -> String {
    let mut script = String::new();
    for line in text.lines() {
        if !target.unwind && line.contains("eh_frame") {
            continue;
        }
        script.push_str(line);
        script.push('\n');
    }
    let versions: String =
        target.versions.iter().map(|version| format!("\"{version}\" = ABSOLUTE(0); ")).collect();
    script
        .replace("VDSO_SLOT_BYTES", &slot_bytes.to_string())
        .replace("VDSO_FUNCTION_ALIGN", &target.function_align.to_string())
        .replace("VDSO_PADDING", target.padding)
        .replace("VDSO_VERSIONS", versions.trim_end())
}
