//! The machine under the kernel of this example, and a program on it.
//!
//! Frames are pages of a shared memory file: the kernel has one mapping of each, a process has
//! others, with less access. The program finds the functions in two ways: by the offsets that came
//! with the bytes, and by name, from nothing but its auxiliary vector. What its page cannot serve it
//! asks the kernel for, this one, and each such call is counted.

mod machine;
mod processor;
mod program;
mod trap;

use std::process::ExitCode;
use std::time::Duration;

use datapage::{ClockId, ClockMode, Features};
use embed::clock::Clock;
use embed::uvdso_image::{self, SYMBOLS, symbol};
use embed::vdso::{IMAGE_PAGES, RANGE_BYTES, Vdso, auxiliary_vector};
use machine::Host;
use program::{Program, Time};
use trap::{Kernel, on};

/// In 2096: no machine that runs this has that date.
const DATE: i64 = 4_000_000_000;
const TICK_NS: u32 = 1_000_000;

const REALTIME: i32 = 0;
const MONOTONIC: i32 = 1;
const PROCESS_CPUTIME: i32 = 2;
const MONOTONIC_RAW: i32 = 4;
const REALTIME_COARSE: i32 = 5;
const MONOTONIC_COARSE: i32 = 6;
const BOOTTIME: i32 = 7;
const EFAULT: isize = -14;
const EINVAL: isize = -22;

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
    // The kernel boots: its CPUs come up, its clock starts, the page serves nothing yet.
    let promises = processor::bring_up()?;
    let mut host = Host::new(1 + IMAGE_PAGES)?;
    let hz = host.counter_hz();
    let mut vdso = Vdso::boot(&mut host, promises);
    let clock = Clock::new(&host, hz, DATE, TICK_NS);

    // A process starts.
    let start = host.free_range(RANGE_BYTES)?;
    let base = vdso.map(&mut host, start);
    let program = Program::start(&auxiliary_vector(base))?;
    names(&program)?;
    let mut kernel = Kernel { host, clock, answered: 0 };
    let is_ours = trap::install();

    before_the_first_tick(&mut kernel, &program, is_ours)?;
    let ticks = ticks(&mut kernel, &mut vdso, &program, base)?;
    let asked = kernel.answered;
    if promises.mode == ClockMode::COUNTER && asked > 3 {
        return Err(format!("{asked} system calls, 3 of them before the first tick"));
    }
    if promises.mode == ClockMode::COUNTER {
        every_clock(&mut kernel, &program)?;
    }
    let (now, wall) = a_setting(&mut kernel, &mut vdso, &program)?;
    where_it_is(&mut kernel, &program, promises.features)?;
    what_the_page_never_serves(&mut kernel, &program, is_ours)?;
    let answers = if is_ours {
        format!("{} system calls answered", kernel.answered)
    } else {
        "system calls answered by the host's kernel, which cannot hand them over".to_owned()
    };
    Ok(format!(
        "image {} ({} bytes, policy {})\n\
         every CPU: clock mode {:#x}, features {:#x}\n\
         data page at {start:#x}, AT_SYSINFO_EHDR {base:#x}, counter {} MHz\n\
         {ticks} ticks; MONOTONIC {}.{:09}, REALTIME {}.{:09}, by name and by offset\n\
         {answers}\n",
        uvdso_image::BUILD_ID,
        uvdso_image::IMAGE.0.len(),
        uvdso_image::POLICY,
        promises.mode.0,
        promises.features.bits(),
        hz / 1_000_000,
        now.0,
        now.1,
        wall.0,
        wall.1,
    ))
}

/// Each symbol is by name where the exported offsets say.
fn names(program: &Program) -> Result<(), String> {
    for (name, exported) in SYMBOLS {
        let found = program.offset(name);
        if found != Some(*exported) {
            return Err(format!(
                "{name} was exported with offset {exported:#x}, it is at {found:x?}"
            ));
        }
    }
    Ok(())
}

/// Nothing is published: the image asks the kernel, which knows the time, and checks the pointer.
fn before_the_first_tick(
    kernel: &mut Kernel,
    program: &Program,
    is_ours: bool,
) -> Result<(), String> {
    let seconds = on(kernel, || program.time());
    let wall = on(kernel, || program.clock_gettime(REALTIME)).map_err(failed)?;
    let badly = on(kernel, || program.clock_gettime_badly(MONOTONIC));
    let is_expected = if is_ours {
        (DATE..DATE + 60).contains(&seconds) && wall.0 >= seconds && kernel.answered == 3
    } else {
        (1_600_000_000..DATE).contains(&seconds) && wall.0 >= seconds
    };
    if !is_expected || badly != EFAULT {
        let answered = kernel.answered;
        return Err(format!("time {seconds}, {wall:?}, bad pointer {badly}, {answered} answered"));
    }
    Ok(())
}

/// Ticks, and the program between them; how many.
fn ticks(
    kernel: &mut Kernel,
    vdso: &mut Vdso<usize>,
    program: &Program,
    base: usize,
) -> Result<u64, String> {
    let at = offset("__vdso_clock_gettime")?;
    let (mut last, mut ticks) = ((0, 0), 0);
    for _ in 0..50 {
        tick(kernel, vdso)?;
        ticks += 1;
        std::thread::sleep(Duration::from_millis(1));
        let by_name = on(kernel, || program.clock_gettime(MONOTONIC)).map_err(failed)?;
        let by_offset =
            on(kernel, || program.clock_gettime_at(base, at, MONOTONIC)).map_err(failed)?;
        if by_name < last || by_offset < by_name {
            return Err(format!("{last:?}, then {by_name:?}, then {by_offset:?}"));
        }
        last = by_offset;
    }
    Ok(ticks)
}

/// Each clock that the page serves is the kernel's own, and the kernel is not asked.
fn every_clock(kernel: &mut Kernel, program: &Program) -> Result<(), String> {
    let asked = kernel.answered;
    for id in [REALTIME, MONOTONIC, MONOTONIC_RAW, REALTIME_COARSE, MONOTONIC_COARSE, BOOTTIME] {
        let own = |kernel: &Kernel| {
            let now = kernel.clock.read(ClockId(id), &kernel.host);
            now.map(|(secs, nanos)| (secs, nanos.cast_signed()))
        };
        let before = own(kernel);
        let found = on(kernel, || program.clock_gettime(id)).ok();
        let after = own(kernel);
        let is_coarse = [REALTIME_COARSE, MONOTONIC_COARSE].contains(&id);
        let wanted_res = (0, if is_coarse { TICK_NS.into() } else { 1 });
        let res = on(kernel, || program.clock_getres(id));
        if found.is_none() || found < before || found > after || res != Ok(wanted_res) {
            return Err(format!(
                "clock {id}: {found:?}, the kernel's own {before:?} to {after:?}; resolution {res:?}"
            ));
        }
    }
    match kernel.answered - asked {
        0 => Ok(()),
        asked => Err(format!("{asked} system calls for clocks that the page serves")),
    }
}

/// What the timer's interrupt does: this CPU's interrupts are off, the timekeeper is locked.
fn tick(kernel: &mut Kernel, vdso: &mut Vdso<usize>) -> Result<(), String> {
    kernel.clock.advance(&kernel.host);
    vdso.tick(&kernel.clock).map_err(|error| error.to_string())
}

/// The wall clock is set, and published under the same lock: MONOTONIC goes on, REALTIME jumps.
fn a_setting(
    kernel: &mut Kernel,
    vdso: &mut Vdso<usize>,
    program: &Program,
) -> Result<(Time, Time), String> {
    kernel.clock.advance(&kernel.host);
    kernel.clock.set_date(DATE + 1_000_000);
    vdso.tick(&kernel.clock).map_err(|error| error.to_string())?;
    // The coarse clock is the tick's, the precise one has moved on, the wall clock has its date.
    let coarse = on(kernel, || program.clock_gettime(MONOTONIC_COARSE)).map_err(failed)?;
    let now = on(kernel, || program.clock_gettime(MONOTONIC)).map_err(failed)?;
    let wall = on(kernel, || program.clock_gettime(REALTIME)).map_err(failed)?;
    let since = wall.0 - DATE - 1_000_000;
    if now < coarse || now.0 > 60 || !(0..60).contains(&since) {
        return Err(format!("coarse {coarse:?}, precise {now:?}, wall {wall:?}"));
    }
    Ok((now, wall))
}

/// The program is where the kernel says, and does not ask it if every CPU keeps a promise.
fn where_it_is(kernel: &mut Kernel, program: &Program, features: Features) -> Result<(), String> {
    let asked = kernel.answered;
    // It may be moved between the two.
    let agrees = (0..1000).any(|_| on(kernel, || program.getcpu()) == processor::place());
    if !agrees || (!features.is_empty() && kernel.answered > asked) {
        return Err(format!("getcpu: agrees {agrees}, {} asked", kernel.answered - asked));
    }
    Ok(())
}

/// A CPU clock: the kernel has the last word, and this one has no such clock.
fn what_the_page_never_serves(
    kernel: &mut Kernel,
    program: &Program,
    is_ours: bool,
) -> Result<(), String> {
    let asked = kernel.answered;
    let found = on(kernel, || program.clock_gettime(PROCESS_CPUTIME));
    let is_expected =
        if is_ours { found == Err(EINVAL) && kernel.answered == asked + 1 } else { found.is_ok() };
    if is_expected { Ok(()) } else { Err(format!("a CPU clock: {found:?}")) }
}

fn failed(errno: isize) -> String {
    format!("clock_gettime: error {errno}")
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
