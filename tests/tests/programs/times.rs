//! Whether the times that a program printed are right.
//!
//! A program prints lines of a key and a decimal number of seconds. A value is right if it lies
//! between two system calls of this process, one before the program started and one after it
//! ended, give or take what the key's clock cannot know better.

use tests::kernel;

/// Nanoseconds in a second.
const SECOND: i128 = 1_000_000_000;

/// How far a page may be from the host's clocks: it is the host's time, followed from outside.
const FOLLOWED: i128 = 1_000_000;

/// By how much a coarse clock may lag: a tick, which an ordinary process writes, on a machine that
/// is busy with other tests. How late ticks usually are is measured, not asserted.
const TICK: i128 = 250_000_000;

/// What a program may print, and the precise clock to judge it by.
pub(crate) struct Key {
    name: &'static str,
    clock: i32,
    lag: i128,
    /// Whether moving the wall clock moves it.
    is_wall: bool,
}

const fn key(name: &'static str, clock: i32, lag: i128, is_wall: bool) -> Key {
    Key { name, clock, lag, is_wall }
}

pub(crate) const KEYS: [Key; 9] = [
    key("realtime", 0, 0, true),
    key("monotonic", 1, 0, false),
    key("monotonic_raw", 4, 0, false),
    key("realtime_coarse", 0, TICK, true),
    key("monotonic_coarse", 1, TICK, false),
    key("boottime", 7, 0, false),
    key("tai", 11, 0, true),
    key("micros", 0, 0, true),
    // `time()` begins a second with the first tick in it.
    key("seconds", 0, TICK, true),
];

/// Every clock at one moment, by system calls.
pub(crate) struct Moment([i128; KEYS.len()]);

impl Moment {
    pub(crate) fn now() -> Self {
        Self(KEYS.map(|key| {
            let (secs, nanos) = kernel::clock_gettime(key.clock);
            i128::from(secs) * SECOND + i128::from(nanos)
        }))
    }
}

/// Checks what a program printed; `moved` is what it should see of the wall clock, ahead of the
/// host's. Returns the keys that it printed.
pub(crate) fn check(
    printed: &str,
    before: &Moment,
    after: &Moment,
    moved: i128,
) -> Result<Vec<String>, String> {
    let mut seen = Vec::new();
    for line in printed.lines() {
        let Some((name, value)) = line.split_once(' ') else { continue };
        let Some(at) = KEYS.iter().position(|key| key.name == name) else { continue };
        let key = &KEYS[at];
        let (value, step) = decimal(value).ok_or_else(|| format!("no number: {line:?}"))?;
        let moved = if key.is_wall { moved } else { 0 };
        let lowest = before.0[at] + moved - FOLLOWED - key.lag - step;
        let highest = after.0[at] + moved + FOLLOWED + step;
        if !(lowest..=highest).contains(&value) {
            return Err(format!(
                "{line:?} is {} ns too early or {} ns too late",
                lowest - value,
                value - highest
            ));
        }
        seen.push(name.to_owned());
    }
    Ok(seen)
}

/// A decimal number of seconds in nanoseconds, and what its last digit is worth.
fn decimal(text: &str) -> Option<(i128, i128)> {
    let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let digits = u32::try_from(fraction.len()).ok().filter(|digits| *digits <= 9)?;
    let step = 10_i128.pow(9 - digits);
    let fraction = if fraction.is_empty() { 0 } else { fraction.parse::<i128>().ok()? * step };
    Some((whole.parse::<i128>().ok()? * SECOND + fraction, step))
}
