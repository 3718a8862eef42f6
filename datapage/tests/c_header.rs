//! The C header for kernels written in C says what the Rust constants say.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use datapage::fields::FIELDS;
use datapage::{ABI, ClockId, ClockMode, Features, MAGIC, SLOTS};

/// Constants of the header, and what they are here.
fn constants() -> Vec<(&'static str, u64)> {
    let mode = |mode: ClockMode| u64::from(mode.0.cast_unsigned());
    let clock = |clock: ClockId| u64::from(clock.0.cast_unsigned());
    vec![
        ("UVDSO_PAGE_ABI", ABI.into()),
        ("UVDSO_PAGE_MAGIC", MAGIC),
        ("UVDSO_SLOTS", SLOTS.into()),
        ("(unsigned)-UVDSO_SLOT_DATA", SLOTS.into()),
        ("UVDSO_DATA_BYTES", datapage::layout::DATA_BYTES as u64),
        ("UVDSO_BASES", datapage::layout::BASES as u64),
        ("UVDSO_MODE_NONE", mode(ClockMode::NONE)),
        ("UVDSO_MODE_COUNTER", mode(ClockMode::COUNTER)),
        ("UVDSO_MODE_PVCLOCK", mode(ClockMode::PVCLOCK)),
        ("UVDSO_MODE_HVCLOCK", mode(ClockMode::HVCLOCK)),
        ("UVDSO_MODE_MEMORY", mode(ClockMode::MEMORY)),
        ("UVDSO_MODE_RDTSCP", mode(ClockMode::RDTSCP)),
        ("UVDSO_MODE_CNTVCTSS", mode(ClockMode::CNTVCTSS)),
        ("UVDSO_MODE_COUNTER_64", mode(ClockMode::COUNTER_64BIT_ONLY)),
        ("UVDSO_MODE_TIMENS", mode(ClockMode::TIME_NAMESPACE)),
        ("UVDSO_CLOCK_REALTIME", clock(ClockId::REALTIME)),
        ("UVDSO_CLOCK_MONOTONIC", clock(ClockId::MONOTONIC)),
        ("UVDSO_CLOCK_MONOTONIC_RAW", clock(ClockId::MONOTONIC_RAW)),
        ("UVDSO_CLOCK_REALTIME_COARSE", clock(ClockId::REALTIME_COARSE)),
        ("UVDSO_CLOCK_MONOTONIC_COARSE", clock(ClockId::MONOTONIC_COARSE)),
        ("UVDSO_CLOCK_BOOTTIME", clock(ClockId::BOOTTIME)),
        ("UVDSO_CLOCK_TAI", clock(ClockId::TAI)),
        ("UVDSO_FEATURE_GETCPU_RDPID", Features::GETCPU_RDPID.bits()),
        ("UVDSO_FEATURE_GETCPU_SEGMENT_LIMIT", Features::GETCPU_SEGMENT_LIMIT.bits()),
    ]
}

/// A translation unit that compiles if every constant and every field is what Rust says.
fn source() -> String {
    let mut source = String::from("#include \"uvdso_page.h\"\n");
    for (name, value) in constants() {
        writeln!(source, "_Static_assert(({name}) == UINT64_C({value}), \"{name}\");").unwrap();
    }
    for field in &FIELDS {
        let (name, offset, bytes) = (field.name, field.offset, field.bytes);
        writeln!(
            source,
            "_Static_assert(offsetof(struct uvdso_page, {name}) == {offset}, \"{name}\");\n\
             _Static_assert(sizeof(((struct uvdso_page *)0)->{name}) == {bytes}, \"{name} size\");"
        )
        .unwrap();
    }
    source
}

fn compile(name: &str, source: &str, flags: &[&str]) -> Result<(), String> {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.c"));
    std::fs::write(&file, source).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let output = Command::new("cc")
        .args(["-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror"])
        .args(["-ffreestanding", "-fsyntax-only", "-I"])
        .arg(&include)
        .args(flags)
        .arg(&file)
        .output()
        .expect("a C compiler is a prerequisite");
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

#[test]
fn the_c_header_has_the_layout_and_the_constants_of_the_crate() {
    compile("page", &source(), &[]).unwrap();
    // 32-bit x86 aligns a uint64_t in a structure to 4 bytes; the layout must not notice.
    compile("page-32", &source(), &["-m32"]).unwrap();
}

#[test]
fn a_header_that_differed_would_not_compile() {
    let wrong = source().replace("hrtimer_res) == 248", "hrtimer_res) == 252");
    assert_ne!(wrong, source());
    let error = compile("page-wrong", &wrong, &[]).unwrap_err();
    assert!(error.contains("hrtimer_res"), "{error}");
}
