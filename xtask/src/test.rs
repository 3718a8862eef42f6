//! `cargo xtask test`: everything that must pass before a change lands.

use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Result, bail};
use xtask::tools::{TOOLS, required};

use crate::install;
use crate::stage::{Count, Stage, Tally, cargo};

/// Options of `test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Install what is missing first; after that a skipped test is a failure.
    #[arg(long)]
    install: bool,
    /// Only these stages (see --list).
    stages: Vec<String>,
    /// List the stages.
    #[arg(long)]
    list: bool,
}

/// The stages in the order in which they run: what fails fastest comes first.
const STAGES: &[Stage] = &[
    Stage {
        name: "format",
        command: |_| cargo(&["fmt", "--all", "--check"]),
        count: Count::Command,
    },
    Stage {
        name: "lints",
        command: |_| {
            cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
        },
        count: Count::Command,
    },
    Stage { name: "tests", command: tests, count: Count::TestResults },
    Stage {
        name: "no-std",
        command: |_| cargo(&["run", "--quiet", "--locked", "--package", "xtask", "--", "no-std"]),
        count: Count::Command,
    },
    Stage {
        name: "demonstration",
        // What a newcomer types first; it fails where something that it shows is wrong.
        command: |_| cargo(&["run", "--release", "--quiet", "--locked"]),
        count: Count::Command,
    },
    Stage { name: "cross", command: cross, count: Count::TestResults },
    Stage {
        name: "documentation",
        command: |_| {
            let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
            doc.env("RUSTDOCFLAGS", "-D warnings");
            doc
        },
        count: Count::Command,
    },
    Stage {
        name: "kernel",
        command: |_| cargo(&["run", "--quiet", "--locked", "--package", "xtask", "--", "kernel"]),
        count: Count::LongCommand,
    },
];

/// All tests of the workspace; the ones that take minutes only where a skip is a failure.
fn tests(require: bool) -> Command {
    let mut tests = cargo(&["test", "--workspace", "--no-fail-fast", "--locked"]);
    if require {
        tests.args(["--", "--include-ignored"]);
    }
    tests
}

/// The other architectures; the reader's own tests on each, which are minutes of building, only where
/// a skip is a failure.
fn cross(require: bool) -> Command {
    let mut cross = cargo(&["run", "--quiet", "--locked", "--package", "xtask", "--", "cross"]);
    if require {
        cross.arg("--full");
    }
    cross
}

/// Runs the stages; the last line says how many tests passed, failed and were skipped.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.list {
        for stage in STAGES {
            println!("{}", stage.name);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let stages = chosen(&arguments.stages)?;
    if arguments.install {
        install::run()?;
    }
    let require = arguments.install || required();
    for tool in TOOLS {
        if let Some(reason) = tool.missing() {
            println!("skip: {} ({reason})", tool.used_by);
        }
    }
    let mut total = Tally::default();
    let mut failed = Vec::new();
    for stage in stages {
        println!("== {}", stage.name);
        let start = Instant::now();
        let tally = stage.run(require)?;
        println!("== {}: {tally} in {:.0?}", stage.name, start.elapsed());
        total += tally;
        if tally.failed > 0 {
            failed.push(stage.name);
        }
    }
    if !failed.is_empty() {
        println!("failed: {}", failed.join(", "));
    }
    println!("{total}");
    let skips_fail = require && total.skipped > 0;
    Ok(if total.failed > 0 || skips_fail { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn chosen(names: &[String]) -> Result<Vec<&'static Stage>> {
    if names.is_empty() {
        return Ok(STAGES.iter().collect());
    }
    names
        .iter()
        .map(|name| {
            let stage = STAGES.iter().find(|stage| stage.name == name);
            match stage {
                Some(stage) => Ok(stage),
                None => {
                    let known: Vec<&str> = STAGES.iter().map(|stage| stage.name).collect();
                    bail!("no stage {name:?}; there are {}", known.join(", "))
                }
            }
        })
        .collect()
}
