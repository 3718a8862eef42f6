//! One crafted bad image for each rule, at least: that rule, by name, refuses it.

mod code;
mod dynamic;
mod sections;
mod segments;
mod symbols;

use linker::judge::{Outcome, RULES};

use super::patch::Patch;
use super::{outcome, verdict};

/// A rule, what is wrong with the image, and the change that makes it so.
type Case = (&'static str, &'static str, fn(&mut Patch));

/// All of them, in the order of the rules' families.
fn cases() -> impl Iterator<Item = &'static Case> {
    let families = [segments::CASES, dynamic::CASES, sections::CASES, symbols::CASES, code::CASES];
    families.into_iter().flatten()
}

/// The image that a change makes of ours.
fn made_by(change: &fn(&mut Patch)) -> Vec<u8> {
    let mut patch = Patch::of(&linker::SYSCALL);
    change(&mut patch);
    patch.bytes
}

/// All of the images.
pub(crate) fn images() -> impl Iterator<Item = Vec<u8>> {
    cases().map(|(.., change)| made_by(change))
}

/// Rules for another architecture, whose bad images are made in `i386.rs`.
const ELSEWHERE: [&str; 3] = ["entry-point", "late-names", "signal-frames"];

/// Where even the mildest bad image breaks more than its rule: what else, and why.
const ALSO: &[(&str, &[&str], &str)] = &[
    ("one-load-segment", &["build-id"], "the second one was the notes"),
    ("no-loader-segments", &["build-id"], "it was the notes"),
    ("one-dynamic-segment", &["build-id"], "the second one was the notes"),
    (
        "load-segment-origin",
        &[
            "offsets-are-addresses",
            "sections-inside-load",
            "first-string-table",
            "dynsym-section",
            "symbol-values",
        ],
        "all of these relate addresses to the segment's",
    ),
    (
        "section-headers",
        &["first-string-table", "dynsym-section", "unwind-tables", "unwind-every-path"],
        "sections are found by their names",
    ),
    ("sections-visible", &["two-pages"], "what lies behind two pages makes the file longer"),
    ("names", &["aliases", "symbol-versions"], "a name that is missing has neither"),
    ("symbol-values", &["names"], "an absolute symbol is no function of that name"),
    (
        "function-alignment",
        &["aliases", "function-size", "function-room", "unwind-tables"],
        "the symbol moved, and its code did not",
    ),
    ("function-size", &["aliases"], "the alias kept the size"),
    ("no-system-call", &["unwind-every-path"], "it stands where padding was"),
];

#[test]
fn each_bad_image_is_refused_by_its_rule() {
    let mut failures = Vec::new();
    for (rule, what, change) in cases() {
        let outcome = outcome(&made_by(change), rule);
        if !matches!(outcome, Outcome::Broken(_)) {
            failures.push(format!("{rule}: {what}: {outcome:?}"));
        }
    }
    assert!(failures.is_empty(), "not refused:\n{}", failures.join("\n"));
}

#[test]
fn each_rule_has_a_bad_image_that_no_other_rule_refuses() {
    for rule in RULES.iter().filter(|rule| !ELSEWHERE.contains(&rule.name)) {
        let refused_by = |change: &fn(&mut Patch)| {
            let verdict = verdict(&made_by(change));
            verdict.broken().map(|(rule, _)| rule.name).collect::<Vec<_>>()
        };
        let cases = cases().filter(|(name, ..)| *name == rule.name);
        let mildest = cases.map(|(.., change)| refused_by(change)).min_by_key(Vec::len);
        let mildest = mildest.unwrap_or_default();
        let others: Vec<_> = mildest.into_iter().filter(|name| *name != rule.name).collect();
        let also = ALSO.iter().find(|(name, ..)| *name == rule.name);
        let expected = also.map_or(&[][..], |(_, others, _)| others);
        let both = |name: &&str| others.contains(name) == expected.contains(name);
        assert!(RULES.iter().all(|rule| both(&rule.name)), "{}: {others:?}", rule.name);
    }
}

#[test]
fn each_rule_has_a_bad_image() {
    for rule in RULES {
        let has_case = cases().any(|(name, ..)| *name == rule.name);
        assert!(has_case || ELSEWHERE.contains(&rule.name), "no bad image for {}", rule.name);
    }
    for (name, ..) in cases() {
        assert!(RULES.iter().any(|rule| rule.name == *name), "{name} is no rule");
    }
}
