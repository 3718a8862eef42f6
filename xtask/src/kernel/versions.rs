//! What a run was made with, for whoever reads its report later.

use anyhow::Result;

use crate::circumstances::{commit, cpus, load, said};

/// One line: commit, compilers, emulator, host.
pub(crate) fn line() -> Result<String> {
    // All emulators are of one package's version; which are installed depends on the machine asked for.
    let qemu = said("qemu-system-x86_64", &["--version"])
        .or_else(|_| said("qemu-system-aarch64", &["--version"]))?;
    Ok(format!(
        "Commit `{}`; {}; {}; {}, TCG; host: Linux {}, {} CPUs, load average {}.",
        commit()?,
        said("rustc", &["--version"])?,
        said("gcc", &["--version"])?,
        qemu,
        said("uname", &["-r"])?,
        cpus()?,
        load()?,
    ))
}
