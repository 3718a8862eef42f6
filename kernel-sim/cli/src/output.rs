//! Files are written whole or not at all.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// Writes `bytes` to `file`, replacing what was there only once all of them are on disk.
pub(crate) fn write(file: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    // A rename would replace what a link leads to, or a device, by a plain file.
    let file = match fs::metadata(file) {
        Ok(found) if !found.is_file() => bail!(
            "{} is no regular file; name a file to write, in a directory that exists",
            file.display()
        ),
        Ok(_) => fs::canonicalize(file).with_context(|| format!("finding {}", file.display()))?,
        Err(_) => file.to_owned(),
    };
    let temporary = beside(&file)?;
    let written = || {
        let mut options = OpenOptions::new();
        let mut handle = options.write(true).create_new(true).open(&temporary)?;
        handle.write_all(bytes)?;
        handle.sync_all()?;
        fs::rename(&temporary, &file)
    };
    written()
        .inspect_err(|_| drop(fs::remove_file(&temporary)))
        .with_context(|| format!("writing {}", file.display()))
}

/// A name in the same directory that nobody else uses.
fn beside(file: &Path) -> anyhow::Result<PathBuf> {
    let Some(name) = file.file_name() else {
        bail!("{} names no file", file.display());
    };
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.tmp", std::process::id()));
    Ok(file.with_file_name(temporary))
}
