//! The picture of the page is the one that was agreed on.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

#[test]
fn the_page_is_drawn_as_the_golden_text_has_it() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../abi/page-layout.txt");
    let output = Command::new(env!("CARGO_BIN_EXE_kernel-sim")).arg("layout").output().unwrap();
    assert!(output.status.success());
    let drawn = String::from_utf8(output.stdout).unwrap();
    assert!(!drawn.contains('\x1b'), "escape codes where there is no terminal");
    for line in drawn.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    if std::env::var_os("UVDSO_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&golden, &drawn).unwrap();
    }
    let wanted = std::fs::read_to_string(&golden).unwrap();
    assert_eq!(drawn, wanted, "the page changed: an ABI change, or `cargo xtask bless`");
}
