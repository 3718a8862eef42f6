//! Clock ids, the sets they form, clock modes and feature bits.
//!
//! Ids are those of Linux (`include/uapi/linux/time.h`); they are constants, never the order of an
//! enumeration, because every consumer has them compiled in.

use bitflags::bitflags;
use static_assertions::const_assert_eq;

/// A clock id as a program passes it: a C `clockid_t`.
///
/// Any `i32` is a legal value: negative ids name CPU clocks of a process or descriptors of
/// dynamic clocks, unknown ones are the kernel's to refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct ClockId(pub i32);

impl ClockId {
    /// Wall clock, UTC seconds since 1970; may be set and may repeat a second.
    pub const REALTIME: Self = Self(0);
    /// Time since an arbitrary point, steered, never set, stands still in suspend.
    pub const MONOTONIC: Self = Self(1);
    /// CPU time of the process; never served by a page.
    pub const PROCESS_CPUTIME_ID: Self = Self(2);
    /// CPU time of the thread; never served by a page.
    pub const THREAD_CPUTIME_ID: Self = Self(3);
    /// Like [`MONOTONIC`](Self::MONOTONIC) but not steered by NTP.
    pub const MONOTONIC_RAW: Self = Self(4);
    /// [`REALTIME`](Self::REALTIME) as of the last tick.
    pub const REALTIME_COARSE: Self = Self(5);
    /// [`MONOTONIC`](Self::MONOTONIC) as of the last tick.
    pub const MONOTONIC_COARSE: Self = Self(6);
    /// [`MONOTONIC`](Self::MONOTONIC) plus the time spent in suspend.
    pub const BOOTTIME: Self = Self(7);
    /// Wakes a suspended machine; never served by a page.
    pub const REALTIME_ALARM: Self = Self(8);
    /// Wakes a suspended machine; never served by a page.
    pub const BOOTTIME_ALARM: Self = Self(9);
    /// International Atomic Time: [`REALTIME`](Self::REALTIME) without its leap seconds.
    pub const TAI: Self = Self(11);

    /// The clock's set of one; empty for an id that no page has a slot for.
    #[inline(always)] // part of the routing
    #[must_use]
    pub const fn set(self) -> ClockSet {
        let id = self.0.cast_unsigned();
        if id <= LAST_ID { ClockSet::from_bits_truncate(1 << id) } else { ClockSet::empty() }
    }

    /// How this clock is read.
    #[inline(always)] // the routing of each exported function: a test or two for each kind of clock
    #[must_use]
    pub const fn route(self) -> Route {
        // Each test in the form that is one instruction and a jump: a range, a bit of a constant.
        // A negative id becomes a large u32, so one comparison refuses both ends. The coarse clocks
        // come first because a read of them is so short that a jump shows, and all others are called
        // cold so that the exits of that read stand between it and them: within a short jump.
        let id = self.0.cast_unsigned();
        if id.wrapping_sub(FIRST_COARSE) < 2 {
            return Route::Coarse(Slot(id));
        }
        core::hint::cold_path();
        if id > LAST_ID {
            core::hint::cold_path();
            return Route::Kernel;
        }
        if ClockSet::STEERED.bits() >> id & 1 != 0 {
            Route::Steered(Slot(id))
        } else if id == Slot::MONOTONIC_RAW.0 {
            Route::Raw
        } else {
            core::hint::cold_path();
            Route::Kernel
        }
    }

    /// The place of this clock in the page, for the seven clocks that a page serves.
    #[inline(always)] // two tests
    #[must_use]
    pub const fn slot(self) -> Option<Slot> {
        let id = self.0.cast_unsigned();
        if id <= LAST_ID && ClockSet::SERVED.bits() >> id & 1 != 0 { Some(Slot(id)) } else { None }
    }
}

/// The highest id that has a place in `basetime`.
const LAST_ID: u32 = 11;

/// The coarse clocks are two neighbours; this is the lower one.
const FIRST_COARSE: u32 = ClockSet::COARSE.bits().trailing_zeros();
const_assert_eq!(ClockSet::COARSE.bits(), 0b11 << FIRST_COARSE);

/// How a clock is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Through `do_hres` on the steered scale.
    Steered(Slot),
    /// Through `do_hres` on the raw scale: MONOTONIC_RAW.
    Raw,
    /// Through `do_coarse`.
    Coarse(Slot),
    /// Not from a page: the kernel is asked.
    Kernel,
}

/// The index of a served clock in `basetime`: only an id of [`ClockSet::SERVED`] becomes one.
///
/// # Invariants
/// The value is below 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u32);

impl Slot {
    /// Wall clock.
    pub const REALTIME: Self = Self(0);
    /// The clock on the raw scale.
    pub const MONOTONIC_RAW: Self = Self(4);

    /// The clock this slot belongs to.
    #[inline]
    #[must_use]
    pub const fn clock(self) -> ClockId {
        ClockId(self.0.cast_signed())
    }

    /// Whether the clock is read through `do_coarse`.
    #[inline(always)] // a subtraction and a comparison
    #[must_use]
    pub const fn is_coarse(self) -> bool {
        self.0.wrapping_sub(FIRST_COARSE) < 2
    }

    /// Position in `basetime`, below 12.
    #[inline(always)] // part of an address computation
    #[must_use]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

bitflags! {
    /// A set of clocks: bit `n` stands for clock id `n`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct ClockSet: u32 {
        /// [`ClockId::REALTIME`].
        const REALTIME = 1 << 0;
        /// [`ClockId::MONOTONIC`].
        const MONOTONIC = 1 << 1;
        /// [`ClockId::MONOTONIC_RAW`].
        const MONOTONIC_RAW = 1 << 4;
        /// [`ClockId::REALTIME_COARSE`].
        const REALTIME_COARSE = 1 << 5;
        /// [`ClockId::MONOTONIC_COARSE`].
        const MONOTONIC_COARSE = 1 << 6;
        /// [`ClockId::BOOTTIME`].
        const BOOTTIME = 1 << 7;
        /// [`ClockId::TAI`].
        const TAI = 1 << 11;

        /// Read through `do_hres` on the steered scale, `cs[0]`.
        const STEERED = Self::REALTIME.bits() | Self::MONOTONIC.bits()
            | Self::BOOTTIME.bits() | Self::TAI.bits();
        /// Read through `do_hres`, on either scale: these need the counter.
        const PRECISE = Self::STEERED.bits() | Self::MONOTONIC_RAW.bits();
        /// Read through `do_coarse`: as of the last tick, without the counter.
        const COARSE = Self::REALTIME_COARSE.bits() | Self::MONOTONIC_COARSE.bits();
        /// Every clock that a page serves.
        const SERVED = Self::PRECISE.bits() | Self::COARSE.bits();
    }
}

/// How the counter behind the precise clocks is read (`clock_mode`, offset 4).
///
/// Any value may stand in a page. One that a reader does not know, or that belongs to another
/// architecture, sends the precise clocks to the fallback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct ClockMode(pub i32);

impl ClockMode {
    /// No counter that a program may read: the precise clocks fall back.
    pub const NONE: Self = Self(0);
    /// The architecture's counter: x86 `lfence; rdtsc`, Arm CNTVCT, RISC-V `time`.
    pub const COUNTER: Self = Self(1);
    /// KVM's paravirtual clock: reserved, falls back.
    pub const PVCLOCK: Self = Self(2);
    /// Hyper-V's reference page: reserved, falls back.
    pub const HVCLOCK: Self = Self(3);
    /// The page's own `memory_counter` is the counter.
    pub const MEMORY: Self = Self(0x100);
    /// x86 `rdtscp`, for CPUs on which it is the faster ordered read.
    pub const RDTSCP: Self = Self(0x101);
    /// aarch64 CNTVCTSS_EL0, the self-synchronised counter (FEAT_ECV).
    pub const CNTVCTSS: Self = Self(0x102);
    /// The architecture's counter for 64-bit images only; 32-bit ones fall back.
    pub const COUNTER_64BIT_ONLY: Self = Self(0x103);
    /// The page belongs to a time namespace: its slots are offsets, the data is one slot above.
    pub const TIME_NAMESPACE: Self = Self(i32::MAX);
}

bitflags! {
    /// What the kernel maintains beyond the clocks (`features`, offset 272).
    ///
    /// A writer sets a bit only when it knows it to be true on every CPU, now and after hotplug.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Features: u64 {
        /// x86: the CPU has RDPID and TSC_AUX holds `node << 12 | cpu` on every CPU.
        const GETCPU_RDPID = 1 << 0;
        /// x86: the limit of segment 0x7b holds `node << 12 | cpu` on every CPU.
        const GETCPU_SEGMENT_LIMIT = 1 << 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_linux() {
        let table = [
            (ClockId::REALTIME, 0),
            (ClockId::MONOTONIC, 1),
            (ClockId::PROCESS_CPUTIME_ID, 2),
            (ClockId::THREAD_CPUTIME_ID, 3),
            (ClockId::MONOTONIC_RAW, 4),
            (ClockId::REALTIME_COARSE, 5),
            (ClockId::MONOTONIC_COARSE, 6),
            (ClockId::BOOTTIME, 7),
            (ClockId::REALTIME_ALARM, 8),
            (ClockId::BOOTTIME_ALARM, 9),
            (ClockId::TAI, 11),
        ];
        for (id, number) in table {
            assert_eq!(id.0, number);
        }
    }

    #[test]
    fn exactly_the_seven_served_clocks_have_a_slot() {
        let served: std::vec::Vec<i32> =
            (-300..=300).filter(|&id| ClockId(id).slot().is_some()).collect();
        assert_eq!(served, [0, 1, 4, 5, 6, 7, 11]);
        let routed = |&id: &i32| ClockId(id).route() != Route::Kernel;
        assert_eq!(served, (-300..=300).filter(routed).collect::<std::vec::Vec<_>>());
        for id in [i32::MIN, i32::MAX, 32, 32 + 1, 1 << 16] {
            assert_eq!(ClockId(id).slot(), None, "id {id}");
        }
    }

    #[test]
    fn sets_have_the_bits_that_linux_routes_by() {
        assert_eq!(ClockSet::STEERED.bits(), 0x883);
        assert_eq!(ClockSet::COARSE.bits(), 0x60);
        assert_eq!(ClockSet::PRECISE.bits(), 0x893);
    }
}
