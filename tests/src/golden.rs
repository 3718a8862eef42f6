//! Golden files: texts in `abi/` that a change has to explain.
//!
//! What a compiler makes differs from version to version, so a golden that depends on it names the
//! version in its first lines, and is compared by that version alone.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use libtest_mimic::{Completion, Failed};
use xtask::tools::root;

/// Set to `1` (by `cargo xtask bless`), goldens are rewritten instead of compared.
const BLESS: &str = "UVDSO_BLESS";

/// The compiler that makes the images, as it names itself.
///
/// # Errors
/// If it cannot be asked.
pub fn compiler() -> Result<String, Failed> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").current_dir(root()).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Compares `body` with the golden `name` below `abi/`, or writes it there.
///
/// # Errors
/// The first line that differs, or that there is no golden.
pub fn compare(name: &str, title: &str, body: &str) -> Result<Completion, Failed> {
    if !is_blessing() {
        return compare_lines(name, |_| true, body);
    }
    let path = path(name);
    let compiler = compiler()?;
    let made_by = format!("# {title}\n# {compiler}; rewritten by `cargo xtask bless -p tests`\n\n");
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(&path, made_by + body)?;
    Ok(Completion::Completed)
}

/// Compares `body` with those lines of the golden `name` that `is_of_part` picks; never writes it.
///
/// # Errors
/// As [`compare`].
pub fn compare_part(
    name: &str,
    is_of_part: impl Fn(&str) -> bool,
    body: &str,
) -> Result<Completion, Failed> {
    if is_blessing() {
        return Ok(Completion::ignored_with("the golden is being rewritten"));
    }
    compare_lines(name, is_of_part, body)
}

fn is_blessing() -> bool {
    std::env::var_os(BLESS).is_some_and(|value| value == "1")
}

fn path(name: &str) -> PathBuf {
    root().join("abi").join(name)
}

fn compare_lines(
    name: &str,
    is_wanted: impl Fn(&str) -> bool,
    body: &str,
) -> Result<Completion, Failed> {
    let compiler = compiler()?;
    let golden = fs::read_to_string(path(name))
        .map_err(|error| format!("no golden at abi/{name} ({error}); run `cargo xtask bless`"))?;
    let (head, golden) = golden.split_once("\n\n").ok_or("the golden has no head")?;
    if !head.contains(&compiler) {
        let other = head.lines().nth(1).unwrap_or("an unnamed compiler");
        return Ok(Completion::ignored_with(format!(
            "the golden is of {other}, this is {compiler}"
        )));
    }
    let wanted = golden.lines().filter(|line| is_wanted(line));
    match first_difference(wanted, body.lines()) {
        None => Ok(Completion::Completed),
        Some(difference) => Err(format!(
            "abi/{name}, {difference}\nif the change is meant, run `cargo xtask bless -p tests` \
             and say in the commit what it costs"
        )
        .into()),
    }
}

fn first_difference<'a>(
    mut golden: impl Iterator<Item = &'a str>,
    mut found: impl Iterator<Item = &'a str>,
) -> Option<String> {
    for line in 1.. {
        match (golden.next(), found.next()) {
            (None, None) => return None,
            (golden, found) if golden == found => {}
            (golden, found) => {
                let or_end = |line: Option<&str>| line.unwrap_or("(end)").to_owned();
                return Some(format!(
                    "line {line} after the head:\n  golden {}\n  found  {}",
                    or_end(golden),
                    or_end(found)
                ));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_named() {
        let first_difference =
            |golden: &str, found: &str| super::first_difference(golden.lines(), found.lines());
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        let difference = first_difference("a\nb\n", "a\nc\n").unwrap_or_default();
        assert!(difference.contains("line 2") && difference.contains("found  c"), "{difference}");
        assert!(first_difference("a\n", "a\nb\n").is_some_and(|text| text.contains("(end)")));
    }

    #[test]
    fn a_golden_that_is_not_there_fails() {
        let missing = compare("no-such-golden.txt", "nothing", "");
        let blessing = std::env::var_os(BLESS).is_some();
        assert!(blessing || missing.is_err());
    }
}
