//! What can happen to a simulated machine, and how it is written in a scenario.

use std::fmt;

/// Something that happens to the machine or its kernel at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The timer interrupt comes on a CPU, which accumulates time and publishes.
    Tick {
        /// The CPU.
        cpu: usize,
    },
    /// `clock_settime(CLOCK_REALTIME)`.
    SetRealtime {
        /// Seconds since 1970.
        secs: i64,
        /// Nanoseconds; an invalid number is for the kernel to refuse.
        nanos: i64,
    },
    /// `ADJ_SETOFFSET`: REALTIME jumps by this much.
    Inject {
        /// Nanoseconds.
        nanos: i64,
    },
    /// `settimeofday(NULL, tz)`.
    Timezone {
        /// Minutes west of Greenwich.
        minutes_west: i32,
        /// Type of DST.
        dst_time: i32,
    },
    /// `ADJ_FREQUENCY`: parts in 10^6, times 2^16.
    Frequency {
        /// Scaled parts in a million.
        scaled_ppm: i64,
    },
    /// `ADJ_TICK`: microseconds that a tick of 1/100 s is to last.
    TickLength {
        /// Microseconds.
        micros: i64,
    },
    /// `ADJ_OFFSET` in nanoseconds: REALTIME is to be slewed by this much.
    Offset {
        /// Nanoseconds.
        nanos: i64,
        /// The loop's time constant.
        time_constant: u32,
    },
    /// `adjtime`: REALTIME is to be slewed by this much, at 500 ppm.
    Slew {
        /// Nanoseconds.
        nanos: i64,
    },
    /// `ADJ_TAI`.
    Tai {
        /// TAI - UTC in seconds.
        secs: i32,
    },
    /// `STA_INS`, `STA_DEL` or neither.
    Leap(Leap),
    /// The machine sleeps.
    Sleep {
        /// For how long, in nanoseconds of true time.
        ns: u64,
        /// What the kernel learns of it.
        how: Sleep,
    },
    /// The kernel takes another counter.
    Switch {
        /// Number of the counter.
        source: usize,
    },
    /// No interrupt comes for this long, and the kernel knows it before.
    Idle {
        /// Nanoseconds of true time.
        ns: u64,
    },
    /// Timers switch to high resolution, or back to the tick's.
    HighResolution {
        /// Whether they are.
        on: bool,
    },
    /// One CPU's counter jumps.
    Skew {
        /// The CPU.
        cpu: usize,
        /// By how much.
        cycles: i64,
    },
    /// The counter jumps on all CPUs.
    Step {
        /// By how much.
        cycles: i64,
    },
    /// One CPU's counter runs fast or slow.
    Drift {
        /// The CPU.
        cpu: usize,
        /// Parts in 10^9.
        ppb: i64,
    },
    /// The machine moves to another host: the counter starts from another value.
    Migrate {
        /// That value.
        cycles: u64,
    },
    /// The CPUs' counters agree again.
    Agree,
    /// The kernel's watchdog compares the counter in use with another, and leaves it if it is not
    /// good.
    Watchdog,
}

/// What is to happen at the end of the UTC day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leap {
    /// Nothing.
    None,
    /// 23:59:59 is repeated as 23:59:60.
    Insert,
    /// 23:59:59 is left out.
    Delete,
}

/// What runs while a machine sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// The counter itself.
    Nonstop,
    /// A persistent clock, while the counter starts anew.
    Persistent,
    /// Nothing that the kernel could ask.
    Unknown,
}

/// One word for each kind of event, for reports.
pub const KINDS: [&str; 20] = [
    "tick",
    "set",
    "inject",
    "timezone",
    "frequency",
    "ticklength",
    "offset",
    "slew",
    "tai",
    "leap",
    "sleep",
    "idle",
    "switch",
    "highres",
    "skew",
    "step",
    "drift",
    "migrate",
    "agree",
    "watchdog",
];

impl Event {
    /// The place of this event's kind in [`KINDS`].
    #[must_use]
    pub const fn kind(&self) -> usize {
        match self {
            Self::Tick { .. } => 0,
            Self::SetRealtime { .. } => 1,
            Self::Inject { .. } => 2,
            Self::Timezone { .. } => 3,
            Self::Frequency { .. } => 4,
            Self::TickLength { .. } => 5,
            Self::Offset { .. } => 6,
            Self::Slew { .. } => 7,
            Self::Tai { .. } => 8,
            Self::Leap(_) => 9,
            Self::Sleep { .. } => 10,
            Self::Idle { .. } => 11,
            Self::Switch { .. } => 12,
            Self::HighResolution { .. } => 13,
            Self::Skew { .. } => 14,
            Self::Step { .. } => 15,
            Self::Drift { .. } => 16,
            Self::Migrate { .. } => 17,
            Self::Agree => 18,
            Self::Watchdog => 19,
        }
    }

    /// The event that `words` spell.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn parse(words: &[&str]) -> Result<Self, String> {
        let (&name, arguments) = words.split_first().ok_or("no event")?;
        let mut arguments = Arguments { name, arguments };
        let event = match name {
            "tick" => Self::Tick { cpu: arguments.number("a CPU")? },
            "set" => Self::SetRealtime {
                secs: arguments.number("seconds")?,
                nanos: arguments.number("nanoseconds")?,
            },
            "inject" => Self::Inject { nanos: arguments.number("nanoseconds")? },
            "timezone" => Self::Timezone {
                minutes_west: arguments.number("minutes west")?,
                dst_time: arguments.number("a DST type")?,
            },
            "frequency" => Self::Frequency { scaled_ppm: arguments.number("ppm times 65536")? },
            "ticklength" => Self::TickLength { micros: arguments.number("microseconds")? },
            "offset" => Self::Offset {
                nanos: arguments.number("nanoseconds")?,
                time_constant: arguments.number("a time constant")?,
            },
            "slew" => Self::Slew { nanos: arguments.number("nanoseconds")? },
            "tai" => Self::Tai { secs: arguments.number("seconds")? },
            "leap" => Self::Leap(arguments.one_of(&[
                ("none", Leap::None),
                ("insert", Leap::Insert),
                ("delete", Leap::Delete),
            ])?),
            "sleep" => Self::Sleep {
                ns: duration(arguments.word("a duration")?)?,
                how: arguments.one_of(&[
                    ("nonstop", Sleep::Nonstop),
                    ("persistent", Sleep::Persistent),
                    ("unknown", Sleep::Unknown),
                ])?,
            },
            "switch" => Self::Switch { source: arguments.number("a counter's number")? },
            "idle" => Self::Idle { ns: duration(arguments.word("a duration")?)? },
            "highres" => {
                Self::HighResolution { on: arguments.one_of(&[("on", true), ("off", false)])? }
            }
            "skew" => {
                Self::Skew { cpu: arguments.number("a CPU")?, cycles: arguments.number("cycles")? }
            }
            "step" => Self::Step { cycles: arguments.number("cycles")? },
            "drift" => Self::Drift {
                cpu: arguments.number("a CPU")?,
                ppb: arguments.number("parts in 10^9")?,
            },
            "migrate" => Self::Migrate { cycles: arguments.number("a counter value")? },
            "agree" => Self::Agree,
            "watchdog" => Self::Watchdog,
            _ => return Err(format!("unknown event `{name}`; known are {}", KINDS.join(", "))),
        };
        arguments.end()?;
        Ok(event)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(KINDS.get(self.kind()).copied().unwrap_or_default())?;
        match *self {
            Self::Tick { cpu } => write!(f, " {cpu}"),
            Self::SetRealtime { secs, nanos } => write!(f, " {secs} {nanos}"),
            Self::Inject { nanos } | Self::Slew { nanos } => write!(f, " {nanos}"),
            Self::Offset { nanos, time_constant } => write!(f, " {nanos} {time_constant}"),
            Self::Timezone { minutes_west, dst_time } => write!(f, " {minutes_west} {dst_time}"),
            Self::Frequency { scaled_ppm } => write!(f, " {scaled_ppm}"),
            Self::TickLength { micros } => write!(f, " {micros}"),
            Self::Tai { secs } => write!(f, " {secs}"),
            Self::Leap(leap) => f.write_str(match leap {
                Leap::None => " none",
                Leap::Insert => " insert",
                Leap::Delete => " delete",
            }),
            Self::Sleep { ns, how } => {
                let how = match how {
                    Sleep::Nonstop => "nonstop",
                    Sleep::Persistent => "persistent",
                    Sleep::Unknown => "unknown",
                };
                write!(f, " {} {how}", Duration(ns))
            }
            Self::Idle { ns } => write!(f, " {}", Duration(ns)),
            Self::Switch { source } => write!(f, " {source}"),
            Self::HighResolution { on } => f.write_str(if on { " on" } else { " off" }),
            Self::Skew { cpu, cycles } => write!(f, " {cpu} {cycles}"),
            Self::Step { cycles } => write!(f, " {cycles}"),
            Self::Drift { cpu, ppb } => write!(f, " {cpu} {ppb}"),
            Self::Migrate { cycles } => write!(f, " {cycles}"),
            Self::Agree | Self::Watchdog => Ok(()),
        }
    }
}

/// The words after an event's name.
struct Arguments<'a> {
    name: &'a str,
    arguments: &'a [&'a str],
}

impl<'a> Arguments<'a> {
    fn word(&mut self, wanted: &str) -> Result<&'a str, String> {
        let Some((&word, rest)) = self.arguments.split_first() else {
            return Err(format!("`{}` wants {wanted}", self.name));
        };
        self.arguments = rest;
        Ok(word)
    }

    fn number<T: std::str::FromStr>(&mut self, wanted: &str) -> Result<T, String> {
        let name = self.name;
        let word = self.word(wanted)?;
        word.parse()
            .map_err(|_| format!("`{name}` wants {wanted}, a number in range, not `{word}`"))
    }

    fn one_of<T: Copy>(&mut self, choices: &[(&str, T)]) -> Result<T, String> {
        let names: Vec<&str> = choices.iter().map(|&(name, _)| name).collect();
        let wanted = names.join(" or ");
        let word = self.word(&wanted)?;
        let found = choices.iter().find(|&&(name, _)| name == word);
        found
            .map(|&(_, value)| value)
            .ok_or_else(|| format!("`{}` wants {wanted}, not `{word}`", self.name))
    }

    fn end(&self) -> Result<(), String> {
        match self.arguments.first() {
            None => Ok(()),
            Some(word) => Err(format!("`{}` has an argument too many: `{word}`", self.name)),
        }
    }
}

const UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("s", 1_000_000_000),
];

/// Nanoseconds as a scenario writes them: `4ms`, `30d`.
#[derive(Clone, Copy, Debug)]
pub struct Duration(pub u64);

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |&&(_, unit): &&(&str, u64)| self.0.is_multiple_of(unit) && self.0 >= unit;
        let unit = UNITS.iter().filter(fits).max_by_key(|&&(_, unit)| unit);
        let (name, unit) = unit.copied().unwrap_or(("ns", 1));
        write!(f, "{}{name}", self.0 / unit)
    }
}

/// The nanoseconds that a scenario's `4ms` or `1.5s` stands for.
///
/// # Errors
/// What is wrong, and what would be right.
pub fn duration(word: &str) -> Result<u64, String> {
    let wrong =
        || format!("`{word}` is no duration; write a number and d, h, min, s, ms, us or ns");
    let suffix = |&&(name, _): &&(&str, u64)| word.ends_with(name);
    let (name, unit) = UNITS.iter().find(suffix).ok_or_else(wrong)?;
    let number = word.strip_suffix(name).ok_or_else(wrong)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let mut total = whole.checked_mul(*unit).ok_or_else(wrong)?;
    let mut place = *unit;
    for digit in fraction.chars() {
        let digit = digit.to_digit(10).ok_or_else(wrong)?;
        if place % 10 != 0 {
            return Err(format!("`{word}` is finer than a nanosecond"));
        }
        place /= 10;
        total = total.checked_add(place * u64::from(digit)).ok_or_else(wrong)?;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_written_as_it_is_read() {
        let lines = [
            "tick 1",
            "set -5 999999999",
            "inject -1500000000",
            "timezone -120 1",
            "frequency 32768000",
            "ticklength 11000",
            "offset -500000 2",
            "slew 1250000",
            "tai 37",
            "leap insert",
            "leap delete",
            "leap none",
            "sleep 30d persistent",
            "sleep 1500ms nonstop",
            "sleep 7ns unknown",
            "switch 1",
            "idle 12h",
            "highres on",
            "highres off",
            "skew 1 -1000",
            "step -9",
            "drift 0 -50000",
            "migrate 18446744073709551615",
            "agree",
            "watchdog",
        ];
        let mut kinds = std::collections::BTreeSet::new();
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let event = Event::parse(&words).unwrap();
            assert_eq!(event.to_string(), line);
            kinds.insert(event.kind());
        }
        assert_eq!(kinds.len(), KINDS.len());
    }

    #[test]
    fn durations_are_exact() {
        for (word, ns) in [("1.5s", 1_500_000_000), ("0.000000001s", 1), ("2h", 7_200_000_000_000)]
        {
            assert_eq!(duration(word), Ok(ns));
        }
        for word in ["5", "1.0000000001s", "s", "-1ms", "1.xs", "99999999999d"] {
            assert!(duration(word).is_err(), "{word}");
        }
    }

    #[test]
    fn a_wrong_line_says_what_would_be_right() {
        let error = Event::parse(&["leap", "maybe"]).unwrap_err();
        assert_eq!(error, "`leap` wants none or insert or delete, not `maybe`");
        let error = Event::parse(&["tick", "0", "0"]).unwrap_err();
        assert_eq!(error, "`tick` has an argument too many: `0`");
    }
}
