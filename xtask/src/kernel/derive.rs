//! What is derived from the kernel's own files, at build time.
//!
//! Nothing of Linux is in the repository. Two files are changed, each by substitutions that must
//! match exactly once, so that a kernel that moved on fails here and not in some guest.
//!
//! | file | how |
//! |---|---|
//! | `kernel/time/vsyscall.c` | shadowed by `kernel/shim/vsyscall.c`: a source in the build tree comes before the one in the source tree |
//! | `kernel/time/namespace.c` | shadowed by itself with the writing of a namespace's page handed to the shim |
//! | `kernel/time/Makefile` | the writer's object joins `vsyscall.o` |
//! | `kernel/time/uvdso_writer.o_shipped` | the writer's object, as the kernel's build takes prebuilt ones |

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::tree::Tree;

/// One replacement, of a text that stands exactly once in the file.
struct Substitution {
    find: &'static str,
    replace: &'static str,
}

const NAMESPACE: [Substitution; 2] = [
    // It writes the kernel's own layout, and nobody calls it any more.
    Substitution {
        find: "static void timens_setup_vdso_data(",
        replace: "void uvdso_timens_page(struct time_namespace *ns);\n\n\
                  static void __maybe_unused timens_setup_vdso_data(",
    },
    // The call is in a loop over the parts of the kernel's layout; ours has one.
    Substitution {
        find: "timens_setup_vdso_data(&vdata[i], ns);",
        replace: "if (!i)\n\t\t\tuvdso_timens_page(ns);",
    },
];

const MAKEFILE: [Substitution; 1] =
    [Substitution { find: "+= vsyscall.o\n", replace: "+= vsyscall.o uvdso_writer.o\n" }];

const SHIM: [&str; 2] = ["vsyscall.c", "uvdso.h"];
const PRISTINE: &str = "Makefile.pristine";
const OBJECT: &str = "uvdso_writer.o_shipped";

/// Puts the shim of `sources`, the namespace's writer and `writer` in the place of the kernel's own.
pub(crate) fn exchange(tree: &Tree, sources: &Path, writer: &Path) -> Result<()> {
    let (source, build) = (tree.source.join("kernel/time"), tree.build.join("kernel/time"));
    for name in SHIM {
        copy_if_changed(&sources.join("kernel/shim").join(name), &build.join(name))?;
    }
    let namespace = substitute(&source.join("namespace.c"), &NAMESPACE)?;
    write_if_changed(&build.join("namespace.c"), namespace.as_bytes())?;
    let pristine = source.join(PRISTINE);
    if !pristine.exists() {
        fs::copy(source.join("Makefile"), &pristine)?;
    }
    let makefile = substitute(&pristine, &MAKEFILE)?;
    write_if_changed(&source.join("Makefile"), makefile.as_bytes())?;
    copy_if_changed(writer, &source.join(OBJECT))
}

/// Takes all of it back, for a stock kernel.
pub(crate) fn restore(tree: &Tree) -> Result<()> {
    let (source, build) = (tree.source.join("kernel/time"), tree.build.join("kernel/time"));
    let pristine = source.join(PRISTINE);
    if pristine.exists() {
        fs::copy(&pristine, source.join("Makefile"))?;
    }
    remove(&source.join(OBJECT))?;
    for name in ["namespace.c", "namespace.o", "vsyscall.o", "uvdso_writer.o", SHIM[0], SHIM[1]] {
        remove(&build.join(name))?;
    }
    remove(&tree.build.join("arch/x86/entry/vdso/vdso64.so.dbg"))
}

fn substitute(file: &Path, substitutions: &[Substitution]) -> Result<String> {
    let mut text =
        fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    for substitution in substitutions {
        text = once(&text, substitution.find, substitution.replace)
            .with_context(|| format!("changing {}", file.display()))?;
    }
    Ok(text)
}

/// `text` with the one place of `find` replaced.
pub(crate) fn once(text: &str, find: &str, replace: &str) -> Result<String> {
    match text.matches(find).count() {
        1 => Ok(text.replacen(find, replace, 1)),
        found => bail!("{find:?} stands there {found} times, not once"),
    }
}

fn copy_if_changed(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("reading {}", from.display()))?;
    write_if_changed(to, &bytes)
}

/// An unchanged file keeps its time, so that the kernel's build has nothing to do.
fn write_if_changed(file: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(file).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::write(file, bytes).with_context(|| format!("writing {}", file.display()))
}

fn remove(file: &Path) -> Result<()> {
    if file.exists() {
        fs::remove_file(file).with_context(|| format!("removing {}", file.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_substitution_matches_once_or_fails() {
        assert_eq!(once("a b c", "b", "x").unwrap(), "a x c");
        assert!(once("a b b", "b", "x").unwrap_err().to_string().contains("2 times"));
        assert!(once("a", "b", "x").is_err());
    }
}
