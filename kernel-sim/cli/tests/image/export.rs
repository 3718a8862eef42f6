//! `image export`: each form holds the same image.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{built, directory, run, stderr};

#[test]
fn each_exported_form_holds_the_same_image() {
    let directory = directory("export");
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    for (format, name) in [("raw", "raw"), ("c", "uvdso_image.h"), ("rust", "uvdso_image.rs")] {
        let output = run(&["export", "--format", format, "--out", &path(name)]);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let image = &linker::SYSCALL;
    assert_eq!(fs::read(path("raw")).unwrap(), image.bytes);

    // In C: compiled, run, compared byte by byte.
    let program = path("check.c");
    let time = image.symbol("__vdso_time").unwrap().offset;
    let source = format!(
        "#include <stdio.h>\n#include \"uvdso_image.h\"\n\
         _Static_assert(UVDSO_OFFSET___vdso_time == {time}, \"offset\");\n\
         _Static_assert(UVDSO_IMAGE_SLOT_DATA == -{}, \"slot\");\n\
         int main(void) {{ return fwrite(uvdso_image, 1, sizeof(uvdso_image), stdout) == 0; }}\n",
        image.data_offset()
    );
    fs::write(&program, source).unwrap();
    let binary = path("check");
    let flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"];
    let compiled = Command::new("cc").args(flags).args([&binary, &program]).status().unwrap();
    assert!(compiled.success());
    assert_eq!(Command::new(&binary).output().unwrap().stdout, image.bytes);

    // In Rust: the constants, and each byte.
    let text = fs::read_to_string(path("uvdso_image.rs")).unwrap();
    for symbol in image.symbols {
        assert!(text.contains(&format!("(\"{}\", {:#x})", symbol.name, symbol.offset)));
    }
    let rows = text.split("const BYTES").nth(1).unwrap().split('=').nth(1).unwrap();
    let bytes = rows.split(['[', ']', ',', ';']).map(str::trim).filter(|word| !word.is_empty());
    let bytes: Vec<u8> = bytes.map(|byte| u8::from_str_radix(&byte[2..], 16).unwrap()).collect();
    assert_eq!(bytes, image.bytes);
}

#[test]
fn an_image_that_breaks_a_consumer_is_not_exported() {
    let directory = directory("refused");
    let file = built(&directory, "syscall");
    let mut bytes = fs::read(&file).unwrap();
    bytes[7] = 3;
    fs::write(&file, bytes).unwrap();
    let out = directory.join("out").to_str().unwrap().to_owned();
    let output = run(&["export", &file, "--format", "raw", "--out", &out]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("os-abi"), "{}", stderr(&output));
    assert!(!Path::new(&out).exists());
}

#[test]
fn the_kernel_stand_in_holds_the_image_of_today() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let held = root.join("examples/embed/src/uvdso_image.rs");
    let exported = directory("stand-in").join("uvdso_image.rs");
    let output = run(&["export", "--format", "rust", "--out", exported.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    if std::env::var_os("UVDSO_BLESS").is_some_and(|value| value == "1") {
        fs::copy(&exported, &held).unwrap();
    }
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let (exported, held) = (read(&exported), read(&held));
    let build_id = exported.split("build id ").nth(1).and_then(|rest| rest.split('.').next());
    let hashes = read(&root.join("abi/image-hashes.txt"));
    // Another compiler's image is another one.
    if hashes.contains(build_id.unwrap()) {
        assert!(exported == held, "examples/embed holds another image: `cargo xtask bless -p cli`");
    }
}

#[test]
fn a_name_that_would_be_code_or_an_escape_code_is_no_name() {
    let directory = directory("names");
    let file = built(&directory, "syscall");
    let whole = fs::read(&file).unwrap();
    let at = whole.windows(8).position(|window| window == b"\0getcpu\0").unwrap() + 1;
    let out = directory.join("out").to_str().unwrap().to_owned();
    for name in [b"\";\naau", b"\x1b[7maa", b"get\ncp", b"g\xc3\xa9tcp", b"get cp"] {
        let mut bytes = whole.clone();
        bytes[at..at + name.len()].copy_from_slice(name);
        fs::write(&file, bytes).unwrap();
        for arguments in [
            &["check", &file][..],
            &["show", &file],
            &["export", &file, "--format", "c", "--out", &out],
            &["export", &file, "--format", "rust", "--out", &out],
        ] {
            let output = run(arguments);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}");
            assert!(output.stdout.is_empty());
            let error = stderr(&output);
            assert!(error.contains("names are of letters, digits"), "{error}");
            assert!(
                error.trim_end().bytes().all(|byte| (b' '..=b'~').contains(&byte)),
                "{error:?}"
            );
        }
    }
    assert!(!Path::new(&out).exists());
}
