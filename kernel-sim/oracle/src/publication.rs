//! What every call must answer from one publication.

use crate::published::{Motion, NANOS, Scale, Timestamp, in_a_register, motion, precise_nanos};

/// Ids of the clocks that a page serves.
pub const SERVED: [i32; 7] = [0, 1, 4, 5, 6, 7, 11];

/// A publication: what a kernel handed to the writer of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Publication {
    /// Whether the readers of this machine can read the counter that the mode names.
    pub counter_is_readable: bool,
    /// The counter at the instants.
    pub last: u64,
    /// Scale of all precise clocks but MONOTONIC_RAW.
    pub steered: Scale,
    /// Scale of MONOTONIC_RAW.
    pub raw: Scale,
    /// Resolution of the precise clocks, ns; 0: not served.
    pub precise_resolution: u32,
    /// Resolution of the coarse clocks, ns; 0: not served.
    pub coarse_resolution: u32,
    /// Seconds and (for precise clocks: shifted) nanoseconds, by clock id.
    pub instants: [Option<(i64, u64)>; 12],
    /// Minutes west and type of DST, as last set.
    pub timezone: (i32, i32),
    /// What the readers' time namespace adds to the monotonic clocks, in seconds and nanoseconds.
    pub monotonic_offset: (i64, u32),
    /// What it adds to BOOTTIME.
    pub boottime_offset: (i64, u32),
}

/// What a call must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due<T> {
    /// This.
    Value(T),
    /// Whatever the kernel says: the page cannot serve it.
    Fallback,
}

impl<T> Due<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Fallback, Self::Value)
    }
}

impl Publication {
    /// Clock `id` at `counter`; `None` if the page cannot serve it.
    #[must_use]
    pub fn at(&self, id: i32, counter: u64) -> Option<Timestamp> {
        // The kernel's own time has to fit, and so has that of the namespace, both the sum of the
        // seconds and what comes of the nanoseconds.
        let kernels = Timestamp::from_nanos(self.nanos(id, counter)?)?;
        let (secs, nanos) = match id {
            1 | 4 | 6 => self.monotonic_offset,
            7 => self.boottime_offset,
            _ => (0, 0),
        };
        let whole = i128::from(kernels.secs) + i128::from(secs);
        i64::try_from(whole).ok()?;
        Timestamp::from_nanos(whole * NANOS + i128::from(kernels.nanos) + i128::from(nanos))
    }

    /// Nanoseconds since zero of the kernel's clock `id`.
    fn nanos(&self, id: i32, counter: u64) -> Option<i128> {
        let (secs, nanos) = self.instant(id)?;
        match id {
            5 | 6 => Some(precise_nanos(secs, nanos, Scale::default(), Motion::Behind)),
            _ if !self.counter_is_readable => None,
            _ => {
                let scale = self.scale(id);
                let motion = motion(self.last, counter, scale.mask);
                Some(precise_nanos(secs, nanos, scale, motion))
            }
        }
    }

    /// `clock_gettime`.
    #[must_use]
    pub fn clock_gettime(&self, id: i32, counter: u64) -> Due<Timestamp> {
        Due::from(self.at(id, counter))
    }

    /// `clock_gettime_ns`: the register. What `clock_gettime` cannot represent falls back here too.
    #[must_use]
    pub fn clock_gettime_ns(&self, id: i32, counter: u64) -> Due<i64> {
        Due::from(self.at(id, counter).map(|time| in_a_register(time.nanos())))
    }

    /// `clock_getres` in nanoseconds.
    #[must_use]
    pub fn clock_getres(&self, id: i32) -> Due<u32> {
        let resolution = match id {
            5 | 6 => self.coarse_resolution,
            _ => self.precise_resolution,
        };
        let served = self.instant(id).is_some() && resolution != 0;
        Due::from(served.then_some(resolution))
    }

    /// `gettimeofday` with both arguments: time and timezone.
    #[must_use]
    pub fn gettimeofday(&self, counter: u64) -> Due<(Timestamp, (i32, i32))> {
        match (self.clock_gettime(0, counter), self.timezone()) {
            (Due::Value(time), Due::Value(zone)) => Due::Value((time, zone)),
            _ => Due::Fallback,
        }
    }

    /// `gettimeofday(NULL, tz)`.
    #[must_use]
    pub fn timezone(&self) -> Due<(i32, i32)> {
        Due::from((self.precise_resolution != 0).then_some(self.timezone))
    }

    /// `time`: seconds of the wall clock at the publication.
    #[must_use]
    pub fn time(&self) -> Due<i64> {
        Due::from(self.instant(0).map(|(secs, _)| secs))
    }

    /// The scale of a precise clock.
    #[must_use]
    pub fn scale(&self, id: i32) -> Scale {
        if id == 4 { self.raw } else { self.steered }
    }

    fn instant(&self, id: i32) -> Option<(i64, u64)> {
        if !SERVED.contains(&id) {
            return None;
        }
        *self.instants.get(usize::try_from(id).ok()?)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publication() -> Publication {
        let mut publication = Publication {
            counter_is_readable: true,
            last: 100,
            steered: Scale { mask: u64::MAX, mult: 3, shift: 1 },
            raw: Scale { mask: u64::MAX, mult: 7, shift: 2 },
            precise_resolution: 1,
            coarse_resolution: 4_000_000,
            timezone: (-60, 1),
            ..Publication::default()
        };
        publication.instants[0] = Some((10, 8));
        publication.instants[4] = Some((20, 8));
        publication.instants[5] = Some((10, 4));
        publication
    }

    #[test]
    fn each_clock_is_computed_on_its_own_scale() {
        let publication = publication();
        let at = |id| publication.clock_gettime(id, 110);
        assert_eq!(at(0), Due::Value(Timestamp { secs: 10, nanos: 19 }));
        assert_eq!(at(4), Due::Value(Timestamp { secs: 20, nanos: 19 }));
        assert_eq!(at(5), Due::Value(Timestamp { secs: 10, nanos: 4 }));
        assert_eq!(at(1), Due::Fallback, "unpublished");
        assert_eq!(at(2), Due::Fallback, "never served");
        assert_eq!(publication.clock_getres(5), Due::Value(4_000_000));
        assert_eq!(publication.clock_getres(6), Due::Fallback);
        assert_eq!(publication.time(), Due::Value(10));
    }

    #[test]
    fn a_namespace_moves_the_monotonic_and_the_boot_clock() {
        let mut publication = Publication {
            monotonic_offset: (-30, 999_999_990),
            boottime_offset: (5, 1),
            ..publication()
        };
        publication.instants[1] = Some((i64::MIN + 30, 0));
        publication.instants[6] = Some((i64::MIN + 29, 999_999_999));
        publication.instants[7] = Some((i64::MAX - 5, 999_999_998 << 1));
        let at = |publication: &Publication, id| publication.clock_gettime(id, 100);
        assert_eq!(at(&publication, 0), Due::Value(Timestamp { secs: 10, nanos: 4 }));
        assert_eq!(at(&publication, 4), Due::Value(Timestamp { secs: -10, nanos: 999_999_992 }));
        let first = Due::Value(Timestamp { secs: i64::MIN, nanos: 999_999_990 });
        assert_eq!(at(&publication, 1), first);
        assert_eq!(at(&publication, 6), Due::Fallback, "the sum of the seconds has to fit");
        let last = Due::Value(Timestamp { secs: i64::MAX, nanos: 999_999_999 });
        assert_eq!(at(&publication, 7), last);
        publication.boottime_offset = (5, 2);
        assert_eq!(at(&publication, 7), Due::Fallback);
    }

    #[test]
    fn without_a_counter_only_what_needs_none_is_served() {
        let publication = Publication { counter_is_readable: false, ..publication() };
        assert_eq!(publication.clock_gettime(0, 110), Due::Fallback);
        assert_eq!(publication.gettimeofday(110), Due::Fallback);
        assert_eq!(publication.timezone(), Due::Value((-60, 1)));
        assert_eq!(publication.clock_gettime_ns(5, 110), Due::Value(10_000_000_004));
        assert_eq!(publication.time(), Due::Value(10));
    }
}
