//! `kernel-sim bench` says what it measured in the form that was asked for, and what it cannot do.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kernel-sim")).arg("bench").args(arguments).output().unwrap()
}

#[test]
fn a_table_comes_as_text_as_json_and_as_a_drawing() {
    let directory = std::env::temp_dir().join(format!("uvdso-bench-{}", std::process::id()));
    let text =
        bench(&["--table", "clocks", "--quick", "--svg", directory.join("new").to_str().unwrap()]);
    assert!(text.status.success());
    let printed = String::from_utf8(text.stdout).unwrap();
    assert!(printed.contains("right/UTC 1 vdso") && !printed.contains('\x1b'), "{printed}");
    let svg = std::fs::read_to_string(directory.join("new/clocks.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("our vDSO"));
    std::fs::remove_dir_all(&directory).unwrap();

    let json = bench(&["--table", "clocks", "--quick", "--json"]);
    assert!(json.status.success());
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let rows = value["tables"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 16);
    for row in rows {
        let [min, median] = ["min", "median"].map(|name| row["nanos"][name].as_f64().unwrap());
        assert!(1.0 < min && min <= median, "{row}");
    }
}

#[test]
fn a_check_answers_by_its_exit_code_and_names_what_it_judged() {
    let check = bench(&["--check", "--quick", "--json", "--rows", "time vs host"]);
    // Which of the three it is depends on the machine; that it is one of them does not.
    assert!(matches!(check.status.code(), Some(0 | 1 | 3)), "{:?}", check.status);
    let outcomes: serde_json::Value = serde_json::from_slice(&check.stdout).unwrap();
    let verdict = match check.status.code() {
        Some(0) => "pass",
        Some(1) => "fail",
        _ => "inconclusive",
    };
    assert_eq!(outcomes[0]["verdict"], verdict);
    assert!(outcomes[0]["ratio"]["low"].as_f64().unwrap() > 0.0);
}

#[test]
fn what_does_not_exist_is_refused_with_what_does() {
    let table = bench(&["--table", "vdso"]);
    assert!(!table.status.success());
    let message = String::from_utf8(table.stderr).unwrap();
    assert!(message.contains("`vdso`") && message.contains("vdsotest-rate"), "{message}");

    let row = bench(&["--check", "--rows", "no such row"]);
    assert_eq!(row.status.code(), Some(1));
    let message = String::from_utf8(row.stderr).unwrap();
    assert!(message.contains("`no such row`") && message.contains("getcpu vs host"), "{message}");
}
