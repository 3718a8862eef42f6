//! `kernel-sim image`, as a user runs it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod check;
mod drive;
mod export;
mod patch;
mod ward;

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
