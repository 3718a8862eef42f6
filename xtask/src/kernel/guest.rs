//! The guest's programs: our init with its judges, and the kernel's own tests from its sources.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};
use xtask::tools::root;

use super::initrd::Initrd;
use super::process::run;
use super::tree::Tree;

/// What a guest boots with.
pub(crate) struct Programs {
    pub(crate) initrd: PathBuf,
}

/// A test of the kernel (`tools/testing/selftests`).
struct Selftest {
    /// Folder and source, without the suffix.
    source: &'static str,
    /// Sources and flags of its own.
    extra: &'static [&'static str],
    arguments: &'static str,
    link: Link,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    Static,
    /// With glibc as a shared object, beside which the dynamic linker has the vDSO.
    Dynamic,
    /// Without any library: its own start-up code takes the stack as the kernel left it.
    Alone,
}

const fn test(source: &'static str) -> Selftest {
    Selftest { source, extra: &[], arguments: "", link: Link::Static }
}

const PARSER: &[&str] = &["vDSO/parse_vdso.c"];

/// All of `vDSO` and `timens`, and of `timers` those that need neither hardware nor many minutes.
/// Not `timens/gettime_perf`, which measures, and passes whatever it finds; and not
/// `timers/posix_timers`, which fails on either kernel when the host is busy: it wants CPU time and
/// wall time to agree.
const SELFTESTS: &[Selftest] = &[
    Selftest { extra: PARSER, ..test("vDSO/vdso_test_gettimeofday") },
    Selftest { extra: PARSER, ..test("vDSO/vdso_test_getcpu") },
    Selftest { extra: PARSER, ..test("vDSO/vdso_test_abi") },
    test("vDSO/vdso_test_clock_getres"),
    Selftest { link: Link::Dynamic, ..test("vDSO/vdso_test_correctness") },
    Selftest { extra: PARSER, link: Link::Alone, ..test("vDSO/vdso_standalone_test_x86") },
    test("timens/timens"),
    test("timens/timerfd"),
    test("timens/timer"),
    test("timens/clock_nanosleep"),
    test("timens/procfs"),
    test("timens/exec"),
    test("timens/futex"),
    test("timers/set-tai"),
    test("timers/set-tz"),
    // It has a function of the same name as glibc's, which is a conflict in a static program.
    Selftest { link: Link::Dynamic, ..test("timers/valid-adjtimex") },
    test("timers/nanosleep"),
    Selftest { arguments: "-t 3", ..test("timers/threadtest") },
    Selftest { arguments: "-t 1", ..test("timers/inconsistency-check") },
    Selftest { arguments: "-i 1", ..test("timers/leap-a-day") },
];

impl Selftest {
    fn name(&self) -> &'static str {
        self.source.rsplit('/').next().unwrap_or(self.source)
    }
}

/// Names of the kernel's tests that a run must show.
pub(crate) fn selftests() -> impl Iterator<Item = &'static str> {
    SELFTESTS.iter().map(Selftest::name)
}

/// Compiles everything, and packs it.
pub(crate) fn compile(tree: &Tree) -> Result<Programs> {
    let own = tree.own.join("guest");
    fs::create_dir_all(&own)?;
    let mut initrd = Initrd::default();
    let mut list = String::new();

    let init = own.join("init");
    let mut sources: Vec<PathBuf> = fs::read_dir(root().join("kernel/guest"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    sources.sort();
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-o"]).arg(&init);
    run(gcc.args(&sources)).context("compiling the guest's init")?;
    initrd.add_file("init", &init)?;

    for test in SELFTESTS {
        let program = own.join(test.name());
        compile_selftest(tree, test, &program)
            .with_context(|| format!("compiling the kernel's test {}", test.name()))?;
        initrd.add_file(&format!("kselftest/{}", test.name()), &program)?;
        list.push_str(test.name());
        list.push(' ');
        list.push_str(test.arguments);
        list.push('\n');
    }
    initrd.add("tests", list.as_bytes());
    for library in ["lib64/ld-linux-x86-64.so.2", "lib/x86_64-linux-gnu/libc.so.6"] {
        initrd.add_file(library, &PathBuf::from("/").join(library))?;
    }
    let file = own.join("initrd.cpio");
    fs::write(&file, initrd.finish())?;
    Ok(Programs { initrd: file })
}

fn compile_selftest(tree: &Tree, test: &Selftest, program: &std::path::Path) -> Result<()> {
    let directory = tree.source.join("tools/testing/selftests");
    let mut gcc = Command::new("gcc");
    // Warnings are the kernel's affair.
    gcc.args(["-std=gnu99", "-D_GNU_SOURCE", "-w", "-pthread", "-o"]).arg(program);
    match test.link {
        Link::Static => gcc.args(["-O2", "-static"]),
        Link::Dynamic => gcc.arg("-O2"),
        Link::Alone => gcc.args([
            "-nostdlib",
            "-static",
            "-fno-asynchronous-unwind-tables",
            "-fno-stack-protector",
        ]),
    };
    gcc.arg(directory.join(format!("{}.c", test.source)));
    gcc.args(test.extra.iter().map(|extra| directory.join(extra)));
    if test.link != Link::Alone {
        gcc.args(["-lrt", "-lm", "-ldl"]);
    }
    run(&mut gcc)?;
    Ok(())
}
