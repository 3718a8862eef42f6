//! The arrows between the packages go one way.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Which packages of the workspace a package may be built from.
///
/// The page is below both of its sides; the reader and the simulated kernel never see each other
/// and meet at the page and at the image.
const ALLOWED: &[(&str, &[&str])] = &[
    ("datapage", &[]),
    ("vdso", &["datapage"]),
    ("vdso-image", &["vdso", "datapage"]),
    ("image-build", &[]),
    ("linker", &["image-build"]),
    ("timekeeper", &["datapage"]),
    ("kernel-sim", &["timekeeper", "datapage", "linker"]),
    // It judges, so it shares nothing with what it judges.
    ("oracle", &[]),
    ("fuzz", &["oracle", "vdso", "kernel-sim", "timekeeper", "datapage", "linker"]),
    ("bench", &["fuzz", "vdso", "kernel-sim", "timekeeper", "datapage", "linker"]),
    ("xtask", &["image-build", "linker", "datapage"]),
    // A kernel takes the writer, and an image's bytes.
    ("kernel-writer", &["datapage"]),
    ("embed", &["datapage"]),
];

/// Leaves: programs, and the image's exports (whose weak `clock_gettime` would take the place of
/// libc's in whatever links them).
const LEAVES: [&str; 3] = ["vdso-image", "cli", "tests"];

/// What cargo says of the workspace.
fn metadata(arguments: &[&str]) -> serde_json::Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline"])
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The packages of the workspace, each with those that it is built from.
fn packages() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = metadata(&["--no-deps"]);
    let packages = metadata["packages"].as_array().unwrap();
    let name = |value: &serde_json::Value| value["name"].as_str().unwrap().to_owned();
    let members: BTreeSet<String> = packages.iter().map(name).collect();
    packages
        .iter()
        .map(|package| {
            let built_from = package["dependencies"].as_array().unwrap().iter();
            let built_from = built_from
                .filter(|dependency| dependency["kind"] != "dev")
                .map(name)
                .filter(|dependency| members.contains(dependency))
                .collect();
            (name(package), built_from)
        })
        .collect()
}

#[test]
fn each_package_is_built_from_what_lies_below_it() {
    let packages = packages();
    for (name, allowed) in ALLOWED {
        let built_from = packages.get(*name).unwrap_or_else(|| panic!("no package {name}"));
        for dependency in built_from {
            assert!(allowed.contains(&dependency.as_str()), "{name} must not see {dependency}");
        }
    }
}

#[test]
fn nobody_is_built_from_a_leaf() {
    for (name, built_from) in packages() {
        for leaf in LEAVES {
            assert!(!built_from.contains(leaf), "{name} is built from the leaf {leaf}");
        }
    }
}

#[test]
fn no_arrow_leads_up() {
    // Whatever is not in the table, a kernel or an example, is above all that is.
    let packages = packages();
    assert!(packages.len() > ALLOWED.len(), "cargo metadata names {} packages", packages.len());
    let known: BTreeSet<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    for (name, built_from) in &packages {
        if known.contains(name.as_str()) {
            for dependency in built_from {
                assert!(known.contains(dependency.as_str()), "{name} must not see {dependency}");
            }
        }
    }
}

/// Everything that is built for the kernel stand-in, on the machine that it runs on.
const IN_A_KERNEL: [&str; 5] = ["bitflags", "datapage", "embed", "memoffset", "static_assertions"];

#[test]
fn a_kernel_is_built_from_the_page_alone() {
    let metadata = metadata(&["--locked"]);
    let packages = metadata["packages"].as_array().unwrap();
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let named = |name: &str| packages.iter().find(|package| package["name"] == name).unwrap();
    let mut found = BTreeSet::new();
    let mut todo = vec![named("embed")["id"].as_str().unwrap()];
    while let Some(id) = todo.pop() {
        let package = packages.iter().find(|package| package["id"] == id).unwrap();
        if !found.insert(package["name"].as_str().unwrap()) {
            continue;
        }
        let node = nodes.iter().find(|node| node["id"] == id).unwrap();
        for dependency in node["deps"].as_array().unwrap() {
            let mut kinds = dependency["dep_kinds"].as_array().unwrap().iter();
            if kinds.any(|kind| kind["kind"].is_null()) {
                todo.push(dependency["pkg"].as_str().unwrap());
            }
        }
    }
    assert_eq!(found.into_iter().collect::<Vec<_>>(), IN_A_KERNEL);
    // memoffset asks the compiler for its version; nothing else runs while a kernel is built.
    let has_build_script = |name: &&str| {
        let targets = named(name)["targets"].as_array().unwrap();
        targets.iter().any(|target| target["kind"][0] == "custom-build")
    };
    assert_eq!(IN_A_KERNEL.into_iter().filter(has_build_script).collect::<Vec<_>>(), ["memoffset"]);
}
