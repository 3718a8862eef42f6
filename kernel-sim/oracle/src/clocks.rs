//! The clocks of a kernel: what each must show, and what an observer may see of them.

use crate::event::{Event, Source};
use crate::fine::floor;
use crate::published::{Motion, NANOS, motion};
use crate::state::{Config, State, Trust};
use crate::watchdog::Watchdog;

/// What the oracle knows of a kernel's clocks.
#[derive(Clone, Debug)]
pub struct Clocks {
    /// Every state that the events and reads so far allow; never empty.
    states: Vec<State>,
    /// The latest reading of each clock, by id.
    seen: [Option<Seen>; 12],
    watchdog: Watchdog,
    /// What the observers' time namespace adds to MONOTONIC and to BOOTTIME, in nanoseconds.
    namespace: (i128, i128),
}

/// A reading that somebody has made, and of which everybody may have heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    counter: u64,
    nanos: i128,
}

/// A reading that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// The clock is not served now: the call should have fallen back.
    NotServed,
    /// The time is another, in nanoseconds since the clock's zero.
    Value {
        /// The earliest that is allowed.
        low: i128,
        /// The latest that is allowed.
        high: i128,
    },
    /// The clock went back, in nanoseconds since its zero.
    Backwards {
        /// What was seen before.
        seen: i128,
        /// By whom: what their counter showed.
        counter: u64,
        /// By how much the counter's own movement excuses it.
        allowed: i128,
    },
}

impl Disagreement {
    /// The same in a namespace that adds so much to the clock.
    fn shown_with(self, added: i128) -> Self {
        match self {
            Self::NotServed => self,
            Self::Value { low, high } => Self::Value { low: low + added, high: high + added },
            Self::Backwards { seen, counter, allowed } => {
                Self::Backwards { seen: seen + added, counter, allowed }
            }
        }
    }
}

impl Clocks {
    /// A kernel that starts with REALTIME at `realtime_secs` and all other clocks at 0, while the
    /// counter shows `now`.
    #[must_use]
    pub fn new(source: Source, now: u64, realtime_secs: i64, config: Config) -> Self {
        Self {
            states: vec![State::new(source, now, realtime_secs, config)],
            seen: [None; 12],
            watchdog: Watchdog::default(),
            namespace: (0, 0),
        }
    }

    /// Something happens to the kernel. Whether it has to accept it.
    pub fn happens(&mut self, event: Event) -> bool {
        let source = self.first().source;
        if event.is_out_of_range() || !self.watchdog.allows(&event, &source) {
            return false;
        }
        if let Event::Namespace { monotonic, boottime } = event {
            self.namespace = (monotonic, boottime);
        }
        let before = self.first();
        let (wall, tai) = (before.offset(0), before.offset(11));
        let after = self.states.iter().filter_map(|state| state.after(event).ok());
        let after: Vec<State> = after.flatten().collect();
        if after.is_empty() {
            return false;
        }
        self.states = after;
        // One state is enough in almost all cases; equal ones tell nothing apart.
        self.states.dedup();
        self.forget(event, wall, tai);
        self.watchdog.note(&event, &source);
        true
    }

    /// Readings from which an event releases the clocks.
    fn forget(&mut self, event: Event, wall: i128, tai: i128) {
        let is_set = matches!(event, Event::Set { .. } | Event::Inject { .. });
        let now = *self.first();
        // A leap second moves REALTIME back; a new TAI offset moves TAI.
        if is_set || now.offset(0) < wall {
            self.seen[0] = None;
            self.seen[5] = None;
        }
        if is_set || now.offset(11) < tai {
            self.seen[11] = None;
        }
        let is_new_counter =
            matches!(event, Event::Rebase { .. } | Event::Resume { .. } | Event::Switch { .. });
        let delay = now.delay_cycles();
        for clock in [0, 1, 4, 7, 11] {
            let Some(Some(seen)) = self.seen.get(place(clock)).copied() else {
                continue;
            };
            let seen = if is_new_counter {
                // Whoever was ahead of the CPU that ticks has nothing to compare with any more.
                Seen { counter: now.last, nanos: seen.nanos.min(self.line(clock, 0).0) }
            } else {
                match motion(now.last, seen.counter, now.source.scale.mask) {
                    // It had gone further than the kernel promises that anybody can, before the
                    // rate changed: there the new line holds.
                    Motion::Ahead(cycles) if cycles > delay => {
                        Seen { nanos: seen.nanos.min(self.line(clock, cycles).0), ..seen }
                    }
                    _ => continue,
                }
            };
            if let Some(place) = self.seen.get_mut(place(clock)) {
                *place = Some(seen);
            }
        }
    }

    /// Whether programs can read the precise clocks now.
    #[must_use]
    pub fn serves_precise(&self) -> bool {
        let state = self.first();
        state.trust == Trust::Running && state.source.is_readable
    }

    /// Resolution of the precise clocks in nanoseconds.
    #[must_use]
    pub fn precise_resolution(&self) -> u32 {
        let state = self.first();
        if state.high_resolution { 1 } else { state.tick_ns() }
    }

    /// Resolution of the coarse clocks in nanoseconds.
    #[must_use]
    pub fn coarse_resolution(&self) -> u32 {
        self.first().tick_ns()
    }

    /// Minutes west and type of DST.
    #[must_use]
    pub fn timezone(&self) -> (i32, i32) {
        self.first().timezone
    }

    /// The counter at the last update, and its width.
    #[must_use]
    pub fn last(&self) -> (u64, u64) {
        (self.first().last, self.first().source.scale.mask)
    }

    /// Somebody whose counter showed `counter` read `clock` and got from `low` to `high`
    /// nanoseconds (both the same, but for calls that drop digits).
    ///
    /// # Errors
    /// Why that cannot be.
    pub fn read(
        &mut self,
        clock: i32,
        counter: u64,
        low: i128,
        high: i128,
    ) -> Result<(), Disagreement> {
        let is_coarse = clock == 5 || clock == 6;
        if !is_coarse && !self.serves_precise() {
            return Err(Disagreement::NotServed);
        }
        let cycles = if is_coarse { 0 } else { self.cycles(counter) };
        let added = self.added(clock);
        let (low, high) = (low - added, high - added);
        self.agree(clock, cycles, low, high)
            .and_then(|()| self.observe(clock, counter, low, high))
            .map_err(|disagreement| disagreement.shown_with(added))
    }

    /// What the observers' namespace adds to `clock`.
    fn added(&self, clock: i32) -> i128 {
        match clock {
            1 | 4 | 6 => self.namespace.0,
            7 => self.namespace.1,
            _ => 0,
        }
    }

    /// Somebody read the seconds of REALTIME as of the last update (`time`).
    ///
    /// # Errors
    /// Why that cannot be.
    pub fn read_seconds(&mut self, secs: i64) -> Result<(), Disagreement> {
        let low = i128::from(secs) * NANOS;
        self.agree(5, 0, low, low + NANOS - 1)
    }

    /// The nanoseconds that `clock` may show at `counter`: smallest and largest.
    #[must_use]
    pub fn due(&self, clock: i32, counter: u64) -> (i128, i128) {
        let is_coarse = clock == 5 || clock == 6;
        let (low, high) = self.line(clock, if is_coarse { 0 } else { self.cycles(counter) });
        let added = self.added(clock);
        (low + added, high + added)
    }

    /// Keeps the states that the reading allows.
    fn agree(
        &mut self,
        clock: i32,
        cycles: u64,
        low: i128,
        high: i128,
    ) -> Result<(), Disagreement> {
        let agrees = |state: &mut State| {
            if clock == 4 {
                let due = floor(state.raw(cycles));
                return low <= due && due <= high;
            }
            let offset = state.offset(clock);
            state.saw(cycles, low - offset, high - offset)
        };
        if let [state] = self.states.as_mut_slice() {
            if agrees(state) {
                return Ok(());
            }
        } else {
            let mut left = self.states.clone();
            left.retain_mut(agrees);
            if !left.is_empty() {
                self.states = left;
                return Ok(());
            }
        }
        let (low, high) = self.line(clock, cycles);
        Err(Disagreement::Value { low, high })
    }

    /// Compares with what was seen before.
    fn observe(
        &mut self,
        clock: i32,
        counter: u64,
        low: i128,
        high: i128,
    ) -> Result<(), Disagreement> {
        let is_coarse = clock == 5 || clock == 6;
        let state = *self.first();
        let mask = state.source.scale.mask;
        let place = place(clock);
        let Some(slot) = self.seen.get(place).copied() else {
            return Ok(());
        };
        if let Some(seen) = slot
            && high < seen.nanos
        {
            let allowed = if is_coarse {
                0
            } else {
                match motion(counter, seen.counter, mask) {
                    // This CPU's counter is behind that of the one which saw it.
                    Motion::Ahead(cycles @ 1..) => state.at_most(cycles),
                    _ => 0,
                }
            };
            if high < seen.nanos - allowed {
                return Err(Disagreement::Backwards {
                    seen: seen.nanos,
                    counter: seen.counter,
                    allowed,
                });
            }
            return Ok(());
        }
        if let Some(slot) = self.seen.get_mut(place)
            && slot.is_none_or(|seen| seen.nanos <= low)
        {
            *slot = Some(Seen { counter, nanos: low });
        }
        Ok(())
    }

    /// Smallest and largest nanoseconds that `clock` may show `cycles` after the last update.
    fn line(&self, clock: i32, cycles: u64) -> (i128, i128) {
        let mut bounds = (i128::MAX, i128::MIN);
        for state in &self.states {
            let (low, high) = if clock == 4 {
                (state.raw(cycles), state.raw(cycles))
            } else {
                state.monotonic(cycles)
            };
            let offset = state.offset(clock);
            bounds.0 = bounds.0.min(floor(low) + offset);
            bounds.1 = bounds.1.max(floor(high) + offset);
        }
        bounds
    }

    fn cycles(&self, counter: u64) -> u64 {
        let state = self.first();
        match motion(state.last, counter, state.source.scale.mask) {
            Motion::Ahead(cycles) => cycles,
            Motion::Behind => 0,
        }
    }

    /// Any of the states, for what they all have in common.
    fn first(&self) -> &State {
        &self.states[0]
    }
}

/// Where a clock's last reading is kept; past the end for an id that no clock has.
fn place(clock: i32) -> usize {
    usize::try_from(clock).unwrap_or(usize::MAX)
}
