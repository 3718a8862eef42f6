//! What is below the kernel: true time, CPUs, and the counters as each CPU sees them.
//!
//! True time is what a perfect clock beside the machine shows. A counter is an oscillator of a
//! given frequency that true time moves; each CPU reads it with an error of its own. A machine whose
//! counters agree has no such error anywhere.

/// Nanoseconds in a second.
const NANOS: u128 = 1_000_000_000;

/// An oscillator, as a data sheet describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oscillator {
    /// Cycles a second.
    pub hz: u64,
    /// Width of the counter, 1..=64.
    pub bits: u32,
}

impl Oscillator {
    /// The largest value of the counter.
    #[must_use]
    pub const fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }
}

/// True time and all counters of a machine.
#[derive(Clone, Debug)]
pub struct Hardware {
    now_ns: u64,
    counters: Vec<Counter>,
    cpus: usize,
    /// Whether any CPU's view drifts: if none does, time passes faster here.
    drifting: bool,
}

#[derive(Clone, Debug)]
struct Counter {
    oscillator: Oscillator,
    /// Cycles so far, before any CPU's error, wrapping.
    cycles: u64,
    /// What true time has moved beyond `cycles`, in 10^-9 cycles.
    fraction: u64,
    views: Vec<View>,
}

/// A CPU's error in reading a counter.
#[derive(Clone, Copy, Debug, Default)]
struct View {
    offset: u64,
    drift_ppb: i64,
    /// Drift below a cycle, in 10^-18 cycles.
    fraction: i128,
}

impl Hardware {
    /// A machine of `cpus` CPUs at true time 0, each counter at its value of `start`.
    #[must_use]
    pub fn new(cpus: usize, counters: &[(Oscillator, u64)]) -> Self {
        let counter = |&(oscillator, cycles): &(Oscillator, u64)| Counter {
            oscillator,
            cycles,
            fraction: 0,
            views: vec![View::default(); cpus],
        };
        Self { now_ns: 0, counters: counters.iter().map(counter).collect(), cpus, drifting: false }
    }

    /// True time in nanoseconds since the machine was made.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Number of CPUs.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.cpus
    }

    /// Number of counters.
    #[must_use]
    pub fn counters(&self) -> usize {
        self.counters.len()
    }

    /// The oscillator behind counter number `counter`.
    #[must_use]
    pub fn oscillator(&self, counter: usize) -> Option<Oscillator> {
        Some(self.counters.get(counter)?.oscillator)
    }

    /// The value of a counter as `cpu` reads it now; 0 for a counter or CPU that is not there.
    #[must_use]
    pub fn read(&self, counter: usize, cpu: usize) -> u64 {
        let Some(counter) = self.counters.get(counter) else {
            return 0;
        };
        let offset = counter.views.get(cpu).map_or(0, |view| view.offset);
        counter.cycles.wrapping_add(offset) & counter.oscillator.mask()
    }

    /// `ns` of true time pass.
    pub fn pass(&mut self, ns: u64) {
        self.pass_with(ns, |_| true);
    }

    /// `ns` of true time pass, in which only the counters that `runs` names are powered.
    pub fn pass_with(&mut self, ns: u64, runs: impl Fn(usize) -> bool) {
        self.now_ns = self.now_ns.saturating_add(ns);
        let drifting = self.drifting;
        for (index, counter) in self.counters.iter_mut().enumerate() {
            if runs(index) {
                counter.pass(ns, drifting);
            }
        }
    }

    /// One CPU's view of a counter jumps by `cycles`: skew, a step, a migration.
    pub fn shift(&mut self, counter: usize, cpu: usize, cycles: i64) {
        if let Some(view) = self.view(counter, cpu) {
            view.offset = view.offset.wrapping_add_signed(cycles);
        }
    }

    /// Every CPU's view of a counter jumps by `cycles`.
    pub fn shift_all(&mut self, counter: usize, cycles: i64) {
        if let Some(counter) = self.counters.get_mut(counter) {
            counter.cycles = counter.cycles.wrapping_add_signed(cycles);
        }
    }

    /// A counter starts again from `value` on every CPU, without errors.
    pub fn reset(&mut self, counter: usize, value: u64) {
        if let Some(counter) = self.counters.get_mut(counter) {
            counter.cycles = value;
            counter.views.fill(View::default());
        }
        self.note_drift();
    }

    /// From now on one CPU's view of a counter runs `ppb` parts in 10^9 fast.
    pub fn drift(&mut self, counter: usize, cpu: usize, ppb: i64) {
        if let Some(view) = self.view(counter, cpu) {
            view.drift_ppb = ppb;
        }
        self.note_drift();
    }

    /// Removes every CPU's error from every counter: their views agree again.
    pub fn agree(&mut self) {
        for counter in &mut self.counters {
            counter.views.fill(View::default());
        }
        self.drifting = false;
    }

    /// Whether all CPUs read the same from every counter, and will.
    #[must_use]
    pub fn agrees(&self) -> bool {
        !self.drifting
            && self.counters.iter().all(|counter| {
                let first = counter.views.first().map(|view| view.offset);
                counter.views.iter().all(|view| Some(view.offset) == first)
            })
    }

    fn note_drift(&mut self) {
        let mut views = self.counters.iter().flat_map(|counter| &counter.views);
        self.drifting = views.any(|view| view.drift_ppb != 0);
    }

    fn view(&mut self, counter: usize, cpu: usize) -> Option<&mut View> {
        self.counters.get_mut(counter)?.views.get_mut(cpu)
    }
}

impl Counter {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a counter wraps; the remainder is below 10^9"
    )]
    fn pass(&mut self, ns: u64, drifting: bool) {
        let moved = u128::from(ns) * u128::from(self.oscillator.hz) + u128::from(self.fraction);
        // Most steps fit a word, whose division by a constant is a multiplication.
        let (cycles, fraction) = if let Ok(moved) = u64::try_from(moved) {
            (moved / NANOS as u64, moved % NANOS as u64)
        } else {
            ((moved / NANOS) as u64, (moved % NANOS) as u64)
        };
        self.cycles = self.cycles.wrapping_add(cycles);
        self.fraction = fraction;
        if drifting {
            for view in &mut self.views {
                view.pass(ns, self.oscillator.hz);
            }
        }
    }
}

impl View {
    #[allow(clippy::cast_possible_truncation, reason = "a view's error wraps as the counter does")]
    fn pass(&mut self, ns: u64, hz: u64) {
        const UNIT: i128 = 1_000_000_000_000_000_000;
        let moved = i128::from(ns) * i128::from(hz) * i128::from(self.drift_ppb) + self.fraction;
        self.offset = self.offset.wrapping_add_signed(moved.div_euclid(UNIT) as i64);
        self.fraction = moved.rem_euclid(UNIT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TSC: Oscillator = Oscillator { hz: 2_399_999_999, bits: 64 };

    #[test]
    fn a_counter_loses_no_fraction_of_a_cycle() {
        let mut hardware = Hardware::new(1, &[(TSC, 0)]);
        for _ in 0..1_000_000 {
            hardware.pass(1_000);
        }
        assert_eq!(hardware.read(0, 0), TSC.hz);
        hardware.pass(86_400_000_000_000);
        assert_eq!(hardware.read(0, 0), TSC.hz * 86_401);
    }

    #[test]
    fn each_cpu_reads_with_its_own_error() {
        let narrow = Oscillator { hz: 1_000_000_000, bits: 32 };
        let mut hardware = Hardware::new(2, &[(narrow, 0xffff_fff0)]);
        assert!(hardware.agrees());
        hardware.shift(0, 1, -20);
        assert!(!hardware.agrees());
        hardware.pass(0x20);
        assert_eq!((hardware.read(0, 0), hardware.read(0, 1)), (0x10, 0xffff_fffc));
        hardware.agree();
        hardware.drift(0, 1, -1_000);
        hardware.pass(1_000_000_000);
        let behind = hardware.read(0, 0).wrapping_sub(hardware.read(0, 1));
        assert_eq!(behind, 1_000, "a part in a million, in a second of 10^9 cycles");
    }

    #[test]
    fn an_unpowered_counter_stands_still() {
        let mut hardware = Hardware::new(1, &[(TSC, 7), (TSC, 7)]);
        hardware.pass_with(1_000_000_000, |counter| counter == 1);
        assert_eq!((hardware.read(0, 0), hardware.read(1, 0)), (7, 7 + TSC.hz));
        assert_eq!(hardware.now_ns(), 1_000_000_000);
    }
}
