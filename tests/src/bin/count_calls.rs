//! Calls functions of the image, for callgrind to count the instructions.
//!
//! `count_calls N` runs each case of [`tests::counted`] N times and then 2 N times. Before and after
//! each of the two it calls `mark`, where callgrind writes down what was executed since the last
//! time: four parts for each case, of which the first ends where the calls begin.

use std::arch::asm;
use std::process::ExitCode;

use datapage::{ClockId, ClockMode, Features, Instant, PageValues, Scale};
use kernel_sim::map::MappedImage;
use tests::counted::{Arguments, CASES};

fn main() -> ExitCode {
    let Some(calls) = std::env::args().nth(1).and_then(|calls| calls.parse::<u64>().ok()) else {
        eprintln!("usage: count_calls NUMBER");
        return ExitCode::FAILURE;
    };
    let modes = [ClockMode::COUNTER, ClockMode::RDTSCP, ClockMode::NONE];
    let Ok(mapped) = modes.map(page).into_iter().collect::<Result<Vec<_>, _>>() else {
        eprintln!("count_calls: the image cannot be mapped");
        return ExitCode::FAILURE;
    };
    for case in &CASES {
        let at = modes.iter().position(|mode| *mode == case.mode);
        let image = at.and_then(|at| mapped.get(at));
        let function = image.and_then(|mapped| {
            let symbol = mapped.image().symbol(case.symbol)?;
            Some(mapped.base().wrapping_add(symbol.offset))
        });
        let Some(function) = function else {
            eprintln!("count_calls: no {} in mode {:?}", case.symbol, case.mode);
            return ExitCode::FAILURE;
        };
        let twice = 2 * calls;
        mark();
        call(function, case.arguments, calls);
        mark();
        mark();
        call(function, case.arguments, twice);
        mark();
    }
    ExitCode::SUCCESS
}

/// Where one part ends and the next begins.
// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn mark() {
    std::hint::black_box(());
}

/// Calls `function` a number of times, in a loop of [`tests::counted::LOOP`] instructions.
#[inline(never)]
fn call(function: *const u8, arguments: Arguments, calls: u64) {
    let mut place = [0_u64; 2];
    let address = (&raw mut place).expose_provenance();
    let (first, second) = match arguments {
        Arguments::Clock(id) => ((id as isize).cast_unsigned(), address),
        Arguments::Place => (address, 0),
        Arguments::Null => (0, 0),
    };
    // SAFETY: an exported function of a mapped image, with arguments of its C signature; all that
    // the C ABI lets it change is declared, and the four registers here it must keep.
    unsafe {
        asm!(
            "2:",
            "mov rdi, r13",
            "mov rsi, r14",
            "xor edx, edx",
            "call r12",
            "sub r15, 1",
            "jnz 2b",
            in("r12") function,
            in("r13") first,
            in("r14") second,
            inout("r15") calls => _,
            clobber_abi("C"),
        );
    }
    std::hint::black_box(place);
}

/// A page whose clocks stand still, so that every call takes the same path: a cycle is 2^-34 ns.
fn page(mode: ClockMode) -> std::io::Result<MappedImage> {
    let mut mapped = MappedImage::new(&linker::SYSCALL)?;
    let slot_bytes = mapped.image().slot_bytes;
    let (mut writer, _) = mapped.split();
    writer.format(Features::empty(), slot_bytes);
    let scale = Scale { mask: u64::MAX, mult: 1, shift: 34 };
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
    let update = values.validate().map_err(std::io::Error::other)?;
    writer.publish(&update);
    Ok(mapped)
}
