//! From an object to the stripped image, with the linker and objcopy of the Rust toolchain.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// Where `rust-lld` and `rust-objcopy` are.
pub(crate) struct Tools {
    directory: PathBuf,
    libraries: PathBuf,
}

impl Tools {
    /// Finds them in the toolchain, or in `VDSO_TOOLS`.
    pub(crate) fn find() -> Result<Self> {
        let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = Command::new(&rustc)
            .args(["--print", "sysroot"])
            .output()
            .with_context(|| format!("running {}", rustc.display()))?;
        let sysroot = PathBuf::from(String::from_utf8(output.stdout)?.trim());
        let host = env::var("HOST").context("cargo sets HOST")?;
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

/// Links and strips one image; the unstripped one stays beside it with the suffix `.dbg`.
pub(crate) fn image(
    tools: &Tools,
    root: &Path,
    out: &Path,
    object: &Path,
    policy: &str,
    arch: &str,
) -> Result<PathBuf> {
    let sources = root.join("linker/src");
    let script = out.join("vdso.lds");
    let text = fs::read_to_string(sources.join("vdso.lds")).context("reading vdso.lds")?;
    fs::write(&script, text.replace("VDSO_SLOT_BYTES", "4096")).context("writing vdso.lds")?;
    let image = out.join(format!("vdso-{policy}.so"));
    let debug = out.join(format!("vdso-{policy}.so.dbg"));
    let flags = [
        "-flavor",
        "gnu",
        "-shared",
        "-Bsymbolic",
        "-soname",
        "linux-vdso.so.1",
        "--hash-style=both",
        "--build-id=sha1",
        "--eh-frame-hdr",
        "--gc-sections",
        "--no-undefined",
        "--orphan-handling=error",
        "--fatal-warnings",
        "-z",
        "noexecstack",
        "-z",
        "max-page-size=4096",
        "-z",
        "norelro",
        "-z",
        "defs",
    ];
    let mut arguments: Vec<&OsStr> = flags.iter().map(OsStr::new).collect();
    let map = sources.join(format!("{arch}.map"));
    arguments.extend(["-T".as_ref(), script.as_os_str()]);
    arguments.extend(["--version-script".as_ref(), map.as_os_str()]);
    arguments.extend([object.as_os_str(), "-o".as_ref(), debug.as_os_str()]);
    tools.run("rust-lld", arguments)?;
    tools.run("rust-objcopy", ["--strip-all".as_ref(), debug.as_os_str(), image.as_os_str()])?;
    Ok(image)
}
