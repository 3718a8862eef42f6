//! The calls whose instructions are counted: what `count_calls` runs under callgrind, what
//! `instructions.rs` steps through, and what it compares with the goldens.

use std::io;

use datapage::{ClockId, ClockMode as Mode, Features, Instant, PageValues, Scale};
use kernel_sim::map::MappedImage;

use self::Arguments::{Clock, Null, Place, Places};

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
    /// Two places for the answer, then null.
    Places,
    /// Null.
    Null,
}

impl Arguments {
    /// As the first two of the C signature; `place` is where the answer goes. The third is null.
    #[must_use]
    pub fn words(self, place: &mut [u64; 2]) -> [usize; 2] {
        let address = (&raw mut *place).expose_provenance();
        match self {
            Clock(id) => [(id as isize).cast_unsigned(), address],
            Place => [address, 0],
            Places => [address, address + 8],
            Null => [0, 0],
        }
    }
}

const fn case(name: &'static str, symbol: &'static str, arguments: Arguments, mode: Mode) -> Case {
    Case { name, symbol, arguments, mode }
}

const GETTIME: &str = "__vdso_clock_gettime";
const GETTIME_NS: &str = "__vdso_clock_gettime_ns";
const GETRES: &str = "__vdso_clock_getres";

/// The cases, in the order of the golden. Of `getcpu` only the fallback: valgrind knows neither RDPID
/// nor the segment, so [`GETCPU`] is stepped through instead.
pub const CASES: [Case; 16] = [
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
    case("getcpu (fallback)", "__vdso_getcpu", Places, Mode::COUNTER),
];

/// `getcpu` as the page's features have it.
pub const GETCPU: [(Case, Features); 2] = [
    (case("getcpu, RDPID", "__vdso_getcpu", Places, Mode::COUNTER), Features::GETCPU_RDPID),
    (
        case("getcpu, segment limit", "__vdso_getcpu", Places, Mode::COUNTER),
        Features::GETCPU_SEGMENT_LIMIT,
    ),
];

/// Instructions of the loop in `count_calls` around one call, the call itself among them.
pub const LOOP: u64 = 6;

impl Case {
    /// The exported function in a mapped image.
    #[must_use]
    pub fn function(&self, mapped: &MappedImage) -> Option<*const u8> {
        let symbol = mapped.image().symbol(self.symbol)?;
        Some(mapped.base().wrapping_add(symbol.offset))
    }
}

/// A page whose clocks stand still, so that every call takes the same path: a cycle is 2^-32 ns.
///
/// # Errors
/// That the image cannot be mapped.
pub fn page(mode: Mode, features: Features) -> io::Result<MappedImage> {
    let mut mapped = MappedImage::new(&linker::SYSCALL)?;
    let slot_bytes = mapped.image().slot_bytes;
    let (mut writer, _) = mapped.split();
    writer.format(features, slot_bytes);
    let scale = Scale { mask: u64::MAX, mult: 1, shift: 32 };
    let mut values = PageValues {
        clock_mode: mode,
        steered: scale,
        raw: scale,
        hrtimer_res: 1,
        coarse_res: 4_000_000,
        ..PageValues::default()
    };
    for id in [0, 1, 4, 5, 6, 7, 11] {
        values.set(ClockId(id), Instant { secs: 1_700_000_000, nanos: 5 });
    }
    let update = values.validate().map_err(io::Error::other)?;
    writer.publish(&update);
    Ok(mapped)
}
