//! Judges a vDSO image by what the programs that parse one demand of it.
//!
//! A dozen libraries, runtimes and tools parse a vDSO, each in its own way, and each has broken on
//! an image that the others took. So every demand is a named [`Rule`] with the consumer that breaks
//! without it, and an image is judged before anybody maps it: the recipe (`linker/build`) includes this module
//! and refuses to make an image that breaks a "must".
//!
//! | part | answers |
//! |---|---|
//! | [`file`](ImageFile) | what does a file say, in plain values; [`Unreadable`] if it lies about its own bounds |
//! | [`arch`](Arch) | which names and versions does each architecture promise |
//! | [`rules`](RULES) | what is demanded, by whom, and is it so; one file for each family |
//!
//! The bytes are hostile: nothing here panics, and the work is bounded, whatever they are.

mod arch;
mod file;
mod names;
mod notes;
mod rules;
mod tables;
mod unreadable;

pub use arch::Arch;
pub use file::{ImageFile, LIMIT, Section, Segment};
pub use names::NAME_LIMIT;
pub use notes::{Note, OwnNote};
pub use rules::{Broken, Level, RULES, Rule, Scope};
pub use tables::{Definition, Symbol};
pub use unreadable::Unreadable;

/// What a rule says of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The image does as the rule demands.
    Holds,
    /// It does not.
    Broken(Broken),
    /// The rule is not for this image; the reason.
    NotApplicable(String),
}

/// One rule and what it says.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// What it says of the image.
    pub outcome: Outcome,
}

impl Finding {
    /// Whether the rule is broken and a named consumer breaks with it.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(self.outcome, Outcome::Broken(_)) && self.rule.level == Level::Must
    }
}

/// What every rule says of an image, in the order of [`RULES`].
#[derive(Clone, Debug)]
pub struct Verdict {
    /// One for each rule.
    pub findings: Vec<Finding>,
}

impl Verdict {
    /// Whether no consumer breaks: every "must" that is for this image holds.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        !self.findings.iter().any(Finding::is_fatal)
    }

    /// The broken rules.
    pub fn broken(&self) -> impl Iterator<Item = (&'static Rule, &Broken)> {
        self.findings.iter().filter_map(|finding| match &finding.outcome {
            Outcome::Broken(broken) => Some((finding.rule, broken)),
            _ => None,
        })
    }

    /// How many rules hold, and how many are for this image.
    #[must_use]
    pub fn score(&self) -> (usize, usize) {
        let count = |wanted: fn(&Outcome) -> bool| {
            let mut findings = self.findings.iter();
            findings.by_ref().filter(|f| wanted(&f.outcome)).count()
        };
        let holds = count(|outcome| matches!(outcome, Outcome::Holds));
        let broken = count(|outcome| matches!(outcome, Outcome::Broken(_)));
        (holds, holds + broken)
    }
}

/// Asks every rule about `file`.
#[must_use]
pub fn judge(file: &ImageFile<'_>) -> Verdict {
    let findings = RULES.iter().map(|rule| Finding {
        rule,
        outcome: match rule.scope.excludes(file) {
            Some(reason) => Outcome::NotApplicable(reason),
            None => match (rule.check)(file) {
                Ok(()) => Outcome::Holds,
                Err(broken) => Outcome::Broken(broken),
            },
        },
    });
    Verdict { findings: findings.collect() }
}
