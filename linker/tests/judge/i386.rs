//! The rules that are for i386 alone, on images that the C compiler assembles.

use std::path::{Path, PathBuf};
use std::process::Command;

use linker::judge::{Level, Outcome};

use super::{broken, outcome};

/// Assembles and links `i386.S` with some definitions; `None` if there is no compiler for it.
fn image(name: &str, definitions: &[&str]) -> Option<Vec<u8>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/judge/i386.S");
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("i386-{name}.so"));
    let entry = if definitions.contains(&"OTHER_ENTRY") {
        "-Wl,-e,__vdso_time"
    } else {
        "-Wl,-e,__kernel_vsyscall"
    };
    let map = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/judge/i386.map");
    let output = Command::new("cc")
        .args(["-m32", "-nostdlib", "-shared", "-Wl,-soname,linux-gate.so.1", entry])
        .args(["-Wl,--hash-style=both", "-Wl,--build-id=sha1", "-Wl,--eh-frame-hdr"])
        .arg(format!("-Wl,--version-script={}", map.display()))
        .args(definitions.iter().map(|name| format!("-D{name}")))
        .args([source.as_os_str(), "-o".as_ref(), out.as_os_str()])
        .output();
    match output {
        Ok(output) if output.status.success() => Some(std::fs::read(out).unwrap()),
        Ok(output) => skip(&format!("cc -m32: {}", String::from_utf8_lossy(&output.stderr))),
        Err(error) => skip(&format!("no C compiler: {error}")),
    }
}

/// Says why there is no image; where every tool has to be there, that is a failure.
fn skip(reason: &str) -> Option<Vec<u8>> {
    let required = std::env::var_os("UVDSO_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    assert!(!required, "{reason}");
    println!("skip: {reason}");
    None
}

/// A rule, and what to define for an image that it refuses.
const BAD: [(&str, &str); 10] = [
    ("entry-point", "OTHER_ENTRY"),
    ("entry-point", "NO_KERNEL_NAMES"),
    ("signal-frames", "NO_KERNEL_NAMES"),
    ("signal-frames", "LATE_FRAME"),
    ("signal-frames", "PLAIN_FRAME"),
    ("unwind-tables", "CODE_IN_PADDING"),
    ("unwind-tables", "LONG_PADDING"),
    ("unwind-tables", "PADDED_FUNCTION"),
    ("late-names", "NO_LATE_NAMES"),
    ("late-names", "LATE_VERSION"),
];

#[test]
fn a_good_image_passes_and_each_bad_one_is_refused() {
    let Some(good) = image("good", &[]) else {
        return;
    };
    assert_eq!(outcome(&good, "entry-point"), Outcome::Holds);
    assert_eq!(outcome(&good, "signal-frames"), Outcome::Holds);
    for rule in [
        "names",
        "symbol-versions",
        "soname",
        "system-call",
        "unwind-tables",
        "unwind-every-path",
        "late-names",
        "function-size",
    ] {
        assert_eq!(outcome(&good, rule), Outcome::Holds, "{rule}");
    }
    // An ordinary link is not an image: it has more than one segment.
    assert!(broken(&good, Level::Must).contains(&"one-load-segment"));

    for (rule, definition) in BAD {
        let bad = image(definition, &[definition]).expect("the compiler worked a moment ago");
        assert!(matches!(outcome(&bad, rule), Outcome::Broken(_)), "{definition}: {rule}");
    }
}

/// The bad ones, without the compiler none.
pub(crate) fn images() -> Option<Vec<Vec<u8>>> {
    BAD.iter()
        .map(|(_, definition)| image(&format!("reached-{definition}"), &[definition]))
        .collect()
}
