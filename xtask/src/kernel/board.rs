//! The board's description that a guest boots with, where it has to say more than QEMU's own.
//!
//! Linux suspends an aarch64 machine to idle if its firmware cannot suspend the system, as QEMU's
//! cannot, and stops timekeeping meanwhile if each CPU has an idle state to be left in. QEMU's PSCI
//! has the call for it, its description of `virt` no such state.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::machine::SIZE;
use super::process::run;
use super::tree::Tree;

/// The description for `tree`'s machine; `None` if QEMU's own is enough.
pub(crate) fn describe(tree: &Tree) -> Result<Option<PathBuf>> {
    let machine = tree.machine;
    let Some(addition) = machine.board_addition else { return Ok(None) };
    let file = |name: &str| tree.own.join(name);
    let (plain, source, changed) = (file("board.dtb"), file("board.dts"), file("board-idle.dtb"));
    let mut dump = Command::new(machine.qemu);
    dump.args(["-nodefaults", "-no-user-config", "-display", "none"]);
    dump.args(machine.qemu_arguments).args(SIZE);
    // A second `-M` adds to the first.
    run(dump.arg("-M").arg(format!("dumpdtb={}", plain.display())))?;
    // The kernel's build brings the compiler of descriptions.
    let dtc = tree.build.join("scripts/dtc/dtc");
    let text = run(Command::new(&dtc).args(["-q", "-I", "dtb", "-O", "dts"]).arg(&plain))?;
    // A later root node is merged into the first.
    fs::write(&source, text + addition).context("writing the board's description")?;
    let mut compile = Command::new(&dtc);
    compile.args(["-q", "-I", "dts", "-O", "dtb", "-o"]).arg(&changed).arg(&source);
    run(&mut compile)?;
    Ok(Some(changed))
}
