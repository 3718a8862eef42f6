//! What a run was made with, for whoever reads its report later.

use std::fs;
use std::process::Command;

use xtask::tools::root;

use super::process::run;

/// One line: commit, compilers, emulator, host.
pub(crate) fn line() -> String {
    let root = root().display().to_string();
    let commit = first(&["git", "-C", &root, "describe", "--always", "--dirty", "--abbrev=7"]);
    let cpus = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "Commit `{commit}`; {}; {}; {}, TCG; host: Linux {}, {cpus} CPUs, load average {}.",
        first(&["rustc", "--version"]),
        first(&["gcc", "--version"]),
        first(&["qemu-system-x86_64", "--version"]),
        first(&["uname", "-r"]),
        load.split(' ').next().unwrap_or("unknown"),
    )
}

/// The first line that a program prints.
fn first(command: &[&str]) -> String {
    let [program, arguments @ ..] = command else { return String::new() };
    let printed = run(Command::new(program).args(arguments));
    match printed {
        Ok(text) => text.lines().next().unwrap_or_default().to_owned(),
        Err(_) => format!("{program} unknown"),
    }
}
