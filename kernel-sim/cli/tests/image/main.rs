//! `kernel-sim image`, as a user runs it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kernel-sim")).arg("image").args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// An empty directory of this test's own.
fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn built(directory: &Path, policy: &str) -> String {
    let file = directory.join(format!("{policy}.so")).to_str().unwrap().to_owned();
    let output = run(&["build", "--policy", policy, "--out", &file]);
    assert!(output.status.success(), "{}", stderr(&output));
    file
}

#[test]
fn what_build_writes_is_accepted_by_check_rule_by_rule() {
    let directory = directory("build-and-check");
    for policy in ["syscall", "enosys"] {
        let file = built(&directory, policy);
        let output = run(&["check", &file]);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{text}");
        for rule in linker::judge::RULES {
            let line = text.lines().find(|line| line.contains(&format!(" {} ", rule.name)));
            let line = line.unwrap_or_else(|| panic!("no line for {}", rule.name));
            assert!(line.starts_with("ok ") || line.starts_with("- "), "{line}");
        }
        assert!(!text.contains('\x1b'));
    }
    // Nothing is left beside what was asked for.
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 2);
}

#[test]
fn check_exits_1_for_a_must_and_0_for_a_should() {
    let file = built(&directory("levels"), "syscall");
    let whole = fs::read(&file).unwrap();
    // EI_OSABI: Shadow and CRIU want 0.
    let mut bytes = whole.clone();
    bytes[7] = 3;
    fs::write(&file, bytes).unwrap();
    let output = run(&["check", &file]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    let line = text.lines().find(|line| line.starts_with("MUST")).unwrap();
    assert!(line.contains("os-abi") && text.contains("Shadow"), "{text}");

    let mut bytes = whole;
    bytes.extend(*b"\0/home/me/kernel");
    bytes.truncate(8192);
    fs::write(&file, bytes).unwrap();
    let output = run(&["check", &file]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).lines().any(|line| line.starts_with("should")));
}

#[test]
fn what_cannot_be_read_exits_2_and_says_why() {
    let directory = directory("unreadable");
    let file = built(&directory, "syscall");
    let bytes = fs::read(&file).unwrap();
    let cut = directory.join("cut").to_str().unwrap().to_owned();
    fs::write(&cut, &bytes[..bytes.len() - 1]).unwrap();
    let missing = directory.join("missing").to_str().unwrap().to_owned();
    for (command, file, reason) in [
        ("check", &cut, "section headers"),
        ("show", &cut, "section headers"),
        ("check", &missing, "No such file"),
        ("check", &directory.to_str().unwrap().to_owned(), "directory"),
        ("check", &"/etc/passwd".to_owned(), "not an ELF file"),
        ("check", &"/dev/null".to_owned(), "0 bytes"),
        ("check", &"/dev/zero".to_owned(), "not an ELF file"),
    ] {
        let output = run(&[command, file]);
        assert_eq!(output.status.code(), Some(2), "{command} {file}");
        assert!(stderr(&output).contains(reason), "{file}: {}", stderr(&output));
    }
}

#[test]
fn a_file_is_replaced_whole_or_not_at_all() {
    let directory = directory("atomic");
    let file = built(&directory, "syscall");
    let before = fs::metadata(&file).unwrap();
    // Over an older file, through a link: the link stays, the file behind it is new.
    let link = directory.join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let output = run(&["build", "--policy", "enosys", "--out", link.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(&file).unwrap(), linker::ENOSYS.bytes);
    assert_ne!(before.len(), 0);
    // No device, no directory, and no file in a directory that does not exist.
    for out in ["/dev/null", directory.to_str().unwrap(), "/nonexistent/x.so"] {
        let output = run(&["build", "--out", out]);
        assert_eq!(output.status.code(), Some(1), "{out}");
        assert!(stderr(&output).contains(out), "{}", stderr(&output));
    }
    assert!(fs::metadata("/dev/null").unwrap().len() == 0);
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 2);
}

#[test]
fn show_says_what_the_constants_say() {
    let text = stdout(&run(&["show"]));
    let image = &linker::SYSCALL;
    let id: String = image.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(text.contains(&id), "{text}");
    assert!(text.contains(&format!("{} bytes in 2 page(s)", image.bytes.len())), "{text}");
    for symbol in image.symbols {
        let line = text.lines().find(|line| line.contains(&format!(" {}@", symbol.name)));
        assert!(line.is_some_and(|line| line.contains(&format!("{:#x}", symbol.offset))));
    }
    // The parts are the whole.
    let budget = text.lines().skip_while(|line| !line.contains("bytes in")).skip(1);
    let parts = budget.take_while(|line| !line.is_empty());
    let sum: usize = parts
        .map(|line| line.split_whitespace().find_map(|word| word.parse::<usize>().ok()).unwrap())
        .sum();
    assert_eq!(sum, image.bytes.len(), "{text}");
}

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
fn a_driven_image_answers_every_call() {
    let directory = directory("drive");
    for policy in ["syscall", "enosys"] {
        let output = run(&["check", "--drive", &built(&directory, policy)]);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
        let calls = text.lines().find_map(|line| line.split_once(" calls, 0 wrong answers"));
        let calls = calls.and_then(|(before, _)| before.split_whitespace().last()?.parse().ok());
        // Each id in each mode, of three functions.
        assert!(calls.is_some_and(|calls: u32| calls > 20_000), "{text}");
    }
}

/// An image with other code in one function; what no rule can see.
fn with_code(directory: &Path, name: &str, code: &[u8]) -> String {
    let file = built(directory, "syscall");
    let mut bytes = fs::read(&file).unwrap();
    let start = linker::SYSCALL.symbol(name).unwrap().offset;
    bytes[start..start + code.len()].copy_from_slice(code);
    fs::write(&file, bytes).unwrap();
    file
}

#[test]
fn wrong_code_is_found_by_driving_and_by_no_rule() {
    let directory = directory("drive-wrong");
    for (code, found) in [
        // xor eax, eax; ret: success, and nothing written.
        (&[0x31, 0xc0, 0xc3][..], "wrong answers"),
        // ud2.
        (&[0x0f, 0x0b][..], "was ended by signal 4 in clock_getres(-300, res), mode 0x0"),
    ] {
        let file = with_code(&directory, "__vdso_clock_getres", code);
        assert_eq!(run(&["check", &file]).status.code(), Some(0));
        let output = run(&["check", "--drive", &file]);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(found), "{text}");
    }
}

#[test]
fn an_image_that_does_not_state_its_page_is_not_driven() {
    let directory = directory("drive-refused");
    let file = built(&directory, "syscall");
    let mut bytes = fs::read(&file).unwrap();
    let owner = bytes.windows(6).position(|window| window == b"uVDSO\0").unwrap();
    bytes[owner] = b'x';
    fs::write(&file, bytes).unwrap();
    let output = run(&["check", "--drive", &file]);
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(stderr(&output).contains("note"), "{}", stderr(&output));
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
