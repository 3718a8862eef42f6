//! Calls functions of the image, for callgrind to count the instructions.
//!
//! `count_calls N` runs each case of [`tests::counted`] N times and then 2 N times. Before and after
//! each of the two it calls `mark`, where callgrind writes down what was executed since the last
//! time: four parts for each case, of which the first ends where the calls begin.

use std::arch::asm;
use std::process::ExitCode;

use datapage::{ClockMode, Features};
use tests::counted::{Arguments, CASES, page};

fn main() -> ExitCode {
    let Some(calls) = std::env::args().nth(1).and_then(|calls| calls.parse::<u64>().ok()) else {
        eprintln!("usage: count_calls NUMBER");
        return ExitCode::FAILURE;
    };
    let modes = [ClockMode::COUNTER, ClockMode::RDTSCP, ClockMode::NONE];
    let Ok(mapped) =
        modes.map(|mode| page(mode, Features::empty())).into_iter().collect::<Result<Vec<_>, _>>()
    else {
        eprintln!("count_calls: the image cannot be mapped");
        return ExitCode::FAILURE;
    };
    for case in &CASES {
        let at = modes.iter().position(|mode| *mode == case.mode);
        let function = at.and_then(|at| case.function(mapped.get(at)?));
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
    let [first, second] = arguments.words(&mut place);
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
