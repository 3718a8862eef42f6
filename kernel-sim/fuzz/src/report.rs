//! What a run has done, counted: a run that never came to a case proves nothing of it.

use kernel_sim::machine::event::KINDS;
use oracle::Verdict;
use oracle::publication::SERVED;

/// How a call left the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The quick arithmetic takes the product, and the base's second has not ended.
    Fast,
    /// A second or more since the base.
    Carry,
    /// The quick arithmetic does not take it: a product or a later second of too many bits.
    Wide,
    /// The counter is behind the base.
    Behind,
    /// An update was under way at every attempt, or its writer had died.
    Odd,
    /// An update came in between, and the read was repeated.
    Retry,
    /// The page cannot serve the call: no readable counter, a clock that no page has.
    Fallback,
    /// The clock's slot is empty.
    Unpublished,
    /// Nanoseconds that an `i64` cannot hold.
    Overflow,
}

/// One word for each exit.
pub const EXITS: [&str; 9] =
    ["fast", "carry", "wide", "behind", "odd", "retry", "fallback", "unpublished", "eoverflow"];

/// Widths of counters that every long run must have had, in bits.
pub const WIDTHS: [u32; 4] = [32, 48, 56, 64];

/// One word for each thing that a watchdog says, in the order of [`Verdict`].
pub const VERDICTS: [&str; 3] = ["unknown", "good", "unstable"];

/// Counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Updates of a page after each of which something was read and checked.
    pub updates: u64,
    /// Those of them that a timekeeper made.
    pub kernel_updates: u64,
    /// Reads that were checked.
    pub reads: u64,
    /// Events that the kernel refused, as it must.
    pub refused: u64,
    /// Events by kind, in the order of [`KINDS`].
    pub events: [u64; KINDS.len()],
    /// `clock_gettime` and `clock_gettime_ns` by clock, in the order of [`SERVED`]; last, all others.
    pub clocks: [u64; SERVED.len() + 1],
    /// Exits of the reader, in the order of [`EXITS`].
    pub exits: [u64; EXITS.len()],
    /// Publications by the counter's width, in the order of [`WIDTHS`]; last, all others.
    pub widths: [u64; WIDTHS.len() + 1],
    /// Reads by the shipped image; the others were made by the same code inside this program.
    pub image_reads: u64,
    /// Reads that were preempted in the middle.
    pub preempted_reads: u64,
    /// Updates that were preempted in the middle.
    pub preempted_updates: u64,
    /// Those of them that were one of several of the same event.
    pub preempted_series: u64,
    /// Reads between two updates of the same event.
    pub reads_between: u64,
    /// Reads in a time namespace.
    pub namespace_reads: u64,
    /// What the watchdog said, in the order of [`VERDICTS`].
    pub verdicts: [u64; VERDICTS.len()],
}

impl Counts {
    /// Adds those of another run.
    pub fn add(&mut self, other: &Self) {
        let pairs = self.all_mut().into_iter().zip(other.clone().all_mut().map(|count| *count));
        for (count, more) in pairs {
            *count += more;
        }
    }

    fn all_mut(
        &mut self,
    ) -> [&mut u64;
        10 + KINDS.len() + SERVED.len() + 1 + EXITS.len() + WIDTHS.len() + 1 + VERDICTS.len()] {
        let single = [
            &mut self.updates,
            &mut self.kernel_updates,
            &mut self.reads,
            &mut self.refused,
            &mut self.image_reads,
            &mut self.preempted_reads,
            &mut self.preempted_updates,
            &mut self.preempted_series,
            &mut self.reads_between,
            &mut self.namespace_reads,
        ];
        let mut all = single
            .into_iter()
            .chain(&mut self.events)
            .chain(&mut self.clocks)
            .chain(&mut self.exits)
            .chain(&mut self.widths)
            .chain(&mut self.verdicts);
        std::array::from_fn(|_| all.next().expect("the lengths add up"))
    }

    /// Counts an exit.
    #[inline]
    pub fn exit(&mut self, exit: Exit) {
        self.exits[exit as usize] += 1;
    }

    /// Counts a read of clock `id`.
    #[inline]
    pub fn clock(&mut self, id: i32) {
        let place = SERVED.iter().position(|&served| served == id);
        self.clocks[place.unwrap_or(SERVED.len())] += 1;
    }

    /// Counts what the watchdog said.
    pub fn verdict(&mut self, verdict: Verdict) {
        self.verdicts[verdict as usize] += 1;
    }

    /// Counts a publication for a counter of `mask`.
    #[inline]
    pub fn width(&mut self, mask: u64) {
        let bits = mask.count_ones();
        let place = WIDTHS.iter().position(|&width| width == bits);
        self.widths[place.unwrap_or(WIDTHS.len())] += 1;
    }

    /// Every case with its count, under the names that reports use.
    #[must_use]
    pub fn cases(&self) -> Vec<(String, u64)> {
        let single = [
            ("image reads".to_owned(), self.image_reads),
            ("preempted reads".to_owned(), self.preempted_reads),
            ("preempted updates".to_owned(), self.preempted_updates),
            ("preempted series".to_owned(), self.preempted_series),
            ("reads between".to_owned(), self.reads_between),
            ("namespace reads".to_owned(), self.namespace_reads),
            ("refused events".to_owned(), self.refused),
        ];
        let named = |prefix: &str, names: Vec<String>, counts: &[u64]| {
            let name = |(name, &count): (String, &u64)| (format!("{prefix} {name}"), count);
            names.into_iter().zip(counts).map(name).collect::<Vec<_>>()
        };
        let strings = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let numbers = |numbers: Vec<i64>| numbers.iter().map(i64::to_string).collect::<Vec<_>>();
        let mut clocks = numbers(SERVED.iter().map(|&id| i64::from(id)).collect());
        clocks.push("unserved".into());
        let mut widths = numbers(WIDTHS.iter().map(|&bits| i64::from(bits)).collect());
        widths.push("other".into());
        single
            .into_iter()
            .chain(named("event", strings(&KINDS), &self.events))
            .chain(named("clock", clocks, &self.clocks))
            .chain(named("exit", strings(&EXITS), &self.exits))
            .chain(named("counter width", widths, &self.widths))
            .chain(named("verdict", strings(&VERDICTS), &self.verdicts))
            .collect()
    }

    /// The cases that the run never came to.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let zero = |(name, count): (String, u64)| (count == 0).then_some(name);
        self.cases().into_iter().filter_map(zero).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_is_added_and_a_missing_case_is_named() {
        let mut counts = Counts::default();
        for count in counts.all_mut() {
            *count = 2;
        }
        let other = counts.clone();
        counts.add(&other);
        assert!(counts.cases().iter().all(|&(_, count)| count == 4));
        assert!(counts.missing().is_empty());
        counts.exits[Exit::Wide as usize] = 0;
        assert_eq!(counts.missing(), ["exit wide"]);
    }
}
