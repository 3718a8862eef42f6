//! All clocks of the page from the two of the host that are followed.
//!
//! On Linux REALTIME, BOOTTIME and TAI are MONOTONIC plus a whole number of nanoseconds that only
//! changes when a clock is set, at a leap second, or when the machine slept. So MONOTONIC and
//! MONOTONIC_RAW are followed, the three differences are measured once and kept until a
//! measurement excludes them, and a difference that changes is a step of its clock.

use std::cell::Cell;

use datapage::cycles::MAX_SHIFT;
use datapage::{ClockId, ClockMode, PageValues, Scale};
use libc::c_int;

use crate::host::{Bounds, HostClocks, Pair, counter_mode};
use crate::keeper::Line;
use crate::keeper::follow::{Bend, Follower, NotContinued, was_interrupted};

const NANOS_PER_SEC: i128 = 1_000_000_000;

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

/// The clocks as the page of a keeper before this one shows them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    mode: ClockMode,
    monotonic: Line,
    raw: Line,
    /// REALTIME - MONOTONIC as readers see it, in nanoseconds.
    realtime: i128,
    /// BOOTTIME - MONOTONIC, likewise.
    boottime: i128,
}

impl Shown {
    /// What a page shows from `now` on.
    ///
    /// `None` if it was left in the middle of an update, or does not show this counter's clocks.
    /// While nobody writes it, another look finds the same.
    pub(crate) fn on(page: &datapage::Page, now: u64) -> Option<Self> {
        let mode = counter_mode();
        let line = |clock| shown_line(page, mode, clock, now);
        let monotonic = line(ClockId::MONOTONIC)?;
        let ahead = |clock| {
            let other = line(clock)?;
            Some((other.at - monotonic.at) >> monotonic.shift)
        };
        Some(Self {
            mode,
            monotonic,
            raw: line(ClockId::MONOTONIC_RAW)?,
            realtime: ahead(ClockId::REALTIME)?,
            boottime: ahead(ClockId::BOOTTIME)?,
        })
    }
}

/// The line on which a page in this mode shows a clock, from `now` on.
fn shown_line(page: &datapage::Page, mode: ClockMode, clock: ClockId, now: u64) -> Option<Line> {
    let found = Cell::new(None);
    let read = page.precise(clock.slot()?, |mode| {
        found.set(Some(mode));
        Some(now)
    })?;
    if found.get() != Some(mode) || read.shift > MAX_SHIFT {
        return None;
    }
    let secs = i128::from(read.sec.cast_signed()) * (NANOS_PER_SEC << read.shift);
    let since = i128::from(read.elapsed()) * i128::from(read.mult);
    let at = secs + i128::from(read.nsec) + since;
    Some(Line { cycle: now, at, mult: read.mult, shift: read.shift })
}

/// Whether a page shows clocks that are not made from the counter; not of one that was left in the
/// middle of an update, which shows none.
#[must_use]
pub(crate) fn is_without_counter(page: &datapage::Page) -> bool {
    let found = Cell::new(None);
    let slot = ClockId::MONOTONIC.slot();
    // Without a counter nothing is read, but for the mode.
    let _ = slot.and_then(|slot| {
        page.precise(slot, |mode| {
            found.set(Some(mode));
            None
        })
    });
    matches!(found.get(), Some(ClockMode::NONE | ClockMode::MEMORY))
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

/// Nanoseconds of a tick, rounded as Linux rounds `TICK_NSEC`.
#[must_use]
pub(crate) fn tick_nanos(hz: u32) -> u32 {
    (1_000_000_000 + hz / 2) / hz.max(1)
}

/// What a page shows when the counter is no clock: the host's own values as of this tick, in
/// nanoseconds as they are, and the precise clocks left to the kernel.
#[must_use]
pub(crate) fn values_without_counter(host: &HostClocks, hz: u32) -> PageValues {
    let mut values = PageValues {
        clock_mode: ClockMode::NONE,
        hrtimer_res: host.resolution(libc::CLOCK_MONOTONIC),
        coarse_res: tick_nanos(hz),
        ..PageValues::default()
    };
    fill(&mut values, host, 0);
    values
}

/// What a page shows when the counter is no clock and REALTIME is moved: the kernel's own answer
/// would be another time, so the clocks stand still between ticks, on a counter of the page's own
/// that counts nanoseconds.
#[must_use]
pub(crate) fn values_by_tick(host: &HostClocks, shift: Shift, hz: u32) -> PageValues {
    let counter = u64::try_from(host.nanos(libc::CLOCK_MONOTONIC)).unwrap_or(0);
    let nanoseconds = Scale { mask: u64::MAX, mult: 1, shift: 0 };
    let mut values = PageValues {
        clock_mode: ClockMode::MEMORY,
        cycle_last: counter,
        steered: nanoseconds,
        raw: nanoseconds,
        hrtimer_res: tick_nanos(hz),
        coarse_res: tick_nanos(hz),
        ..PageValues::default()
    };
    fill(&mut values, host, shift.0);
    values
}

fn fill(values: &mut PageValues, host: &HostClocks, shift: i128) {
    let moved = [ClockId::REALTIME, ClockId::REALTIME_COARSE, ClockId::TAI];
    let all = (0..12).map(ClockId).filter(|clock| clock.slot().is_some());
    for clock in all {
        let shift = if moved.contains(&clock) { shift } else { 0 };
        let line = Line { cycle: 0, at: host.nanos(clock.0), mult: 0, shift: 0 };
        values.set(clock, line.coarse(shift));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::MappedImage;
    use datapage::{Features, Instant};

    /// A host whose clocks the test sets: another page, on this machine's counter.
    struct Host {
        mapped: MappedImage,
        values: PageValues,
    }

    const SECOND: u64 = 1_000_000_000 << 30;

    impl Host {
        fn new() -> Self {
            let mapped = MappedImage::new(&linker::SYSCALL).unwrap();
            // Half a nanosecond a cycle, and a little less for RAW.
            let scale = |mult| Scale { mask: u64::MAX, mult, shift: 30 };
            let mut values = PageValues {
                clock_mode: ClockMode::COUNTER,
                cycle_last: HostClocks::new().unwrap().counter(),
                steered: scale(1 << 29),
                raw: scale((1 << 29) - 5_000),
                ..PageValues::default()
            };
            let at = |secs, nanos| Instant { secs, nanos };
            values.set(ClockId::REALTIME, at(1_700_000_000, SECOND / 3));
            values.set(ClockId::MONOTONIC, at(5_000, SECOND / 7));
            values.set(ClockId::MONOTONIC_RAW, at(4_999, SECOND / 5));
            values.set(ClockId::BOOTTIME, at(6_000, SECOND / 7));
            values.set(ClockId::TAI, at(1_700_000_037, SECOND / 3));
            let mut host = Self { mapped, values };
            host.mapped.split().0.format(Features::empty(), 4096);
            host.publish();
            host
        }

        fn publish(&mut self) {
            self.mapped.split().0.publish(&self.values.validate().unwrap());
        }

        /// Moves clocks by whole seconds.
        fn jump(&mut self, jumps: &[(ClockId, i64)]) {
            for &(clock, seconds) in jumps {
                let mut instant = self.values.get(clock).unwrap();
                instant.secs += seconds;
                self.values.set(clock, instant);
            }
            self.publish();
        }

        fn clocks(&self) -> HostClocks {
            HostClocks::of(&self.mapped.functions()).unwrap()
        }

        fn follow(&self, shift: Shift) -> Clocks {
            let host = self.clocks();
            (0..10)
                .find_map(|_| {
                    let first = FirstLook::new(&host);
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    Clocks::new(host, &first, shift, 250)
                })
                .expect("nobody sets these clocks")
        }
    }

    /// What a page with these values says at a counter value, in nanoseconds.
    fn shown(values: &PageValues, clock: ClockId, counter: u64) -> i128 {
        let raw = clock == ClockId::MONOTONIC_RAW;
        let Scale { mult, shift, .. } = if raw { values.raw } else { values.steered };
        let instant = values.get(clock).unwrap();
        let at = i128::from(instant.secs) * (1_000_000_000 << shift) + i128::from(instant.nanos);
        Line { cycle: values.cycle_last, at, mult, shift }.at(counter) >> shift
    }

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

    /// A page that shows these values.
    fn page_with(values: &PageValues) -> MappedImage {
        let mut page = MappedImage::new(&linker::SYSCALL).unwrap();
        let (mut writer, _) = page.split();
        writer.format(Features::empty(), 4096);
        writer.publish(&values.validate().unwrap());
        page
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
    fn a_page_that_does_not_show_the_counters_clocks_is_not_gone_on_from() {
        let clocks = HostClocks::new().unwrap();
        let shown = |values: &PageValues| Shown::on(page_with(values).page(), clocks.counter());
        assert!(shown(&values_without_counter(&clocks, 250)).is_none(), "mode NONE");
        assert!(shown(&values_by_tick(&clocks, Shift::default(), 250)).is_none(), "mode MEMORY");
        let mut late = Host::new().values;
        late.clock_mode = counter_mode();
        let late = shown(&late).unwrap();
        let continued = Clocks::continued(clocks, &late, Shift::default(), 250);
        assert!(continued.is_err(), "another time and rate than this host's");
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

    #[test]
    fn without_a_counter_the_values_are_the_hosts_as_of_the_tick() {
        let host = HostClocks::new().unwrap();
        let before = host.nanos(libc::CLOCK_REALTIME);
        let none = values_without_counter(&host, 250);
        let moved = values_by_tick(&host, Shift(-5 * NANOS_PER_SEC), 100);
        let after = host.nanos(libc::CLOCK_REALTIME);
        assert_eq!((none.clock_mode, none.coarse_res), (ClockMode::NONE, 4_000_000));
        assert_eq!((moved.clock_mode, moved.hrtimer_res), (ClockMode::MEMORY, 10_000_000));
        let realtime = shown(&none, ClockId::REALTIME, none.cycle_last);
        assert!((before..=after).contains(&realtime));
        let realtime = shown(&moved, ClockId::REALTIME, moved.cycle_last) + 5 * NANOS_PER_SEC;
        assert!((before..=after).contains(&realtime));
        let boottime = shown(&moved, ClockId::BOOTTIME, moved.cycle_last);
        assert!((0..1_000_000_000).contains(&(host.nanos(libc::CLOCK_BOOTTIME) - boottime)));
    }

    #[test]
    fn a_counter_that_is_behind_the_page_shows_its_base() {
        let host = Host::new();
        let line = |now| {
            let mode = ClockMode::COUNTER;
            shown_line(host.mapped.page(), mode, ClockId::MONOTONIC, now).unwrap()
        };
        let last = host.values.cycle_last;
        let base = line(last).at;
        assert_eq!(base, 5_000 * i128::from(SECOND) + i128::from(SECOND / 7));
        assert_eq!(line(last + 1_000).at, base + (1_000 << 29));
        for behind in [1, 1_000_000, 1 << 62] {
            assert_eq!(line(last.wrapping_sub(behind)).at, base, "{behind}");
        }
    }
}
