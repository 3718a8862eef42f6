//! What an update costs: the arithmetic, the publication, and both as a kernel calls them.
//!
//! ```text
//! cargo run --release -p timekeeper --example update_cost
//! ```
//!
//! Each figure is the least of many rounds, with everything in the cache. An update at a real tick
//! finds its lines cold, and pays for fetching them.

use std::hint::black_box;
use std::time::Instant;

use datapage::{ClockMode, Features, Page, SLOT_BYTES, Time, Writer};
use timekeeper::{Clocksource, Config, Error, Published, Timekeeper, update_vsyscall};

const ROUNDS: u32 = 200;
const CALLS: u32 = 10_000;
/// A tick of 4 ms.
const TICK_CYCLES: u64 = 9_600_000;

fn main() -> Result<(), Error> {
    let counter = Clocksource::new("tsc", 2_400_000_000, u64::MAX, ClockMode::COUNTER)?;
    let start = Time { secs: 1_700_000_000, nanos: 0 };
    let mut timekeeper = Timekeeper::new(counter, 0, start, Config::default())?;
    timekeeper.set_frequency(0, 12_345_678)?;

    let mut now = 0_u64;
    let mut next = || {
        now = now.wrapping_add(TICK_CYCLES);
        now
    };
    let mut state = timekeeper;
    report("tick", || {
        black_box(state.tick(next()));
    });

    let mut page = Page::zeroed();
    let (mut writer, _) = Writer::split(&mut page);
    writer.format(Features::empty(), SLOT_BYTES);
    report("page_values and validate", || {
        let _ = black_box(black_box(&state).page_values().validate());
    });
    report("update_vsyscall", || {
        let _ = black_box(update_vsyscall(&mut writer, black_box(&state)));
    });

    let mut published = Published::new(state, writer)?;
    report("Published::tick", || {
        let _ = black_box(published.tick(next()));
    });
    report("Published::update, set_frequency", || {
        let cycles = next();
        let _ = black_box(published.update(|clocks| clocks.set_frequency(cycles, 1_000_000)));
    });
    println!("{:<34} {:>6} bytes", "Timekeeper", size_of::<Timekeeper>());
    Ok(())
}

/// Prints the least cost of a call.
fn report(what: &str, mut call: impl FnMut()) {
    let least = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..CALLS {
                call();
            }
            start.elapsed()
        })
        .min()
        .unwrap_or_default();
    println!("{what:<34} {:>6.1} ns", least.as_secs_f64() * 1e9 / f64::from(CALLS));
}
