//! The writer as an object for vmlinux, and what the kernel demands of it.
//!
//! It is compiled for the host's own target with the kernel's code model: the toolchain has `core`
//! for that one. A kernel may use no vector register, which the target allows, so the vectorisers
//! are off and the object is judged by its instructions (`docs/decisions/0041`).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use super::process::run;
use super::tree::Tree;

const TARGET: &str = "x86_64-unknown-linux-gnu";

const FLAGS: [&str; 9] = [
    "-Ccode-model=kernel",
    "-Crelocation-model=static",
    // An interrupt handler runs on the kernel's own stack, right below the stack pointer.
    "-Cno-redzone=y",
    "-Cno-vectorize-loops",
    "-Cno-vectorize-slp",
    "-Cforce-unwind-tables=no",
    "-Cjump-tables=no",
    "-Cembed-bitcode=no",
    "-Csymbol-mangling-version=v0",
];

/// What the shim calls.
const EXPORTS: [&str; 4] =
    ["uvdso_format", "uvdso_setup_timens", "uvdso_update", "uvdso_update_tz"];

/// Compiles the writer of the workspace at `root`; returns an object that passed.
pub(crate) fn compile(root: &Path, tree: &Tree) -> Result<PathBuf> {
    // The compiler writes the object only when cargo finds something to do, so each place of sources
    // has a target directory of its own, and its object in it: else a fresh build of these sources
    // would leave the object of others.
    let name = if root == xtask::tools::root() { "cargo" } else { "cargo-mutant" };
    let target = tree.own.join(name);
    let (raw, object) = (target.join("writer.raw.o"), tree.own.join("writer.o"));
    fs::create_dir_all(&target)?;
    let mut emit = std::ffi::OsString::from("--emit=obj=");
    emit.push(&raw);
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(root)
        .env_remove("RUSTFLAGS")
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"))
        .env("CARGO_TARGET_DIR", &target)
        .args(["rustc", "--quiet", "--locked", "--package", "kernel-writer", "--lib"])
        .args(["--profile", "image", "--target", TARGET, "--"])
        .arg(emit);
    run(&mut cargo)?;
    let script = xtask::tools::root().join("kernel/shim/writer.lds");
    run(Command::new("ld")
        .args(["-r", "-z", "noexecstack", "--strip-debug", "-T"])
        .arg(script)
        .arg(&raw)
        .arg("-o")
        .arg(&object))?;
    let symbols = run(Command::new("nm").arg(&object))?;
    let relocations = run(Command::new("objdump").arg("-r").arg(&object))?;
    let sections = run(Command::new("objdump").arg("-h").arg(&object))?;
    let code = run(Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(&object))?;
    judge(&symbols, &relocations, &sections, &code)?;
    Ok(object)
}

/// Refuses an object that the kernel must not link; the texts are those of `nm` and `objdump`.
fn judge(symbols: &str, relocations: &str, sections: &str, code: &str) -> Result<()> {
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
    if let Some(line) = relocations.lines().find(|line| line.contains(" R_X86_64_")) {
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
    instructions(code)
}

/// Only straight code on general registers: no vector or x87 unit, no call, no trap.
fn instructions(code: &str) -> Result<()> {
    let mut seen = 0;
    for line in code.lines() {
        let Some((_, instruction)) = line.split_once(":\t") else { continue };
        seen += 1;
        let mnemonic = instruction.split_whitespace().next().unwrap_or_default();
        let vector = ["%xmm", "%ymm", "%zmm", "%mm", "%st"];
        // x87 instructions begin with f and may name no register; `fence` ones do not begin so.
        if vector.iter().any(|register| instruction.contains(register)) || mnemonic.starts_with('f')
        {
            bail!("the object uses a register that the kernel does not save: {instruction}");
        }
        // Without unwinding, a panic that was inlined away ends in a trap.
        if mnemonic.starts_with("call") || mnemonic.starts_with("ud") || mnemonic == "int3" {
            bail!("the object calls or traps: {instruction}");
        }
        if mnemonic.starts_with("jmp") && instruction.contains('*') {
            bail!("the object jumps through a register or memory: {instruction}");
        }
    }
    if seen < 100 {
        bail!("only {seen} instructions were found in the object");
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

    fn code(last: &str) -> String {
        let mut text = "   0:\tmov    %rax,%rbx\n".repeat(120);
        text.push_str("   1:\t");
        text.push_str(last);
        text.push('\n');
        text
    }

    fn refusal(symbols: &str, relocations: &str, sections: &str, code: &str) -> String {
        judge(symbols, relocations, sections, code).unwrap_err().to_string()
    }

    #[test]
    fn straight_code_passes() {
        judge(SYMBOLS, "", SECTIONS, &code("jmp    5d <uvdso_format+0x5d>")).unwrap();
    }

    #[test]
    fn one_bad_object_for_each_demand() {
        let good = code("ret");
        let undefined = format!("                 U memcpy\n{SYMBOLS}");
        assert!(refusal(&undefined, "", SECTIONS, &good).contains("memcpy"));
        assert!(refusal("", "", SECTIONS, &good).contains("exports"));
        let data = format!("{SYMBOLS}0000000000000000 b STATE\n");
        assert!(refusal(&data, "", SECTIONS, &good).contains("STATE"));
        let relocation = "0000000000000294 R_X86_64_GOTPCREL  memcpy-0x4\n";
        assert!(refusal(SYMBOLS, relocation, SECTIONS, &good).contains("relocation"));
        let rodata = format!("{SECTIONS}  1 .rodata       00000010  0000  0000  00000040  2**4\n");
        assert!(refusal(SYMBOLS, "", &rodata, &good).contains(".rodata"));
        for instruction in [
            "movups %xmm1,0x1e8(%rsp)",
            "fldl   (%rax)",
            "call   1d8 <uvdso_update+0x1d8>",
            "ud2",
            "jmp    *0x0(%rip)",
            "jmp    *%rax",
        ] {
            assert!(judge(SYMBOLS, "", SECTIONS, &code(instruction)).is_err(), "{instruction}");
        }
        assert!(refusal(SYMBOLS, "", SECTIONS, "   0:\tret\n").contains("only 1"));
    }
}
