//! Each part of a demand has a bad image: whatever the judge may say of one, it says of one of ours.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{i386, nothing, refused, verdict};

#[test]
fn each_line_that_refuses_an_image_refuses_one_of_these() {
    let Some(i386) = i386::images() else {
        return;
    };
    let images = refused::images().chain(nothing::images()).chain(i386);
    let mut reached = BTreeSet::new();
    for image in images {
        let verdict = verdict(&image);
        reached.extend(verdict.broken().map(|(_, broken)| line_of(broken.place())));
    }
    let all = lines_that_refuse();
    assert!(all.len() > 100, "{} lines that refuse an image were found", all.len());
    let known: BTreeSet<_> = all.iter().map(|(line, _)| line.clone()).collect();
    assert!(reached.is_subset(&known), "{:?}", reached.difference(&known));
    let missing = all.iter().filter(|(line, _)| !reached.contains(line));
    let missing: Vec<_> = missing.map(|(line, text)| format!("{line} {text}")).collect();
    assert!(missing.is_empty(), "no bad image gets to\n{}", missing.join("\n"));
}

/// A place without the folder, which depends on who compiles.
fn line_of(place: &str) -> String {
    place.rsplit(['/', '\\']).next().unwrap().to_owned()
}

/// Where the rules' source leaves a check, with what stands there.
fn lines_that_refuse() -> Vec<(String, String)> {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/judge/rules");
    let mut found = Vec::new();
    for file in fs::read_dir(rules).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        for (number, text) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            if text.contains("broken!(") {
                found.push((format!("{name}:{}", number + 1), text.trim().to_owned()));
            }
        }
    }
    found
}
