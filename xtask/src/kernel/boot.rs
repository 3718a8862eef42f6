//! A boot under emulation, from power-on to the guest's own end.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::machine::{Machine, SIZE};

/// Longest boot; a whole run takes about two minutes on a busy machine.
const LIMIT: Duration = Duration::from_secs(600);

/// What is booted.
pub(crate) struct Boot<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) kernel: &'a Path,
    pub(crate) initrd: &'a Path,
    /// The board's description, if QEMU's own is not enough.
    pub(crate) board: Option<&'a Path>,
    /// Arguments of the guest's init.
    pub(crate) init: String,
}

impl Boot<'_> {
    /// Boots, and returns what the guest wrote to its serial line, which also stays at `log`.
    pub(crate) fn run(&self, log: &Path) -> Result<String> {
        let machine = self.machine;
        let line = format!("{} -- {}", machine.command_line, self.init);
        let serial = fs::File::create(log)?;
        let mut qemu = Command::new(machine.qemu);
        qemu.args(["-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none"])
            .args(["-net", "none", "-no-reboot", "-serial", "stdio"])
            // Not KVM even where its device opens: nested, it may take the CPU and run nothing.
            .args(["-accel", "tcg,thread=multi"])
            .args(SIZE)
            .args(machine.qemu_arguments)
            .arg("-kernel")
            .arg(self.kernel)
            .arg("-initrd")
            .arg(self.initrd)
            .args(["-append", &line])
            .stdin(Stdio::null())
            .stdout(serial)
            .stderr(Stdio::inherit());
        if let Some(board) = self.board {
            qemu.arg("-dtb").arg(board);
        }
        let mut child = qemu.spawn().with_context(|| format!("starting {}", machine.qemu))?;
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if start.elapsed() > LIMIT {
                child.kill()?;
                child.wait()?;
                bail!("the guest did not end within {LIMIT:?}; see {}", log.display());
            }
            thread::sleep(Duration::from_millis(50));
        };
        if !status.success() {
            bail!("{} failed: {status}; see {}", machine.qemu, log.display());
        }
        Ok(String::from_utf8_lossy(&fs::read(log)?).replace('\r', ""))
    }
}
