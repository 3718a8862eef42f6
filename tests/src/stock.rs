//! Everything on a machine that a run could leave behind, for a process that has the machine to itself.
//!
//! That is the first process of a PID namespace with file systems and shared memory of its own: what
//! it finds is its own, or was left by what it ran.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// Where programs put files that nobody told them where to put.
pub const DIRECTORIES: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// What is there, a line each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stock(BTreeSet<String>);

impl Stock {
    /// Takes stock. Processes that are dead are waited for first, as is a first process's duty.
    ///
    /// # Panics
    /// If the machine cannot be looked at.
    #[must_use]
    pub fn take() -> Self {
        while waitpid(None, Some(WaitPidFlag::WNOHANG))
            .is_ok_and(|status| status != WaitStatus::StillAlive)
        {}
        let mut stock = Self::default();
        for directory in DIRECTORIES {
            stock.add_files(Path::new(directory));
        }
        for kind in ["shm", "sem", "msg"] {
            let table = fs::read_to_string(format!("/proc/sysvipc/{kind}")).expect("System V IPC");
            stock.0.extend(table.lines().skip(1).map(|line| format!("System V {kind}: {line}")));
        }
        for process in fs::read_dir("/proc").expect("/proc is mounted").flatten() {
            if let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) {
                stock.add_process(Pid::from_raw(pid), &process.path());
            }
        }
        stock
    }

    /// What is there and was not before, or the other way round.
    #[must_use]
    pub fn unlike(&self, before: &Self) -> Vec<String> {
        self.0.symmetric_difference(&before.0).cloned().collect()
    }

    fn add_files(&mut self, directory: &Path) {
        for entry in fs::read_dir(directory).expect("a directory of this process").flatten() {
            self.0.insert(format!("file: {}", entry.path().display()));
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.add_files(&entry.path());
            }
        }
    }

    /// A process, its descriptors and its mappings of memory without a name. Of this process, which
    /// looks through descriptors of its own, only those that are such memory.
    fn add_process(&mut self, pid: Pid, directory: &Path) {
        let is_this = pid == Pid::this();
        let name = fs::read_to_string(directory.join("comm")).unwrap_or_default();
        if !is_this {
            self.0.insert(format!("process: {pid} {}", name.trim_end()));
        }
        let is_memory = |text: &str| text.contains("/memfd:");
        for descriptor in fs::read_dir(directory.join("fd")).into_iter().flatten().flatten() {
            let target = fs::read_link(descriptor.path()).unwrap_or_default();
            let target = target.display().to_string();
            if is_memory(&target) {
                self.0.insert(format!("memory: open in {pid}: {target}"));
            }
        }
        let maps = fs::read_to_string(directory.join("maps")).unwrap_or_default();
        let mapped = maps.lines().filter(|line| is_memory(line));
        self.0.extend(mapped.map(|line| format!("memory: mapped in {pid}: {line}")));
    }
}
