//! How many instructions a call takes: the same on every run and machine.
//!
//! callgrind counts, except `getcpu`, whose instructions valgrind does not know: that is stepped
//! through on the processor. Stepping through the other calls gives what callgrind gave, so both
//! count the same; and where there is no valgrind, the golden is still compared with what runs.

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, ExitCode};

use datapage::Features;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tests::counted::{CASES, Case, GETCPU, LOOP, page};
use tests::skip::{missing, skip};
use tests::{golden, stepped};
use xtask::tools::tool;

/// Calls of the shorter part of each case.
const CALLS: u64 = 1000;

/// What callgrind counts.
const GOLDEN: &str = "instructions-x86_64.txt";

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let counted = Trial::ignorable_test("instructions per call", || match missing(&["valgrind"]) {
        Some(reason) => skip(&reason),
        None => counts(),
    });
    let stepped = Trial::ignorable_test("instructions per call, stepped through", steps);
    let getcpu = Trial::ignorable_test("instructions of getcpu", || {
        // What the page would promise on this machine.
        let rdpid = std::arch::x86_64::__cpuid_count(7, 0).ecx & 1 << 22 != 0;
        if rdpid { getcpu() } else { Ok(Completion::ignored_with("this CPU has no RDPID")) }
    });
    libtest_mimic::run(&arguments, vec![counted, stepped, getcpu]).exit_code()
}

fn counts() -> Result<Completion, Failed> {
    let parts = run()?;
    // What precedes the calls, N of them, nothing, 2 N of them; and what follows the last.
    if parts.len() != 4 * CASES.len() + 1 {
        let found = parts.len();
        return Err(format!("callgrind wrote {found} parts for {} cases", CASES.len()).into());
    }
    let mut text = String::new();
    for (case, part) in CASES.iter().zip(parts.chunks_exact(4)) {
        let [_, once, _, twice] = part else { return Err("parts come in fours".into()) };
        let calls = twice.checked_sub(*once).ok_or("twice the calls took less")?;
        // The parts also hold what surrounds the loops, which is the same in both.
        if calls % CALLS != 0 {
            return Err(format!("{}: {calls} instructions in {CALLS} calls", case.name).into());
        }
        let instructions = (calls / CALLS).checked_sub(LOOP).ok_or("less than the loop itself")?;
        if is_steppable(case.name) {
            let stepped = step(case)?;
            if stepped != instructions {
                let name = case.name;
                return Err(
                    format!("{name}: {stepped} by steps, {instructions} by callgrind").into()
                );
            }
        }
        let _ = writeln!(text, "{:<46} {instructions:>4}", case.name);
    }
    golden::compare(
        GOLDEN,
        "instructions per call of the image `syscall` for x86_64, from its first to its return",
        &text,
    )
}

fn steps() -> Result<Completion, Failed> {
    let mut text = String::new();
    for case in CASES.iter().filter(|case| is_steppable(case.name)) {
        let _ = writeln!(text, "{:<46} {:>4}", case.name, step(case)?);
    }
    golden::compare_part(GOLDEN, is_steppable, &text)
}

/// Whether a case, by its name or its line, is one that stepping counts right: after `syscall` the
/// processor traps one instruction late, because the return restores its flag.
fn is_steppable(case: &str) -> bool {
    !case.contains("(fallback)")
}

fn step(case: &Case) -> Result<u64, Failed> {
    let mapped = page(case.mode, Features::empty())?;
    Ok(stepped::instructions(case, &mapped)?.ok_or("no such function")?)
}

fn getcpu() -> Result<Completion, Failed> {
    let mut text = String::new();
    for (case, features) in &GETCPU {
        let mapped = page(case.mode, *features)?;
        let instructions = stepped::instructions(case, &mapped)?.ok_or("no getcpu")?;
        let _ = writeln!(text, "{:<46} {instructions:>4}", case.name);
    }
    golden::compare(
        "instructions-getcpu-x86_64.txt",
        "instructions of getcpu, stepped through: valgrind knows neither RDPID nor the segment",
        &text,
    )
}

/// Runs `count_calls` under callgrind; the instructions of each part.
fn run() -> Result<Vec<u64>, Failed> {
    let valgrind = tool("valgrind").find().ok_or("valgrind was there a moment ago")?;
    let directory = std::env::temp_dir().join(format!("uvdso-callgrind-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    let out = directory.join("out");
    let output = Command::new(valgrind)
        .args(["--tool=callgrind", "--dump-before=mark", "--combine-dumps=yes"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(env!("CARGO_BIN_EXE_count_calls"))
        .arg(CALLS.to_string())
        .output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("valgrind failed: {}\n{text}", output.status).into());
    }
    let profile = fs::read_to_string(&out)?;
    fs::remove_dir_all(&directory)?;
    // Each part of the profile ends with what it executed.
    let totals = profile.lines().filter_map(|line| line.strip_prefix("totals: "));
    totals.map(|count| Ok(count.trim().parse()?)).collect()
}
