//! Writes scenarios: random, but structured as what happens to machines is.
//!
//! Most of what happens are ticks; what is rare on a machine is rare here, but not as rare. Numbers
//! are drawn at limits and edges far more often than chance would.

mod bare;
pub(crate) mod machine;

use crate::rng::Rng;
use crate::scenario::{Reader, Scenario};

/// Updates in a scenario, about.
pub const EPISODE: u64 = 2_000;

/// Scenario number `number` of the run with this seed.
#[must_use]
pub fn scenario(seed: u64, number: u64) -> Scenario {
    written_by(Rng::new(seed, number), number, EPISODE)
}

/// A short scenario for which `bytes` draw the numbers, for fuzzers that are guided by coverage.
#[must_use]
pub fn scripted(bytes: &[u8]) -> Scenario {
    let (kind, bytes) = bytes.split_first().unwrap_or((&0, &[]));
    written_by(Rng::scripted(bytes), u64::from(*kind), bytes.len() as u64 / 16 + 1)
}

fn written_by(rng: Rng, kind: u64, updates: u64) -> Scenario {
    // Every kind of reader early in a run, and the shipped image often.
    let reader = match kind % 8 {
        0 | 3 | 6 => Reader::Image,
        1 | 7 => Reader::Preemptible,
        _ => Reader::Code,
    };
    match kind % 4 {
        0 | 1 => bare::scenario(rng, reader, updates),
        _ => machine::scenario(rng, reader, updates),
    }
}
