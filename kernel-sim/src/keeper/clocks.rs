//! All clocks of the page from the two of the host that are followed.
//!
//! On Linux REALTIME, BOOTTIME and TAI are MONOTONIC plus a whole number of nanoseconds that only
//! changes when a clock is set, at a leap second, or when the machine slept. So MONOTONIC and
//! MONOTONIC_RAW are followed, the three differences are measured once and kept until a
//! measurement excludes them, and a difference that changes is a step of its clock.

use datapage::{ClockId, ClockMode, PageValues};
use libc::c_int;

use crate::host::{Bounds, HostClocks, Pair, counter_mode};
use crate::keeper::follow::{Bend, Follower, NotContinued};
use crate::keeper::observe::was_interrupted;
use crate::keeper::shown::Shown;
use crate::keeper::ticks::tick_nanos;

pub(super) const NANOS_PER_SEC: i128 = 1_000_000_000;

/// By how much REALTIME, its coarse twin, TAI, `gettimeofday` and `time` are moved away from the
/// host's, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shift(pub i128);

/// The host's clocks as a page shows them.
#[derive(Clone, Debug)]
pub struct Clocks {
    host: HostClocks,
    shift: Shift,
    steered: Follower,
    raw: Follower,
    realtime: Difference,
    boottime: Difference,
    /// TAI - REALTIME, in nanoseconds; whole seconds.
    tai: i128,
    hrtimer_res: u32,
    coarse_res: u32,
    mode: ClockMode,
}

/// The difference between a clock and MONOTONIC, since it last changed.
#[derive(Clone, Copy, Debug)]
struct Difference {
    clock: c_int,
    /// What readers see: fixed, because a refinement would be a step.
    nanos: i128,
    /// What all measurements since then allow.
    bounds: Bounds,
}

/// Pairs in a series at a tick: enough for the fastest few to be undisturbed, about a microsecond.
const SERIES: usize = 12;

/// Tries at a series that is not interrupted.
const TRIES: u32 = 4;

/// Rounds for a difference that is not known yet, and for one that is checked.
const ROUNDS_NEW: u32 = 64;
const ROUNDS_CHECK: u32 = 3;

/// A first look at the clocks; a second one some time later gives their rates.
#[derive(Clone, Debug)]
pub struct FirstLook {
    steered: [Pair; SERIES],
    raw: [Pair; SERIES],
}

impl FirstLook {
    /// Looks at the clocks.
    #[must_use]
    pub fn new(host: &HostClocks) -> Self {
        Self { steered: series(host, libc::CLOCK_MONOTONIC), raw: raw_series(host) }
    }
}

/// The steered and the raw line, bent for one update.
#[derive(Clone, Copy, Debug)]
pub struct Bends {
    steered: Bend,
    raw: Bend,
    cycle: u64,
}

impl Bends {
    /// Whether the update can still be published when the counter is at `now`.
    #[must_use]
    pub fn in_time(&self, now: u64) -> bool {
        let until = |deadline: u64| deadline.wrapping_sub(now).cast_signed() > 0;
        until(self.steered.deadline) && until(self.raw.deadline)
    }
}

impl Clocks {
    /// The clocks, from a first look that lies some milliseconds back and a second one now.
    ///
    /// `None` if they were set in between; another try may do.
    #[must_use]
    pub fn new(host: HostClocks, first: &FirstLook, shift: Shift, hz: u32) -> Option<Self> {
        let second = FirstLook::new(&host);
        let realtime = Difference::new(&host, libc::CLOCK_REALTIME)?;
        Some(Self {
            host,
            shift,
            steered: Follower::new(&first.steered, &second.steered)?,
            raw: Follower::new(&first.raw, &second.raw)?,
            realtime,
            boottime: Difference::new(&host, libc::CLOCK_BOOTTIME)?,
            tai: tai_difference(&host)?,
            hrtimer_res: host.resolution(libc::CLOCK_MONOTONIC),
            coarse_res: tick_nanos(hz),
            mode: counter_mode(),
        })
    }

    /// The clocks that a page of a keeper before this one shows, without a look at their rates
    /// first: nothing to wait for, on a machine where a wait may take long.
    ///
    /// # Errors
    /// That the look was disturbed, or that the host's clocks are a step from those of the page.
    pub(crate) fn continued(
        host: HostClocks,
        shown: &Shown,
        shift: Shift,
        hz: u32,
    ) -> Result<Self, NotContinued> {
        let (steered, raw) = (series(&host, libc::CLOCK_MONOTONIC), raw_series(&host));
        let steered = Follower::continued(shown.monotonic, &steered)?;
        let raw = Follower::continued(shown.raw, &raw)?;
        let difference = |clock| Difference::new(&host, clock).ok_or(NotContinued::Disturbed);
        Ok(Self {
            host,
            shift,
            steered,
            raw,
            realtime: difference(libc::CLOCK_REALTIME)?.or_as_shown(shown.realtime - shift.0),
            boottime: difference(libc::CLOCK_BOOTTIME)?.or_as_shown(shown.boottime),
            tai: tai_difference(&host).ok_or(NotContinued::Disturbed)?,
            hrtimer_res: host.resolution(libc::CLOCK_MONOTONIC),
            coarse_res: tick_nanos(hz),
            mode: shown.mode,
        })
    }

    /// Takes in what the host's clocks say now.
    pub fn update(&mut self) {
        self.steered.update(&series(&self.host, libc::CLOCK_MONOTONIC));
        self.raw.update(&raw_series(&self.host));
        self.boottime.update(&self.host);
        let before = self.realtime.nanos;
        self.realtime.update(&self.host);
        if let Some(tai) = tai_difference(&self.host) {
            self.tai = tai;
        }
        if before != self.realtime.nanos {
            // Set, or a leap second, perhaps between the two measurements: REALTIME again, so that
            // both are of the time after it.
            self.realtime.update(&self.host);
        }
    }

    /// The lines from now on.
    #[must_use]
    pub fn bend(&self) -> Bends {
        let cycle = self.host.counter();
        Bends { steered: self.steered.bend(cycle), raw: self.raw.bend(cycle), cycle }
    }

    /// What the page shows with these lines.
    #[must_use]
    pub fn values(&self, bends: &Bends) -> PageValues {
        let (steered, raw) = (&bends.steered.line, &bends.raw.line);
        let realtime = self.realtime.nanos + self.shift.0;
        let mut values = PageValues {
            clock_mode: self.mode,
            cycle_last: bends.cycle,
            steered: steered.scale(),
            raw: raw.scale(),
            hrtimer_res: self.hrtimer_res,
            coarse_res: self.coarse_res,
            ..PageValues::default()
        };
        values.set(ClockId::REALTIME, steered.precise(realtime));
        values.set(ClockId::MONOTONIC, steered.precise(0));
        values.set(ClockId::BOOTTIME, steered.precise(self.boottime.nanos));
        values.set(ClockId::TAI, steered.precise(realtime + self.tai));
        values.set(ClockId::MONOTONIC_RAW, raw.precise(0));
        values.set(ClockId::REALTIME_COARSE, steered.coarse(realtime));
        values.set(ClockId::MONOTONIC_COARSE, steered.coarse(0));
        values
    }

    /// Notes that readers see these lines now.
    pub fn show(&mut self, bends: &Bends) {
        self.steered.show(bends.steered.line);
        self.raw.show(bends.raw.line);
    }

    /// The follower of MONOTONIC, for those who want to see how well it follows.
    #[must_use]
    pub fn steered(&self) -> &Follower {
        &self.steered
    }
}

impl Difference {
    fn new(host: &HostClocks, clock: c_int) -> Option<Self> {
        let bounds = host.difference(clock, libc::CLOCK_MONOTONIC, ROUNDS_NEW)?;
        Some(Self { clock, nanos: bounds.middle(), bounds })
    }

    /// The difference that readers already see, where it is one that was measured just now: the
    /// middle of new bounds would be a step of some nanoseconds.
    fn or_as_shown(self, shown: i128) -> Self {
        let holds = self.bounds.and(Bounds { low: shown, high: shown }).is_some();
        if holds { Self { nanos: shown, ..self } } else { self }
    }

    fn update(&mut self, host: &HostClocks) {
        let seen = host.difference(self.clock, libc::CLOCK_MONOTONIC, ROUNDS_CHECK);
        match seen.and_then(|seen| self.bounds.and(seen)) {
            Some(bounds) => self.bounds = bounds,
            None => *self = Self::new(host, self.clock).unwrap_or(*self),
        }
    }
}

/// TAI - REALTIME: whole seconds by definition, so one measurement is exact.
fn tai_difference(host: &HostClocks) -> Option<i128> {
    let bounds = host.difference(libc::CLOCK_TAI, libc::CLOCK_REALTIME, ROUNDS_CHECK)?;
    let half = NANOS_PER_SEC / 2;
    Some((bounds.middle() + half).div_euclid(NANOS_PER_SEC) * NANOS_PER_SEC)
}

fn raw_series(host: &HostClocks) -> [Pair; SERIES] {
    series(host, libc::CLOCK_MONOTONIC_RAW)
}

fn series(host: &HostClocks, clock: c_int) -> [Pair; SERIES] {
    let take = || std::array::from_fn(|_| host.pair(clock));
    let mut series = take();
    for _ in 1..TRIES {
        if !was_interrupted(&series) {
            break;
        }
        series = take();
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keeper::pretended::{Host, page_with, shown};

    const PRECISE: [ClockId; 5] = [
        ClockId::REALTIME,
        ClockId::MONOTONIC,
        ClockId::MONOTONIC_RAW,
        ClockId::BOOTTIME,
        ClockId::TAI,
    ];

    /// Asserts that all clocks are the host's, moved as they were told, within what the fastest read
    /// leaves open.
    fn assert_followed(host: &Host, clocks: &mut Clocks, moved_secs: i128) {
        let bends = clocks.bend();
        let values = clocks.values(&bends);
        clocks.show(&bends);
        for clock in PRECISE {
            let moved = match clock {
                ClockId::REALTIME | ClockId::TAI => moved_secs * NANOS_PER_SEC,
                _ => 0,
            };
            let theirs = shown(&host.values, clock, bends.cycle) + moved;
            let off = shown(&values, clock, bends.cycle) - theirs;
            assert!(off.abs() < 1_000, "{clock:?} is off by {off} ns");
        }
        for (coarse, precise) in [
            (ClockId::REALTIME_COARSE, ClockId::REALTIME),
            (ClockId::MONOTONIC_COARSE, ClockId::MONOTONIC),
        ] {
            let instant = values.get(coarse).unwrap();
            let coarse = i128::from(instant.secs) * NANOS_PER_SEC + i128::from(instant.nanos);
            assert_eq!(coarse, shown(&values, precise, bends.cycle), "as of the tick");
        }
    }

    #[test]
    fn a_set_a_leap_and_a_tai_change_are_steps_at_the_next_tick() {
        for moved in [0, -1_000_000_000, 400_000_000] {
            let mut host = Host::new();
            let mut clocks = host.follow(Shift(moved * NANOS_PER_SEC));
            assert_followed(&host, &mut clocks, moved);
            for jumps in [
                // Set forward, and back behind zero.
                [(ClockId::REALTIME, 3_600), (ClockId::TAI, 3_600)],
                [(ClockId::REALTIME, -1_700_003_605), (ClockId::TAI, -1_700_003_605)],
                [(ClockId::REALTIME, 1_700_000_000), (ClockId::TAI, 1_700_000_000)],
                // A leap second is inserted: REALTIME repeats a second, TAI goes on.
                [(ClockId::REALTIME, -1), (ClockId::TAI, 0)],
                // Somebody corrects the distance between the two.
                [(ClockId::REALTIME, 0), (ClockId::TAI, 3)],
                // The machine slept.
                [(ClockId::REALTIME, 77), (ClockId::BOOTTIME, 77)],
            ] {
                host.jump(&jumps);
                clocks.update();
                assert_followed(&host, &mut clocks, moved);
            }
        }
    }

    /// A look at the host's clocks that was not disturbed.
    fn look_at(host: HostClocks, shown: &Shown, shift: Shift) -> Result<Clocks, NotContinued> {
        let look = || Clocks::continued(host, shown, shift, 250);
        let undisturbed = |look: &Result<_, _>| !matches!(look, Err(NotContinued::Disturbed));
        (0..10).map(|_| look()).find(undisturbed).expect("nobody sets these clocks")
    }

    #[test]
    fn a_keeper_that_takes_over_goes_on_at_once_and_shows_no_step() {
        for shift in [Shift::default(), Shift(-77 * NANOS_PER_SEC)] {
            let host = Host::new();
            let first = host.follow(shift);
            let old = first.values(&first.bend());
            let page = page_with(&old);

            let before = Shown::on(page.page(), host.clocks().counter()).unwrap();
            let mut second = look_at(host.clocks(), &before, shift).unwrap();
            let bends = second.bend();
            let new = second.values(&bends);
            for clock in PRECISE {
                for counter in [bends.cycle, bends.cycle + 10_000] {
                    let step = shown(&new, clock, counter) - shown(&old, clock, counter);
                    assert!((0..=1).contains(&step), "{clock:?} steps by {step} ns");
                }
            }
            // The rate of its first tick is the page's, from then on its own.
            std::thread::sleep(std::time::Duration::from_millis(4));
            second.update();
            assert_followed(&host, &mut second, shift.0 / NANOS_PER_SEC);
        }
    }

    #[test]
    fn a_page_that_is_a_step_from_the_host_is_told_from_a_look_that_was_disturbed() {
        let host = Host::new();
        let first = host.follow(Shift::default());
        for clock in [ClockId::MONOTONIC, ClockId::MONOTONIC_RAW] {
            let mut values = first.values(&first.bend());
            let mut instant = values.get(clock).unwrap();
            instant.secs += 1;
            values.set(clock, instant);
            let page = page_with(&values);
            let shown = Shown::on(page.page(), host.clocks().counter()).unwrap();
            let why = look_at(host.clocks(), &shown, Shift::default()).unwrap_err();
            assert_eq!(why, NotContinued::Step, "{clock:?}");
        }
    }
}
