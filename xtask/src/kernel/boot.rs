//! A boot under emulation, from power-on to the guest's own end.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// Longest boot; a whole run takes about two minutes on a busy machine.
const LIMIT: Duration = Duration::from_secs(600);

/// What is booted.
pub(crate) struct Boot<'a> {
    pub(crate) kernel: &'a Path,
    pub(crate) initrd: &'a Path,
    /// Arguments of the guest's init.
    pub(crate) init: String,
}

impl Boot<'_> {
    /// Boots, and returns what the guest wrote to its serial line, which also stays at `log`.
    pub(crate) fn run(&self, log: &Path) -> Result<String> {
        // `tsc=reliable`: emulated CPUs start their counters a little apart, for which the kernel
        // would give up the TSC, and with it every read that does not enter the kernel.
        let line =
            format!("console=ttyS0 panic=-1 quiet clocksource=tsc tsc=reliable -- {}", self.init);
        let serial = fs::File::create(log)?;
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args(["-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none"])
            .args(["-net", "none", "-no-reboot", "-serial", "stdio", "-m", "256"])
            // Not KVM even where its device opens: nested, it may take the CPU and run nothing.
            .args(["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2"])
            .arg("-kernel")
            .arg(self.kernel)
            .arg("-initrd")
            .arg(self.initrd)
            .args(["-append", &line])
            .stdin(Stdio::null())
            .stdout(serial)
            .stderr(Stdio::inherit());
        let mut child = qemu.spawn().context("starting qemu-system-x86_64")?;
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
            bail!("qemu-system-x86_64 failed: {status}; see {}", log.display());
        }
        Ok(String::from_utf8_lossy(&fs::read(log)?).replace('\r', ""))
    }
}
