//! A real program on the image: `date`, with the host's time and in 2038.

use kernel_sim::launch::{Clock, Command};
use serde::Serialize;

/// One run.
#[derive(Debug, Serialize)]
pub(super) struct Program {
    pub(super) command: &'static str,
    pub(super) time: &'static str,
    pub(super) output: String,
    /// Clock, time and getcpu calls that reached the kernel.
    pub(super) clock_calls: u64,
}

/// 2038-01-19 03:14:00 UTC: eight seconds before 32 bits of seconds are full.
const YEAR_2038: i128 = 2_147_483_640 * 1_000_000_000;

/// Runs `date` twice.
pub(super) fn run(failures: &mut Vec<String>) -> Vec<Program> {
    let runs = [("the host's time", Clock::Host), ("2038-01-19 03:14:00", Clock::At(YEAR_2038))];
    let programs =
        runs.map(|(time, clock)| one(time, clock).map_err(|why| failures.push(why)).ok());
    programs.into_iter().flatten().collect()
}

fn one(time: &'static str, clock: Clock) -> Result<Program, String> {
    let command =
        Command::new("date").arg("-u").arg("+%Y-%m-%d %H:%M:%S.%N").clock(clock).count(true);
    let before = std::time::SystemTime::now();
    let output = command.output(None).map_err(|error| format!("running date: {error}"))?;
    if !output.outcome.status.success() {
        return Err(format!("date with {time} ended with {:?}", output.outcome.status));
    }
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let calls = output.outcome.calls.total();
    if calls != 0 {
        return Err(format!(
            "date with {time} made {calls} clock calls; our image serves all of its clocks"
        ));
    }
    let due = match clock {
        Clock::At(nanos) => nanos / 1_000_000_000,
        _ => before
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| i128::from(since.as_secs())),
    };
    let shown = seconds(&text).ok_or_else(|| format!("date printed {text:?}"))?;
    if !(due..due + 10).contains(&shown) {
        return Err(format!("date with {time} printed {text}"));
    }
    Ok(Program { command: "date -u", time, output: text, clock_calls: calls })
}

/// The seconds since 1970 of what `date` printed.
fn seconds(text: &str) -> Option<i128> {
    let time: jiff::civil::DateTime = text.parse().ok()?;
    Some(time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second().into())
}
