//! What is derived from the kernel's own files, at build time.
//!
//! Nothing of Linux is in the repository. A few files are changed, each by substitutions that must
//! match exactly once, so that a kernel that moved on fails here and not in some guest.
//!
//! | file | how |
//! |---|---|
//! | `kernel/time/vsyscall.c` | shadowed by `kernel/shim/vsyscall.c`: a source in the build tree comes before the one in the source tree |
//! | `kernel/time/namespace.c` | shadowed by itself with the writing of a namespace's page handed to the shim |
//! | `arch/arm64/kernel/vdso.c` | on aarch64, shadowed by itself with four slots below the image and the shim's page in them |
//! | `kernel/time/Makefile` | the writer's object joins `vsyscall.o` |
//! | `kernel/time/uvdso_writer.o_shipped` | the writer's object, as the kernel's build takes prebuilt ones |

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::machine::Arch;
use super::tree::Tree;

/// One replacement, of a text that stands exactly once in the file.
struct Substitution {
    find: &'static str,
    replace: &'static str,
}

/// A source of the kernel that a changed copy in the build tree shadows.
struct Shadow {
    /// Without the suffix.
    path: &'static str,
    substitutions: &'static [Substitution],
}

const NAMESPACE: Shadow = Shadow {
    path: "kernel/time/namespace",
    substitutions: &[
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
    ],
};

/// On x86 the kernel takes the number of slots from the image, and the page from its linker script.
const ARM64_MAPPING: Shadow = Shadow {
    path: "arch/arm64/kernel/vdso",
    substitutions: &[
        // Two more slots than Linux's two; a touch of them faults. The name hides that of the file
        // for the rest of the function, which maps and counts by it.
        Substitution {
            find: "\tBUILD_BUG_ON(VVAR_NR_PAGES != __VVAR_PAGES);\n",
            replace: "\tenum { VVAR_NR_PAGES = 4 };\n",
        },
        // Linux 6.12 writes the state of its random numbers into the page behind `vdso_data`, so
        // that one stays its own. The page of a process is in one place or, in a time namespace, in
        // the other.
        Substitution {
            find: "pfn = page_to_pfn(timens_page);\n\t\telse\n\t\t\tpfn = sym_to_pfn(vdso_data);",
            replace: "pfn = page_to_pfn(timens_page);\n\t\telse\n\t\t\t\
                      pfn = sym_to_pfn(uvdso_store);",
        },
        Substitution {
            find: "return VM_FAULT_SIGBUS;\n\t\tpfn = sym_to_pfn(vdso_data);",
            replace: "return VM_FAULT_SIGBUS;\n\t\tpfn = sym_to_pfn(uvdso_store);",
        },
        Substitution {
            find: "enum vdso_abi {\n",
            replace: "extern char uvdso_store[];\n\nenum vdso_abi {\n",
        },
    ],
};

fn shadows(tree: &Tree) -> &'static [Shadow] {
    match tree.machine.arch {
        Arch::X86_64 => &[NAMESPACE],
        Arch::Aarch64 => &[NAMESPACE, ARM64_MAPPING],
    }
}

const MAKEFILE: [Substitution; 1] =
    [Substitution { find: "+= vsyscall.o\n", replace: "+= vsyscall.o uvdso_writer.o\n" }];

const SHIM: [&str; 2] = ["vsyscall.c", "uvdso.h"];
const PRISTINE: &str = "Makefile.pristine";
const OBJECT: &str = "uvdso_writer.o_shipped";

/// Puts the shim of `sources`, the changed files and `writer` in the place of the kernel's own.
pub(crate) fn exchange(tree: &Tree, sources: &Path, writer: &Path) -> Result<()> {
    let (source, build) = (tree.source.join("kernel/time"), tree.build.join("kernel/time"));
    for name in SHIM {
        copy_if_changed(&sources.join("kernel/shim").join(name), &build.join(name))?;
    }
    for shadow in shadows(tree) {
        let file = format!("{}.c", shadow.path);
        let text = substitute(&tree.source.join(&file), shadow.substitutions)?;
        write_if_changed(&tree.build.join(&file), text.as_bytes())?;
    }
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
    for name in ["vsyscall.o", "uvdso_writer.o", SHIM[0], SHIM[1]] {
        remove(&build.join(name))?;
    }
    for shadow in shadows(tree) {
        for suffix in ["c", "o"] {
            remove(&tree.build.join(format!("{}.{suffix}", shadow.path)))?;
        }
    }
    remove(&tree.build.join(tree.machine.image))
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
