//! The list of seeded faults: `kernel-sim/fuzz/mutants/*.txt`, one file for each area.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

/// A piece of shipped source, and what stands in its place instead.
#[derive(Debug)]
pub(super) struct Fault {
    /// Which part of the product it is seeded into: the file's name.
    pub(super) area: String,
    pub(super) name: String,
    /// What goes wrong for a reader of the clock.
    pub(super) why: String,
    pub(super) file: PathBuf,
    /// Why an ordinary test would not see it: `concurrent`, `wrap` or `cold`.
    pub(super) only: Option<String>,
    /// Packages, in the order in which their tests run.
    pub(super) tests: Vec<String>,
    search: String,
    replace: String,
}

/// Every fault; an error if one cannot be made in the tree at `root`.
pub(super) fn load(root: &Path) -> Result<Vec<Fault>> {
    let folder = root.join("kernel-sim/fuzz/mutants");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .with_context(|| format!("reading {}", folder.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    let mut faults = Vec::new();
    for file in files {
        let area = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for entry in read(&file)?.split("=== ").skip(1) {
            let fault = Fault::parse(&area, entry)
                .with_context(|| format!("parsing {}", file.display()))?;
            fault.apply(&read(&root.join(&fault.file))?)?;
            faults.push(fault);
        }
    }
    judge(&faults)?;
    Ok(faults)
}

/// There must be enough faults of each kind, or their being caught says little.
fn judge(faults: &[Fault]) -> Result<()> {
    ensure!(faults.len() >= 25, "{} faults; 25 are the least", faults.len());
    for area in ["protocol", "arithmetic", "routing", "writer", "timekeeper"] {
        let found = faults.iter().filter(|fault| fault.area == area).count();
        ensure!(found >= 5, "{found} faults in {area}; 5 are the least");
    }
    let rare = faults.iter().filter(|fault| fault.only.is_some()).count();
    ensure!(rare >= 5, "{rare} faults that only a rare case shows; 5 are the least");
    let mut names: Vec<_> = faults.iter().map(Fault::title).collect();
    names.sort();
    for pair in names.windows(2) {
        ensure!(pair[0] != pair[1], "two faults are called {}", pair[0]);
    }
    Ok(())
}

impl Fault {
    fn parse(area: &str, entry: &str) -> Result<Self> {
        let (head, texts) = entry.split_once("\n<<<\n").context("a fault without `<<<`")?;
        let (search, replace) = texts.split_once("\n>>>\n").context("a fault without `>>>`")?;
        let (name, head) = head.split_once('\n').context("a fault with nothing but a name")?;
        let name = name.trim();
        let [mut why, mut file, mut only, mut tests] = [None, None, None, None];
        for line in head.lines() {
            let value = match line.split_once(": ") {
                Some(("why", value)) => why.replace(value),
                Some(("file", value)) => file.replace(value),
                Some(("only", value @ ("concurrent" | "wrap" | "cold"))) => only.replace(value),
                Some(("tests", value)) => tests.replace(value),
                _ => bail!("{name}: what is `{line}`?"),
            };
            ensure!(value.is_none(), "{name}: a second `{line}`");
        }
        let required = |value: Option<&str>, key| {
            value.map(str::to_owned).with_context(|| format!("{name} has no `{key}`"))
        };
        Ok(Self {
            area: area.to_owned(),
            name: name.to_owned(),
            why: required(why, "why")?,
            file: required(file, "file")?.into(),
            only: only.map(str::to_owned),
            tests: required(tests, "tests")?.split(' ').map(str::to_owned).collect(),
            search: search.to_owned(),
            replace: replace.trim_end_matches('\n').to_owned(),
        })
    }

    /// Area and name.
    pub(super) fn title(&self) -> String {
        format!("{}/{}", self.area, self.name)
    }

    /// `text` with the fault in it.
    pub(super) fn apply(&self, text: &str) -> Result<String> {
        let found = text.matches(&self.search).count();
        ensure!(
            found == 1,
            "{}: its text stands {found} times in {}, and has to stand there once:\n{}",
            self.title(),
            self.file.display(),
            self.search
        );
        ensure!(self.search != self.replace, "{}: it changes nothing", self.title());
        Ok(text.replacen(&self.search, &self.replace, 1))
    }
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "late\nwhy: w\nfile: f.rs\nonly: cold\ntests: a b\n<<<\nx + 1\n>>>\nx\n\n";

    /// A fault whose place moved is found by the ordinary tests, and not after an hour of others.
    #[test]
    fn every_fault_has_its_one_place() {
        load(&xtask::tools::root()).unwrap();
    }

    #[test]
    fn a_fault_replaces_the_text_that_stands_once() {
        let fault = Fault::parse("area", ENTRY).unwrap();
        assert_eq!((fault.title().as_str(), fault.only.as_deref()), ("area/late", Some("cold")));
        assert_eq!(fault.tests, ["a", "b"]);
        assert_eq!(fault.apply("y = x + 1;").unwrap(), "y = x;");
        for text in ["y = x;", "y = x + 1 + x + 1;"] {
            assert!(fault.apply(text).unwrap_err().to_string().contains("has to stand there once"));
        }
    }

    #[test]
    fn an_entry_that_is_not_understood_is_an_error() {
        let wrong = [
            ("why: w\n", "", "has no `why`"),
            ("only: cold", "only: rare", "what is `only: rare`?"),
            ("tests: a b", "tests: a b\ntests: c", "a second `tests: c`"),
            ("\n>>>\n", "\n", "without `>>>`"),
        ];
        for (search, replace, message) in wrong {
            let error = Fault::parse("area", &ENTRY.replace(search, replace)).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
        }
    }
}
