//! The compiler of the build, and where its files are.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// What `RUSTC` (or `rustc`) says about itself.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// The folder of everything that came with it.
    pub sysroot: PathBuf,
    /// Its name for the machine that it runs on.
    pub host: String,
}

impl Toolchain {
    /// Asks the compiler.
    ///
    /// # Errors
    /// That there is none, or what it says instead of an answer.
    pub fn find() -> Result<Self> {
        let sysroot = ask(&["--print", "sysroot"])?;
        let version = ask(&["-vV"])?;
        let host = version
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .context("rustc -vV names no host")?;
        Ok(Self { sysroot: PathBuf::from(sysroot.trim()), host: host.to_owned() })
    }
}

fn ask(question: &[&str]) -> Result<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(&rustc)
        .args(question)
        .output()
        .with_context(|| format!("running {}", rustc.display()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}\n{errors}", rustc.display(), output.status);
    Ok(String::from_utf8(output.stdout)?)
}
