//! `kernel-sim fuzz`, `replay` and `soak`, as a user runs them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kernel-sim")).args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> serde_json::Value {
    let output = run(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_seed_is_the_same_run_on_any_number_of_threads() {
    let one = json(&["fuzz", "--updates", "30000", "--seed", "7", "--json"]);
    let two = json(&["fuzz", "--updates", "30000", "--seed", "7", "--threads", "2", "--json"]);
    let other = json(&["fuzz", "--updates", "30000", "--seed", "8", "--json"]);
    assert!(one["updates"].as_u64().unwrap() >= 30_000);
    assert_eq!(one["cases"], two["cases"]);
    assert_ne!(one["cases"], other["cases"]);

    let report = run(&["fuzz", "--updates", "30000", "--seed", "7"]);
    let report = String::from_utf8(report.stdout).unwrap();
    assert!(report.contains("verdict unstable") && !report.contains('\x1b'), "{report}");
    assert!(report.lines().all(|line| line.len() <= 80), "{report}");
}

#[test]
fn a_scenario_that_is_none_is_refused_with_its_line() {
    let file = std::env::temp_dir().join(format!("uvdso-{}.scn", std::process::id()));
    std::fs::write(&file, "reader code\nmachine cpus 0 hz 250 realtime 0\n").unwrap();
    for command in [&["replay"][..], &["fuzz", "--scenario"]] {
        let output = run(&[command, &[file.to_str().unwrap()]].concat());
        assert_eq!(output.status.code(), Some(1));
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains("line 2: a machine of 0 CPUs; write 1 to 64"), "{message}");
    }
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_soak_says_what_each_part_came_to() {
    let report = json(&["soak", "--seconds", "1", "--json"]);
    for part in ["simulated", "counter", "killed"] {
        assert!(report[part]["updates"].as_u64().unwrap() > 0, "{report}");
        assert!(report[part]["reads"].as_u64().unwrap() > 0, "{report}");
    }
    assert!(report["killed"]["writers"].as_u64().unwrap() > 0, "{report}");

    let output = run(&["soak", "--seconds", "0"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && message.contains("write at least 1"), "{message}");
}
