//! What a simulated machine is made of, and how it is written in a scenario.

use std::fmt;
use std::str::FromStr;

use datapage::ClockMode;

use super::hardware::Oscillator;

/// A machine as it is switched on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Number of CPUs, at least 1.
    pub cpus: usize,
    /// Ticks a second.
    pub hz: u32,
    /// What the wall clock shows at first, in seconds since 1970.
    pub realtime_secs: i64,
    /// The counters; the kernel starts with the first.
    pub counters: Vec<CounterSetup>,
}

/// A counter of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterSetup {
    /// Rate and width.
    pub oscillator: Oscillator,
    /// How programs read it.
    pub mode: ClockMode,
    /// Its value when the machine is switched on.
    pub start: u64,
    /// Whether it goes on counting while the machine sleeps.
    pub is_nonstop: bool,
}

impl Setup {
    /// The machine of the words after `machine`, without counters yet.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn parse(words: &[&str]) -> Result<Self, String> {
        let ["cpus", cpus, "hz", hz, "realtime", realtime] = *words else {
            return Err("write: machine cpus NUMBER hz NUMBER realtime SECONDS".into());
        };
        let cpus: usize = number(cpus, "a number of CPUs")?;
        if !(1..=64).contains(&cpus) {
            return Err(format!("a machine of {cpus} CPUs; write 1 to 64"));
        }
        Ok(Self {
            cpus,
            hz: number(hz, "ticks a second")?,
            realtime_secs: number(realtime, "seconds since 1970")?,
            counters: Vec::new(),
        })
    }

    /// Adds the counter of the words after `counter`.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn parse_counter(&mut self, words: &[&str]) -> Result<(), String> {
        let ["hz", hz, "bits", bits, "mode", mode, "start", start, ref nonstop @ ..] = *words
        else {
            return Err(
                "write: counter hz NUMBER bits NUMBER mode NUMBER start VALUE [nonstop]".into()
            );
        };
        let is_nonstop = match *nonstop {
            [] => false,
            ["nonstop"] => true,
            _ => return Err(format!("`{}` after a counter; write nonstop", nonstop.join(" "))),
        };
        let bits: u32 = number(bits, "a width")?;
        if !(8..=64).contains(&bits) {
            return Err(format!("a counter of {bits} bits; write 8 to 64"));
        }
        self.counters.push(CounterSetup {
            oscillator: Oscillator { hz: number(hz, "cycles a second")?, bits },
            mode: ClockMode(number(mode, "a clock mode")?),
            start: number(start, "a counter's value")?,
            is_nonstop,
        });
        Ok(())
    }
}

fn number<T: FromStr>(word: &str, wanted: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("`{word}` is not {wanted}, a number in range"))
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "machine cpus {} hz {} realtime {}", self.cpus, self.hz, self.realtime_secs)?;
        for counter in &self.counters {
            let Oscillator { hz, bits } = counter.oscillator;
            let (mode, start) = (counter.mode.0, counter.start);
            let nonstop = if counter.is_nonstop { " nonstop" } else { "" };
            writeln!(f, "counter hz {hz} bits {bits} mode {mode} start {start}{nonstop}")?;
        }
        Ok(())
    }
}
