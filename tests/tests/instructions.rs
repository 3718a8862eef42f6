//! How many instructions a call takes, counted by callgrind: the same on every run and machine.

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tests::counted::{CASES, LOOP};
use tests::golden;
use tests::skip::{missing, skip};
use xtask::tools::tool;

/// Calls of the shorter part of each case.
const CALLS: u64 = 1000;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let trial = Trial::ignorable_test("instructions per call", || match missing(&["valgrind"]) {
        Some(reason) => skip(&reason),
        None => counts(),
    });
    libtest_mimic::run(&arguments, vec![trial]).exit_code()
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
        let _ = writeln!(text, "{:<46} {instructions:>4}", case.name);
    }
    golden::compare(
        "instructions-x86_64.txt",
        "instructions per call of the image `syscall` for x86_64, from its first to its return",
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
