//! Building guests, where any user may run them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::tools::{python_directory, root, tool};

/// A directory of this run's own, outside of homes that others cannot enter.
pub struct Workshop {
    directory: PathBuf,
}

/// A guest's command line, or why there is none.
pub type Made = Result<Vec<OsString>, String>;

impl Default for Workshop {
    fn default() -> Self {
        Self::new()
    }
}

impl Workshop {
    /// Makes the directory.
    ///
    /// # Panics
    /// If there is no room for one.
    #[must_use]
    pub fn new() -> Self {
        let directory = nix::unistd::mkdtemp(&std::env::temp_dir().join("uvdso-programs-XXXXXX"))
            .expect("a temporary directory");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755))
            .expect("the directory is new");
        Self { directory }
    }

    /// Removes everything; says so if it cannot.
    pub fn clear(&self) {
        if let Err(error) = fs::remove_dir_all(&self.directory) {
            eprintln!("removing {}: {error}", self.directory.display());
        }
    }

    /// The path of a file to be made here.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// A script, copied to where any user can read it.
    ///
    /// # Errors
    /// Why it cannot be copied.
    pub fn script(&self, source: &str) -> Result<PathBuf, String> {
        let source = guest_source(source);
        let name = source.file_name().ok_or("a script has a name")?;
        let copy = self.directory.join(name);
        fs::copy(&source, &copy).map_err(|error| format!("{}: {error}", source.display()))?;
        Ok(copy)
    }

    /// A program made by one command; `OUT` and `SRC` in its words are the program and the source.
    ///
    /// # Errors
    /// What the compiler said.
    pub fn compile(&self, name: &str, source: &str, command: &str) -> Made {
        let (out, source) = (self.path(name), guest_source(source));
        let mut words = command.split(' ');
        let compiler = words.next().ok_or("no compiler")?;
        let mut command = Command::new(compiler);
        command.args(words.map(|word| match word {
            "OUT" => out.as_os_str(),
            "SRC" => source.as_os_str(),
            word => OsStr::new(word),
        }));
        finish(&mut command)?;
        Ok(vec![out.into()])
    }

    /// A Go program, by the toolchain `go`.
    ///
    /// # Errors
    /// What the compiler said.
    pub fn go(&self, go: &str, name: &str, source: &str, cgo: bool, mode: &str) -> Made {
        let out = self.path(name);
        let mut command = Command::new(go_program(go)?);
        command
            .args(["build", mode, "-o"])
            .arg(&out)
            .arg(guest_source(source))
            .env("CGO_ENABLED", if cgo { "1" } else { "0" })
            .env("GOTOOLCHAIN", "local")
            .env("GOFLAGS", "")
            .env("GOCACHE", root().join("target/tools/go-cache"));
        finish(&mut command)?;
        Ok(vec![out.into()])
    }

    /// A Rust package of its own, beside the workspace.
    ///
    /// # Errors
    /// What the compiler said.
    pub fn package(&self, directory: &str, program: &str) -> Made {
        let target = root().join("target/guests");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(["build", "--quiet", "--release", "--locked", "--manifest-path"])
            .arg(guest_source(directory).join("Cargo.toml"))
            .arg("--target-dir")
            .arg(&target);
        finish(&mut command)?;
        let copy = self.path(program);
        fs::copy(target.join("release").join(program), &copy).map_err(|error| error.to_string())?;
        Ok(vec![copy.into()])
    }
}

/// The `go` program of a tool of the table; the Python package puts a wrapper before its own.
///
/// # Errors
/// If it is not there.
pub fn go_program(name: &str) -> Result<PathBuf, String> {
    if name == "current go" {
        return Ok(python_directory().join("go/bin/go"));
    }
    tool(name).find().ok_or_else(|| format!("no {name}"))
}

fn guest_source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("guests").join(name)
}

/// Runs a command to its end.
///
/// # Errors
/// How it failed, and what it said.
pub fn finish(command: &mut Command) -> Result<(), String> {
    let output = command
        .output()
        .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?}: {}\n{said}", output.status));
    }
    Ok(())
}
