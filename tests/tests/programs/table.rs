//! `docs/programs.md`: which programs were seen on the image, and what was found.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use xtask::tools::root;

use super::guests::{GUESTS, Guest};
use super::run::Found;

/// What was found, by guest.
#[derive(Default)]
pub(crate) struct Table {
    rows: BTreeMap<&'static str, (String, Vec<Found>)>,
}

impl Table {
    /// Adds what one user's runs have found.
    pub(crate) fn add(&mut self, guest: &Guest, version: String, found: Found) {
        let (_, all) = self.rows.entry(guest.name).or_insert_with(|| (version, Vec::new()));
        all.push(found);
    }

    /// Writes the document, if every program was there for each user.
    pub(crate) fn bless(&self) {
        let users = super::users().len();
        let complete = GUESTS
            .iter()
            .all(|guest| self.rows.get(guest.name).is_some_and(|(_, all)| all.len() == users));
        if !complete || users < 2 {
            println!("{} is left: not every program ran for each user", path().display());
            return;
        }
        fs::write(path(), self.text()).expect("docs/ is writable");
        println!("{} is written", path().display());
    }

    fn text(&self) -> String {
        let mut text = String::from(
            "# Programs seen on the image\n\n\
             Made by `cargo xtask bless -p tests --test programs` from what the tests found. Each \
             program ran as root and as an\nordinary user: with the host's time, on a page in mode \
             NONE (where its calls must reach the kernel, so that counting\nis proven), and ten \
             years ahead. \"Right\" are the clocks whose times lay between two system calls around \
             the run; all nine are\nthe seven of `clock_gettime`, `gettimeofday` (micros) and `time` (seconds).\n\n\
             | program | version | right | clock, time and getcpu calls that reached the kernel |\n\
             |---|---|---|---|\n",
        );
        for guest in GUESTS {
            let Some((version, all)) = self.rows.get(guest.name) else { continue };
            let clocks = distinct(all.iter().flat_map(|found| &found.clocks));
            let right = match clocks.len() {
                0 => guest.says.to_owned(),
                all if all == super::times::KEYS.len() => "all nine".to_owned(),
                _ => clocks.join(", "),
            };
            let own = distinct(all.iter().flat_map(|found| &found.own_calls));
            let calls = if own.is_empty() { "0".to_owned() } else { own.join("; ") };
            let _ = writeln!(text, "| {} | {version} | {right} | {calls} |", guest.name);
        }
        text
    }
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

/// The document has a row for each program of the tests, and no other.
pub(crate) fn names() -> Result<(), String> {
    let text =
        fs::read_to_string(path()).map_err(|error| format!("{}: {error}", path().display()))?;
    let rows: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
        .filter(|name| *name != "program")
        .collect();
    let names: Vec<&str> = GUESTS.iter().map(|guest| guest.name).collect();
    if rows != names {
        return Err(format!("it names {rows:?}, the tests run {names:?}; bless it"));
    }
    Ok(())
}
