//! Scenarios as text: one step a line, `#` begins a comment.
//!
//! ```text
//! reader code
//! machine cpus 2 hz 250 realtime 1483228790
//! counter hz 2400000000 bits 64 mode 1 start 0
//! +4ms tick 0
//! +1us read 1 clocks
//! run 10s every 4ms
//! ```
//!
//! A step may begin with `+` and the true time that passes before it. `docs/oracle.md` has the list.

use std::fmt::{self, Write as _};

use datapage::{ClockId, ClockMode, Instant, PageValues, Scale};
use kernel_sim::machine::event::{Duration, Event, duration};
use kernel_sim::machine::setup::Setup as Machine;

use super::{Namespace, Reader, Scenario, Setup, Step, Which};
use crate::subject::Call;

/// A line that is no step of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct SyntaxError {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub reason: String,
}

impl Scenario {
    /// The scenario that `text` describes.
    ///
    /// # Errors
    /// The first wrong line.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let mut lines = Lines::new(text);
        let mut setup = Setup { reader: Reader::Code, namespace: None, machine: None };
        let mut steps = Vec::new();
        while let Some(words) = lines.next() {
            lines.judge(|lines| match *words.as_slice() {
                ["reader", reader] => {
                    setup.reader = parse_reader(reader)?;
                    Ok(())
                }
                ["namespace", ref offsets @ ..] => {
                    setup.namespace = Some(parse_namespace(offsets)?);
                    Ok(())
                }
                ["machine", ref rest @ ..] => {
                    setup.machine = Some(Machine::parse(rest)?);
                    Ok(())
                }
                ["counter", "hz", ..] => {
                    let machine = setup.machine.as_mut();
                    let machine = machine.ok_or("a `counter` line comes after `machine`")?;
                    machine.parse_counter(&words[1..])
                }
                _ => parse_step(&words, lines, &mut steps),
            })?;
        }
        Ok(Self { setup, steps })
    }
}

/// The lines of a text that say something, as words.
struct Lines<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    number: usize,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        Self { lines: text.lines().enumerate(), number: 0 }
    }

    fn next(&mut self) -> Option<Vec<&'a str>> {
        loop {
            let (index, line) = self.lines.next()?;
            self.number = index + 1;
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            if !words.is_empty() {
                return Some(words);
            }
        }
    }

    /// Runs a part of the parser; what it finds wrong is wrong in the line that it stopped at.
    fn judge(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<(), SyntaxError> {
        parse(self).map_err(|reason| SyntaxError { line: self.number, reason })
    }
}

fn parse_reader(word: &str) -> Result<Reader, String> {
    match word {
        "code" => Ok(Reader::Code),
        "preemptible" => Ok(Reader::Preemptible),
        "image" => Ok(Reader::Image),
        _ => Err(format!("`{word}` is no reader; write code, preemptible or image")),
    }
}

fn parse_namespace(words: &[&str]) -> Result<Namespace, String> {
    let offset = |word: &str| {
        let wrong = || format!("`{word}` is no offset; write SECS:NANOS, nanoseconds below 10^9");
        let (secs, nanos) = word.split_once(':').ok_or_else(wrong)?;
        let nanos: u32 = number(nanos, "nanoseconds")?;
        if nanos > 999_999_999 { Err(wrong()) } else { Ok((number(secs, "seconds")?, nanos)) }
    };
    match *words {
        ["monotonic", monotonic, "boottime", boottime] => {
            Ok(Namespace { monotonic: offset(monotonic)?, boottime: offset(boottime)? })
        }
        _ => Err("write: namespace monotonic SECS:NANOS boottime SECS:NANOS".into()),
    }
}

fn parse_step(words: &[&str], lines: &mut Lines<'_>, steps: &mut Vec<Step>) -> Result<(), String> {
    let mut words = words;
    if let Some(time) = words.first().and_then(|word| word.strip_prefix('+')) {
        steps.push(Step::Pass(duration(time)?));
        words = &words[1..];
    }
    let step = match *words {
        [] => return Ok(()),
        ["run", time, "every", period] => {
            Step::Run { ns: duration(time)?, every: duration(period)?.max(1) }
        }
        ["read", cpu, ref which @ ..] => Step::Read {
            cpu: number(cpu, "a CPU")?,
            which: match *which {
                ["clocks"] => Which::Clocks,
                ["all"] => Which::All,
                _ => Which::One(parse_call(which)?),
            },
        },
        ["interrupted-read", cpu, "at", at, ref call @ ..] => Step::InterruptedRead {
            cpu: number(cpu, "a CPU")?,
            at: number(at, "a load's number")?,
            call: parse_call(call)?,
            inside: parse_block(lines)?,
        },
        ["interrupted-update", "at", at, ref event @ ..] => Step::InterruptedUpdate {
            at: number(at, "a store's number")?,
            event: Event::parse(event)?,
        },
        ["publish", ref rest @ ..] => Step::Publish(Box::new(parse_values(rest)?)),
        ["counter", value] => Step::Counter(number(value, "a counter's value")?),
        _ => Step::Event(Event::parse(words)?),
    };
    steps.push(step);
    Ok(())
}

/// The steps up to `end`.
fn parse_block(lines: &mut Lines<'_>) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    loop {
        match lines.next() {
            None => return Err("`interrupted-read` without an `end`".into()),
            Some(words) if words == ["end"] => return Ok(steps),
            Some(words) => parse_step(&words, lines, &mut steps)?,
        }
    }
}

fn parse_call(words: &[&str]) -> Result<Call, String> {
    match *words {
        ["clock", id] => Ok(Call::ClockGettime(number(id, "a clock id")?)),
        ["ns", id] => Ok(Call::ClockGettimeNs(number(id, "a clock id")?)),
        ["res", id] => Ok(Call::ClockGetres(number(id, "a clock id")?)),
        ["gettimeofday", "tv"] => Ok(Call::Gettimeofday { tv: true, tz: false }),
        ["gettimeofday", "tz"] => Ok(Call::Gettimeofday { tv: false, tz: true }),
        ["gettimeofday", "tv", "tz"] => Ok(Call::Gettimeofday { tv: true, tz: true }),
        ["gettimeofday"] => Ok(Call::Gettimeofday { tv: false, tz: false }),
        ["time"] => Ok(Call::Time),
        _ => Err(format!(
            "`{}` is no call; write clocks, all, clock ID, ns ID, res ID, gettimeofday [tv] [tz] or time",
            words.join(" ")
        )),
    }
}

fn parse_values(words: &[&str]) -> Result<PageValues, String> {
    let mut values = PageValues::default();
    for word in words {
        let wrong = || format!("`{word}` is no part of an update; write NAME=VALUE");
        let (name, value) = word.split_once('=').ok_or_else(wrong)?;
        match name {
            "mode" => values.clock_mode = ClockMode(number(value, "a clock mode")?),
            "last" => values.cycle_last = number(value, "a counter's value")?,
            "steered" => values.steered = parse_scale(value)?,
            "raw" => values.raw = parse_scale(value)?,
            "res" => values.hrtimer_res = number(value, "nanoseconds")?,
            "coarse" => values.coarse_res = number(value, "nanoseconds")?,
            _ => {
                let (secs, nanos) = value.split_once(':').ok_or_else(wrong)?;
                let instant = Instant {
                    secs: number(secs, "seconds")?,
                    nanos: number(nanos, "nanoseconds")?,
                };
                values.set(ClockId(number(name, "a clock id")?), instant);
            }
        }
    }
    Ok(values)
}

fn parse_scale(word: &str) -> Result<Scale, String> {
    let parts: Vec<&str> = word.split(':').collect();
    let [bits, mult, shift] = parts[..] else {
        return Err(format!("`{word}` is no scale; write BITS:MULT:SHIFT"));
    };
    let bits: u32 = number(bits, "a counter's width in bits")?;
    if bits > 64 {
        return Err(format!("a counter of {bits} bits; 64 is the limit"));
    }
    Ok(Scale {
        mask: u64::MAX.checked_shr(64 - bits).unwrap_or(0),
        mult: number(mult, "a mult")?,
        shift: number(shift, "a shift")?,
    })
}

fn number<T: std::str::FromStr>(word: &str, wanted: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("`{word}` is not {wanted}, a number in range"))
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "reader {}", self.setup.reader)?;
        if let Some(Namespace { monotonic, boottime }) = self.setup.namespace {
            let offset = |(secs, nanos): (i64, u32)| format!("{secs}:{nanos}");
            let (monotonic, boottime) = (offset(monotonic), offset(boottime));
            writeln!(f, "namespace monotonic {monotonic} boottime {boottime}")?;
        }
        if let Some(machine) = &self.setup.machine {
            write!(f, "{machine}")?;
        }
        write_steps(f, &self.steps)
    }
}

impl fmt::Display for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Code => "code",
            Self::Preemptible => "preemptible",
            Self::Image => "image",
        })
    }
}

fn write_steps(f: &mut fmt::Formatter<'_>, steps: &[Step]) -> fmt::Result {
    for (index, step) in steps.iter().enumerate() {
        // The time before a step stands on the step's own line.
        let ends_line = match (step, steps.get(index + 1)) {
            (Step::Pass(_), Some(next)) => matches!(next, Step::Pass(_)),
            _ => true,
        };
        write!(f, "{step}")?;
        f.write_char(if ends_line { '\n' } else { ' ' })?;
    }
    Ok(())
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass(ns) => write!(f, "+{}", Duration(*ns)),
            Self::Event(event) => write!(f, "{event}"),
            Self::Run { ns, every } => {
                write!(f, "run {} every {}", Duration(*ns), Duration(*every))
            }
            Self::Read { cpu, which } => {
                write!(f, "read {cpu} ")?;
                match which {
                    Which::One(call) => write!(f, "{call}"),
                    Which::Clocks => f.write_str("clocks"),
                    Which::All => f.write_str("all"),
                }
            }
            Self::InterruptedRead { cpu, call, at, inside } => {
                writeln!(f, "interrupted-read {cpu} at {at} {call}")?;
                write_steps(f, inside)?;
                f.write_str("end")
            }
            Self::InterruptedUpdate { event, at } => {
                write!(f, "interrupted-update at {at} {event}")
            }
            Self::Publish(values) => write_values(f, values),
            Self::Counter(value) => write!(f, "counter {value}"),
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClockGettime(id) => write!(f, "clock {id}"),
            Self::ClockGettimeNs(id) => write!(f, "ns {id}"),
            Self::ClockGetres(id) => write!(f, "res {id}"),
            Self::Gettimeofday { tv, tz } => {
                let tv = if *tv { " tv" } else { "" };
                let tz = if *tz { " tz" } else { "" };
                write!(f, "gettimeofday{tv}{tz}")
            }
            Self::Time => f.write_str("time"),
        }
    }
}

fn write_values(f: &mut fmt::Formatter<'_>, values: &PageValues) -> fmt::Result {
    write!(f, "publish mode={} last={}", values.clock_mode.0, values.cycle_last)?;
    for (name, scale) in [("steered", values.steered), ("raw", values.raw)] {
        let bits = scale.mask.count_ones();
        write!(f, " {name}={bits}:{}:{}", scale.mult, scale.shift)?;
    }
    write!(f, " res={} coarse={}", values.hrtimer_res, values.coarse_res)?;
    for (id, instant) in values.instants.iter().enumerate() {
        if let Some(instant) = instant {
            write!(f, " {id}={}:{}", instant.secs, instant.nanos)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY_LINE: &str = "\
reader preemptible
namespace monotonic -7:999999999 boottime 86400:0
machine cpus 2 hz 250 realtime 1483228790
counter hz 2400000000 bits 64 mode 1 start 5
counter hz 14318180 bits 32 mode 0 start 0 nonstop
+4ms tick 0
run 10s every 4ms
read 1 clocks
read 0 all
read 0 clock -5
read 0 ns 4
read 0 res 6
read 0 gettimeofday
read 0 gettimeofday tv
read 0 gettimeofday tz
read 0 gettimeofday tv tz
read 0 time
interrupted-read 1 at 3 clock 11
+1ns
+2ns tick 0
end
interrupted-update at 9 tick 1
publish mode=256 last=9 steered=64:3:1 raw=32:7:2 res=1 coarse=4000000 0=-5:3 11=8:0
counter 77
";

    #[test]
    fn a_scenario_is_written_as_it_is_read() {
        let scenario = Scenario::parse(EVERY_LINE).unwrap();
        assert_eq!(scenario.to_string(), EVERY_LINE);
        assert_eq!(Scenario::parse(&scenario.to_string()), Ok(scenario));
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, line, part) in [
            ("reader code\n\nreader glass\n", 3, "code, preemptible or image"),
            ("counter hz 5 bits 64 mode 1 start 0", 1, "after `machine`"),
            ("interrupted-read 0 at 1 time\ntick 0\n", 2, "without an `end`"),
            ("read 0 weather", 1, "gettimeofday"),
            ("publish steered=65:1:1", 1, "64 is the limit"),
            ("+5 tick 0", 1, "no duration"),
            ("namespace monotonic 5:1000000000 boottime 0:0", 1, "below 10^9"),
            ("namespace realtime 5:0", 1, "boottime SECS:NANOS"),
        ] {
            let error = Scenario::parse(text).unwrap_err();
            assert!(error.reason.contains(part), "{error}");
            assert_eq!(error.line, line, "{error}");
        }
    }
}
