//! `docs/programs.md`: which programs were seen on the image, and what was found.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use tests::users::{self, User};
use xtask::tools::root;

use super::guests::{GUESTS, Guest};
use super::readme;
use super::run::Found;

/// What was found, by guest.
#[derive(Default)]
pub(crate) struct Table {
    found: BTreeMap<&'static str, (String, Vec<Found>)>,
}

/// A row of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) name: String,
    version: String,
    right: String,
    makes: String,
    pub(crate) calls: String,
}

/// What stands above the rows.
const HEAD: &str = "\
# Programs seen on the image

Made by `cargo xtask bless -p tests --test programs` from what the tests found. Each program ran as root and as an
ordinary user: with the host's time, on a page that serves nothing, and ten years ahead.

- \"Right\" are the clocks whose times lay between two system calls around the run; all nine are the seven of
  `clock_gettime`, `gettimeofday` (micros) and `time` (seconds). What a program reads and does not show is not judged:
  stress-ng discards what its loop reads, and shows the second that it writes into its report.
- \"Makes\" are the calls that were counted on the page that serves nothing, where each enters the kernel, with the
  clocks that they were made for. Each kind that a program's source makes must be among them, as often as it makes it:
  so counting is proven for each.
- \"Reached the kernel\" are those that were counted with the host's time and ten years ahead.

| program | version | right | makes | reached the kernel |
|---|---|---|---|---|
";

impl Table {
    /// Adds what one user's runs have found.
    pub(crate) fn add(&mut self, guest: &Guest, version: String, found: Found) {
        let (_, all) = self.found.entry(guest.name).or_insert_with(|| (version, Vec::new()));
        all.push(found);
    }

    /// Writes the document and the README's table. The row of a program that did not run for each
    /// user stays as it was.
    pub(crate) fn bless(&self) {
        let users = User::ALL.len();
        if User::ALL.iter().any(|&user| users::missing(user).is_some()) {
            println!("{} is left: programs ran for one user only", path().display());
            return;
        }
        let before = rows().unwrap_or_default();
        let rows: Vec<Row> = GUESTS
            .iter()
            .filter_map(|guest| match self.found.get(guest.name) {
                Some((version, all)) if all.len() == users => Some(row(guest, version, all)),
                _ => before.iter().find(|row| row.name == guest.name).cloned(),
            })
            .collect();
        let text: String = rows.iter().map(Row::text).collect();
        fs::write(path(), format!("{HEAD}{text}")).expect("docs/ is writable");
        readme::write(&rows).expect("README.md is writable and has the markers");
        println!("{} and the README's table are written", path().display());
    }
}

/// Compares what one user's runs have found with the guest's row.
pub(crate) fn compare(guest: &Guest, version: &str, found: &Found) -> Result<(), String> {
    let rows = rows()?;
    let Some(theirs) = rows.iter().find(|row| row.name == guest.name) else {
        return Err(format!("{} has no row for it; bless it", path().display()));
    };
    // A version that is another on this machine is no other finding, nor are calls that it makes
    // beside those that each version does.
    let mut ours = row(guest, &theirs.version, std::slice::from_ref(found));
    if version != theirs.version {
        ours.makes.clone_from(&theirs.makes);
    }
    if ours == *theirs {
        return Ok(());
    }
    let path = path();
    Err(format!("{} says\n{}and the run gives\n{}", path.display(), theirs.text(), ours.text()))
}

/// The document has a row for each program of the tests, and no other; the README's table is made
/// of these rows.
pub(crate) fn is_whole() -> Result<(), String> {
    let rows = rows()?;
    let found: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let names: Vec<&str> = GUESTS.iter().map(|guest| guest.name).collect();
    if found != names {
        return Err(format!("it names {found:?}, the tests run {names:?}; bless it"));
    }
    readme::compare(&rows)
}

fn row(guest: &Guest, version: &str, all: &[Found]) -> Row {
    let clocks = distinct(all.iter().flat_map(|found| &found.clocks));
    let is_all = clocks.len() == super::times::KEYS.len();
    let right = if is_all { "all nine".to_owned() } else { clocks.join(", ") };
    let makes = distinct(all.iter().flat_map(|found| &found.calls)).join(", ");
    let own = distinct(all.iter().flat_map(|found| &found.own_calls));
    let calls = if own.is_empty() { "0".to_owned() } else { own.join("; ") };
    Row { name: guest.name.to_owned(), version: version.to_owned(), right, makes, calls }
}

impl Row {
    fn text(&self) -> String {
        let Self { name, version, right, makes, calls } = self;
        format!("| {name} | {version} | {right} | {makes} | {calls} |\n")
    }

    fn from_text(line: &str) -> Option<Self> {
        let cells = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let mut cells = cells.split(" | ").map(str::to_owned);
        let (name, version) = (cells.next()?, cells.next()?);
        let (right, makes, calls) = (cells.next()?, cells.next()?, cells.next()?);
        (name != "program").then_some(Self { name, version, right, makes, calls })
    }
}

/// The rows of the document.
fn rows() -> Result<Vec<Row>, String> {
    let text =
        fs::read_to_string(path()).map_err(|error| format!("{}: {error}", path().display()))?;
    Ok(text.lines().filter_map(Row::from_text).collect())
}

fn distinct<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut all = Vec::new();
    for name in names {
        if !all.contains(name) {
            all.push(name.clone());
        }
    }
    all
}

fn path() -> PathBuf {
    root().join("docs/programs.md")
}
