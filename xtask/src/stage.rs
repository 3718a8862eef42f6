//! A stage of the tests: a command, and what its output counts.

use std::io::{BufRead as _, BufReader, Write};
use std::ops::AddAssign;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use xtask::tools::{REQUIRE, root};

/// One thing that `cargo xtask test` runs.
pub(crate) struct Stage {
    /// What it is called in the output and on the command line.
    pub(crate) name: &'static str,
    /// What it runs; gets whether a skipped test is a failure.
    pub(crate) command: fn(bool) -> Command,
    /// How its output is counted.
    pub(crate) count: Count,
}

/// How a stage's output is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    /// The command is one test.
    Command,
    /// The command is one test that takes many minutes: it runs where a skip is a failure.
    LongCommand,
    /// The output has a `test result:` line for each test binary.
    TestResults,
}

/// Tests by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { passed, failed, skipped } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

/// A `cargo` command in the workspace's root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

impl Stage {
    /// Runs it, shows its output as it comes, and counts. With `require` a test that lacks a tool
    /// fails.
    pub(crate) fn run(&self, require: bool) -> Result<Tally> {
        let mut command = (self.command)(require);
        if self.count == Count::LongCommand && !require {
            println!("skip: {} (takes many minutes; --install runs it)", self.name);
            return Ok(Tally { skipped: 1, ..Tally::default() });
        }
        if require {
            command.env(REQUIRE, "1");
        }
        self.count.run(&mut command, &mut std::io::stdout())
    }
}

impl Count {
    fn run(self, command: &mut Command, shown: &mut dyn Write) -> Result<Tally> {
        let name = command.get_program().to_owned();
        let mut child = command
            .current_dir(root())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", name.display()))?;
        let mut tally = Tally::default();
        if let Some(output) = child.stdout.take() {
            // By lines of bytes: a test may print what is not UTF-8.
            for line in BufReader::new(output).split(b'\n') {
                let mut line = line?;
                if self == Self::TestResults {
                    tally += results_of(&String::from_utf8_lossy(&line));
                }
                line.push(b'\n');
                shown.write_all(&line)?;
            }
        }
        let status = child.wait()?;
        if self != Self::TestResults {
            return Ok(Tally {
                passed: status.success().into(),
                failed: (!status.success()).into(),
                skipped: 0,
            });
        }
        if !status.success() && tally.failed == 0 {
            // It did not get as far as counting: it did not build, or a test ended the process.
            tally.failed = 1;
        }
        if tally == Tally::default() {
            writeln!(shown, "no test ran")?;
            tally.failed = 1;
        }
        Ok(tally)
    }
}

/// What one line of the output counts: `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
fn results_of(line: &str) -> Tally {
    let Some(rest) = line.trim_start().strip_prefix("test result: ") else {
        return Tally::default();
    };
    let number = |word: &str| {
        rest.split([';', '.'])
            .find_map(|part| part.trim().strip_suffix(word)?.trim().parse().ok())
            .unwrap_or(0)
    };
    Tally { passed: number("passed"), failed: number("failed"), skipped: number("ignored") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, count: Count) -> Tally {
        // Not shown: whoever counts this test's own output would count what the script says.
        let mut command = Command::new("sh");
        count.run(command.args(["-c", script]), &mut Vec::new()).unwrap()
    }

    #[test]
    fn results_of_all_binaries_are_added() {
        let script = "echo 'test result: ok. 3 passed; 0 failed; 2 ignored; 0 measured; 1 filtered \
                      out; finished in 0.1s'; echo 'test result: ok. 4 passed; 0 failed; 0 ignored'";
        let tally = shell(script, Count::TestResults);
        assert_eq!(tally.to_string(), "7 passed, 0 failed, 2 skipped");
    }

    #[test]
    fn a_failure_is_counted_even_if_no_line_says_so() {
        let dies = "echo 'test result: ok. 3 passed; 0 failed; 0 ignored'; exit 101";
        assert_eq!(shell(dies, Count::TestResults).failed, 1);
        let fails = "echo 'test result: FAILED. 1 passed; 2 failed; 0 ignored'; exit 1";
        assert_eq!(shell(fails, Count::TestResults).failed, 2);
        assert_eq!(shell("exit 3", Count::Command).failed, 1);
    }

    #[test]
    fn a_run_without_tests_is_a_failure() {
        assert_eq!(shell("true", Count::TestResults).failed, 1);
        assert_eq!(shell("true", Count::Command).passed, 1);
    }
}
