//! The system calls that a page can make unnecessary, counted.

use std::collections::BTreeMap;
use std::fmt;

use crate::launch::ptrace::BeginningCall;

/// A counted system call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// The clock that was asked for, where the call takes one.
    pub clock: Option<i32>,
}

/// The clock, time and getcpu calls that reached the kernel, over a whole tree of programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemCalls {
    counts: BTreeMap<Call, u64>,
}

impl SystemCalls {
    /// How often `call` was made.
    pub fn add(&mut self, call: Call, times: u64) {
        let count = self.counts.entry(call).or_default();
        *count = count.saturating_add(times);
    }

    /// All of them together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Those for clocks that a page serves, and those without a clock: what should be none.
    ///
    /// A program may ask for a CPU clock, or another that no vDSO serves; those calls are the
    /// kernel's on every system.
    #[must_use]
    pub fn avoidable(&self) -> u64 {
        let served =
            |call: &Call| call.clock.is_none_or(|id| datapage::ClockId(id).slot().is_some());
        let counts = self.counts.iter().filter(|(call, _)| served(call));
        counts.map(|(_, count)| count).sum()
    }

    /// Each with its count, by name and clock.
    pub fn iter(&self) -> impl Iterator<Item = (&Call, u64)> {
        self.counts.iter().map(|(call, count)| (call, *count))
    }

    /// How often calls of this name were made.
    #[must_use]
    pub fn of(&self, name: &str) -> u64 {
        let counts = self.iter().filter(|(call, _)| call.name == name);
        counts.map(|(_, count)| count).sum()
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.clock {
            Some(clock) => write!(f, "{}(clock {clock})", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// `AUDIT_ARCH_X86_64` and `AUDIT_ARCH_I386` (`include/uapi/linux/audit.h`).
pub(crate) const X86_64: u32 = 0xc000_003e;
pub(crate) const I386: u32 = 0x4000_0003;

/// Marks a call of the x32 table.
const X32: u64 = 0x4000_0000;

/// The call that begins, if it is one that is counted.
pub(crate) fn counted(call: BeginningCall) -> Option<Call> {
    let (name, takes_clock) = match (call.arch, call.number & !X32) {
        (X86_64, 228) | (I386, 265) => ("clock_gettime", true),
        (X86_64, 229) | (I386, 266) => ("clock_getres", true),
        (I386, 403) => ("clock_gettime64", true),
        (I386, 406) => ("clock_getres_time64", true),
        (X86_64, 96) | (I386, 78) => ("gettimeofday", false),
        (X86_64, 201) | (I386, 13) => ("time", false),
        (X86_64, 309) | (I386, 318) => ("getcpu", false),
        _ => return None,
    };
    #[allow(clippy::cast_possible_truncation, reason = "a clockid_t is an int")]
    let clock = takes_clock.then_some((call.first as u32).cast_signed());
    Some(Call { name: name.to_owned(), clock })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_apart_by_table_and_clock() {
        let call = |arch, number, first| counted(BeginningCall { arch, number, first, second: 0 });
        let named = |name: &str, clock| Some(Call { name: name.to_owned(), clock });
        // Upper bits of the register do not belong to the clock's id.
        let monotonic = call(X86_64, 228, 0xffff_ffff_0000_0001);
        assert_eq!(monotonic, named("clock_gettime", Some(1)));
        let negative = call(X86_64, 228, u64::from(u32::MAX));
        assert_eq!(negative, named("clock_gettime", Some(-1)));
        assert_eq!(call(X86_64, X32 | 309, 0), named("getcpu", None));
        assert_eq!(call(I386, 13, 0), named("time", None));
        assert_eq!(call(X86_64, 13, 0), None);
        assert_eq!(call(I386, 228, 0), None);
    }

    #[test]
    fn a_cpu_clock_is_no_fault_of_the_page() {
        let mut calls = SystemCalls::default();
        let clock = |id| Call { name: "clock_gettime".to_owned(), clock: Some(id) };
        calls.add(clock(libc::CLOCK_PROCESS_CPUTIME_ID), 3);
        calls.add(clock(-6), 1);
        assert_eq!((calls.total(), calls.avoidable()), (4, 0));
        calls.add(clock(libc::CLOCK_MONOTONIC), 2);
        assert_eq!((calls.avoidable(), calls.of("clock_gettime")), (2, 6));
    }
}
