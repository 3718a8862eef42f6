//! From what is due to the answer that a call must give, and the words for both.

use oracle::publication::{Due, Publication};
use oracle::published::Timestamp;

use crate::subject::{Answer, Call, UNTOUCHED};

/// The answer that `call` must give while `publication` stands and the counter shows `counter`.
#[must_use]
pub fn answer(publication: &Publication, counter: u64, call: Call, fallback: Answer) -> Answer {
    let due = match call {
        Call::ClockGettime(id) => with(publication.clock_gettime(id, counter), time),
        Call::ClockGettimeNs(id) => with(publication.clock_gettime_ns(id, counter), Answer::bare),
        Call::ClockGetres(id) => with(publication.clock_getres(id), |nanos| {
            const SECOND: u32 = 1_000_000_000;
            time(Timestamp { secs: i64::from(nanos / SECOND), nanos: nanos % SECOND })
        }),
        Call::Gettimeofday { tv: false, tz: false } => Due::Value(Answer::bare(0)),
        Call::Gettimeofday { tv: true, tz: false } => {
            with(publication.clock_gettime(0, counter), |at| timeval(at, None))
        }
        Call::Gettimeofday { tv: false, tz: true } => with(publication.timezone(), zone),
        Call::Gettimeofday { tv: true, tz: true } => {
            with(publication.gettimeofday(counter), |(at, zone)| timeval(at, Some(zone)))
        }
        Call::Time => with(publication.time(), seconds),
    };
    match due {
        Due::Value(answer) => answer,
        Due::Fallback => fallback,
    }
}

fn with<T>(due: Due<T>, answer: impl FnOnce(T) -> Answer) -> Due<Answer> {
    match due {
        Due::Value(value) => Due::Value(answer(value)),
        Due::Fallback => Due::Fallback,
    }
}

/// `struct timespec`.
#[must_use]
pub fn time(at: Timestamp) -> Answer {
    Answer { returned: 0, words: [at.secs, i64::from(at.nanos), UNTOUCHED, UNTOUCHED] }
}

/// `struct timeval`, and `struct timezone` if it was asked for.
#[must_use]
pub fn timeval(at: Timestamp, zone: Option<(i32, i32)>) -> Answer {
    let (west, dst) =
        zone.map_or((UNTOUCHED, UNTOUCHED), |(west, dst)| (i64::from(west), i64::from(dst)));
    Answer { returned: 0, words: [at.secs, i64::from(at.nanos / 1000), west, dst] }
}

/// `struct timezone`.
#[must_use]
pub fn zone((west, dst): (i32, i32)) -> Answer {
    Answer { returned: 0, words: [UNTOUCHED, UNTOUCHED, i64::from(west), i64::from(dst)] }
}

/// `time(t)`.
#[must_use]
pub fn seconds(secs: i64) -> Answer {
    Answer { returned: secs, words: [secs, UNTOUCHED, UNTOUCHED, UNTOUCHED] }
}

/// A call as its caller would write it.
#[must_use]
pub fn name(call: Call) -> String {
    let clock = |id: i32| match id {
        0 => "REALTIME".to_owned(),
        1 => "MONOTONIC".to_owned(),
        4 => "MONOTONIC_RAW".to_owned(),
        5 => "REALTIME_COARSE".to_owned(),
        6 => "MONOTONIC_COARSE".to_owned(),
        7 => "BOOTTIME".to_owned(),
        11 => "TAI".to_owned(),
        _ => id.to_string(),
    };
    let argument = |is_there, name| if is_there { name } else { "NULL" };
    match call {
        Call::ClockGettime(id) => format!("clock_gettime({})", clock(id)),
        Call::ClockGettimeNs(id) => format!("clock_gettime_ns({})", clock(id)),
        Call::ClockGetres(id) => format!("clock_getres({})", clock(id)),
        Call::Gettimeofday { tv, tz } => {
            format!("gettimeofday({}, {})", argument(tv, "tv"), argument(tz, "tz"))
        }
        Call::Time => "time(t)".to_owned(),
    }
}

/// What an answer says, for people.
#[must_use]
pub fn words(call: Call, answer: Answer) -> String {
    let [first, second, third, fourth] = answer.words;
    let Answer { returned, .. } = answer;
    if answer == Answer::bare(returned) {
        return format!("{returned} in the register, no memory written");
    }
    match call {
        Call::ClockGettime(_) | Call::ClockGetres(_) if returned == 0 => {
            format!("{first} s {second} ns")
        }
        Call::Time if returned == first => format!("{first} s"),
        Call::Gettimeofday { tv: true, tz: false } if returned == 0 => {
            format!("{first} s {second} us")
        }
        Call::Gettimeofday { tv: true, tz: true } if returned == 0 => {
            format!("{first} s {second} us, {third} minutes west, dst {fourth}")
        }
        _ => format!("{returned} in the register, memory {:x?}", answer.words),
    }
}
