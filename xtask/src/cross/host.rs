//! The C program (`tests/cross`) on the images: compiled with the architecture's own libc, run by
//! the machine's CPU where it can, and by an emulator.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use xtask::tools::root;

use crate::cross::image::Image;
use crate::cross::machine::{Machine, Runner};
use crate::cross::{Report, vector};

/// The compiled program.
pub(crate) struct Host {
    machine: &'static Machine,
    program: PathBuf,
}

/// No run takes a tenth of this; an image that hangs must not hang its tests.
const LIMIT: &str = "120";

impl Host {
    /// Compiles it. The page's C header asserts its layout for the architecture on the way.
    pub(crate) fn compile(machine: &'static Machine, directory: &Path) -> Result<Self> {
        let sources = root().join("tests/cross");
        fs::write(directory.join("vectors.h"), vector::header())?;
        let mut files = Vec::new();
        for entry in fs::read_dir(&sources).context("reading tests/cross")? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "c") {
                files.push(path);
            }
        }
        files.sort();
        let program = directory.join("host");
        let mut gcc = Command::new(machine.gcc);
        gcc.args(["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-static"])
            // libgcc's question for unwind tables is answered by the program.
            .args(["-fasynchronous-unwind-tables", "-Wl,--wrap=_dl_find_object"])
            .args(machine.gcc_flags)
            .arg("-I")
            .arg(root().join("datapage/include"))
            .arg("-I")
            .arg(directory)
            .args(files)
            .arg("-o")
            .arg(&program);
        let output = gcc.output().with_context(|| format!("running {}", machine.gcc))?;
        ensure!(
            output.status.success(),
            "compiling tests/cross failed:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(Self { machine, program })
    }

    /// Runs every check on the image.
    pub(crate) fn run(&self, image: &Image, runner: Runner, report: &mut Report) {
        let how = match runner {
            Runner::Native => "native".to_owned(),
            Runner::Emulated(4096) => "emulated".to_owned(),
            Runner::Emulated(bytes) => format!("emulated, pages of {} KiB", bytes / 1024),
        };
        let name = format!("{}: {} {how}", self.machine.arch(), image.name());
        report.check(&name, || {
            let output = self.command(image, runner, &[], "check").output()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            if !output.status.success() {
                let errors = String::from_utf8_lossy(&output.stderr);
                bail!("{}\n{text}{errors}", output.status);
            }
            let last = text.lines().last().unwrap_or_default();
            ensure!(last.ends_with(" checks, 0 failed"), "the program says {last:?}");
            Ok(last.to_owned())
        });
    }

    /// Runs a task under the emulator with its `flags`.
    pub(crate) fn emulate(&self, image: &Image, flags: &[&str], task: &str) -> Result<Output> {
        let output = self.command(image, Runner::Emulated(4096), flags, task).output()?;
        ensure!(
            output.status.success(),
            "{task}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stdout)
        );
        Ok(output)
    }

    fn command(&self, image: &Image, runner: Runner, flags: &[&str], task: &str) -> Command {
        let mut command = Command::new("timeout");
        command.arg(LIMIT);
        let how = match runner {
            Runner::Native => "native",
            Runner::Emulated(page_bytes) => {
                command.arg(self.machine.qemu).args(["-p", &page_bytes.to_string()]).args(flags);
                "emulated"
            }
        };
        command
            .arg(&self.program)
            .arg(&image.path)
            .args([&image.slot_bytes.to_string(), image.policy, how, task])
            .stdin(Stdio::null());
        command
    }
}
