//! The judge against good images, bad ones and hostile bytes.
//!
//! Bad images are made from ours, a few bytes changed: each rule has at least one that it refuses.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod documented;
mod grown;
mod hostile;
mod i386;
mod nothing;
mod ours;
mod patch;
mod reached;
mod refused;

use linker::judge::{ImageFile, Level, Outcome, Verdict, judge};

/// The verdict on an image that can be read.
fn verdict(bytes: &[u8]) -> Verdict {
    judge(&ImageFile::read(bytes).expect("the image can be read"))
}

/// What one rule says.
fn outcome(bytes: &[u8], rule: &str) -> Outcome {
    let mut findings = verdict(bytes).findings.into_iter();
    findings.find(|finding| finding.rule.name == rule).expect("the rule exists").outcome
}

/// The names of broken rules, of one level.
fn broken(bytes: &[u8], level: Level) -> Vec<&'static str> {
    let verdict = verdict(bytes);
    let broken = verdict.broken().filter(|(rule, _)| rule.level == level);
    broken.map(|(rule, _)| rule.name).collect()
}
