//! From the kernel's timekeeper to the instants of the seven clocks.
//!
//! Linux keeps one running instant, `xtime`, and the distances of the other clocks from it
//! (`include/linux/timekeeper_internal.h`). Nanoseconds of `xtime` are shifted left by the scale's
//! `shift`, those of the distances are plain.

use datapage::{ClockId, ClockMode, Instant, NANOS_PER_SEC, PageValues, Scale};
use memoffset::offset_of;
use static_assertions::const_assert_eq;

/// The fields of the kernel's timekeeper that a page is made of (`struct uvdso_timekeeper`).
///
/// The C shim fills it in; `shim/uvdso.h` declares the same record and asserts the same offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Timekeeper {
    /// The counter at the instants below, in cycles.
    pub cycle_last: u64,
    /// The same for MONOTONIC_RAW.
    pub raw_cycle_last: u64,
    /// Width of the counter: 2^bits - 1.
    pub mask: u64,
    /// The same for MONOTONIC_RAW.
    pub raw_mask: u64,
    /// REALTIME in seconds, two's complement.
    pub xtime_sec: u64,
    /// Nanoseconds of REALTIME's second, shifted.
    pub xtime_nsec: u64,
    /// MONOTONIC_RAW in seconds.
    pub raw_sec: u64,
    /// Nanoseconds of MONOTONIC_RAW's second, shifted by `raw_shift`.
    pub raw_xtime_nsec: u64,
    /// Seconds from REALTIME to MONOTONIC, mostly negative.
    pub wall_to_monotonic_sec: i64,
    /// Nanoseconds of that distance, plain, 0..=999_999_999.
    pub wall_to_monotonic_nsec: i64,
    /// Seconds from MONOTONIC to BOOTTIME: the time spent in suspend.
    pub monotonic_to_boot_sec: i64,
    /// Nanoseconds of that distance, plain, 0..=999_999_999.
    pub monotonic_to_boot_nsec: i64,
    /// Nanoseconds of REALTIME_COARSE's second, plain.
    pub coarse_nsec: u64,
    /// Nanoseconds a cycle, times 2^shift.
    pub mult: u32,
    /// 0..=34.
    pub shift: u32,
    /// The same for MONOTONIC_RAW.
    pub raw_mult: u32,
    /// The same for MONOTONIC_RAW.
    pub raw_shift: u32,
    /// Seconds from REALTIME to TAI.
    pub tai_offset: i32,
    /// A [`ClockMode`], which the shim translated from Linux's by name.
    pub clock_mode: i32,
    /// Resolution of the precise clocks in nanoseconds.
    pub hrtimer_res: u32,
    /// Length of a tick in nanoseconds.
    pub tick_nsec: u32,
}

const_assert_eq!(offset_of!(Timekeeper, cycle_last), 0);
const_assert_eq!(offset_of!(Timekeeper, raw_cycle_last), 8);
const_assert_eq!(offset_of!(Timekeeper, mask), 16);
const_assert_eq!(offset_of!(Timekeeper, raw_mask), 24);
const_assert_eq!(offset_of!(Timekeeper, xtime_sec), 32);
const_assert_eq!(offset_of!(Timekeeper, xtime_nsec), 40);
const_assert_eq!(offset_of!(Timekeeper, raw_sec), 48);
const_assert_eq!(offset_of!(Timekeeper, raw_xtime_nsec), 56);
const_assert_eq!(offset_of!(Timekeeper, wall_to_monotonic_sec), 64);
const_assert_eq!(offset_of!(Timekeeper, wall_to_monotonic_nsec), 72);
const_assert_eq!(offset_of!(Timekeeper, monotonic_to_boot_sec), 80);
const_assert_eq!(offset_of!(Timekeeper, monotonic_to_boot_nsec), 88);
const_assert_eq!(offset_of!(Timekeeper, coarse_nsec), 96);
const_assert_eq!(offset_of!(Timekeeper, mult), 104);
const_assert_eq!(offset_of!(Timekeeper, shift), 108);
const_assert_eq!(offset_of!(Timekeeper, raw_mult), 112);
const_assert_eq!(offset_of!(Timekeeper, raw_shift), 116);
const_assert_eq!(offset_of!(Timekeeper, tai_offset), 120);
const_assert_eq!(offset_of!(Timekeeper, clock_mode), 124);
const_assert_eq!(offset_of!(Timekeeper, hrtimer_res), 128);
const_assert_eq!(offset_of!(Timekeeper, tick_nsec), 132);
const_assert_eq!(size_of::<Timekeeper>(), 136);

impl Timekeeper {
    /// What the page shall say.
    ///
    /// In mode NONE everything is published all the same: the readers of the precise clocks fall
    /// back by the mode, and `time` and the coarse clocks need no counter.
    #[inline]
    pub(crate) fn page_values(&self) -> PageValues {
        let mut values = PageValues {
            clock_mode: ClockMode(self.clock_mode),
            cycle_last: self.cycle_last,
            steered: Scale { mask: self.mask, mult: self.mult, shift: self.shift },
            raw: Scale { mask: self.raw_mask, mult: self.raw_mult, shift: self.raw_shift },
            hrtimer_res: self.hrtimer_res,
            coarse_res: self.tick_nsec,
            ..PageValues::default()
        };
        let realtime = Instant { secs: self.xtime_sec.cast_signed(), nanos: self.xtime_nsec };
        let monotonic =
            later(realtime, self.wall_to_monotonic_sec, self.wall_to_monotonic_nsec, self.shift);
        let boottime =
            later(monotonic, self.monotonic_to_boot_sec, self.monotonic_to_boot_nsec, self.shift);
        let realtime_coarse = Instant { secs: realtime.secs, nanos: self.coarse_nsec };
        let monotonic_coarse =
            later(realtime_coarse, self.wall_to_monotonic_sec, self.wall_to_monotonic_nsec, 0);
        let tai = Instant {
            secs: realtime.secs.wrapping_add(i64::from(self.tai_offset)),
            nanos: realtime.nanos,
        };
        values.set(ClockId::REALTIME, realtime);
        values.set(ClockId::MONOTONIC, monotonic);
        values.set(ClockId::BOOTTIME, boottime);
        values.set(ClockId::TAI, tai);
        values.set(ClockId::REALTIME_COARSE, realtime_coarse);
        values.set(ClockId::MONOTONIC_COARSE, monotonic_coarse);
        // The page has one `cycle_last`. Linux moves both of its own together; were they apart,
        // only the kernel could tell the raw time.
        if self.raw_cycle_last == self.cycle_last {
            values.set(
                ClockId::MONOTONIC_RAW,
                Instant { secs: self.raw_sec.cast_signed(), nanos: self.raw_xtime_nsec },
            );
        }
        values
    }
}

/// `instant`, whose nanoseconds are shifted by `shift`, plus a distance in seconds and nanoseconds.
///
/// What is out of range stays so, for the validation to refuse. There is at most one carry, and
/// the sum of the nanoseconds is never formed: at shift 34 it would not fit in 64 bits.
#[inline]
fn later(instant: Instant, secs: i64, nsec: i64, shift: u32) -> Instant {
    let secs = instant.secs.wrapping_add(secs);
    let second = u64::from(NANOS_PER_SEC).wrapping_shl(shift);
    // Below 10^9, a shift of up to 34 cannot lose bits; the validation refuses a larger one.
    let nanos = match u32::try_from(nsec) {
        Ok(nsec) if nsec < NANOS_PER_SEC => u64::from(nsec).wrapping_shl(shift),
        _ => {
            return Instant { secs, nanos: u64::MAX };
        }
    };
    let room = second.wrapping_sub(nanos);
    if instant.nanos >= room {
        Instant { secs: secs.wrapping_add(1), nanos: instant.nanos.wrapping_sub(room) }
    } else {
        Instant { secs, nanos: instant.nanos.wrapping_add(nanos) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datapage::ClockSet;
    use std::string::String;
    use std::vec::Vec;

    /// A timekeeper whose every distance needs a carry.
    fn timekeeper() -> Timekeeper {
        Timekeeper {
            cycle_last: 1000,
            raw_cycle_last: 1000,
            mask: u64::MAX,
            raw_mask: u64::MAX,
            xtime_sec: 1_700_000_000,
            xtime_nsec: 900_000_000 << 24,
            raw_sec: 70,
            raw_xtime_nsec: 5 << 23,
            wall_to_monotonic_sec: -1_699_999_901,
            wall_to_monotonic_nsec: 200_000_000,
            monotonic_to_boot_sec: 50,
            monotonic_to_boot_nsec: 950_000_000,
            coarse_nsec: 900_000_000,
            mult: 1 << 24,
            shift: 24,
            raw_mult: 1 << 23,
            raw_shift: 23,
            tai_offset: 37,
            clock_mode: ClockMode::COUNTER.0,
            hrtimer_res: 1,
            tick_nsec: 4_000_000,
        }
    }

    fn plain(timekeeper: &Timekeeper, clock: ClockId, shift: u32) -> (i64, u64) {
        let instant = timekeeper.page_values().get(clock).unwrap();
        (instant.secs, instant.nanos >> shift)
    }

    #[test]
    fn each_clock_stands_where_the_timekeeper_has_it() {
        let timekeeper = timekeeper();
        let at = |clock, shift| plain(&timekeeper, clock, shift);
        assert_eq!(at(ClockId::REALTIME, 24), (1_700_000_000, 900_000_000));
        assert_eq!(at(ClockId::MONOTONIC, 24), (100, 100_000_000));
        assert_eq!(at(ClockId::BOOTTIME, 24), (151, 50_000_000));
        assert_eq!(at(ClockId::TAI, 24), (1_700_000_037, 900_000_000));
        assert_eq!(at(ClockId::MONOTONIC_RAW, 23), (70, 5));
        assert_eq!(at(ClockId::REALTIME_COARSE, 0), (1_700_000_000, 900_000_000));
        assert_eq!(at(ClockId::MONOTONIC_COARSE, 0), (100, 100_000_000));
        assert!(timekeeper.page_values().validate().is_ok());
    }

    #[test]
    fn fractions_of_a_nanosecond_survive_the_offsets() {
        let timekeeper = Timekeeper { xtime_nsec: (900_000_000 << 24) + 12345, ..timekeeper() };
        let values = timekeeper.page_values();
        let fraction = |clock| values.get(clock).unwrap().nanos & 0xff_ffff;
        assert_eq!(fraction(ClockId::MONOTONIC), 12345);
        assert_eq!(fraction(ClockId::BOOTTIME), 12345);
    }

    #[test]
    fn the_largest_shift_does_not_overflow() {
        let timekeeper = Timekeeper {
            shift: 34,
            xtime_nsec: (1_000_000_000 << 34) - 1,
            wall_to_monotonic_nsec: 999_999_999,
            ..timekeeper()
        };
        let (secs, nanos) = plain(&timekeeper, ClockId::MONOTONIC, 34);
        assert_eq!((secs, nanos), (100, 999_999_998));
    }

    #[test]
    fn counters_that_are_apart_leave_the_raw_clock_to_the_kernel() {
        let timekeeper = Timekeeper { raw_cycle_last: 999, ..timekeeper() };
        let values = timekeeper.page_values();
        assert_eq!(values.get(ClockId::MONOTONIC_RAW), None);
        assert!(values.get(ClockId::MONOTONIC).is_some());
    }

    #[test]
    fn a_mode_that_nobody_reads_still_publishes_the_coarse_clocks() {
        let values = Timekeeper { clock_mode: ClockMode::NONE.0, ..timekeeper() }.page_values();
        let published: u32 =
            (0..12).filter(|&id| values.get(ClockId(id)).is_some()).map(|id| 1 << id).sum();
        assert_eq!(published, ClockSet::SERVED.bits());
    }

    #[test]
    fn what_is_out_of_range_is_refused_and_not_repaired() {
        for broken in [
            Timekeeper { xtime_nsec: 1_000_000_000 << 24, ..timekeeper() },
            Timekeeper { wall_to_monotonic_nsec: -1, ..timekeeper() },
            Timekeeper { monotonic_to_boot_nsec: 2_000_000_000, ..timekeeper() },
            Timekeeper { raw_xtime_nsec: u64::MAX, ..timekeeper() },
            Timekeeper { shift: 35, ..timekeeper() },
            Timekeeper { shift: 200, ..timekeeper() },
            Timekeeper { raw_mask: 5, ..timekeeper() },
        ] {
            assert!(broken.page_values().validate().is_err(), "{broken:?}");
        }
    }

    /// The C side writes these numbers; the compiler there checks its record against them.
    #[test]
    fn the_shim_has_the_same_record_and_the_same_numbers() {
        let header = include_str!("../../shim/uvdso.h");
        let define = |name: &str| -> i64 {
            let values: Vec<&str> = header
                .lines()
                .filter_map(|line| line.strip_prefix("#define ")?.strip_prefix(name))
                .filter(|rest| rest.starts_with(' '))
                .collect();
            let [value] = values[..] else {
                panic!("{name} is defined {} times", values.len());
            };
            value.trim().parse().unwrap()
        };
        assert_eq!(define("UVDSO_MODE_NONE"), i64::from(ClockMode::NONE.0));
        assert_eq!(define("UVDSO_MODE_COUNTER"), i64::from(ClockMode::COUNTER.0));
        assert_eq!(
            define("UVDSO_MODE_COUNTER_64BIT_ONLY"),
            i64::from(ClockMode::COUNTER_64BIT_ONLY.0)
        );
        assert_eq!(
            define("UVDSO_FEATURE_GETCPU_SEGMENT_LIMIT").cast_unsigned(),
            datapage::Features::GETCPU_SEGMENT_LIMIT.bits()
        );
        let fields = [
            ("cycle_last", offset_of!(Timekeeper, cycle_last)),
            ("raw_cycle_last", offset_of!(Timekeeper, raw_cycle_last)),
            ("mask", offset_of!(Timekeeper, mask)),
            ("raw_mask", offset_of!(Timekeeper, raw_mask)),
            ("xtime_sec", offset_of!(Timekeeper, xtime_sec)),
            ("xtime_nsec", offset_of!(Timekeeper, xtime_nsec)),
            ("raw_sec", offset_of!(Timekeeper, raw_sec)),
            ("raw_xtime_nsec", offset_of!(Timekeeper, raw_xtime_nsec)),
            ("wall_to_monotonic_sec", offset_of!(Timekeeper, wall_to_monotonic_sec)),
            ("wall_to_monotonic_nsec", offset_of!(Timekeeper, wall_to_monotonic_nsec)),
            ("monotonic_to_boot_sec", offset_of!(Timekeeper, monotonic_to_boot_sec)),
            ("monotonic_to_boot_nsec", offset_of!(Timekeeper, monotonic_to_boot_nsec)),
            ("coarse_nsec", offset_of!(Timekeeper, coarse_nsec)),
            ("mult", offset_of!(Timekeeper, mult)),
            ("shift", offset_of!(Timekeeper, shift)),
            ("raw_mult", offset_of!(Timekeeper, raw_mult)),
            ("raw_shift", offset_of!(Timekeeper, raw_shift)),
            ("tai_offset", offset_of!(Timekeeper, tai_offset)),
            ("clock_mode", offset_of!(Timekeeper, clock_mode)),
            ("hrtimer_res", offset_of!(Timekeeper, hrtimer_res)),
            ("tick_nsec", offset_of!(Timekeeper, tick_nsec)),
        ];
        let asserted: Vec<&str> =
            header.lines().filter(|line| line.starts_with("UVDSO_FIELD(")).collect();
        let wanted: Vec<String> = fields
            .iter()
            .map(|(name, offset)| std::format!("UVDSO_FIELD({name}, {offset});"))
            .collect();
        assert_eq!(asserted, wanted);
    }
}
