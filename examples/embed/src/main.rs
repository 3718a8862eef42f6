//! The machine under the kernel of this example, and a program on it.
//!
//! Frames are pages of a shared memory file: the kernel has one mapping of each, a process has
//! others, with less access. The program finds the functions in two ways: by the offsets that came
//! with the bytes, and by name, from nothing but its auxiliary vector.

mod machine;
mod program;

use std::process::ExitCode;
use std::time::Duration;

use embed::uvdso_image::{self, symbol};
use embed::vdso::{Clock, IMAGE_PAGES, RANGE_BYTES, Vdso, auxiliary_vector};
use machine::Host;
use program::Program;

/// In 2096: no machine that runs this has that date.
const DATE: i64 = 4_000_000_000;
const TICK_NS: u32 = 1_000_000;

fn main() -> ExitCode {
    match run() {
        Ok(report) => {
            print!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("embed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Boots, starts a program, ticks, and compares what the program sees.
fn run() -> Result<String, String> {
    let mut host = Host::new(1 + IMAGE_PAGES)?;
    let hz = host.counter_hz();

    // The kernel boots. Its clock starts, and programs that start before the first tick fall back.
    let mut vdso = Vdso::boot(&mut host);
    let mut clock = Clock::new(&host, hz, DATE, TICK_NS);

    // A process starts.
    let start = host.free_range(RANGE_BYTES)?;
    let base = vdso.map(&mut host, start);
    let program = Program::start(&auxiliary_vector(base))?;

    // Nothing is published yet: the image asks the kernel, which here is the host's.
    let before = program.time();
    if !before.is_some_and(|seconds| seconds > 1_600_000_000 && seconds < DATE) {
        return Err(format!("a page that was never published told the time {before:?}"));
    }

    // Ticks, and the program between them.
    let mut last = (0, 0);
    let mut ticks = 0;
    for _ in 0..50 {
        clock.advance(&host);
        vdso.tick(&clock).map_err(|error| error.to_string())?;
        ticks += 1;
        std::thread::sleep(Duration::from_millis(1));
        let by_name = program.clock_gettime(1)?;
        let by_offset = program.clock_gettime_at(base, offset("__vdso_clock_gettime")?, 1)?;
        if by_name < last || by_offset < by_name {
            return Err(format!("{last:?}, then {by_name:?}, then {by_offset:?}"));
        }
        last = by_offset;
    }
    // The coarse clock is the tick's, the precise one has moved on, the wall clock has its date.
    clock.advance(&host);
    vdso.tick(&clock).map_err(|error| error.to_string())?;
    let tick = program.clock_gettime(6)?;
    let now = program.clock_gettime(1)?;
    let wall = program.clock_gettime(0)?;
    if now < tick || wall.0 < DATE || wall.0 > DATE + 60 {
        return Err(format!("coarse {tick:?}, precise {now:?}, wall {wall:?}"));
    }
    Ok(format!(
        "image {} ({} bytes, policy {})\n\
         data page at {start:#x}, AT_SYSINFO_EHDR {base:#x}, counter {} MHz\n\
         {ticks} ticks; MONOTONIC {}.{:09}, REALTIME {}.{:09}, by name and by offset\n",
        uvdso_image::BUILD_ID,
        uvdso_image::IMAGE.0.len(),
        uvdso_image::POLICY,
        hz / 1_000_000,
        now.0,
        now.1,
        wall.0,
        wall.1,
    ))
}

fn offset(name: &str) -> Result<usize, String> {
    symbol(name).ok_or_else(|| format!("the exported image has no {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_reads_the_kernels_clock_through_the_exported_image() {
        let report = run().expect("the example works");
        assert!(report.contains("50 ticks"), "{report}");
    }
}
