//! The guest's file system: an archive in the `newc` format of cpio
//! (Linux, `Documentation/driver-api/early-userspace/buffer-format.rst`), uncompressed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Files by their path in the guest.
#[derive(Default)]
pub(crate) struct Initrd {
    bytes: Vec<u8>,
    directories: BTreeSet<String>,
    inodes: u32,
}

const DIRECTORY: u32 = 0o040_755;
const EXECUTABLE: u32 = 0o100_755;

impl Initrd {
    /// Adds an executable file, and the directories above it.
    pub(crate) fn add(&mut self, path: &str, bytes: &[u8]) {
        for (at, _) in path.match_indices('/') {
            let directory = &path[..at];
            if self.directories.insert(directory.to_owned()) {
                self.entry(directory, DIRECTORY, &[]);
            }
        }
        self.entry(path, EXECUTABLE, bytes);
    }

    /// Adds a file of the host.
    pub(crate) fn add_file(&mut self, path: &str, file: &Path) -> Result<()> {
        let bytes = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
        self.add(path, &bytes);
        Ok(())
    }

    /// The whole archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, bytes: &[u8]) {
        self.inodes += 1;
        // Magic, then thirteen fields of eight hexadecimal digits.
        let fields = [
            self.inodes as usize,
            mode as usize,
            0, // owner
            0, // group
            1, // links
            0, // time
            bytes.len(),
            0,
            0,
            0,
            0,
            name.len() + 1,
            0, // checksum, unused in this format
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(bytes);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_aligned_and_directories_come_first_and_once() {
        let mut initrd = Initrd::default();
        initrd.add("init", b"x");
        initrd.add("lib/a/b", b"12345");
        initrd.add("lib/a/c", b"");
        let bytes = initrd.finish();
        assert_eq!(bytes.len() % 4, 0);
        let mut names = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let field = |n: usize| {
                let hex = &bytes[at + 6 + 8 * n..at + 14 + 8 * n];
                usize::from_str_radix(std::str::from_utf8(hex).unwrap(), 16).unwrap()
            };
            assert_eq!(&bytes[at..at + 6], b"070701");
            let (size, name) = (field(6), field(11));
            names.push(String::from_utf8(bytes[at + 110..at + 110 + name - 1].to_vec()).unwrap());
            at = (at + 110 + name).next_multiple_of(4);
            at = (at + size).next_multiple_of(4);
        }
        assert_eq!(names, ["init", "lib", "lib/a", "lib/a/b", "lib/a/c", "TRAILER!!!"]);
    }
}
