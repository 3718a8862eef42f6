//! `cargo xtask mutants`: seeded faults, each of which some test has to catch.
//!
//! A fault is a piece of shipped source and what stands in its place instead, in
//! `kernel-sim/fuzz/mutants/*.txt`. Pairs of texts survive the edits around them, and one whose text
//! is gone, or no longer unique, is an error and not a fault that is never made.
//!
//! Faults are made one by one in a copy of the working tree below `target/mutants`. The tests that
//! are nearest run first; the first that fails has caught the fault. A fault that does not compile,
//! that no test catches, or that only shows as a test without an end, fails the command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

/// Options of `mutants`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only say whether every fault can still be made.
    #[arg(long)]
    check: bool,
    /// Only faults whose area or name contains this text.
    #[arg(value_name = "TEXT")]
    only: Option<String>,
}

/// How long the tests of one package may take; the longest takes a minute on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A seeded fault.
struct Mutant {
    area: String,
    name: String,
    why: String,
    file: PathBuf,
    /// Why an ordinary test would not see it: `concurrent`, `wrap` or `cold`.
    only: Option<String>,
    tests: Vec<String>,
    search: String,
    replace: String,
}

/// What became of a fault.
enum Verdict {
    Caught { test: String, after: Duration },
    Survived,
    Hung { package: String },
    DoesNotCompile,
}

/// Makes each fault and runs the tests.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask is in a workspace")?;
    let mut mutants = load(&root.join("kernel-sim/fuzz/mutants"))?;
    for mutant in &mutants {
        let text = read(&root.join(&mutant.file))?;
        mutant.apply(&text)?;
    }
    judge_the_list(&mutants)?;
    println!("{} faults, each in a place of its own", mutants.len());
    if arguments.check {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(only) = &arguments.only {
        mutants.retain(|mutant| format!("{}/{}", mutant.area, mutant.name).contains(only.as_str()));
        ensure!(!mutants.is_empty(), "no fault is called `{only}`");
    }
    let copy = root.join("target/mutants/tree");
    copy_tree(root, &copy)?;
    let bar = "-".repeat(96);
    println!("{bar}\n{:<12} {:<34} {:>8}  caught by\n{bar}", "area", "fault", "seconds");
    let mut failed = 0;
    for mutant in &mutants {
        let verdict = mutant.verdict(&copy)?;
        let (seconds, by) = match &verdict {
            Verdict::Caught { test, after } => {
                (format!("{:.1}", after.as_secs_f64()), test.clone())
            }
            Verdict::Survived => ("-".into(), format!("NOBODY: {}", mutant.why)),
            Verdict::Hung { package } => ("-".into(), format!("NOBODY: {package} has no end")),
            Verdict::DoesNotCompile => ("-".into(), "NOBODY: it does not compile".into()),
        };
        println!("{:<12} {:<34} {seconds:>8}  {by}", mutant.area, mutant.name);
        failed += u32::from(!matches!(verdict, Verdict::Caught { .. }));
    }
    println!("{bar}\n{} of {} caught", mutants.len() as u64 - u64::from(failed), mutants.len());
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// There must be enough faults of each kind, or their being caught says little.
fn judge_the_list(mutants: &[Mutant]) -> anyhow::Result<()> {
    ensure!(mutants.len() >= 25, "{} faults; 25 are the least", mutants.len());
    for area in ["protocol", "arithmetic", "routing", "writer", "timekeeper"] {
        let found = mutants.iter().filter(|mutant| mutant.area == area).count();
        ensure!(found >= 5, "{found} faults in {area}; 5 are the least");
    }
    let rare = mutants.iter().filter(|mutant| mutant.only.is_some()).count();
    ensure!(rare >= 5, "{rare} faults that only a rare case shows; 5 are the least");
    Ok(())
}

fn load(folder: &Path) -> anyhow::Result<Vec<Mutant>> {
    let mut mutants = Vec::new();
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .with_context(|| format!("reading {}", folder.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    for file in files {
        let area = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for entry in read(&file)?.split("=== ").skip(1) {
            let mutant = Mutant::parse(&area, entry)
                .with_context(|| format!("parsing {}", file.display()))?;
            mutants.push(mutant);
        }
    }
    Ok(mutants)
}

impl Mutant {
    fn parse(area: &str, entry: &str) -> anyhow::Result<Self> {
        let (head, texts) = entry.split_once("\n<<<\n").context("a fault without `<<<`")?;
        let (search, replace) = texts.split_once("\n>>>\n").context("a fault without `>>>`")?;
        let mut lines = head.lines();
        let name = lines.next().unwrap_or_default().trim().to_owned();
        let value = |key: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
            line.map(str::to_owned)
        };
        let required =
            |found: Option<String>, key| found.with_context(|| format!("{name} has no `{key}`"));
        Ok(Self {
            area: area.to_owned(),
            why: required(value("why"), "why")?,
            file: required(value("file"), "file")?.into(),
            only: value("only"),
            tests: required(value("tests"), "tests")?.split(' ').map(str::to_owned).collect(),
            search: search.to_owned(),
            replace: replace.trim_end_matches('\n').to_owned(),
            name,
        })
    }

    /// `text` with the fault in it.
    fn apply(&self, text: &str) -> anyhow::Result<String> {
        let found = text.matches(&self.search).count();
        let Self { area, name, file, search, .. } = self;
        if found != 1 {
            bail!(
                "{area}/{name}: its text stands {found} times in {}, and has to stand there once:\n{search}",
                file.display()
            );
        }
        Ok(text.replacen(search.as_str(), &self.replace, 1))
    }

    fn verdict(&self, copy: &Path) -> anyhow::Result<Verdict> {
        let file = copy.join(&self.file);
        let shipped = read(&file)?;
        fs::write(&file, self.apply(&shipped)?)?;
        let verdict = self.tests.iter().find_map(|package| match test(copy, package) {
            Ok(None) => None,
            Ok(Some(verdict)) => Some(Ok(verdict)),
            Err(error) => Some(Err(error)),
        });
        fs::write(&file, shipped)?;
        verdict.unwrap_or(Ok(Verdict::Survived))
    }
}

/// Runs the tests of a package; `None` if all of them pass.
fn test(copy: &Path, package: &str) -> anyhow::Result<Option<Verdict>> {
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command
            .args(["test", "--quiet", "--package", package])
            .args(arguments)
            .current_dir(copy)
            .env("CARGO_TARGET_DIR", copy.with_file_name("build"))
            .stdin(Stdio::null());
        command
    };
    let built = cargo(&["--no-run"]).output().context("running cargo")?;
    if !built.status.success() {
        return Ok(Some(Verdict::DoesNotCompile));
    }
    let begin = Instant::now();
    // `timeout` ends the test program as well, not only the cargo that waits for it.
    let tests = cargo(&[]);
    let output = Command::new("timeout")
        .arg(PATIENCE.as_secs().to_string())
        .arg(tests.get_program())
        .args(tests.get_args())
        .current_dir(copy)
        .envs(tests.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::null())
        .output()
        .context("running timeout")?;
    const TIMED_OUT: i32 = 124;
    if output.status.code() == Some(TIMED_OUT) {
        return Ok(Some(Verdict::Hung { package: package.to_owned() }));
    }
    if output.status.success() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    // The names of failed tests stand alone on their lines, after the last "failures:".
    let names = text.rsplit("failures:\n").next().unwrap_or_default();
    let first = names.lines().map(str::trim).find(|line| !line.is_empty());
    let test = format!("{package}: {}", first.unwrap_or("the test program itself fails"));
    Ok(Some(Verdict::Caught { test, after: begin.elapsed() }))
}

/// The working tree as it is: tracked files and new ones, not what is ignored.
fn copy_tree(root: &Path, copy: &Path) -> anyhow::Result<()> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("listing the files of the working tree")?;
    ensure!(listed.status.success(), "git cannot list the files of the working tree");
    for name in listed.stdout.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
        let name = std::str::from_utf8(name).context("a file name that is not UTF-8")?;
        let (from, to) = (root.join(name), copy.join(name));
        let Ok(wanted) = fs::read(&from) else {
            continue; // deleted, but still in the index
        };
        // An equal file keeps its date, so that nothing is built again for it.
        if fs::read(&to).is_ok_and(|found| found == wanted) {
            continue;
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::copy(&from, &to).with_context(|| format!("copying {name}"))?;
    }
    Ok(())
}

fn read(file: &Path) -> anyhow::Result<String> {
    fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))
}
