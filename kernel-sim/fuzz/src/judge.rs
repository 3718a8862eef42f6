//! Compares an answer with what the oracle says of a machine.

use oracle::publication::SERVED;
use oracle::{Clocks, Disagreement};

use crate::expect;
use crate::subject::{Answer, Call, UNTOUCHED};

const SECOND: i128 = 1_000_000_000;

/// What is wrong with an answer: what was due.
pub(crate) type Due = String;

/// Whether `answer` is what `call` must give on a machine with these clocks, when the caller's
/// counter showed `counter`. `fallback` is the answer of a call that falls back.
#[inline]
pub(crate) fn judge(
    clocks: &mut Clocks,
    counter: u64,
    call: Call,
    answer: Answer,
    fallback: Answer,
) -> Result<(), Due> {
    let precise = |id: i32| id != 5 && id != 6;
    match call {
        Call::ClockGettime(id) | Call::ClockGettimeNs(id)
            if !SERVED.contains(&id) || (precise(id) && !clocks.serves_precise()) =>
        {
            exactly(call, answer, fallback)
        }
        Call::ClockGettime(id) => {
            let [secs, nanos, ..] = answer.words;
            let at = i128::from(secs) * SECOND + i128::from(nanos);
            let written = Answer { returned: 0, words: [secs, nanos, UNTOUCHED, UNTOUCHED] };
            if answer != written || !(0..1_000_000_000).contains(&nanos) {
                return Err(format!("{} and 0 in the register", due(clocks, id, counter)));
            }
            explain(clocks.read(id, counter, at, at))
        }
        Call::ClockGettimeNs(id) => {
            if answer.words != [UNTOUCHED; 4] {
                return Err("no memory written".into());
            }
            let nanos = i128::from(answer.returned);
            let (low, high) = match answer.returned {
                // Times that would look like an error number.
                0 => (-4095, 0),
                // EOVERFLOW: before or after all that 64 bits hold. No clock of a machine gets there
                // but by running over the end, so the later side is meant.
                -75 => (i128::from(i64::MAX) + 1, i128::from(i64::MAX) << 1),
                _ => (nanos, nanos),
            };
            if (-4095..0).contains(&answer.returned) && answer.returned != -75 {
                return Err(format!("{}, which is no error", due(clocks, id, counter)));
            }
            explain(clocks.read(id, counter, low, high))
        }
        Call::ClockGetres(id) => {
            let nanos = match id {
                _ if !SERVED.contains(&id) => return exactly(call, answer, fallback),
                5 | 6 => clocks.coarse_resolution(),
                _ => clocks.precise_resolution(),
            };
            let at = oracle::published::Timestamp::from_nanos(i128::from(nanos));
            exactly(call, answer, at.map_or(fallback, expect::time))
        }
        Call::Gettimeofday { tv: false, tz: false } => exactly(call, answer, Answer::bare(0)),
        Call::Gettimeofday { tv: false, tz: true } => {
            exactly(call, answer, expect::zone(clocks.timezone()))
        }
        Call::Gettimeofday { tv: true, .. } if !clocks.serves_precise() => {
            exactly(call, answer, fallback)
        }
        Call::Gettimeofday { tv: true, tz } => {
            let [secs, micros, west, dst] = answer.words;
            let zone = if tz {
                let (west, dst) = clocks.timezone();
                (i64::from(west), i64::from(dst))
            } else {
                (UNTOUCHED, UNTOUCHED)
            };
            if answer.returned != 0 || !(0..1_000_000).contains(&micros) || (west, dst) != zone {
                let zone = if tz { format!(", timezone {zone:?}") } else { String::new() };
                return Err(format!("{}{zone}", due(clocks, 0, counter)));
            }
            let at = i128::from(secs) * SECOND + i128::from(micros) * 1000;
            explain(clocks.read(0, counter, at, at + 999))
        }
        Call::Time => {
            if answer != expect::seconds(answer.returned) {
                return Err("the same seconds in the register and in memory".into());
            }
            explain(clocks.read_seconds(answer.returned))
        }
    }
}

fn exactly(call: Call, answer: Answer, due: Answer) -> Result<(), Due> {
    if answer == due { Ok(()) } else { Err(expect::words(call, due)) }
}

fn due(clocks: &Clocks, id: i32, counter: u64) -> String {
    let (low, high) = clocks.due(id, counter);
    range(low, high)
}

fn range(low: i128, high: i128) -> String {
    let time =
        |nanos: i128| format!("{} s {} ns", nanos.div_euclid(SECOND), nanos.rem_euclid(SECOND));
    if low == high { time(low) } else { format!("{} to {}", time(low), time(high)) }
}

#[inline]
fn explain(result: Result<(), Disagreement>) -> Result<(), Due> {
    result.map_err(|disagreement| match disagreement {
        Disagreement::Value { low, high } => range(low, high),
        Disagreement::Backwards { seen, counter, allowed: 0 } => {
            format!("{} or later, which was seen at counter {counter:#x}", range(seen, seen))
        }
        Disagreement::Backwards { seen, counter, allowed } => format!(
            "at most {allowed} ns before {}, which was seen at counter {counter:#x}",
            range(seen, seen)
        ),
        Disagreement::NotServed => "a fallback: no counter can be read".to_owned(),
    })
}
