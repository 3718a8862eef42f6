//! The writer as an object for vmlinux, and what the kernel demands of it.
//!
//! On x86_64 it is compiled for the host's own target with the kernel's code model: the toolchain has
//! `core` for that one. A kernel may use no vector register, which the target allows, so the
//! vectorisers are off (`docs/decisions/0041`). On aarch64 `core` is compiled from source anyway, and
//! for the target without such registers. Either way the object is judged by its instructions.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use super::code::Code;
use super::machine::{Arch, Machine};
use super::process::run;
use super::tree::Tree;
use crate::cross::{RUSTC, sysroot_for};

const FLAGS: [&str; 6] = [
    "-Crelocation-model=static",
    "-Cno-vectorize-loops",
    "-Cno-vectorize-slp",
    "-Cjump-tables=no",
    "-Cembed-bitcode=no",
    "-Csymbol-mangling-version=v0",
];

/// How the compiler is called for a machine.
struct Target {
    triple: &'static str,
    flags: &'static [&'static str],
}

fn target(machine: &Machine) -> Target {
    match machine.arch {
        Arch::X86_64 => Target {
            triple: "x86_64-unknown-linux-gnu",
            flags: &[
                "-Ccode-model=kernel",
                // An interrupt handler runs on the kernel's own stack, right below the stack pointer.
                "-Cno-redzone=y",
                "-Cforce-unwind-tables=no",
            ],
        },
        Arch::Aarch64 => Target {
            triple: "aarch64-unknown-none-softfloat",
            // x18 is the shadow call stack's, in a kernel that has one.
            flags: &["-Zfixed-x18", "-Cforce-unwind-tables=no"],
        },
    }
}

/// What the shim calls.
const EXPORTS: [&str; 4] =
    ["uvdso_format", "uvdso_setup_timens", "uvdso_update", "uvdso_update_tz"];

/// Compiles the writer of the workspace at `root`; returns an object that passed.
pub(crate) fn compile(root: &Path, tree: &Tree) -> Result<PathBuf> {
    // The compiler writes the object only when cargo finds something to do, so each place of sources
    // has a target directory of its own, and its object in it: else a fresh build of these sources
    // would leave the object of others.
    let name = if root == xtask::tools::root() { "cargo" } else { "cargo-mutant" };
    let directory = tree.own.join(name);
    let (raw, object) = (directory.join("writer.raw.o"), tree.own.join("writer.o"));
    fs::create_dir_all(&directory)?;
    let mut emit = std::ffi::OsString::from("--emit=obj=");
    emit.push(&raw);
    let Target { triple, flags } = target(tree.machine);
    let mut all: Vec<String> = FLAGS.iter().chain(flags).map(|&flag| flag.to_owned()).collect();
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(root)
        .env_remove("RUSTFLAGS")
        .env("CARGO_TARGET_DIR", &directory)
        .args(["rustc", "--quiet", "--locked", "--package", "kernel-writer", "--lib"])
        .args(["--profile", "image", "--target", triple, "--"])
        .arg(emit);
    if tree.machine.arch != Arch::X86_64 {
        all.push(format!("--sysroot={}", sysroot_for(triple, flags)?.display()));
        cargo.env("RUSTC", RUSTC).env("RUSTC_BOOTSTRAP", "1");
    }
    run(cargo.env("CARGO_ENCODED_RUSTFLAGS", all.join("\x1f")))?;
    let script = xtask::tools::root().join("kernel/shim/writer.lds");
    run(Command::new(tree.machine.program("ld"))
        .args(["-r", "-z", "noexecstack", "--strip-debug", "-T"])
        .arg(script)
        .arg(&raw)
        .arg("-o")
        .arg(&object))?;
    let objdump = |arguments: &[&str]| {
        run(Command::new(tree.machine.program("objdump")).args(arguments).arg(&object))
    };
    let symbols = run(Command::new(tree.machine.program("nm")).arg(&object))?;
    let (relocations, sections) = (objdump(&["-r"])?, objdump(&["-h"])?);
    judge(&symbols, &relocations, &sections)?;
    Code::of(tree.machine.arch).judge(&objdump(&["-d", "--no-show-raw-insn"])?)?;
    Ok(object)
}

/// Refuses an object that the kernel must not link; the texts are those of `nm` and `objdump`.
fn judge(symbols: &str, relocations: &str, sections: &str) -> Result<()> {
    let mut exported = Vec::new();
    for line in symbols.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["U", name] => bail!("the object has an undefined symbol: {name}"),
            [_, "T", name] => exported.push(name),
            _ => bail!("the object has a symbol that is no exported function: {line}"),
        }
    }
    if exported != EXPORTS {
        bail!("the object exports {exported:?}, and not {EXPORTS:?}");
    }
    if let Some(line) = relocations.lines().find(|line| line.contains(" R_")) {
        bail!("the object has a relocation: {line}");
    }
    for line in sections.lines() {
        // Number, name, size, ...; the line below has the flags.
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [number, name, size, ..] = words[..]
            && number.parse::<u32>().is_ok()
            && !matches!(name, ".text" | ".note.GNU-stack")
            && !size.trim_matches('0').is_empty()
        {
            bail!("the object has a section {name} of 0x{size} bytes beside its code");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "0000000000000000 T uvdso_format\n0000000000000190 T uvdso_setup_timens\n\
                           0000000000000210 T uvdso_update\n0000000000000790 T uvdso_update_tz\n";
    const SECTIONS: &str = "  0 .text         0000073b  0000  0000  00000040  2**4\n\
                            \x20                 CONTENTS, ALLOC, LOAD, READONLY, CODE\n";

    fn refusal(symbols: &str, relocations: &str, sections: &str) -> String {
        judge(symbols, relocations, sections).unwrap_err().to_string()
    }

    #[test]
    fn one_bad_object_for_each_demand() {
        judge(SYMBOLS, "", SECTIONS).unwrap();
        let undefined = format!("                 U memcpy\n{SYMBOLS}");
        assert!(refusal(&undefined, "", SECTIONS).contains("memcpy"));
        assert!(refusal("", "", SECTIONS).contains("exports"));
        let data = format!("{SYMBOLS}0000000000000000 b STATE\n");
        assert!(refusal(&data, "", SECTIONS).contains("STATE"));
        let relocation = "0000000000000294 R_X86_64_GOTPCREL  memcpy-0x4\n";
        assert!(refusal(SYMBOLS, relocation, SECTIONS).contains("relocation"));
        let rodata = format!("{SECTIONS}  1 .rodata       00000010  0000  0000  00000040  2**4\n");
        assert!(refusal(SYMBOLS, "", &rodata).contains(".rodata"));
    }
}
