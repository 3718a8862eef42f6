//! The calls that the programs' sources make, each at least so often.
//!
//! Where no page serves them, they must be counted: else nothing is proven by a count of zero. Names
//! are those of what a runtime makes of a call, clocks the numbers in `clock_gettime(2)`.

/// A kind of call, and how often it is made at least.
pub(crate) type Least = (&'static str, u64);

/// The calls of `c/clocks.c`, but for those of which libraries make others.
pub(crate) const OF_ALL: &[Least] = &[
    ("clock_gettime(clock 1)", 2000),
    ("clock_gettime(clock 4)", 1000),
    ("clock_gettime(clock 5)", 2000),
    ("clock_gettime(clock 6)", 2000),
    ("clock_gettime(clock 7)", 1000),
    ("clock_gettime(clock 11)", 1000),
];

/// Those that glibc makes as they are called.
pub(crate) const OF_GLIBC: &[Least] = &[
    ("clock_gettime(clock 0)", 3000),
    ("gettimeofday", 1000),
    ("time", 2000),
    ("getcpu", 1000),
    ("clock_getres(clock 1)", 1000),
];

/// In musl `gettimeofday` and `time` are `clock_gettime`.
pub(crate) const OF_MUSL: &[Least] = &[
    ("clock_gettime(clock 0)", 3000 + 1000 + 2000),
    ("getcpu", 1000),
    ("clock_getres(clock 1)", 1000),
];

/// In dietlibc `time` is `gettimeofday`; it has no others.
pub(crate) const OF_DIETLIBC: &[Least] =
    &[("clock_gettime(clock 0)", 3000), ("gettimeofday", 1000 + 2000)];

/// Those of `go/clocks.go`: `time.Now` reads both clocks, `time.Since` one.
pub(crate) const OF_GO: &[Least] =
    &[("clock_gettime(clock 0)", 8 * 1000), ("clock_gettime(clock 1)", 8 * 2000)];

/// Those of `rust/clocks.rs`.
pub(crate) const OF_STD: &[Least] =
    &[("clock_gettime(clock 0)", 1), ("clock_gettime(clock 1)", 2 * 2000)];

/// Those of `rust/rustix`.
pub(crate) const OF_RUSTIX: &[Least] = &[
    ("clock_gettime(clock 0)", 1001),
    ("clock_gettime(clock 1)", 1001),
    ("clock_gettime(clock 4)", 1001),
    ("clock_gettime(clock 5)", 1001),
    ("clock_gettime(clock 6)", 1001),
    ("clock_gettime(clock 7)", 1001),
    ("getcpu", 1001),
];

/// Those of `scripts/clocks.py`; `time_ns` reads REALTIME once more.
pub(crate) const OF_PYTHON: &[Least] = &[
    ("clock_gettime(clock 0)", 100 + 1),
    ("clock_gettime(clock 1)", 100),
    ("clock_gettime(clock 4)", 100),
    ("clock_gettime(clock 5)", 100),
    ("clock_gettime(clock 6)", 100),
    ("clock_gettime(clock 7)", 100),
    ("clock_gettime(clock 11)", 100),
    ("clock_getres(clock 0)", 1),
    ("clock_getres(clock 1)", 1),
    ("clock_getres(clock 4)", 1),
    ("clock_getres(clock 5)", 1),
    ("clock_getres(clock 6)", 1),
    ("clock_getres(clock 7)", 1),
    ("clock_getres(clock 11)", 1),
];

/// Those of `scripts/clocks.pl`.
pub(crate) const OF_PERL: &[Least] = &[
    ("time", 100),
    ("gettimeofday", 1),
    ("clock_gettime(clock 1)", 1),
    ("clock_gettime(clock 7)", 1),
];

/// Each function in turn, and the second of stress-ng's report.
pub(crate) const OF_STRESS: &[Least] = &[
    ("clock_gettime(clock 1)", 5000),
    ("getcpu", 5000),
    ("gettimeofday", 5000),
    ("time", 5000 + 1),
];
