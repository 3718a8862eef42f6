//! A clock to publish: a kernel with a timekeeper of its own has no use for this file.

use datapage::{ClockId, Instant, Scale};

use crate::vdso::Machine;

/// The smallest timekeeper: a counter of constant rate, an origin, a date.
///
/// It is what this example publishes, not what a kernel should keep time with: no steering, no
/// leap seconds, no suspend. The crate `timekeeper` of this project has those.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    pub(crate) scale: Scale,
    pub(crate) cycle_last: u64,
    /// MONOTONIC at `cycle_last`; the nanoseconds are shifted, so that no fraction is ever lost
    /// and no program sees a tick take back a nanosecond.
    monotonic: Instant,
    /// REALTIME minus MONOTONIC, plain nanoseconds.
    wall_offset: Instant,
    pub(crate) tick_ns: u32,
}

const NANOS_PER_SEC: u64 = 1_000_000_000;

impl Clock {
    /// A clock on a counter of `hz`, which starts now, at a date in seconds since 1970.
    pub fn new(machine: &impl Machine, hz: u64, date: i64, tick_ns: u32) -> Self {
        // The finest scale whose factor fits 32 bits.
        let mut shift = 32;
        let factor = |shift: u32| (u128::from(NANOS_PER_SEC) << shift) / u128::from(hz.max(1));
        while shift > 0 && factor(shift) > u128::from(u32::MAX) {
            shift -= 1;
        }
        let mult = u32::try_from(factor(shift)).unwrap_or(u32::MAX);
        Self {
            scale: Scale { mask: u64::MAX, mult, shift },
            cycle_last: machine.counter(),
            monotonic: Instant::default(),
            wall_offset: Instant { secs: date, nanos: 0 },
            tick_ns,
        }
    }

    /// Moves the clock to the counter's present value.
    pub fn advance(&mut self, machine: &impl Machine) {
        let now = machine.counter();
        let cycles = now.saturating_sub(self.cycle_last);
        let second = u128::from(NANOS_PER_SEC) << self.scale.shift;
        let nanos =
            u128::from(self.monotonic.nanos) + u128::from(cycles) * u128::from(self.scale.mult);
        self.monotonic.secs += i64::try_from(nanos / second).unwrap_or(i64::MAX);
        self.monotonic.nanos = u64::try_from(nanos % second).unwrap_or(u64::MAX);
        self.cycle_last += cycles;
    }

    /// Sets the wall clock; the page is told by the next [`tick`](crate::vdso::Vdso::tick), which
    /// belongs to the same section under the lock.
    pub fn set_date(&mut self, date: i64) {
        self.wall_offset =
            Instant { secs: date - self.monotonic.secs, nanos: self.wall_offset.nanos };
    }

    /// What a clock shows now, in seconds and nanoseconds: the kernel's own reading.
    pub fn read(&self, id: ClockId, machine: &impl Machine) -> Option<(i64, u64)> {
        let mut now = *self;
        if !is_coarse(id) {
            now.advance(machine);
        }
        let instant = now.base(id)?;
        let shift = if is_coarse(id) { 0 } else { self.scale.shift };
        Some((instant.secs, instant.nanos >> shift))
    }

    /// Its base for the page: as of `cycle_last`, nanoseconds shifted but for the coarse ones.
    pub(crate) fn base(&self, id: ClockId) -> Option<Instant> {
        let coarse =
            |instant: Instant| Instant { nanos: instant.nanos >> self.scale.shift, ..instant };
        Some(match id {
            ClockId::MONOTONIC | ClockId::MONOTONIC_RAW | ClockId::BOOTTIME => self.monotonic,
            ClockId::MONOTONIC_COARSE => coarse(self.monotonic),
            ClockId::REALTIME => self.realtime(),
            ClockId::REALTIME_COARSE => coarse(self.realtime()),
            _ => return None,
        })
    }

    /// REALTIME at `cycle_last`, its nanoseconds shifted.
    fn realtime(&self) -> Instant {
        let second = NANOS_PER_SEC << self.scale.shift;
        let nanos = self.monotonic.nanos + (self.wall_offset.nanos << self.scale.shift);
        let carry = nanos / second;
        Instant {
            secs: self.monotonic.secs + self.wall_offset.secs + carry.cast_signed(),
            nanos: nanos % second,
        }
    }
}

/// Whether a clock is as old as the last tick.
pub(crate) fn is_coarse(id: ClockId) -> bool {
    matches!(id, ClockId::REALTIME_COARSE | ClockId::MONOTONIC_COARSE)
}
