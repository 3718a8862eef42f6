//! Whether this machine's counter is a clock.

use std::fs;

/// Where the kernel names the counter that it keeps time with.
const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Flags of `/proc/cpuinfo` without which the counter changes its rate or stops.
const NEEDED: [&str; 2] = ["constant_tsc", "nonstop_tsc"];

/// Why the counter of this machine cannot tell the time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoCounter {
    /// The kernel keeps time with something else, so it does not vouch for the counter.
    #[error("the kernel keeps time with the clocksource {found}, not with the CPU's counter (tsc)")]
    Clocksource {
        /// The clocksource in use.
        found: String,
    },
    /// The kernel does not say what it keeps time with.
    #[error(
        "{CURRENT} cannot be read ({reason}), so the CPU's counter is not known to be a \
         clock"
    )]
    Unknown {
        /// What the kernel answered.
        reason: String,
    },
    /// The counter changes its rate, or stops when the CPU sleeps.
    #[error("the CPU's counter is no clock: no {missing} in /proc/cpuinfo")]
    Flag {
        /// The flag that is not there.
        missing: &'static str,
    },
}

/// Checks that the kernel itself keeps time with the counter that programs can read, and that the
/// counter has a constant rate and never stops.
///
/// # Errors
/// Why the counter is no clock.
pub fn counter_is_a_clock() -> Result<(), NoCounter> {
    counter_is_in_use()?;
    judge_flags(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

/// Checks that the kernel still keeps time with the counter: it drops one that it finds unstable.
///
/// # Errors
/// What it keeps time with instead.
pub fn counter_is_in_use() -> Result<(), NoCounter> {
    let current = fs::read_to_string(CURRENT);
    let current = current.map_err(|error| NoCounter::Unknown { reason: error.to_string() })?;
    judge_source(current.trim())
}

fn judge_source(current: &str) -> Result<(), NoCounter> {
    // kvm-clock and the Hyper-V page are made from the counter too, but with scales of their own
    // that the hypervisor changes at any time; the kernel tells us nothing of them.
    if current != "tsc" {
        return Err(NoCounter::Clocksource { found: current.to_owned() });
    }
    Ok(())
}

fn judge_flags(cpuinfo: &str) -> Result<(), NoCounter> {
    for missing in NEEDED {
        let mut flags = cpuinfo.lines().filter(|line| line.starts_with("flags")).peekable();
        let everywhere = flags.peek().is_some()
            && flags.all(|line| line.split_whitespace().any(|flag| flag == missing));
        if !everywhere {
            return Err(NoCounter::Flag { missing });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "flags\t\t: fpu constant_tsc nonstop_tsc\n\nflags\t\t: constant_tsc nonstop_tsc x\n";

    #[test]
    fn only_a_constant_tsc_that_the_kernel_uses_itself_is_a_clock() {
        assert_eq!((judge_source("tsc"), judge_flags(GOOD)), (Ok(()), Ok(())));
        for found in ["hpet", "kvm-clock", "tsc-early", "acpi_pm", ""] {
            let found = found.to_owned();
            assert_eq!(judge_source(&found.clone()), Err(NoCounter::Clocksource { found }));
        }
        let one_without = GOOD.replace("nonstop_tsc x", "x");
        let missing = "nonstop_tsc";
        assert_eq!(judge_flags(&one_without), Err(NoCounter::Flag { missing }));
        let missing = "constant_tsc";
        assert_eq!(judge_flags(""), Err(NoCounter::Flag { missing }));
    }
}
