//! `docs/porting.md` leads a reader to what is there.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

/// The steps of a kernel's own code; what follows them is checking and background.
const STEPS: usize = 6;

#[test]
fn each_step_names_what_shows_it() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(here.join("../../docs/porting.md")).unwrap();
    for step in 1..=STEPS {
        let heading = format!("\n## {step}. ");
        let (_, section) = text.split_once(&heading).unwrap_or_else(|| panic!("no step {step}"));
        let section = section.split("\n## ").next().unwrap();
        let line = section.lines().find_map(|line| line.strip_prefix("Shown by: "));
        let line = line.unwrap_or_else(|| panic!("step {step} names nothing"));
        for part in line.trim_end_matches('.').split("; ") {
            let (file, names) = part.split_once(": ").unwrap();
            let file = here.join("src").join(file.trim_matches('`'));
            let source = fs::read_to_string(&file).unwrap_or_else(|_| panic!("no {file:?}"));
            for name in names.split(", ").map(|name| name.trim_matches('`')) {
                assert!(defines(&source, name), "step {step}: {file:?} has no {name}");
            }
        }
    }
}

/// Whether a source has each part of a path: `Vdso::boot` is a type and a function.
fn defines(source: &str, path: &str) -> bool {
    path.split("::").all(|name| {
        ["fn", "struct", "trait", "const", "static"].iter().any(|kind| {
            let wanted = format!("{kind} {name}");
            let mut places = source.match_indices(&wanted);
            places.any(|(at, found)| {
                let next = source[at + found.len()..].chars().next();
                next.is_some_and(|next| !next.is_alphanumeric() && next != '_')
            })
        })
    })
}
