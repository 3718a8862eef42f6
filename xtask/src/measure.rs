//! `cargo xtask measure`: everything that `docs/measurements.md` says of this project's speed, from
//! one run on one machine.
//!
//! The document's text is written by people; the tables stand in blocks between markers, and the
//! drawings beside it. Sections of others (the kernel's, the fuzzer's) have no blocks.

mod blocks;

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use xtask::tools::root;

use self::blocks::Document;
use crate::circumstances::{commit, cpus, load, said};
use crate::stage::cargo;

/// Options of `measure`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Fewer and shorter samples, to see whether it works: not to be quoted.
    #[arg(long)]
    quick: bool,
}

const DOCUMENT: &str = "docs/measurements.md";
const DRAWINGS: &str = "docs/measurements";

/// The document's blocks: the tables by the names that `bench --table` has for them, and the rest.
const BLOCKS: [&str; 13] = [
    "vdsotest",
    "vdsotest-rate",
    "getres",
    "getns",
    "clocks",
    "layout",
    "peers",
    "scale",
    "limit",
    "machine",
    "check",
    "launcher",
    "instructions",
];

/// Measures, and writes the document and its drawings.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let path = root().join(DOCUMENT);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {DOCUMENT}"))?;
    let mut document = Document::new(text);
    // A document without a block is to fail now, not after all has been measured.
    for name in BLOCKS {
        Document::new(document.text().to_owned()).set(name, "")?;
    }
    // Before anything is drawn, which changes files as well.
    let commit = commit()?;
    build()?;
    document.set("instructions", &instructions()?)?;

    let mut loads = vec![load()?];
    let mut note_load = |what: &str| -> Result<()> {
        loads.push(load()?);
        eprintln!("measured: {what}");
        Ok(())
    };
    let quick = |words: &[&str]| -> Vec<String> {
        let quick = arguments.quick.then_some("--quick");
        words.iter().copied().chain(quick).map(str::to_owned).collect()
    };
    let tables = json("kernel-sim", &quick(&["bench", "--json", "--svg", DRAWINGS]), &[0])?;
    note_load("the tables")?;
    let checks = json("kernel-sim", &quick(&["bench", "--check", "--json"]), &[0, 1, 3])?;
    note_load("the promises")?;
    document.set("machine", &machine(&tables, &commit, &loads, arguments.quick)?)?;
    document.set("check", &promises(&checks["ratios"])?)?;
    document.set("launcher", &launches(&checks)?)?;
    for table in array(&tables["tables"])? {
        document.set(string(&table["table"])?, &fenced(table)?)?;
    }
    fs::write(&path, document.text()).with_context(|| format!("writing {DOCUMENT}"))?;
    println!("{DOCUMENT} and the drawings in {DRAWINGS} are written");
    Ok(ExitCode::SUCCESS)
}

fn build() -> Result<()> {
    let status = cargo(&["build", "--release", "--locked", "--package", "cli"])
        .current_dir(root())
        .status()
        .context("running cargo build")?;
    if !status.success() {
        bail!("the program that measures cannot be built");
    }
    Ok(())
}

/// Runs one of our programs from the repository's root; what it printed.
fn output(program: &str, arguments: &[String], accepted: &[i32]) -> Result<String> {
    let path = root().join("target/release").join(program);
    let output = Command::new(&path)
        .args(arguments)
        .current_dir(root())
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("running {}", path.display()))?;
    if !output.status.code().is_some_and(|code| accepted.contains(&code)) {
        bail!("{program} {}: {}", arguments.join(" "), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("what {program} printed"))
}

fn json(program: &str, arguments: &[String], accepted: &[i32]) -> Result<Value> {
    let text = output(program, arguments, accepted)?;
    serde_json::from_str(&text).with_context(|| format!("what {program} printed"))
}

/// On what all of it was measured.
fn machine(tables: &Value, commit: &str, loads: &[String], quick: bool) -> Result<String> {
    let machine = string(&tables["machine"])?;
    let rustc = said("rustc", &["--version"])?;
    let rustc = rustc.split(' ').nth(1).unwrap_or("of an unknown version");
    let cpus = cpus()?;
    let mut text = format!(
        "Machine: {machine}; {cpus} CPUs. Commit `{commit}`, rustc {rustc}.\nThe tables \
         are the output of one run of `cargo xtask measure`; load averages before, between and \
         after its parts: {}.\n",
        loads.join(", ")
    );
    if quick {
        text.push_str("A quick run, to see whether it works: not to be quoted.\n");
    }
    Ok(text)
}

/// The goldens that the tests compare with.
fn instructions() -> Result<String> {
    let mut text = String::new();
    for name in ["instructions-x86_64.txt", "instructions-getcpu-x86_64.txt"] {
        let path = root().join("abi").join(name);
        let golden =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let (_, lines) = golden.split_once("\n\n").context("a golden has a head")?;
        text.push_str(lines);
    }
    Ok(format!("```text\n{text}```\n"))
}

/// A table as it is printed, with its notes.
fn fenced(table: &Value) -> Result<String> {
    let mut text = String::from("```text\n");
    for line in string(&table["text"])?.trim_matches('\n').lines() {
        let _ = writeln!(text, "{}", line.trim_end());
    }
    for note in array(&table["notes"])? {
        let _ = writeln!(text, "note: {}", string(note)?);
    }
    text.push_str("```\n");
    Ok(text)
}

/// The rows of `bench --check`.
fn promises(outcomes: &Value) -> Result<String> {
    let mut text = String::from(
        "| measured | against | ns (min, p99) | ns | ratio | 95 % interval | target | verdict |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for outcome in array(outcomes)? {
        let (ours, ratio) = (&outcome["nanos"], &outcome["ratio"]);
        let target = outcome["target"].as_f64().map_or("-".to_owned(), |t| format!("{t:.2}"));
        let _ = writeln!(
            text,
            "| {} | {} | {:.2} ({:.1}, {:.1}) | {:.2} | {:.3} | {:.3} - {:.3} | {target} | {} |",
            string(&outcome["name"])?,
            string(&outcome["against"])?,
            number(&ours["median"])?,
            number(&ours["min"])?,
            number(&ours["p99"])?,
            number(&outcome["against_nanos"]["median"])?,
            number(&ratio["median"])?,
            number(&ratio["low"])?,
            number(&ratio["high"])?,
            verdict(outcome)?,
        );
    }
    Ok(text)
}

/// Its rows that launch programs, and those that this machine cannot measure.
fn launches(checks: &Value) -> Result<String> {
    let mut text = String::from(
        "| measured | against | ms (min, p99, most) | ms (min, p99, most) | judged | ms | \
         95 % interval | target | verdict |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for outcome in array(&checks["launches"])? {
        let (found, target) = (&outcome["found"], number(&outcome["target"])?);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {:.2} | {:.2} - {:.2} | {target:.0} | {} |",
            string(&outcome["name"])?,
            string(&outcome["against"])?,
            millis(&outcome["millis"])?,
            millis(&outcome["against_millis"])?,
            string(&outcome["judged"])?,
            number(&found["value"])?,
            number(&found["low"])?,
            number(&found["high"])?,
            verdict(outcome)?,
        );
    }
    for left_out in array(&checks["left_out"])? {
        let (name, why) = (string(&left_out["name"])?, string(&left_out["why"])?);
        let _ = writeln!(text, "\nLeft out: {name}: {why}.");
    }
    Ok(text)
}

fn millis(spread: &Value) -> Result<String> {
    Ok(format!(
        "{:.2} ({:.2}, {:.2}, {:.2})",
        number(&spread["median"])?,
        number(&spread["min"])?,
        number(&spread["p99"])?,
        number(&spread["most"])?,
    ))
}

fn verdict(outcome: &Value) -> Result<&str> {
    Ok(match string(&outcome["verdict"])? {
        "fail" => "FAIL",
        other => other,
    })
}

fn number(value: &Value) -> Result<f64> {
    value.as_f64().context("a number is missing in what was printed")
}

fn string(value: &Value) -> Result<&str> {
    value.as_str().context("a text is missing in what was printed")
}

fn array(value: &Value) -> Result<&[Value]> {
    value.as_array().map(Vec::as_slice).context("a list is missing in what was printed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_a_block_for_everything_that_is_measured() {
        let text = fs::read_to_string(root().join(DOCUMENT)).unwrap();
        let mut document = Document::new(text);
        for name in BLOCKS {
            document.set(name, "").unwrap();
        }
    }
}
