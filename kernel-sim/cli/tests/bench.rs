//! `kernel-sim bench` says what it measured in the form that was asked for, and what it cannot do.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod forbidden;

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
    assert_eq!(outcomes["ratios"][0]["verdict"], verdict);
    assert!(outcomes["ratios"][0]["ratio"]["low"].as_f64().unwrap() > 0.0);
    assert_eq!(outcomes["launches"], serde_json::json!([]), "no row of the launcher's was named");
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn launching_is_measured_and_judged_for_each_user_or_left_out_with_the_reason() {
    let check = bench(&["--check", "--quick", "--json", "--rows", "run: "]);
    let said = String::from_utf8_lossy(&check.stderr);
    assert!(matches!(check.status.code(), Some(0 | 1 | 3)), "{}: {said}", check.status);
    let found: serde_json::Value = serde_json::from_slice(&check.stdout).unwrap();
    let launches = found["launches"].as_array().unwrap();
    for row in launches {
        // A tick or an exec takes some time, and the median lies between the ends.
        let [min, median, most] =
            ["min", "median", "most"].map(|name| row["millis"][name].as_f64().unwrap());
        assert!(0.0 < min && min <= median && median <= most, "{row}");
        let [low, high] = ["low", "high"].map(|name| row["found"][name].as_f64().unwrap());
        let verdict = row["verdict"].as_str().unwrap();
        assert_eq!(verdict == "fail", low > row["target"].as_f64().unwrap(), "{row}");
        assert!(low <= high, "{row}");
    }
    let left_out = found["left_out"].as_array().unwrap();
    assert_eq!(launches.len() + left_out.len(), 6, "{found}");
    if !nix::unistd::geteuid().is_root() {
        assert!(left_out.iter().any(|row| row["why"] == "this is not root"), "{found}");
    }
}

/// A process of `kernel-sim bench` in which nothing can be traced.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn rows_that_cannot_be_measured_here_are_named_and_break_no_promise() {
    use std::os::unix::process::CommandExt as _;
    let mut command = Command::new(env!("CARGO_BIN_EXE_kernel-sim"));
    command.args(["bench", "--check", "--quick", "--rows", "run: exec"]);
    // SAFETY: the function makes two system calls and touches no lock.
    unsafe { command.pre_exec(forbidden::forbid_ptrace) };
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let row = "left out: run: exec of /bin/true, as an ordinary user: ";
    assert!(said.contains(row) && said.contains("allow ptrace"), "{said}");
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
