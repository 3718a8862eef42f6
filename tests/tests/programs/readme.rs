//! The README's table: the rows of `docs/programs.md`, programs that found the same in one.

use std::fs;
use std::path::PathBuf;

use xtask::tools::root;

use super::guests::{GUESTS, Guest, Kind};
use super::table::Row;

/// The lines around the table.
const BEGIN: &str = "<!-- made by `cargo xtask bless -p tests --test programs` -->\n";
const END: &str = "<!-- end -->\n";

const HEAD: &str = "\
| runtime, unmodified, as root and as an ordinary user | clock, time and getcpu calls that reached the kernel \
([each](docs/programs.md)) |
|---|---|
";

/// Writes the table between its markers.
pub(crate) fn write(rows: &[Row]) -> Result<(), String> {
    let text = read()?;
    let (before, _, after) = parts(&text)?;
    let text = format!("{before}{}{after}", table(rows));
    fs::write(path(), text).map_err(|error| format!("{}: {error}", path().display()))
}

/// The README's table is made of these rows.
pub(crate) fn compare(rows: &[Row]) -> Result<(), String> {
    let text = read()?;
    let (_, found, _) = parts(&text)?;
    let wanted = table(rows);
    if found == wanted {
        return Ok(());
    }
    Err(format!("README.md has\n{found}and docs/programs.md gives\n{wanted}bless it"))
}

fn table(rows: &[Row]) -> String {
    let mut text = HEAD.to_owned();
    for (guests, calls) in shared(rows) {
        text.push_str(&format!("| {} | {calls} |\n", named(&guests)));
    }
    text
}

/// Guests of one kind that made the same calls.
fn shared(rows: &[Row]) -> Vec<(Vec<&Guest>, &str)> {
    let mut shared: Vec<(Kind, Vec<&Guest>, &str)> = Vec::new();
    for row in rows {
        let Some(guest) = GUESTS.iter().find(|guest| guest.name == row.name) else { continue };
        let kind = guest.short.kind;
        match shared.iter_mut().find(|(other, _, calls)| (*other, *calls) == (kind, &row.calls)) {
            Some((_, guests, _)) => guests.push(guest),
            None => shared.push((kind, vec![guest], &row.calls)),
        }
    }
    shared.into_iter().map(|(_, guests, calls)| (guests, calls)).collect()
}

/// Families, and which members of them.
fn named(guests: &[&Guest]) -> String {
    let mut families: Vec<(&str, Vec<&str>)> = Vec::new();
    for guest in guests {
        let which = Some(guest.short.which).filter(|which| !which.is_empty());
        match families.iter_mut().find(|(family, _)| *family == guest.short.family) {
            Some((_, members)) => members.extend(which),
            None => families.push((guest.short.family, which.into_iter().collect())),
        }
    }
    let comma = families.iter().all(|(_, members)| members.is_empty());
    let families: Vec<String> = families
        .iter()
        .map(|(family, members)| format!("{family} {}", members.join(", ")).trim_end().to_owned())
        .collect();
    families.join(if comma { ", " } else { "; " })
}

/// What stands before the table, the table, and what follows it; the markers are outside.
fn parts(text: &str) -> Result<(&str, &str, &str), String> {
    let missing = |marker: &str| format!("README.md has no line {:?}", marker.trim_end());
    let begin = text.find(BEGIN).ok_or_else(|| missing(BEGIN))? + BEGIN.len();
    let end = text[begin..].find(END).ok_or_else(|| missing(END))? + begin;
    Ok((&text[..begin], &text[begin..end], &text[end..]))
}

fn read() -> Result<String, String> {
    fs::read_to_string(path()).map_err(|error| format!("{}: {error}", path().display()))
}

fn path() -> PathBuf {
    root().join("README.md")
}
