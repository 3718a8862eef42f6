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
    let mut rng = Rng::new(seed, number);
    // Every kind of reader early in a run, and the shipped image often.
    let reader = match number % 8 {
        0 | 3 | 6 => Reader::Image,
        1 => Reader::Preemptible,
        _ => Reader::Code,
    };
    match number % 4 {
        0 | 1 => bare::scenario(&mut rng, reader),
        _ => machine::scenario(&mut rng, reader),
    }
}
