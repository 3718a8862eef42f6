//! Whether every counter read is ordered, and whether the hot path is what was reviewed.
//!
//! The rules hold for any compiler: they look at each read of a counter in an image, with its
//! neighbours. The golden text (`abi/asm-*`) is one compiler's code for the hot path, with a comment
//! on each instruction that orders something; it is there to be read when it changes.

use std::fmt::Write as _;
use std::fs;
use std::ops::RangeInclusive;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use xtask::tools::root;

use crate::cross::image::Image;
use crate::cross::machine::Machine;
use crate::cross::sysroot::RUSTC;

/// How an architecture's counter is read: the instruction, and those that must be its neighbours.
struct Counter {
    read: &'static str,
    before: &'static [&'static str],
    after: &'static [&'static str],
}

/// What an architecture's code must look like.
struct Rules {
    counters: &'static [Counter],
    /// Registers that no instruction may name, or families of them: a platform's own, and those
    /// of floating point, which a kernel need not have made usable.
    forbidden: &'static [&'static str],
    /// The first instruction of every exported function.
    landing_pad: Option<&'static str>,
}

fn rules(machine: &Machine) -> Result<Rules> {
    Ok(match machine.arch() {
        "x86_64" | "i386" => Rules {
            counters: &[
                Counter { read: "rdtsc", before: &["lfence"], after: &[] },
                Counter { read: "rdtscp", before: &[], after: &[] },
            ],
            forbidden: &["xmm", "ymm", "mm", "st"],
            landing_pad: None,
        },
        "aarch64" => Rules {
            counters: &[
                Counter {
                    read: "cntvct_el0",
                    before: &["isb"],
                    after: &["eor", "add", "ldr xzr,"],
                },
                Counter { read: "s3_3_c14_c0_6", before: &[], after: &["eor", "add", "ldr xzr,"] },
            ],
            forbidden: &["x18", "w18", "v", "q", "d", "s", "h", "b"],
            landing_pad: Some("bti c"),
        },
        "riscv64" => Rules {
            counters: &[Counter { read: "rdtime", before: &["fence r,i"], after: &["fence i,r"] }],
            forbidden: &["fa", "ft", "fs", "v"],
            landing_pad: None,
        },
        "arm" => Rules {
            counters: &[Counter { read: "mrrc 15, 1,", before: &["isb"], after: &["isb"] }],
            forbidden: &["d", "s", "q"],
            landing_pad: None,
        },
        other => bail!("no rules for {other}"),
    })
}

/// Checks every instruction of an image; says how many reads of a counter were found.
pub(crate) fn check(image: &Image) -> Result<String> {
    let rules = rules(image.machine)?;
    let functions = disassemble(image)?;
    let mut reads = 0;
    for Function { name, lines } in &functions {
        for (at, line) in lines.iter().enumerate() {
            for register in rules.forbidden {
                ensure!(!names(&line.text, register), "{name}+{:#x}: {}", line.offset, line.text);
            }
            for counter in rules.counters.iter().filter(|counter| is_read(&line.text, counter)) {
                reads += 1;
                let before = at.checked_sub(counter.before.len()).map(|from| &lines[from..at]);
                let after = lines.get(at + 1..=at + counter.after.len());
                let holds = |found: Option<&[Line]>, wanted: &[&str]| {
                    found.is_some_and(|found| {
                        let mut pairs = found.iter().zip(wanted);
                        pairs.all(|(line, wanted)| line.text.starts_with(wanted))
                    })
                };
                ensure!(
                    holds(before, counter.before) && holds(after, counter.after),
                    "{name}+{:#x}: {:?} is not between {:?} and {:?}",
                    line.offset,
                    line.text,
                    counter.before,
                    counter.after
                );
            }
        }
        if let Some(pad) = rules.landing_pad
            && (name.starts_with("__vdso") || name.starts_with("__kernel"))
            && !name.ends_with("sigreturn")
        {
            ensure!(lines.first().is_some_and(|line| line.text == pad), "{name} has no {pad}");
        }
    }
    ensure!(reads >= rules.counters.len(), "only {reads} reads of a counter");
    Ok(format!("{reads} ordered reads of the counter"))
}

fn is_read(text: &str, counter: &Counter) -> bool {
    let word = |word: &str| word == counter.read;
    text.starts_with(counter.read) && counter.read.contains(' ') || text.split([' ', ',']).any(word)
}

/// Whether an instruction names a register, or one of a family (`xmm` for `xmm3`).
fn names(text: &str, register: &str) -> bool {
    let Some((_, operands)) = text.split_once(' ') else {
        return false;
    };
    let is_digits = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit());
    operands
        .split([' ', ',', '[', ']', '(', ')', '{', '}', '%'])
        .any(|operand| operand.strip_prefix(register).is_some_and(is_digits))
}

/// An instruction.
struct Line {
    /// From the start of its function.
    offset: u64,
    text: String,
}

/// A function's instructions.
struct Function {
    name: String,
    lines: Vec<Line>,
}

fn disassemble(image: &Image) -> Result<Vec<Function>> {
    let objdump = image.machine.objdump;
    let output = Command::new(objdump)
        .args(["--disassemble", "--no-show-raw-insn"])
        .args(if image.machine.arch() == "i386" { &["-Mintel"][..] } else { &[] })
        .arg(image.debug())
        .output()
        .with_context(|| format!("running {objdump}"))?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    let mut functions: Vec<Function> = Vec::new();
    for line in text.lines() {
        if let Some((_, name)) = line.split_once(" <")
            && let Some(name) = name.strip_suffix(">:")
        {
            // RISC-V's objects keep the compiler's labels; they are inside of functions.
            if !name.starts_with(".L") {
                functions.push(Function { name: name.to_owned(), lines: Vec::new() });
            }
        } else if let Some((address, instruction)) = line.split_once(":\t")
            && let Some(function) = functions.last_mut()
        {
            let offset = u64::from_str_radix(address.trim(), 16)?;
            function.lines.push(Line { offset, text: instruction.to_owned() });
        }
    }
    ensure!(functions.len() > 5, "{objdump} shows {} functions", functions.len());
    for Function { lines, .. } in &mut functions {
        let start = lines.first().map_or(0, |line| line.offset);
        let end = lines.last().map_or(0, |line| line.offset);
        for line in lines {
            line.offset -= start;
            line.text = normalized(&line.text, start..=end);
        }
    }
    Ok(functions)
}

/// An instruction without addresses, which change with everything before it, and without remarks.
fn normalized(instruction: &str, function: RangeInclusive<u64>) -> String {
    // Remarks begin with "//" for aarch64, with "@" for arm, with "#" for riscv64.
    let ends = ["//", "\t@ ", " @ ", " # "].map(|mark| instruction.find(mark));
    let end = ends.into_iter().flatten().min().unwrap_or(instruction.len());
    let mut text = instruction[..end].to_owned();
    if let Some((code, target)) = text.split_once('<') {
        let code = code.trim_end();
        let (code, address) =
            code.split_at(code.trim_end_matches(|c: char| c.is_ascii_hexdigit()).len());
        let address = u64::from_str_radix(address, 16).ok();
        let target = match address.filter(|address| function.contains(address)) {
            Some(address) => format!("+{:#x}", address - function.start()),
            None if target.starts_with("vdso_u_time_data") => "<vdso_u_time_data>".to_owned(),
            None => "<out of line>".to_owned(),
        };
        text = format!("{code}{target}");
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The golden text of an architecture's hot path.
pub(crate) struct Golden {
    machine: &'static Machine,
    /// Part of the name of the function that holds it.
    function: &'static str,
    /// What each ordering instruction is for: a beginning of it, and the comment.
    comments: &'static [(&'static str, &'static str)],
}

impl Golden {
    /// The one of `machine`; x86_64's is among the tests of a plain build.
    pub(crate) fn of(machine: &'static Machine) -> Option<Self> {
        let (function, comments): (_, &[_]) = match machine.arch() {
            "aarch64" => (
                "__kernel_clock_gettime",
                &[
                    ("ldar", "R1: no load of the page runs before this one"),
                    ("isb", "the counter is read behind the loads that were branched on"),
                    ("eor", "zero, but not before the counter is known"),
                    ("ldr xzr,", "a load behind the counter, for R2 to order"),
                    ("dmb ishld", "R2: the closing check runs behind every load above"),
                ],
            ),
            "riscv64" => (
                "__vdso_clock_gettime",
                &[
                    ("fence r,i", "the counter, device input to a fence, is read behind the loads"),
                    ("fence i,r", "the closing check runs behind the counter"),
                    ("fence r,rw", "R1 behind the first load, R2 before the closing check"),
                ],
            ),
            "arm" => (
                "5quick12compact_time",
                &[
                    ("dmb", "R1 behind the first load, R2 before the closing check"),
                    ("isb", "the counter is read behind the loads above, before those below"),
                ],
            ),
            "i386" => (
                "5quick12compact_time",
                &[("lfence", "the counter is read behind the loads above")],
            ),
            _ => return None,
        };
        Some(Self { machine, function, comments })
    }

    /// Compares the text, or writes it.
    pub(crate) fn check(&self, image: &Image, bless: bool) -> Result<String> {
        let path = root()
            .join("abi")
            .join(format!("asm-{}", self.machine.arch()))
            .join("clock_gettime.txt");
        let found = self.text(image)?;
        if bless {
            fs::create_dir_all(path.parent().unwrap_or(&path))?;
            fs::write(&path, &found).with_context(|| format!("writing {}", path.display()))?;
            return Ok("written".to_owned());
        }
        let golden = fs::read_to_string(&path).with_context(|| {
            format!("reading {} (`cargo xtask cross --bless` writes it)", path.display())
        })?;
        let version = |text: &str| text.lines().next().unwrap_or_default().to_owned();
        if version(&golden) != version(&found) {
            let (theirs, ours) = (version(&golden), version(&found));
            return Ok(format!("not compared: the golden text is {theirs}, this is {ours}"));
        }
        for (number, (golden, found)) in golden.lines().zip(found.lines()).enumerate() {
            ensure!(
                golden == found,
                "{}:{}: {found:?} was {golden:?}; `cargo xtask cross --bless` accepts it",
                path.display(),
                number + 1
            );
        }
        ensure!(golden == found, "{}: another length", path.display());
        Ok(format!("{} instructions as reviewed", found.lines().count() - 2))
    }

    fn text(&self, image: &Image) -> Result<String> {
        let version = Command::new(RUSTC).arg("--version").output().context("running rustc")?;
        let version = String::from_utf8(version.stdout)?;
        let functions = disassemble(image)?;
        let Some(function) = functions.iter().find(|f| f.name.contains(self.function)) else {
            bail!("the image has no function {}", self.function);
        };
        let mut text = format!("# {}\n# {}: the hot path\n", version.trim(), self.machine.arch());
        for Line { offset, text: instruction } in &function.lines {
            if is_padding(instruction) {
                continue;
            }
            let mut comments = self.comments.iter();
            match comments.find(|(start, _)| instruction.starts_with(start)) {
                Some((_, comment)) => {
                    let _ = writeln!(text, "+{offset:03x} {instruction:32} # {comment}");
                }
                None => {
                    let _ = writeln!(text, "+{offset:03x} {instruction}");
                }
            }
        }
        Ok(text)
    }
}

/// What stands between functions.
fn is_padding(instruction: &str) -> bool {
    ["udf", "int3", "unimp", "c.unimp", "...", "nop"].iter().any(|pad| instruction.starts_with(pad))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_named_by_operands_alone() {
        assert!(names("movaps xmm0,[esp]", "xmm"));
        assert!(names("ldr x18, [sp]", "x18"));
        assert!(names("vmov.f64 d16, d17", "d"));
        assert!(!names("add x1, x2, w18x", "w18"));
        assert!(!names("b.hi +0x18", "b"));
        assert!(!names("ret", "x18"));
    }

    #[test]
    fn addresses_and_remarks_are_left_out() {
        let text = |instruction| normalized(instruction, 0x1000..=0x10ff);
        assert_eq!(text("b.hi\t1028 <f+0x28>  // b.pmore"), "b.hi +0x28");
        assert_eq!(text("bl\t2028 <g>"), "bl <out of line>");
        assert_eq!(
            text("adr\tx1, ffffffffffffc000 <vdso_u_time_data>"),
            "adr x1, <vdso_u_time_data>"
        );
        assert_eq!(text("movw\tr3, #2275\t@ 0x8e3"), "movw r3, #2275");
    }
}
