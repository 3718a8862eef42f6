//! The calls whose instructions are counted: what `count_calls` runs under callgrind and
//! `instructions.rs` compares with the golden.

use datapage::ClockMode as Mode;

use self::Arguments::{Clock, Null, Place};

/// A call, and the page that it meets.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its line in the golden.
    pub name: &'static str,
    /// The exported function.
    pub symbol: &'static str,
    /// What it gets.
    pub arguments: Arguments,
    /// The page's mode.
    pub mode: Mode,
}

/// The arguments of a call.
#[derive(Clone, Copy, Debug)]
pub enum Arguments {
    /// A clock's id and a place for the answer.
    Clock(i32),
    /// A place for the answer, then null.
    Place,
    /// Null.
    Null,
}

const fn case(name: &'static str, symbol: &'static str, arguments: Arguments, mode: Mode) -> Case {
    Case { name, symbol, arguments, mode }
}

const GETTIME: &str = "__vdso_clock_gettime";
const GETTIME_NS: &str = "__vdso_clock_gettime_ns";
const GETRES: &str = "__vdso_clock_getres";

/// The cases, in the order of the golden. `getcpu` is missing: valgrind knows neither RDPID nor the
/// segment, so it would count the fallback.
pub const CASES: [Case; 15] = [
    case("clock_gettime REALTIME, COUNTER", GETTIME, Clock(0), Mode::COUNTER),
    case("clock_gettime REALTIME, RDTSCP", GETTIME, Clock(0), Mode::RDTSCP),
    case("clock_gettime MONOTONIC, RDTSCP", GETTIME, Clock(1), Mode::RDTSCP),
    case("clock_gettime MONOTONIC_RAW, RDTSCP", GETTIME, Clock(4), Mode::RDTSCP),
    case("clock_gettime BOOTTIME, RDTSCP", GETTIME, Clock(7), Mode::RDTSCP),
    case("clock_gettime TAI, RDTSCP", GETTIME, Clock(11), Mode::RDTSCP),
    case("clock_gettime REALTIME_COARSE", GETTIME, Clock(5), Mode::COUNTER),
    case("clock_gettime MONOTONIC_COARSE", GETTIME, Clock(6), Mode::COUNTER),
    case("clock_gettime THREAD_CPUTIME_ID (fallback)", GETTIME, Clock(3), Mode::COUNTER),
    case("clock_gettime MONOTONIC, NONE (fallback)", GETTIME, Clock(1), Mode::NONE),
    case("clock_gettime_ns REALTIME, RDTSCP", GETTIME_NS, Clock(0), Mode::RDTSCP),
    case("clock_getres MONOTONIC", GETRES, Clock(1), Mode::COUNTER),
    case("clock_getres MONOTONIC_COARSE", GETRES, Clock(6), Mode::COUNTER),
    case("gettimeofday, RDTSCP", "__vdso_gettimeofday", Place, Mode::RDTSCP),
    case("time", "__vdso_time", Null, Mode::COUNTER),
];

/// Instructions of the loop in `count_calls` around one call, the call itself among them.
pub const LOOP: u64 = 6;
