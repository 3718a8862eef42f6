//! What the page is while calls are made, and what it then serves.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use datapage::{
    ClockId, ClockMode, ClockSet, Features, Instant, Offset, Offsets, PageValues, Scale, TimeZone,
    UpdateError,
};

use crate::map::MappedImage;

/// Every mode that has a name, and some that have none.
///
/// The mode of time namespaces means something on an odd page only; on an even one it is as good as
/// unknown.
pub const MODES: [ClockMode; 14] = [
    ClockMode::NONE,
    ClockMode::COUNTER,
    ClockMode::PVCLOCK,
    ClockMode::HVCLOCK,
    ClockMode::MEMORY,
    ClockMode::RDTSCP,
    ClockMode::CNTVCTSS,
    ClockMode::COUNTER_64BIT_ONLY,
    ClockMode(4),
    ClockMode(0xff),
    ClockMode(0x104),
    ClockMode(-1),
    ClockMode(i32::MIN),
    ClockMode::TIME_NAMESPACE,
];

/// The modes in which an x86_64 image has a counter to read.
const COUNTED: [ClockMode; 4] =
    [ClockMode::COUNTER, ClockMode::RDTSCP, ClockMode::COUNTER_64BIT_ONLY, ClockMode::MEMORY];

const SHIFT: u32 = 24;
const HRTIMER_RES: u32 = 1;
const COARSE_RES: u32 = 4_000_000;
/// How far the counter in memory is ahead of the last update.
const MEMORY_CYCLES: u64 = 3_333_333;
pub(super) const ZONE: TimeZone = TimeZone { minutes_west: -90, dst_time: 1 };

/// What the time namespace adds: seconds and nanoseconds, of which most sums carry.
const MONOTONIC_OFFSET: (i64, u32) = (-1_000_000, 999_999_999);
const BOOTTIME_OFFSET: (i64, u32) = (86_400, 500_000_000);

/// The page in a time namespace's slot.
pub(super) fn namespace() -> Offsets {
    let offset = |(secs, nanos)| Offset::new(secs, nanos).unwrap_or_default();
    Offsets { monotonic: offset(MONOTONIC_OFFSET), boottime: offset(BOOTTIME_OFFSET) }
}

/// What the kernel's page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// Every clock, each with a time of its own.
    Published,
    /// Zeros, as they were mapped: nobody has formatted it.
    Zeroed,
    /// Nothing yet.
    Unpublished,
    /// Every clock, by a writer that died in the middle of the next update.
    Torn,
}

/// What the page is while calls are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    mode: ClockMode,
    content: Content,
    /// Which way of asking the CPU for its number the page promises.
    features: Features,
    /// Whether a namespace's page lies before the kernel's.
    pub(super) is_in_namespace: bool,
    values: PageValues,
}

impl State {
    fn of(mode: ClockMode, content: Content) -> Self {
        let values = PageValues { clock_mode: mode, ..PageValues::default() };
        Self { mode, content, features: Features::empty(), is_in_namespace: false, values }
    }

    /// Every mode, a zeroed page, an unpublished and a torn one, each also behind the page of a namespace; and
    /// each way of asking the CPU that holds on this machine, beside a bit that means none.
    pub(super) fn all() -> Vec<Self> {
        let is_there = |mode: &ClockMode| *mode != ClockMode::RDTSCP || crate::host::has_rdtscp();
        let published = MODES.into_iter().filter(is_there);
        let mut states: Vec<_> = published.map(|mode| Self::of(mode, Content::Published)).collect();
        for content in [Content::Zeroed, Content::Unpublished, Content::Torn] {
            states.push(Self::of(ClockMode::COUNTER, content));
        }
        let behind: Vec<_> =
            states.iter().map(|state| Self { is_in_namespace: true, ..*state }).collect();
        let unknown = Features::from_bits_retain(!Features::all().bits());
        let promises = crate::host::getcpu_ways().iter().chain([unknown]);
        let published = Self::of(ClockMode::COUNTER, Content::Published);
        states.extend(promises.map(|features| Self { features, ..published }));
        states.extend(behind);
        states
    }

    /// Makes the page so.
    pub(super) fn publish(&mut self, mapped: &mut MappedImage) -> Result<(), UpdateError> {
        self.values = PageValues {
            clock_mode: self.mode,
            cycle_last: counter().wrapping_sub(5_000_000),
            steered: Scale { mask: u64::MAX, mult: 6_990_507, shift: SHIFT },
            raw: Scale { mask: u64::MAX, mult: 6_990_000, shift: SHIFT },
            hrtimer_res: HRTIMER_RES,
            coarse_res: COARSE_RES,
            ..PageValues::default()
        };
        for (secs, clock) in (1_700_000_000..).zip(ClockSet::SERVED.iter()) {
            let id = ClockId(clock.bits().trailing_zeros().cast_signed());
            let is_coarse = ClockSet::COARSE.contains(clock);
            let nanos = if is_coarse { 123_456_789 } else { 999_999_000 << SHIFT };
            self.values.set(id, Instant { secs, nanos });
        }
        if self.content == Content::Zeroed {
            let (words, _) = mapped.split_words();
            words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
            return Ok(());
        }
        let slot_bytes = mapped.image().slot_bytes;
        let (mut writer, _) = mapped.split();
        writer.format(self.features, slot_bytes);
        if self.content != Content::Unpublished {
            writer.publish(&self.values.validate()?);
            writer.set_timezone(ZONE);
            writer.set_memory_counter(self.values.cycle_last + MEMORY_CYCLES);
        }
        if self.content == Content::Torn {
            let (words, _) = mapped.split_words();
            // The lowest word of the page begins with `seq`.
            words[0].fetch_or(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Whether the page serves a clock.
    pub(super) fn serves(&self, id: c_int) -> bool {
        let set = ClockId(id).set();
        let is_counted = COUNTED.contains(&self.mode) && ClockSet::PRECISE.contains(set);
        self.serves_zone() && !set.is_empty() && (ClockSet::COARSE.contains(set) || is_counted)
    }

    /// The resolution of a clock that the page serves: that needs no counter.
    pub(super) fn resolution(&self, id: c_int) -> Option<u32> {
        let set = ClockId(id).set();
        let resolution = if ClockSet::COARSE.contains(set) { COARSE_RES } else { HRTIMER_RES };
        let is_served = self.serves_zone() && !set.is_empty() && ClockSet::SERVED.contains(set);
        is_served.then_some(resolution)
    }

    /// Whether the page serves the timezone, and with it all that needs no counter.
    pub(super) fn serves_zone(&self) -> bool {
        self.content == Content::Published
    }

    /// The seconds of `time`. One word is one update, so a torn page tells them where that word is
    /// looked at: not behind the page of a namespace, where each read is one of the protocol.
    pub(super) fn seconds(&self) -> Option<i64> {
        let is_told = match self.content {
            Content::Published => true,
            Content::Zeroed | Content::Unpublished => false,
            Content::Torn => !self.is_in_namespace,
        };
        let wall = self.values.get(ClockId::REALTIME)?;
        is_told.then_some(wall.secs)
    }

    /// Whether the page says how to ask the CPU for its number.
    pub(super) fn serves_cpu(&self) -> bool {
        // A namespace's page stands in front, and promises nothing.
        !self.is_in_namespace && self.features.intersects(Features::all())
    }

    /// The exact time of a served clock now: seconds and nanoseconds.
    pub(super) fn now(&self, id: c_int) -> [i64; 2] {
        let counter = match self.mode {
            ClockMode::MEMORY => self.values.cycle_last + MEMORY_CYCLES,
            _ => counter(),
        };
        let clock = ClockId(id);
        let instant = self.values.get(clock).unwrap_or_default();
        let is_coarse = ClockSet::COARSE.contains(clock.set());
        let is_raw = clock == ClockId::MONOTONIC_RAW;
        let scale = if is_raw { self.values.raw } else { self.values.steered };
        let cycles = u128::from(counter - self.values.cycle_last);
        let nanos = if is_coarse {
            u128::from(instant.nanos)
        } else {
            (u128::from(instant.nanos) + cycles * u128::from(scale.mult)) >> SHIFT
        };
        let (more_secs, more_nanos) = self.offset(clock);
        let nanos = nanos + u128::from(more_nanos);
        let part = |value: u128| i64::try_from(value).unwrap_or(i64::MAX);
        [instant.secs + more_secs + part(nanos / 1_000_000_000), part(nanos % 1_000_000_000)]
    }

    /// What the namespace adds to a clock.
    fn offset(&self, clock: ClockId) -> (i64, u32) {
        match clock {
            _ if !self.is_in_namespace => (0, 0),
            ClockId::MONOTONIC | ClockId::MONOTONIC_RAW | ClockId::MONOTONIC_COARSE => {
                MONOTONIC_OFFSET
            }
            ClockId::BOOTTIME => BOOTTIME_OFFSET,
            _ => (0, 0),
        }
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let content = match self.content {
            Content::Published => "published",
            Content::Zeroed => "zeroed",
            Content::Unpublished => "unpublished",
            Content::Torn => "torn",
        };
        write!(f, "mode {:#x}, page {content}", self.mode.0)?;
        if !self.features.is_empty() {
            write!(f, ", features {:#x}", self.features.bits())?;
        }
        if self.is_in_namespace {
            f.write_str(", behind a time namespace's")?;
        }
        Ok(())
    }
}

/// The counter, ordered after everything before it.
fn counter() -> u64 {
    // SAFETY: every x86_64 CPU has it.
    unsafe { std::arch::x86_64::_mm_lfence() };
    // SAFETY: every x86_64 CPU has it, and a kernel that forbids it has no counter mode either.
    let value = unsafe { std::arch::x86_64::_rdtsc() };
    // SAFETY: as above; what follows must not run before the counter was read.
    unsafe { std::arch::x86_64::_mm_lfence() };
    value
}
