//! `image check`: the verdict is the exit code.

use std::fs::{self, File};
use std::process::Command;

use linker::judge::{ImageFile, LIMIT, Level, Outcome, judge};
use object::elf;

use super::patch::{dynamic, put, replace};
use super::{built, directory, run, stderr, stdout};

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
            assert!(line.starts_with("ok ") || line.starts_with("n/a "), "{line}");
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

/// Whose code the answer is: the exit code, and what has to be said.
fn assert_check(arguments: &[&str], code: i32, said: &str) {
    let output = run(&[&["check"], arguments].concat());
    let (text, error) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}{error}");
    // A verdict is the result; why there is none is an error, in a line.
    let place = if code == 2 { &error } else { &text };
    assert!(place.contains(said), "{arguments:?}: {text}{error}");
    if code == 2 {
        assert!(text.is_empty(), "{arguments:?}: {text}");
        assert!(error.starts_with("kernel-sim: ") && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn what_is_no_image_exits_2_and_says_why() {
    let directory = directory("unreadable");
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    fs::write(path("empty"), []).unwrap();
    fs::write(path("text"), "a text that is longer than a header of an ELF file is, by far")
        .unwrap();
    // Neither is read to its end.
    File::create(path("sparse")).unwrap().set_len(4 << 30).unwrap();
    fs::write(path("long"), linker::SYSCALL.bytes).unwrap();
    File::options().append(true).open(path("long")).unwrap().set_len(4 << 30).unwrap();
    for (file, reason) in [
        (path("missing"), "No such file"),
        (path(""), "directory"),
        (path("empty"), "0 bytes"),
        (path("text"), "not an ELF file"),
        ("/dev/null".to_owned(), "0 bytes"),
        ("/dev/zero".to_owned(), "not an ELF file"),
        (path("sparse"), "not an ELF file"),
        (path("long"), "2097153 bytes or more"),
    ] {
        assert_check(&[&file], 2, reason);
        assert_check(&[&file, "--drive"], 2, reason);
    }
}

#[test]
fn a_program_is_an_image_that_breaks_every_consumer() {
    let directory = directory("program");
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    fs::write(path("main.c"), "int main(void) { return 0; }\n").unwrap();
    let compiled = Command::new("cc").args(["-o", &path("main"), &path("main.c")]).status();
    assert!(compiled.unwrap().success());
    assert!(fs::metadata(path("main")).unwrap().len() < LIMIT as u64);
    assert_check(&[&path("main")], 1, "there is no __vdso_clock_gettime");
    assert_check(&[&path("main"), "--drive"], 1, "not driven");
}

/// What is done to an image.
type Change<'a> = &'a dyn Fn(&mut Vec<u8>);

#[test]
fn an_image_that_lies_about_itself_exits_2_and_says_where() {
    let directory = directory("lies");
    let whole = linker::SYSCALL.bytes;
    let symbols = usize::try_from(dynamic(whole, elf::DT_SYMTAB)).unwrap();
    let cases: [(&str, Change<'_>, &str); 9] = [
        ("cut short by a byte", &|b| b.truncate(b.len() - 1), "section headers"),
        ("cut in the header", &|b| b.truncate(60), "60 bytes"),
        ("the offset of sections", &|b| put(b, 40, [0xff; 8]), "section headers at 0x"),
        (
            "the offset of segments",
            &|b| put(b, 32, (1_u64 << 40).to_le_bytes()),
            "program headers at 0x",
        ),
        ("the count of sections", &|b| put(b, 60, [0xff; 2]), "65535 section headers"),
        ("the size of a segment's record", &|b| put(b, 54, [8, 0]), "are 8 bytes each"),
        ("where the symbols are", &|b| replace(b, elf::DT_SYMTAB, 1 << 30), "DT_SYMTAB"),
        ("a symbol's name", &|b| put(b, symbols + 24, [0xff; 4]), "name of symbol number 1"),
        ("its machine", &|b| put(b, 18, elf::EM_S390.to_le_bytes()), "machine 22 with 64-bit"),
    ];
    for (what, change, said) in cases {
        let mut bytes = whole.to_vec();
        change(&mut bytes);
        let file = directory.join(what).to_str().unwrap().to_owned();
        fs::write(&file, bytes).unwrap();
        assert_check(&[&file], 2, said);
        let output = run(&["show", &file]);
        assert_eq!(output.status.code(), Some(2), "{what}");
        assert!(stderr(&output).contains(said), "{what}: {}", stderr(&output));
    }
}

#[test]
fn an_image_of_another_architecture_is_judged_by_that_ones_rules() {
    let directory = directory("foreign");
    for (machine, arch, missing) in [
        (elf::EM_AARCH64, "aarch64", "there is no __kernel_clock_gettime"),
        (elf::EM_RISCV, "riscv64", "there is no __vdso_rt_sigreturn"),
    ] {
        let mut bytes = linker::SYSCALL.bytes.to_vec();
        put(&mut bytes, 18, machine.to_le_bytes());
        let file = directory.join(arch).to_str().unwrap().to_owned();
        fs::write(&file, bytes).unwrap();
        assert_check(&[&file], 1, &format!("{arch} image"));
        assert_check(&[&file], 1, missing);
        assert_check(&[&file, "--drive"], 1, "not driven");
    }
}

#[test]
fn the_hosts_image_is_judged_from_a_file_and_from_memory() {
    let Some(bytes) = kernel_sim::functions::host_image() else {
        // vdso=0, or an emulator.
        assert_check(&["--host"], 2, "maps no vDSO");
        return;
    };
    let file = directory("host").join("vdso.so").to_str().unwrap().to_owned();
    fs::write(&file, bytes).unwrap();
    let verdict = judge(&ImageFile::read(bytes).unwrap());
    for arguments in [&[&*file][..], &["--host"]] {
        let output = run(&[&["check"], arguments].concat());
        assert_eq!(output.status.code(), Some(i32::from(!verdict.is_accepted())));
        let text = stdout(&output);
        for finding in &verdict.findings {
            let mark = match (&finding.outcome, finding.rule.level) {
                (Outcome::Holds, _) => "ok",
                (Outcome::NotApplicable(_), _) => "n/a",
                (Outcome::Broken(_), Level::Must) => "MUST",
                (Outcome::Broken(_), Level::Should) => "should",
            };
            let words = [mark, finding.rule.name];
            let is_its = |line: &str| line.split_whitespace().take(2).eq(words);
            assert!(text.lines().any(is_its), "no line {words:?}: {text}");
        }
    }
    // It does not state how its page is laid out.
    let output = run(&["check", "--drive", &file]);
    if verdict.is_accepted() {
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("uVDSO note"), "{}", stderr(&output));
    } else {
        assert_eq!(output.status.code(), Some(1));
        assert!(stdout(&output).contains("not driven"), "{}", stdout(&output));
    }
    assert_eq!(run(&["check", "--host", "--drive"]).status.code(), Some(2));
}

#[test]
fn an_image_that_was_not_made_is_no_verdict() {
    assert_check(&["--slots", "64k"], 2, "only for aarch64");
    // The command looks for images of other architectures below the folders that it lies in.
    let elsewhere = nix::unistd::mkdtemp(&std::env::temp_dir().join("uvdso-image-XXXXXX")).unwrap();
    let command = elsewhere.join("kernel-sim");
    fs::copy(env!("CARGO_BIN_EXE_kernel-sim"), &command).unwrap();
    let arguments = ["image", "check", "--target", "arm"];
    let output = Command::new(&command).args(arguments).output().unwrap();
    fs::remove_dir_all(&elsewhere).unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(stderr(&output).contains("cargo xtask cross arm"), "{}", stderr(&output));
}
