//! The same source gives the same image: in another folder, under a developer's settings, and,
//! with a named compiler, in every profile the image whose hash is in `abi/image-hashes.txt`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use image_build::{Recipe, Target, Tools};

/// The compiler that the hashes are for: that of `rust-version`.
const COMPILER: &str = "1.95.0";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Copies what the image is made of into another folder.
fn copy_of_the_sources(to: &Path) {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    let names: Vec<String> = match listed {
        Ok(listed) if listed.status.success() => {
            let names = String::from_utf8(listed.stdout).unwrap();
            names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect()
        }
        _ => panic!("the sources are listed by git"),
    };
    for name in names {
        let from = root().join(&name);
        // A file that was deleted and not yet committed is listed all the same.
        if from.is_file() {
            let to = to.join(&name);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(from, to).unwrap();
        }
    }
}

/// Makes the image of a policy from the sources in `root`, as the build of `linker` does.
fn image(root: &Path, out: &Path, policy: &str) -> Vec<u8> {
    fs::create_dir_all(out).unwrap();
    let target = Target::of("x86_64").unwrap();
    let recipe = Recipe { root, out, target, policy, slot_bytes: 4096, compiler: None };
    fs::read(recipe.make(&Tools::find().unwrap()).unwrap().path).unwrap()
}

#[test]
fn another_folder_gives_the_same_bytes() {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("a folder with spaces");
    let _ = fs::remove_dir_all(&place);
    let folder = place.join("sources");
    copy_of_the_sources(&folder);
    let found = image(&folder, &place.join("out"), "syscall");
    assert!(found == linker::SYSCALL.bytes, "another folder gives other bytes");
    fs::remove_dir_all(&place).unwrap();
}

/// What a developer may have set; each changes the bytes of an ordinary build.
const SETTINGS: [(&str, &str); 4] = [
    ("RUSTFLAGS", "-Copt-level=1 -Ctarget-cpu=native -Cforce-frame-pointers=yes"),
    ("CARGO_PROFILE_IMAGE_OPT_LEVEL", "1"),
    ("CARGO_PROFILE_IMAGE_OVERFLOW_CHECKS", "true"),
    ("CARGO_INCREMENTAL", "1"),
];

#[test]
fn a_developers_settings_give_the_same_bytes() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("settings");
    if std::env::var_os(SETTINGS[0].0).is_some_and(|value| value == SETTINGS[0].1) {
        let found = image(&root(), &out, "enosys");
        assert!(found == linker::ENOSYS.bytes, "these settings give other bytes");
        return;
    }
    // The settings are the environment's, so this test runs itself in another one.
    let _ = fs::remove_dir_all(&out);
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_developers_settings_give_the_same_bytes"])
        .envs(SETTINGS)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn a_named_compiler_gives_the_image_whose_hash_is_known() {
    let version = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .arg("-vV")
        .output()
        .unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let release = version.lines().find_map(|line| line.strip_prefix("release: ")).unwrap();
    if release != COMPILER {
        println!("skip: the hashes are for rustc {COMPILER}, this is {release}");
        return;
    }
    let mut found = format!("rustc {COMPILER}\n");
    for (name, image) in [("syscall", &linker::SYSCALL), ("enosys", &linker::ENOSYS)] {
        let id: String = image.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(found, "x86_64 {name} build-id {id} fnv1a {:016x}", fnv1a(image.bytes)).unwrap();
    }
    let golden = root().join("abi/image-hashes.txt");
    if std::env::var_os("UVDSO_BLESS").is_some_and(|value| value == "1") {
        fs::write(&golden, &found).unwrap();
    }
    let wanted = fs::read_to_string(&golden).unwrap();
    assert_eq!(
        found, wanted,
        "the image changed: `cargo xtask bless` after reading the difference"
    );
}

/// FNV-1a over all bytes: the build id covers what the linker wrote, this what is shipped.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
