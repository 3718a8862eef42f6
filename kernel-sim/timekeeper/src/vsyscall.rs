//! From the timekeeper to the page.

use datapage::protocol::Cells;
use datapage::{ClockId, ClockMode, PageValues, Scale, TimeZone, UpdateError, Writer};

use crate::error::Error;
use crate::timekeeper::{Tick, Timekeeper, Trust};

impl Timekeeper {
    /// What a page has to say now.
    #[must_use]
    pub fn page_values(&self) -> PageValues {
        let raw = self.clocksource.scale();
        let monotonic = self.monotonic();
        let mut values = PageValues {
            clock_mode: match self.trust {
                Trust::Running => self.clocksource.mode(),
                Trust::Withdrawn { .. } | Trust::Suspended => ClockMode::NONE,
            },
            cycle_last: self.cycle_last,
            steered: Scale { mult: self.mult, ..raw },
            raw,
            hrtimer_res: self.resolution_ns(),
            coarse_res: self.tick_ns(),
            ..PageValues::default()
        };
        for (clock, line) in [
            (ClockId::REALTIME, self.xtime),
            (ClockId::MONOTONIC, monotonic),
            (ClockId::MONOTONIC_RAW, self.raw),
            (ClockId::BOOTTIME, self.boottime()),
            (ClockId::TAI, self.tai()),
        ] {
            values.set(clock, line.instant());
        }
        for (clock, line) in
            [(ClockId::REALTIME_COARSE, self.xtime), (ClockId::MONOTONIC_COARSE, monotonic)]
        {
            let time = line.time(raw.shift);
            values.set(clock, datapage::Instant { secs: time.secs, nanos: u64::from(time.nanos) });
        }
        values
    }
}

/// Publishes the clocks: readers see all of them as they are now, or all as they were.
///
/// # Errors
/// What the page refuses, which the timekeeper's invariants rule out; the page is then untouched.
pub fn update_vsyscall<C: Cells>(
    writer: &mut Writer<'_, C>,
    timekeeper: &Timekeeper,
) -> Result<(), UpdateError> {
    writer.publish(&timekeeper.page_values().validate()?);
    Ok(())
}

/// Publishes the timezone.
pub fn update_vsyscall_tz<C: Cells>(writer: &mut Writer<'_, C>, timezone: TimeZone) {
    writer.set_timezone(timezone);
}

/// A timekeeper and the page that shows it.
///
/// [`update`](Self::update) is the pair of `vdso_update_begin` and `vdso_update_end`, as a closure:
/// what is between the two works on a copy of the state, and only a complete, validated value
/// reaches the page. So there is no guard that could be dropped early, and no path, however the
/// closure ends, on which the page is half-written.
#[doc(alias = "vdso_update_begin")]
#[doc(alias = "vdso_update_end")]
pub struct Published<'p, C: Cells = datapage::protocol::Native> {
    timekeeper: Timekeeper,
    writer: Writer<'p, C>,
}

impl<'p, C: Cells> Published<'p, C> {
    /// Publishes `timekeeper` on the page of `writer`, from now on.
    ///
    /// # Errors
    /// [`Error::Page`].
    pub fn new(timekeeper: Timekeeper, mut writer: Writer<'p, C>) -> Result<Self, Error> {
        update_vsyscall(&mut writer, &timekeeper)?;
        update_vsyscall_tz(&mut writer, timekeeper.timezone);
        Ok(Self { timekeeper, writer })
    }

    /// Makes any number of changes, and publishes them as one.
    ///
    /// # Errors
    /// What `change` returns; state and page are then as they were.
    pub fn update<T, E: From<Error>>(
        &mut self,
        change: impl FnOnce(&mut Timekeeper) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut next = self.timekeeper;
        let outcome = change(&mut next)?;
        update_vsyscall(&mut self.writer, &next).map_err(Error::from)?;
        if next.timezone != self.timekeeper.timezone {
            update_vsyscall_tz(&mut self.writer, next.timezone);
        }
        self.timekeeper = next;
        Ok(outcome)
    }

    /// [`Timekeeper::tick`], published.
    ///
    /// # Errors
    /// [`Error::Page`].
    pub fn tick(&mut self, now_cycles: u64) -> Result<Tick, Error> {
        self.update(|timekeeper| Ok(timekeeper.tick(now_cycles)))
    }

    /// The two parts, for whoever goes on with another timekeeper on the same page.
    #[must_use]
    pub fn into_parts(self) -> (Timekeeper, Writer<'p, C>) {
        (self.timekeeper, self.writer)
    }

    /// The clocks.
    #[must_use]
    pub const fn timekeeper(&self) -> &Timekeeper {
        &self.timekeeper
    }

    /// The page's writer, for what is not the timekeeper's: the counter of
    /// [`ClockMode::MEMORY`](datapage::ClockMode::MEMORY), above all.
    pub const fn writer(&mut self) -> &mut Writer<'p, C> {
        &mut self.writer
    }
}
