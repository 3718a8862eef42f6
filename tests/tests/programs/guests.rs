//! The programs: how each is made, and what it shows.

use std::ffi::OsString;
use std::process::Command;

use tests::workshop::{Made, Workshop, finish, go_program};
use xtask::tools::tool;

use super::calls::{self, Least};

/// A program that runs on the image.
pub(crate) struct Guest {
    /// Its name in tests and in the table.
    pub(crate) name: &'static str,
    /// Its name in the README.
    pub(crate) short: Short,
    /// The tools that it needs, by their names in xtask's table.
    pub(crate) needs: &'static [&'static str],
    /// What it is built with, or is itself.
    pub(crate) version: fn() -> String,
    /// Makes it and returns its command line.
    pub(crate) make: fn(&Workshop) -> Made,
    /// Clocks whose times it must show (`times.rs`).
    pub(crate) clocks: &'static [&'static str],
    /// What else it must say.
    pub(crate) says: &'static str,
    /// Calls that its source makes, which must be counted where no page serves them.
    pub(crate) calls: &'static [&'static [Least]],
    /// Calls that it makes by its own choice, and why.
    pub(crate) own_calls: &'static [(&'static str, &'static str)],
}

/// The name of a guest where guests that found the same share a row: a family, and which of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Short {
    /// Guests of different kinds never share a row.
    pub(crate) kind: Kind,
    pub(crate) family: &'static str,
    /// Nothing where the family has one member.
    pub(crate) which: &'static str,
}

/// What a guest is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// C and C++, with the C library or the lookup that the family names.
    C,
    /// Another compiled language.
    Compiled,
    /// An interpreter, or a program of the distribution.
    Other,
}

const fn c(family: &'static str, which: &'static str) -> Short {
    Short { kind: Kind::C, family, which }
}

const fn compiled(family: &'static str, which: &'static str) -> Short {
    Short { kind: Kind::Compiled, family, which }
}

const fn other(family: &'static str) -> Short {
    Short { kind: Kind::Other, family, which: "" }
}

/// The clocks of `c/clocks.c`.
const ALL: &[&str] = &[
    "realtime",
    "monotonic",
    "monotonic_raw",
    "realtime_coarse",
    "monotonic_coarse",
    "boottime",
    "tai",
    "micros",
    "seconds",
];

/// What most guests have in common.
const PLAIN: Guest = Guest {
    name: "",
    short: other(""),
    needs: &[],
    version: String::new,
    make: |_| Err("no recipe".to_owned()),
    clocks: &["realtime"],
    calls: &[&[("clock_gettime(clock 0)", 1000)]],
    says: "",
    own_calls: &[],
};

/// musl 1.2.3 reads `__vdso_clock_gettime` and `__vdso_getcpu` and nothing else.
const MUSL: &[(&str, &str)] = &[("clock_getres", "musl never asks a vDSO for it")];

/// A shell script that makes a certificate, whose first valid second is OpenSSL's own.
const OPENSSL: &str = "key=$(mktemp) && \
    start=$(openssl req -x509 -newkey ed25519 -nodes -keyout \"$key\" -subj /CN=uvdso -days 1 2>&1 \
    | openssl x509 -noout -startdate) && rm \"$key\" && \
    echo \"seconds $(date -d \"${start#notBefore=}\" +%s)\"";

/// A shell script that has stress-ng write down when it ran.
const STRESS: &str = "report=$(mktemp) && \
    stress-ng --vdso 1 --vdso-ops 20000 --verbose --temp-path /tmp --yaml \"$report\" && \
    sed -n 's/^ *epoch-secs: /seconds /p' \"$report\" && rm \"$report\"";

pub(crate) const GUESTS: &[Guest] = &[
    Guest {
        name: "C, glibc, dynamic",
        short: c("glibc", "dynamic"),
        needs: &["gcc"],
        version: glibc,
        make: |shop| shop.compile("glibc", "c/clocks.c", "gcc -O2 -Wall -Wextra -o OUT SRC"),
        clocks: ALL,
        calls: &[calls::OF_ALL, calls::OF_GLIBC],
        ..PLAIN
    },
    Guest {
        name: "C, glibc, static",
        short: c("glibc", "static"),
        needs: &["gcc"],
        version: glibc,
        make: |shop| shop.compile("glibc-static", "c/clocks.c", "gcc -O2 -static -o OUT SRC"),
        clocks: ALL,
        calls: &[calls::OF_ALL, calls::OF_GLIBC],
        ..PLAIN
    },
    Guest {
        name: "C, glibc, static-pie",
        short: c("glibc", "static-pie"),
        needs: &["gcc"],
        version: glibc,
        make: |shop| {
            shop.compile("glibc-static-pie", "c/clocks.c", "gcc -O2 -static-pie -o OUT SRC")
        },
        clocks: ALL,
        calls: &[calls::OF_ALL, calls::OF_GLIBC],
        ..PLAIN
    },
    Guest {
        name: "C, glibc, static-pie, with a heap of 1 GiB",
        short: c("glibc", "1 GiB of heap"),
        needs: &["gcc"],
        version: glibc,
        make: |shop| shop.compile("heap", "c/heap.c", "gcc -O2 -static-pie -o OUT SRC"),
        calls: &[&[("clock_gettime(clock 0)", 1024)]],
        ..PLAIN
    },
    Guest {
        name: "C, musl, dynamic",
        short: c("musl", "dynamic"),
        needs: &["musl"],
        version: || package("musl"),
        own_calls: MUSL,
        make: |shop| shop.compile("musl", "c/clocks.c", "musl-gcc -O2 -o OUT SRC"),
        clocks: ALL,
        calls: &[calls::OF_ALL, calls::OF_MUSL],
        ..PLAIN
    },
    Guest {
        name: "C, musl, static",
        short: c("musl", "static"),
        needs: &["musl"],
        version: || package("musl"),
        own_calls: MUSL,
        make: |shop| shop.compile("musl-static", "c/clocks.c", "musl-gcc -O2 -static -o OUT SRC"),
        clocks: ALL,
        calls: &[calls::OF_ALL, calls::OF_MUSL],
        ..PLAIN
    },
    Guest {
        name: "C, musl, static-pie",
        short: c("musl", "static-pie"),
        needs: &["musl"],
        version: || package("musl"),
        own_calls: MUSL,
        make: musl_static_pie,
        clocks: ALL,
        calls: &[calls::OF_ALL, calls::OF_MUSL],
        ..PLAIN
    },
    Guest {
        name: "C, dietlibc",
        short: c("dietlibc", ""),
        needs: &["diet"],
        version: || package("dietlibc-dev"),
        make: |shop| shop.compile("diet", "c/clocks.c", "diet gcc -O2 -o OUT SRC"),
        clocks: ALL,
        calls: &[calls::OF_ALL, calls::OF_DIETLIBC],
        ..PLAIN
    },
    Guest {
        name: "Go, static",
        short: compiled("Go", "static"),
        needs: &["go"],
        version: || go_version("go"),
        make: |shop| shop.go("go", "go-static", "go/clocks.go", false, "-buildmode=exe"),
        clocks: &["realtime", "monotonic"],
        calls: &[calls::OF_GO],
        ..PLAIN
    },
    Guest {
        name: "Go, cgo",
        short: compiled("Go", "cgo"),
        needs: &["go", "gcc"],
        version: || go_version("go"),
        make: |shop| shop.go("go", "go-cgo", "go/cgo.go", true, "-buildmode=exe"),
        clocks: &["realtime", "monotonic"],
        calls: &[&[("clock_gettime(clock 0)", 1), ("clock_gettime(clock 1)", 1000)]],
        ..PLAIN
    },
    Guest {
        name: "Go, pie",
        short: compiled("Go", "pie"),
        needs: &["go"],
        version: || go_version("go"),
        make: |shop| shop.go("go", "go-pie", "go/clocks.go", false, "-buildmode=pie"),
        clocks: &["realtime", "monotonic"],
        calls: &[calls::OF_GO],
        ..PLAIN
    },
    Guest {
        name: "Go, current",
        short: compiled("Go", "current"),
        needs: &["current go"],
        version: || go_version("current go"),
        make: |shop| shop.go("current go", "go-current", "go/clocks.go", false, "-buildmode=exe"),
        clocks: &["realtime", "monotonic"],
        calls: &[calls::OF_GO],
        ..PLAIN
    },
    Guest {
        name: "Rust, std",
        short: compiled("Rust", "std"),
        version: rustc,
        make: |shop| shop.compile("rust", "rust/clocks.rs", "rustc -O -o OUT SRC"),
        clocks: &["realtime", "monotonic"],
        calls: &[calls::OF_STD],
        ..PLAIN
    },
    Guest {
        name: "Rust, std, crt-static",
        short: compiled("Rust", "crt-static"),
        version: rustc,
        make: |shop| {
            let command = "rustc -O -C target-feature=+crt-static -o OUT SRC";
            shop.compile("rust-static", "rust/clocks.rs", command)
        },
        clocks: &["realtime", "monotonic"],
        calls: &[calls::OF_STD],
        ..PLAIN
    },
    Guest {
        name: "Rust, rustix without libc",
        short: compiled("Rust", "rustix without libc"),
        version: || "rustix 1".to_owned(),
        make: |shop| shop.package("rust/rustix", "rustix-clocks"),
        clocks: &["realtime", "monotonic", "monotonic_raw", "realtime_coarse", "boottime"],
        calls: &[calls::OF_RUSTIX],
        ..PLAIN
    },
    Guest {
        name: "parser by hand, DT_HASH",
        short: c("parser by hand", "`DT_HASH`"),
        needs: &["gcc"],
        version: || "-".to_owned(),
        make: |shop| with(shop.compile("sysv", "c/parser.c", "gcc -O2 -o OUT SRC"), &["sysv"]),
        ..PLAIN
    },
    Guest {
        name: "parser by hand, DT_GNU_HASH",
        short: c("parser by hand", "`DT_GNU_HASH`"),
        needs: &["gcc"],
        version: || "-".to_owned(),
        make: |shop| with(shop.compile("gnu", "c/parser.c", "gcc -O2 -o OUT SRC"), &["gnu"]),
        ..PLAIN
    },
    Guest {
        name: "dlopen and dlvsym",
        short: c("`dlopen` and `dlvsym`", ""),
        needs: &["gcc"],
        version: glibc,
        make: |shop| shop.compile("dlvsym", "c/dlvsym.c", "gcc -O2 -o OUT SRC"),
        clocks: &["realtime", "monotonic"],
        calls: &[&[("clock_gettime(clock 0)", 1000), ("clock_gettime(clock 1)", 1)]],
        ..PLAIN
    },
    Guest {
        name: "abseil's ElfMemImage",
        short: c("abseil", ""),
        needs: &["g++", "abseil"],
        version: || package("libabsl-dev"),
        make: |shop| {
            let command =
                "g++ -O2 -o OUT SRC -labsl_debugging_internal -labsl_raw_logging_internal";
            shop.compile("abseil", "c/abseil.cc", command)
        },
        ..PLAIN
    },
    Guest {
        name: "Python",
        short: other("Python"),
        needs: &["python3"],
        version: || package("python3"),
        make: |shop| interpreted("python3", &[shop.script("scripts/clocks.py")?.into()]),
        clocks: &["realtime", "monotonic", "monotonic_raw", "boottime", "tai", "realtime_coarse"],
        calls: &[calls::OF_PYTHON],
        ..PLAIN
    },
    Guest {
        name: "Perl",
        short: other("Perl"),
        needs: &["perl"],
        version: || package("perl-base"),
        make: |shop| interpreted("perl", &[shop.script("scripts/clocks.pl")?.into()]),
        clocks: &["seconds", "micros", "monotonic", "boottime"],
        calls: &[calls::OF_PERL],
        ..PLAIN
    },
    Guest {
        name: "Node.js",
        short: other("Node.js"),
        needs: &["node"],
        version: || package("nodejs"),
        make: |shop| interpreted("node", &[shop.script("scripts/clocks.js")?.into()]),
        clocks: &["realtime", "monotonic"],
        calls: &[&[("gettimeofday", 1000), ("clock_gettime(clock 1)", 1000)]],
        ..PLAIN
    },
    Guest {
        name: "Java",
        short: other("Java"),
        needs: &["java", "java runtime"],
        version: || package("openjdk-17-jre-headless"),
        make: java,
        clocks: &["realtime", "monotonic"],
        calls: &[&[("clock_gettime(clock 0)", 2), ("clock_gettime(clock 1)", 1001)]],
        ..PLAIN
    },
    Guest {
        name: "SQLite",
        short: other("SQLite"),
        needs: &["sqlite3"],
        version: || package("sqlite3"),
        make: |shop| {
            let read = format!(".read {}", shop.script("scripts/clocks.sql")?.display());
            interpreted("sqlite3", &[":memory:".into(), read.into()])
        },
        clocks: &["realtime", "seconds"],
        calls: &[&[("gettimeofday", 2)]],
        ..PLAIN
    },
    Guest {
        name: "OpenSSL",
        short: other("OpenSSL"),
        needs: &["openssl"],
        version: || package("openssl"),
        make: |_| Ok(["sh", "-c", OPENSSL].map(OsString::from).to_vec()),
        clocks: &["seconds"],
        calls: &[
            // A `time` of each command of openssl, and what `date` reads.
            &[("time", 2), ("clock_gettime(clock 0)", 1)],
        ],
        ..PLAIN
    },
    Guest {
        name: "a shell and its children",
        short: other("a shell and its children"),
        version: || package("coreutils"),
        make: |_| {
            let script = "date '+realtime %s.%N'; date '+realtime %s.%N' & wait; \
                          exec date '+realtime %s.%N'";
            Ok(["sh", "-c", script].map(OsString::from).to_vec())
        },
        calls: &[&[("clock_gettime(clock 0)", 3)]],
        ..PLAIN
    },
    Guest {
        name: "stress-ng --vdso",
        short: other("`stress-ng --vdso`"),
        needs: &["stress-ng"],
        version: || package("stress-ng"),
        make: |_| Ok(["sh", "-c", STRESS].map(OsString::from).to_vec()),
        clocks: &["seconds"],
        says: "exercising vDSO functions: clock_gettime getcpu gettimeofday time",
        calls: &[calls::OF_STRESS],
        ..PLAIN
    },
];

/// A program with arguments.
fn with(made: Made, arguments: &[&str]) -> Made {
    let mut made = made?;
    made.extend(arguments.iter().map(OsString::from));
    Ok(made)
}

/// A program of the table with arguments.
fn interpreted(name: &str, arguments: &[OsString]) -> Made {
    let mut command = vec![tool(name).find().ok_or_else(|| format!("no {name}"))?.into()];
    command.extend_from_slice(arguments);
    Ok(command)
}

/// `musl-gcc` knows no static-pie, but musl has the start file for it.
fn musl_static_pie(shop: &Workshop) -> Made {
    let libraries = "/usr/lib/x86_64-linux-musl";
    shop.compile("musl.o", "c/clocks.c", "musl-gcc -O2 -fPIE -c -o OUT SRC")?;
    let out = shop.path("musl-static-pie");
    let mut link = Command::new("gcc");
    link.args(["-nostdlib", "-nostartfiles", "-static-pie", "-o"])
        .arg(&out)
        .args(["rcrt1.o", "crti.o"].map(|file| format!("{libraries}/{file}")))
        .arg(shop.path("musl.o"))
        .args(["-L", libraries, "-lc", "-lgcc"])
        .arg(format!("{libraries}/crtn.o"));
    finish(&mut link)?;
    Ok(vec![out.into()])
}

fn java(shop: &Workshop) -> Made {
    let classes = shop.path("classes");
    let source = shop.script("scripts/Clocks.java")?;
    finish(Command::new("javac").arg("-d").arg(&classes).arg(source))?;
    interpreted("java runtime", &["-cp".into(), classes.into(), "Clocks".into()])
}

/// The version of a Debian package.
fn package(name: &str) -> String {
    said("dpkg-query", &["--show", "--showformat=${Version}", name])
}

fn glibc() -> String {
    package("libc6")
}

fn rustc() -> String {
    let version = said("rustc", &["--version"]);
    version.split(' ').nth(1).unwrap_or_default().to_owned()
}

fn go_version(name: &str) -> String {
    let Ok(go) = go_program(name) else { return String::new() };
    let version = said(&go.to_string_lossy(), &["version"]);
    version.split(' ').nth(2).unwrap_or_default().trim_start_matches("go").to_owned()
}

fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    output
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default()
}
