//! One possible state of a kernel's clocks, and what each event makes of it.
//!
//! MONOTONIC is what the rules move; REALTIME, BOOTTIME and TAI are whole nanoseconds away from it,
//! and MONOTONIC_RAW is exact. What is not known of MONOTONIC is in [`Parts`].
//!
//! An event may depend on what is not known: has a second begun, when the clock is within a
//! fraction of a nanosecond of it? Then each possibility becomes a state of its own, and the next
//! reads leave the true one.

use crate::event::{DATES, Event, Source};
use crate::fine::{FINE_BITS, Fine, floor};
use crate::ntp::Ntp;
use crate::published::{Motion, NANOS, motion};
use crate::steering::{Parts, Wanted, threshold};
use crate::watchdog::trusted_ns;

const DAY: i64 = 86_400;

/// Whether the counter's distance from the last update means anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// It does.
    Running,
    /// It may have gone around. The clocks are ahead of the moment at which it was withdrawn by so
    /// many nanoseconds.
    Withdrawn { ahead: i128 },
    /// The machine sleeps.
    Suspended,
}

/// A leap second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leap {
    None,
    /// REALTIME moves by `-seconds` when it begins the second `at`.
    Due {
        seconds: i8,
        at: i64,
    },
    /// It was made, and has to be withdrawn before there can be another.
    Made,
}

/// What has to be known of a kernel from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Ticks a second.
    pub hz: u32,
    /// Within how many nanoseconds of the counter value that comes with an event the kernel
    /// publishes its outcome.
    pub publication_delay_ns: u32,
}

/// Where the clocks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) source: Source,
    pub(crate) trust: Trust,
    /// The counter at the last update.
    pub(crate) last: u64,
    /// What NTP wants MONOTONIC to be there.
    ideal: Fine,
    parts: Parts,
    raw: Fine,
    /// REALTIME - MONOTONIC in nanoseconds.
    wall: i128,
    /// BOOTTIME - MONOTONIC in nanoseconds.
    boot: i128,
    /// TAI - REALTIME in seconds.
    tai: i32,
    ntp: Ntp,
    leap: Leap,
    /// The second of REALTIME that has begun.
    second: i64,
    /// REALTIME less the persistent clock, as of the first suspend of a series.
    distance: Option<i128>,
    /// The persistent clock at the suspend, as it would read at that distance.
    asleep_since: Option<i128>,
    config: Config,
    pub(crate) high_resolution: bool,
    pub(crate) timezone: (i32, i32),
}

/// The kernel has to refuse the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

impl State {
    pub(crate) fn new(source: Source, now: u64, realtime_secs: i64, config: Config) -> Self {
        Self {
            source,
            trust: Trust::Running,
            last: now & source.scale.mask,
            ideal: 0,
            parts: Parts::exact(source.scale.mult),
            raw: 0,
            wall: i128::from(realtime_secs) * NANOS,
            boot: 0,
            tai: 0,
            ntp: Ntp::new(),
            leap: Leap::None,
            second: realtime_secs,
            distance: None,
            asleep_since: None,
            config,
            high_resolution: true,
            timezone: (0, 0),
        }
    }

    /// The states that `event` may lead to.
    pub(crate) fn after(self, event: Event) -> Result<Vec<Self>, Refused> {
        let running = match self.trust {
            Trust::Running => Ok(()),
            _ => Err(Refused),
        };
        match event {
            Event::Tick { now } => {
                let moves = motion(self.last, now, self.source.scale.mask);
                if running.is_err() || matches!(moves, Motion::Behind | Motion::Ahead(0)) {
                    return Ok(vec![self]);
                }
                Ok(steered(self.forward(now)))
            }
            Event::Timezone { minutes_west, dst_time } => {
                Ok(vec![Self { timezone: (minutes_west, dst_time), ..self }])
            }
            Event::Tai { secs } => Ok(vec![Self { tai: secs, ..self }]),
            Event::HighResolution { on } => Ok(vec![Self { high_resolution: on, ..self }]),
            Event::Set { now, secs, nanos } => {
                running?;
                let to = i128::from(secs) * NANOS + i128::from(nanos);
                let states = self.settled(now).into_iter();
                Ok(states.map(|state| state.set_wall(to)).collect())
            }
            Event::Inject { now, nanos } => {
                running?;
                let to = |state: &Self| state.monotonic_floor() + state.wall + nanos;
                let states = self.settled(now);
                if states.iter().any(|state| !DATES.contains(&to(state))) {
                    return Err(Refused);
                }
                Ok(states.into_iter().map(|state| state.set_wall(to(&state))).collect())
            }
            Event::Frequency { now, scaled_ppm } => {
                self.disciplined(now, |ntp| ntp.frequency = scaled_ppm)
            }
            Event::TickLength { now, micros } => {
                self.disciplined(now, |ntp| ntp.tick_usec = micros)
            }
            Event::Phase { now, nanos, time_constant } => {
                self.disciplined(now, |ntp| ntp.set_phase(nanos, time_constant))
            }
            Event::Slew { now, nanos } => self.disciplined(now, |ntp| ntp.set_slew(nanos)),
            Event::Leap { now, seconds } => {
                running?;
                let mut states = steered(self.forward(now));
                for state in &mut states {
                    state.request_leap(seconds);
                }
                Ok(states)
            }
            Event::Suspend { now, persistent } => {
                running?;
                let states = self.forward(now).into_iter().flat_map(Self::by_nanosecond);
                Ok(states.flat_map(|state| state.asleep(persistent)).collect())
            }
            Event::Resume { now, persistent } => {
                if self.trust != Trust::Suspended {
                    return Err(Refused);
                }
                Ok(self.awake(now, persistent))
            }
            Event::Slept { now, nanos } => {
                running?;
                let states = self.forward(now).into_iter();
                Ok(steered(states.flat_map(|state| state.slept(nanos)).collect()))
            }
            Event::Idle { now, expected_ns } => {
                running?;
                let states = self.forward(now);
                if i128::from(expected_ns) <= trusted_ns(&self.source) {
                    return Ok(steered(states));
                }
                let states = states.into_iter().flat_map(Self::by_nanosecond);
                let withdrawn =
                    |(state, ahead)| Self { trust: Trust::Withdrawn { ahead }, ..state };
                Ok(states.flat_map(Self::stopped).map(withdrawn).collect())
            }
            Event::Rebase { now, elapsed } => {
                if self.trust == Trust::Suspended {
                    return Err(Refused);
                }
                Ok(self.rebased(now, elapsed))
            }
            Event::Switch { now, source, new_now } => {
                running?;
                let states = self.forward(now).into_iter();
                Ok(states.flat_map(|state| state.switched(source, new_now)).collect())
            }
            // A verdict alone changes nothing, and a namespace is the observers' business.
            Event::Watchdog { .. } => running.map(|()| vec![self]),
            Event::Namespace { .. } => Ok(vec![self]),
        }
    }

    fn disciplined(self, now: u64, change: impl Fn(&mut Ntp)) -> Result<Vec<Self>, Refused> {
        if self.trust != Trust::Running {
            return Err(Refused);
        }
        let mut states = self.forward(now);
        for state in &mut states {
            change(&mut state.ntp);
        }
        Ok(steered(states))
    }

    /// All clocks at the counter value `now`, at the rates in force.
    fn forward(self, now: u64) -> Vec<Self> {
        match motion(self.last, now, self.source.scale.mask) {
            Motion::Ahead(cycles @ 1..) => self.pass(cycles),
            _ => vec![self],
        }
    }

    /// `cycles` go by at the rates in force.
    fn pass(mut self, cycles: u64) -> Vec<Self> {
        let wanted = self.wanted();
        let scale = self.source.scale;
        self.last = self.last.wrapping_add(cycles) & scale.mask;
        self.ideal += i128::from(cycles) * wanted.per_cycle();
        self.parts.pass(cycles, wanted);
        self.raw += i128::from(cycles) * i128::from(scale.mult) * wanted.unit();
        self.ntp.pass(cycles, scale.mult, scale.shift);
        self.with_second()
    }

    /// The precise clocks are about to stop: they first move on by the publication delay, which is
    /// how long somebody may still see them move. With by how many nanoseconds MONOTONIC did, if it
    /// was known to the nanosecond before.
    fn stopped(self) -> Vec<(Self, i128)> {
        let before = self.monotonic_floor();
        let states = self.pass(self.delay_cycles()).into_iter().flat_map(Self::by_nanosecond);
        states.map(|state| (state, state.monotonic_floor() - before)).collect()
    }

    /// Lets the seconds of REALTIME begin that have begun.
    fn with_second(self) -> Vec<Self> {
        let (low, high) = self.monotonic(0);
        let second_of = |nanos: Fine| (floor(nanos) + self.wall).div_euclid(NANOS);
        let (first, last) = (second_of(low), second_of(high));
        if first == last {
            return vec![self.begin_second(first)];
        }
        let one = |second: i128| {
            let begin = second * NANOS - self.wall;
            self.within(begin << FINE_BITS, (begin + NANOS) << FINE_BITS).begin_second(second)
        };
        let states = (first..=last).map(one);
        states.filter(|state| !state.parts.is_empty()).collect()
    }

    fn begin_second(mut self, second: i128) -> Self {
        let second = i64::try_from(second).unwrap_or(i64::MAX);
        if second == self.second {
            return self;
        }
        self.second = second;
        if let Leap::Due { seconds, at } = self.leap
            && at <= second
        {
            self.wall -= i128::from(seconds) * NANOS;
            self.second -= i64::from(seconds);
            self.tai += i32::from(seconds);
            self.leap = Leap::Made;
        }
        self.ntp.begin_second();
        self
    }

    fn request_leap(&mut self, seconds: i8) {
        self.leap = match (seconds, self.leap) {
            (0, _) => Leap::None,
            (_, Leap::Made) => Leap::Made,
            _ => Leap::Due { seconds, at: leap_after(self.second, seconds) },
        };
    }

    /// Before a set: corrections of the clock as it was are void, and a change of rate that follows
    /// from that has moved the clocks already. By nanosecond.
    fn settled(self, now: u64) -> Vec<Self> {
        let mut states = self.forward(now);
        for state in &mut states {
            state.ntp.clear();
        }
        steered(states).into_iter().flat_map(Self::by_nanosecond).collect()
    }

    /// REALTIME is set to `to` nanoseconds where the last update was.
    fn set_wall(mut self, to: i128) -> Self {
        self.wall = to - self.monotonic_floor();
        self.second = i64::try_from(to.div_euclid(NANOS)).unwrap_or(i64::MAX);
        if let Leap::Due { seconds, .. } = self.leap {
            self.leap = Leap::Due { seconds, at: leap_after(self.second, seconds) };
        }
        self
    }

    fn asleep(mut self, persistent: Option<i128>) -> Vec<Self> {
        let since = persistent.map(|read| {
            let wall = self.monotonic_floor() + self.wall;
            let distance = wall - read;
            match self.distance {
                // Off by two seconds, one of the two clocks was set.
                Some(kept) if (-2 * NANOS..2 * NANOS).contains(&(distance - kept)) => wall - kept,
                _ => {
                    self.distance = Some(distance);
                    read
                }
            }
        });
        let asleep = |(state, delay)| Self {
            trust: Trust::Suspended,
            asleep_since: since.map(|since| since + delay),
            ..state
        };
        self.stopped().into_iter().map(asleep).collect()
    }

    fn awake(mut self, now: u64, persistent: Option<i128>) -> Vec<Self> {
        let scale = self.source.scale;
        let by_persistent = match (self.asleep_since, persistent) {
            (Some(before), Some(after)) if after >= before => Some(after - before),
            _ => None,
        };
        let is_short = by_persistent.is_none_or(|by| by <= trusted_ns(&self.source));
        let asleep = if self.source.is_nonstop && is_short {
            let cycles = match motion(self.last, now, scale.mask) {
                Motion::Ahead(cycles) => i128::from(cycles),
                Motion::Behind => 0,
            };
            (cycles * i128::from(scale.mult)).div_euclid(1 << scale.shift)
        } else {
            by_persistent.unwrap_or(0)
        };
        self.last = now & scale.mask;
        self.trust = Trust::Running;
        steered(self.slept(asleep))
    }

    fn slept(mut self, nanos: i128) -> Vec<Self> {
        self.boot += nanos;
        self.wall += nanos;
        self.with_second()
    }

    fn rebased(mut self, now: u64, elapsed: i128) -> Vec<Self> {
        let elapsed = match self.trust {
            Trust::Withdrawn { ahead } => (elapsed - ahead).max(0),
            _ => elapsed,
        };
        self.trust = Trust::Running;
        self.last = now & self.source.scale.mask;
        self.ideal += elapsed << FINE_BITS;
        self.raw += elapsed << FINE_BITS;
        steered(self.with_second())
    }

    /// Another counter goes on. Its rate may be lower, and each of the two values that were read
    /// together may be a cycle old: the clocks move forward by both, so that nobody who still reads
    /// the old one is ahead of them. Then they are rounded up to the new unit.
    fn switched(mut self, source: Source, now: u64) -> Vec<Self> {
        let old = (self.source.hz, self.wanted());
        self.source = source;
        self.last = now & source.scale.mask;
        let wanted = self.wanted();
        let unit = wanted.unit();
        let delay = i128::from(self.config.publication_delay_ns);
        let ahead = |old_mult: i64, new_mult: i64| {
            if delay == 0 {
                return 0;
            }
            let old_cycle = i128::from(old_mult) * old.1.unit();
            let new_cycle = i128::from(new_mult) * unit;
            let faster = i128::from(old.0) * old_cycle - i128::from(source.hz) * new_cycle;
            let faster = faster.clamp(0, NANOS << FINE_BITS);
            (faster * delay + NANOS - 1) / NANOS + old_cycle + new_cycle
        };
        let raw = self.raw + ahead(i64::from(old.1.mult), i64::from(source.scale.mult));
        self.raw = -(-raw).div_euclid(unit) * unit;
        let limit = self.threshold();
        self.parts.choose(wanted, limit, |old, new| {
            let ahead = ahead(old, new);
            (ahead, ahead + unit - 1)
        });
        self.with_second()
    }

    /// This state, split by the nanosecond that MONOTONIC shows.
    fn by_nanosecond(self) -> Vec<Self> {
        let (low, high) = self.monotonic(0);
        let one = |nanos: i128| self.within(nanos << FINE_BITS, (nanos + 1) << FINE_BITS);
        let states = (floor(low)..=floor(high)).map(one);
        states.filter(|state| !state.parts.is_empty()).collect()
    }

    /// This state, if MONOTONIC is at least `low` and below `high` at the last update.
    fn within(mut self, low: Fine, high: Fine) -> Self {
        let ideal = self.ideal;
        self.parts.retain(|part| {
            part.low = part.low.max(ideal - high + 1);
            part.high = part.high.min(ideal - low);
        });
        self
    }

    /// What MONOTONIC shows at the last update, after [`by_nanosecond`](Self::by_nanosecond).
    fn monotonic_floor(&self) -> i128 {
        floor(self.monotonic(0).0)
    }

    /// Smallest and largest value that MONOTONIC may have `cycles` after the last update.
    pub(crate) fn monotonic(&self, cycles: u64) -> (Fine, Fine) {
        let unit = i128::from(cycles) * self.wanted().unit();
        let mut bounds = (Fine::MAX, Fine::MIN);
        for part in self.parts.iter() {
            bounds.0 = bounds.0.min(self.ideal - part.high + unit * i128::from(part.mult));
            bounds.1 = bounds.1.max(self.ideal - part.low + unit * i128::from(part.mult));
        }
        bounds
    }

    /// MONOTONIC_RAW `cycles` after the last update.
    pub(crate) fn raw(&self, cycles: u64) -> Fine {
        let scale = self.source.scale;
        self.raw + i128::from(cycles) * i128::from(scale.mult) * self.wanted().unit()
    }

    /// MONOTONIC was seen, `cycles` after the last update, to be from `low` to `high` nanoseconds.
    /// Whether that can be; if not, nothing is learnt.
    pub(crate) fn saw(&mut self, cycles: u64, low: i128, high: i128) -> bool {
        let unit = i128::from(cycles) * self.wanted().unit();
        let ideal = self.ideal;
        // MONOTONIC is never further from zero, and further bounds would not fit.
        const MOST: i128 = 1 << 60;
        let (low, high) = (low.max(-MOST) << FINE_BITS, (high + 1).min(MOST) << FINE_BITS);
        let mut parts = self.parts;
        parts.retain(|part| {
            part.low = part.low.max(ideal + unit * i128::from(part.mult) - high + 1);
            part.high = part.high.min(ideal + unit * i128::from(part.mult) - low);
        });
        let possible = !parts.is_empty();
        if possible {
            self.parts = parts;
        }
        possible
    }

    /// By how many nanoseconds a clock is from MONOTONIC.
    pub(crate) fn offset(&self, clock: i32) -> i128 {
        match clock {
            0 | 5 => self.wall,
            7 => self.boot,
            11 => self.wall + i128::from(self.tai) * NANOS,
            _ => 0,
        }
    }

    /// Nanoseconds that the fastest possible clock makes of `cycles`, rounded up.
    pub(crate) fn at_most(&self, cycles: u64) -> i128 {
        let fast = self.parts.iter().map(|part| part.mult).max().unwrap_or(0);
        let fast = fast.max(i64::from(self.source.scale.mult));
        floor(i128::from(cycles) * i128::from(fast) * self.wanted().unit()) + 1
    }

    /// The publication delay in cycles, rounded up.
    pub(crate) fn delay_cycles(&self) -> u64 {
        let delay = i128::from(self.config.publication_delay_ns) * i128::from(self.source.hz);
        u64::try_from((delay + NANOS - 1) / NANOS).unwrap_or(u64::MAX)
    }

    /// A tick in nanoseconds, to the nearest.
    pub(crate) fn tick_ns(&self) -> u32 {
        (1_000_000_000 + self.config.hz / 2) / self.config.hz
    }

    fn threshold(&self) -> Fine {
        threshold(self.wanted(), self.source.hz / u64::from(self.config.hz))
    }

    fn wanted(&self) -> Wanted {
        let scale = self.source.scale;
        Wanted { mult: scale.mult, shift: scale.shift, rates: self.ntp.rates() }
    }
}

/// The multiplier is chosen anew in each state.
fn steered(states: Vec<State>) -> Vec<State> {
    let steer = |mut state: State| {
        state.parts.steer(state.wanted(), state.threshold(), state.delay_cycles());
        state.with_second()
    };
    states.into_iter().flat_map(steer).collect()
}

/// The second at whose beginning a leap second is due, if REALTIME shows `second` now.
fn leap_after(second: i64, seconds: i8) -> i64 {
    // An inserted one when the day is over, a deleted one when its last second would begin.
    let early = i64::from(seconds < 0);
    (second + early).div_euclid(DAY) * DAY + DAY - early
}
