//! Faults on trial: a copy of the working tree, and the tests that run in it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::fault::Fault;

/// How long the tests of one package may take; the longest takes a minute on a loaded machine.
const PATIENCE_SECS: &str = "600";

/// What became of a fault.
pub(super) enum Verdict {
    Caught(Catch),
    Survived,
    Hung { package: String },
    DoesNotCompile,
}

/// The test that saw a fault.
pub(super) struct Catch {
    pub(super) package: String,
    pub(super) test: String,
    /// What it said when it failed.
    pub(super) says: String,
    /// How long tests ran until then, without compiling.
    pub(super) after: Duration,
}

/// A copy of the working tree, and where it is built.
pub(super) struct TreeCopy {
    tree: PathBuf,
    build: PathBuf,
}

/// How the tests of a package ended.
enum Ending {
    Passed,
    Failed {
        test: String,
    },
    /// The test program died, and took the name of the test with it.
    Died {
        says: String,
    },
    Hung,
}

impl TreeCopy {
    /// The working tree at `root` as it is: tracked files and new ones, not what is ignored.
    pub(super) fn of(root: &Path) -> Result<Self> {
        let folder = root.join("target/mutants");
        let copy = Self { tree: folder.join("tree"), build: folder.join("build") };
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("listing the files of the working tree")?;
        ensure!(listed.status.success(), "git cannot list the files of the working tree");
        let mut names = BTreeSet::new();
        for name in listed.stdout.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
            let name = Path::new(std::str::from_utf8(name).context("a file name in UTF-8")?);
            let Ok(wanted) = fs::read(root.join(name)) else {
                continue; // deleted, but still in the index
            };
            names.insert(name.to_owned());
            let to = copy.tree.join(name);
            // An equal file keeps its date, so that nothing is built again for it.
            if fs::read(&to).is_ok_and(|found| found == wanted) {
                continue;
            }
            if let Some(folder) = to.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::copy(root.join(name), &to)
                .with_context(|| format!("copying {}", name.display()))?;
        }
        // A test that is gone would go on catching faults here.
        copy.forget_all_but(&names, Path::new(""))?;
        Ok(copy)
    }

    fn forget_all_but(&self, names: &BTreeSet<PathBuf>, folder: &Path) -> Result<()> {
        for entry in fs::read_dir(self.tree.join(folder))? {
            let entry = entry?;
            let name = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                self.forget_all_but(names, &name)?;
            } else if !names.contains(&name) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Runs the tests of each package without any fault; all must pass, or a test that fails later
    /// says nothing.
    pub(super) fn must_pass(&self, packages: &BTreeSet<&str>) -> Result<()> {
        for package in packages {
            ensure!(self.builds(package)?, "{package} does not compile without any fault");
            match self.test(package)? {
                Ending::Passed => {}
                Ending::Failed { test } => {
                    bail!(
                        "{package}: {test} fails without any fault: {}",
                        self.ask(package, &test)?
                    )
                }
                Ending::Died { says } => bail!("{package} dies without any fault: {says}"),
                Ending::Hung => bail!("the tests of {package} have no end without any fault"),
            }
        }
        Ok(())
    }

    /// Makes the fault, runs the tests and takes it back.
    pub(super) fn verdict(&self, fault: &Fault) -> Result<Verdict> {
        let file = self.tree.join(&fault.file);
        let shipped = fs::read_to_string(&file)?;
        fs::write(&file, fault.apply(&shipped)?)?;
        let verdict = self.first_failure(fault);
        fs::write(&file, shipped)?;
        verdict
    }

    fn first_failure(&self, fault: &Fault) -> Result<Verdict> {
        let mut after = Duration::ZERO;
        for package in &fault.tests {
            if !self.builds(package)? {
                return Ok(Verdict::DoesNotCompile);
            }
            let begin = Instant::now();
            let ending = self.test(package)?;
            after += begin.elapsed();
            let package = package.clone();
            match ending {
                Ending::Passed => {}
                Ending::Hung => return Ok(Verdict::Hung { package }),
                Ending::Failed { test } => {
                    let says = self.ask(&package, &test)?;
                    return Ok(Verdict::Caught(Catch { package, test, says, after }));
                }
                Ending::Died { says } => {
                    let test = "the test program died".to_owned();
                    return Ok(Verdict::Caught(Catch { package, test, says, after }));
                }
            }
        }
        Ok(Verdict::Survived)
    }

    fn builds(&self, package: &str) -> Result<bool> {
        let built = self.cargo(package).arg("--no-run").output().context("running cargo")?;
        Ok(built.status.success())
    }

    fn test(&self, package: &str) -> Result<Ending> {
        ending_of(self.cargo(package))
    }

    /// What a failed test says when it runs alone.
    fn ask(&self, package: &str, test: &str) -> Result<String> {
        let mut alone = self.cargo(package);
        let name = test.strip_suffix(" - should panic").unwrap_or(test);
        alone.args(["--no-fail-fast", "--", "--exact", name]);
        let output = alone.output().context("running cargo")?;
        if output.status.success() {
            return Ok("nothing: alone it passes".into());
        }
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        Ok(message_of(&text))
    }

    /// `cargo test` for a package, within its time.
    fn cargo(&self, package: &str) -> Command {
        // `timeout` makes a process group of its own, which also ends when we are ended.
        let mut command = Command::new("timeout");
        command
            .args([PATIENCE_SECS, env!("CARGO"), "test", "--locked", "--package", package])
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &self.build)
            // What chance found for one fault must not be tried again on the next one.
            .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null());
        command
    }
}

/// Runs tests up to the first that fails. The others are ended then: under some faults they run for
/// ever, and the fault is caught whatever they would say.
fn ending_of(mut tests: Command) -> Result<Ending> {
    const TIMED_OUT: i32 = 124;
    let child = tests.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.context("running the tests")?;
    let (Some(stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) else {
        bail!("the tests have no output");
    };
    let errors = std::thread::spawn(move || {
        let mut text = Vec::new();
        // What could be read until it broke off is what there is to tell.
        let _ = stderr.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    for line in BufReader::new(stdout).split(b'\n') {
        if let Some(test) = failed_test(&String::from_utf8_lossy(&line?)) {
            end(&mut child)?;
            return Ok(Ending::Failed { test });
        }
    }
    let status = child.wait()?;
    Ok(match status.code() {
        Some(0) => Ending::Passed,
        Some(TIMED_OUT) => Ending::Hung,
        _ => {
            let errors = errors.join().unwrap_or_default();
            let last = errors.lines().map(str::trim).rfind(|line| !line.is_empty());
            // cargo: `process didn't exit successfully: PATH (signal: 11, ...)`; the path is nobody's.
            let cause = last.map(|last| last.rsplit_once('(').map_or(last, |(_, cause)| cause));
            Ending::Died { says: cause.unwrap_or_default().trim_end_matches(')').to_owned() }
        }
    })
}

/// Ends a `timeout` with all that it started.
fn end(child: &mut Child) -> Result<()> {
    let group = Pid::from_raw(i32::try_from(child.id()).context("a process id")?);
    // Fails if all of it has ended by itself in the meantime.
    let _ = killpg(group, Signal::SIGKILL);
    child.wait()?;
    Ok(())
}

/// The test that a line says has failed: `test writer::tests::name ... FAILED`.
fn failed_test(line: &str) -> Option<String> {
    let test = line.trim().strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    Some(test.to_owned())
}

/// What the first panic in the output says, in one line.
fn message_of(output: &str) -> String {
    let lines = output.lines().skip_while(|line| !line.contains("panicked at ")).skip(1);
    let ends = ["note: ", "stack backtrace:", "thread '", "failures:", "test "];
    let said: Vec<&str> = lines
        .map(str::trim)
        .take_while(|line| !line.is_empty() && !ends.iter().any(|end| line.starts_with(end)))
        .collect();
    said.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending(script: &str) -> Ending {
        let mut command = Command::new("timeout");
        command.args(["20", "sh", "-c", script]);
        ending_of(command).unwrap()
    }

    #[test]
    fn the_first_failed_test_ends_those_that_have_no_end() {
        let begin = Instant::now();
        let script = "echo 'test a ... ok'; echo 'test b::c ... FAILED'; \
                      (sleep 18; sleep 18) & sleep 18; sleep 18";
        let Ending::Failed { test } = ending(script) else { panic!("it has failed") };
        assert_eq!(test, "b::c");
        assert!(begin.elapsed() < Duration::from_secs(18), "nobody waits for the others");
    }

    #[test]
    fn passing_dying_and_having_no_end_are_told_apart() {
        assert!(matches!(ending("echo 'test a ... ok'"), Ending::Passed));
        let Ending::Died { says } = ending("echo 'ended: /a/b (signal: 11)' >&2; exit 101") else {
            panic!("it has died")
        };
        assert_eq!(says, "signal: 11");
        let mut endless = Command::new("timeout");
        endless.args(["0.2", "sleep", "20"]);
        assert!(matches!(ending_of(endless).unwrap(), Ending::Hung));
    }

    #[test]
    fn a_message_is_what_the_first_panic_says() {
        let output = "running 1 test\n\nthread 'a' (7) panicked at b.rs:1:2:\n\
                      assertion `left == right` failed\n  left: 1\n right: 2\n\
                      note: run with\nthread 'c' panicked at d.rs:\nlater";
        assert_eq!(message_of(output), "assertion `left == right` failed; left: 1; right: 2");
        assert_eq!(message_of("nothing"), "");
    }
}
