//! The oracle shares nothing with what it judges.

use std::process::Command;

#[test]
fn the_oracle_depends_on_nothing_and_only_judges_use_it() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let dependencies = |package: &serde_json::Value| -> Vec<String> {
        let list = package["dependencies"].as_array().unwrap();
        list.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    let named = |name: &str| packages.iter().find(|package| package["name"] == name).unwrap();
    assert_eq!(dependencies(named("oracle")), Vec::<String>::new());
    // What is judged must not ask the judge either.
    for judged in ["datapage", "vdso", "vdso-image", "timekeeper", "kernel-sim", "linker"] {
        assert!(!dependencies(named(judged)).contains(&"oracle".to_owned()), "{judged}");
    }
}
