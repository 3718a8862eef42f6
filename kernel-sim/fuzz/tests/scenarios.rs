//! Every scenario that ships is run, and holds.

use std::path::Path;

use fuzz::{Scenario, Stage};

#[test]
fn every_shipped_scenario_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut names = Vec::new();
    let mut stage = Stage::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let scenario = Scenario::parse(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let outcome = stage.run(&scenario).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        if let Some((step, violation)) = outcome.violation {
            panic!("{path:?}, step {step} ({}): {violation}", scenario.steps[step]);
        }
        assert!(outcome.counts.reads > 0, "{path:?} reads nothing");
        names.push(path);
    }
    assert!(names.len() >= 15, "no scenario ships");
}
