//! The programs that measure from inside of a run.

use std::fs;
use std::io::{self, BufRead as _, Write as _};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// A program that measures from inside of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guest {
    /// Starts a program for each line that it reads, and answers with the nanoseconds that it took.
    Spawner,
    /// Reads the coarse clock until its input ends, then says each value that it saw.
    Watcher,
    /// Never rests.
    Spinner,
}

/// What is started again and again: a dynamic program that does nothing.
pub const PROGRAM: &str = "/bin/true";

/// How often the watcher looks.
const LOOK: Duration = Duration::from_micros(200);

impl Guest {
    const ALL: [Self; 3] = [Self::Spawner, Self::Watcher, Self::Spinner];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Spawner => "spawner",
            Self::Watcher => "watcher",
            Self::Spinner => "spinner",
        }
    }

    /// What the guest does: it says first on which vDSO it runs and as which process, and ends with
    /// its input.
    ///
    /// # Errors
    /// What it cannot write, or start.
    pub fn run(self) -> io::Result<()> {
        println!("{} {}", place()?, std::process::id());
        match self {
            Self::Spawner => spawner(),
            Self::Watcher => watcher(),
            Self::Spinner => loop {
                std::hint::spin_loop();
            },
        }
    }
}

impl FromStr for Guest {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|guest| guest.name() == name);
        found.ok_or_else(|| format!("no guest `{name}`"))
    }
}

pub(super) const HOST: &str = "host";
pub(super) const IMAGE: &str = "launcher";

/// Whose vDSO this process has.
fn place() -> io::Result<&'static str> {
    // The memory of the page and the image, by the name that a keeper gives it.
    let maps = fs::read_to_string("/proc/self/maps")?;
    Ok(if maps.contains("/memfd:uvdso") { IMAGE } else { HOST })
}

fn spawner() -> io::Result<()> {
    for line in io::stdin().lock().lines() {
        line?;
        let start = Instant::now();
        let status = Command::new(PROGRAM).stdin(Stdio::null()).status()?;
        let nanos = start.elapsed().as_nanos();
        if !status.success() {
            return Err(io::Error::other(format!("{PROGRAM}: {status}")));
        }
        println!("{nanos}");
    }
    Ok(())
}

fn watcher() -> io::Result<()> {
    static ENDS: AtomicBool = AtomicBool::new(false);
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        ENDS.store(true, Ordering::Relaxed);
    });
    let mut ticks = vec![now(ClockId::CLOCK_MONOTONIC_COARSE)];
    while !ENDS.load(Ordering::Relaxed) {
        let seen = now(ClockId::CLOCK_MONOTONIC_COARSE);
        if ticks.last() != Some(&seen) {
            ticks.push(seen);
        }
        sleep(LOOK);
    }
    let mut out = io::stdout().lock();
    for tick in ticks {
        writeln!(out, "{}", tick.as_nanos())?;
    }
    Ok(())
}

pub(super) fn now(clock: ClockId) -> Duration {
    clock_gettime(clock).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_is_found_by_its_name_and_this_process_is_on_the_hosts_vdso() {
        for guest in Guest::ALL {
            assert_eq!(guest.name().parse(), Ok(guest));
        }
        assert!("spawn".parse::<Guest>().is_err());
        assert_eq!(place().unwrap(), HOST);
    }
}
