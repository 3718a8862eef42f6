//! The guest's programs: our init with its judges, and the kernel's own tests from its sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use xtask::tools::root;

use super::initrd::Initrd;
use super::machine::{Arch, Machine};
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
    /// The one machine that has it; `None` for all.
    only: Option<Arch>,
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
    Selftest { source, extra: &[], arguments: "", link: Link::Static, only: None }
}

/// A test of what only x86 has.
const fn x86_test(source: &'static str) -> Selftest {
    Selftest { only: Some(Arch::X86_64), ..test(source) }
}

const PARSER: &[&str] = &["vDSO/parse_vdso.c"];

/// All of `vDSO` and `timens`, and of `timers` those that need neither hardware nor many minutes.
/// Not `timens/gettime_perf`, which measures, and passes whatever it finds; and not
/// `timers/posix_timers`, which fails on either kernel when the host is busy: it wants CPU time and
/// wall time to agree.
const SELFTESTS: &[Selftest] = &[
    Selftest { extra: PARSER, ..test("vDSO/vdso_test_gettimeofday") },
    Selftest { extra: PARSER, ..x86_test("vDSO/vdso_test_getcpu") },
    Selftest { extra: PARSER, ..test("vDSO/vdso_test_abi") },
    test("vDSO/vdso_test_clock_getres"),
    Selftest { link: Link::Dynamic, ..test("vDSO/vdso_test_correctness") },
    Selftest { extra: PARSER, link: Link::Alone, ..x86_test("vDSO/vdso_standalone_test_x86") },
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

/// The kernel's tests that a machine runs.
fn tests_of(machine: &Machine) -> impl Iterator<Item = &'static Selftest> {
    let arch = machine.arch;
    SELFTESTS.iter().filter(move |test| test.only.is_none_or(|only| only == arch))
}

/// Their names, each of which a run must show.
pub(crate) fn selftests(machine: &Machine) -> impl Iterator<Item = &'static str> {
    tests_of(machine).map(Selftest::name)
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
    let mut gcc = Command::new(tree.machine.program("gcc"));
    gcc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-o"]).arg(&init);
    run(gcc.args(&sources)).context("compiling the guest's init")?;
    initrd.add_file("init", &init)?;

    for test in tests_of(tree.machine) {
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
    for (there, here) in tree.machine.libraries {
        initrd.add_file(there, Path::new(here))?;
    }
    let file = own.join("initrd.cpio");
    fs::write(&file, initrd.finish())?;
    Ok(Programs { initrd: file })
}

fn compile_selftest(tree: &Tree, test: &Selftest, program: &Path) -> Result<()> {
    let directory = tree.source.join("tools/testing/selftests");
    let mut gcc = Command::new(tree.machine.program("gcc"));
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
