//! A page without a machine: any update that the writer accepts, under any counter.
//!
//! No timekeeper would ever publish most of these values. They are where the reader's arithmetic and
//! routing are judged to the bit, since nothing is in between: what was handed to the writer and
//! what the counter shows decide what is due.

use datapage::cycles::QUICK_SHIFT;
use datapage::protocol::Cells;
use datapage::{ClockMode, Features, PageValues, TimeZone, UpdateError, Writer};
use oracle::publication::Publication;
use oracle::published::{Motion, Scale, motion};

use crate::report::Exit;
use crate::scenario::Namespace;
use crate::subject::is_readable;

/// A page that a scenario publishes to.
pub(crate) struct Bare<C: Cells> {
    writer: Writer<'static, C>,
    /// What was published last.
    pub(crate) publication: Publication,
    /// What the counter shows.
    pub(crate) counter: u64,
    /// Whether the counter is the page's own, because the reader is an image.
    is_image: bool,
}

impl<C: Cells> Bare<C> {
    pub(crate) fn new(mut writer: Writer<'static, C>, is_image: bool) -> Self {
        writer.format(Features::empty(), datapage::SLOT_BYTES);
        Self { writer, publication: Publication::default(), counter: 0, is_image }
    }

    /// The programs that read are in this time namespace.
    pub(crate) fn enter(&mut self, namespace: &Namespace) {
        self.publication.monotonic_offset = namespace.monotonic;
        self.publication.boottime_offset = namespace.boottime;
    }

    pub(crate) fn into_writer(self) -> Writer<'static, C> {
        self.writer
    }

    pub(crate) fn publish(&mut self, values: &PageValues) -> Result<(), UpdateError> {
        let mut values = *values;
        if self.is_image && is_readable(values.clock_mode) {
            // The image would read the real counter.
            values.clock_mode = ClockMode::MEMORY;
        }
        self.writer.publish(&values.validate()?);
        self.publication = publication(&values, &self.publication);
        Ok(())
    }

    pub(crate) fn set_timezone(&mut self, zone: TimeZone) {
        self.writer.set_timezone(zone);
        self.publication.timezone = (zone.minutes_west, zone.dst_time);
    }

    pub(crate) fn set_counter(&mut self, value: u64) {
        self.counter = value;
        self.writer.set_memory_counter(value);
    }
}

/// An update as the event that it is; what it does not change is as it was in `last`.
fn publication(values: &PageValues, last: &Publication) -> Publication {
    let scale =
        |scale: datapage::Scale| Scale { mask: scale.mask, mult: scale.mult, shift: scale.shift };
    Publication {
        counter_is_readable: is_readable(values.clock_mode)
            || values.clock_mode == ClockMode::MEMORY,
        last: values.cycle_last,
        steered: scale(values.steered),
        raw: scale(values.raw),
        precise_resolution: values.hrtimer_res,
        coarse_resolution: values.coarse_res,
        instants: values
            .instants
            .map(|instant| instant.map(|instant| (instant.secs, instant.nanos))),
        ..*last
    }
}

/// By which exit a read of clock `id` has to leave the reader, for the report.
pub(crate) fn exit(publication: &Publication, id: i32, counter: u64) -> Exit {
    let place = usize::try_from(id).ok().filter(|_| oracle::publication::SERVED.contains(&id));
    let Some(instant) = place.and_then(|id| publication.instants.get(id)) else {
        return Exit::Fallback;
    };
    let Some((_, nanos)) = instant else {
        return Exit::Unpublished;
    };
    if id == 5 || id == 6 {
        return Exit::Fast;
    }
    if !publication.counter_is_readable {
        return Exit::Fallback;
    }
    let scale = publication.scale(id);
    match motion(publication.last, counter, scale.mask) {
        Motion::Behind => Exit::Behind,
        Motion::Ahead(cycles) => {
            let product = u128::from(cycles) * u128::from(scale.mult);
            let sum = product + u128::from(*nanos);
            let later = sum >> scale.shift;
            if product >> 63 != 0 || sum >> 64 != 0 || scale.shift > QUICK_SHIFT {
                Exit::Wide
            } else if later < 1_000_000_000 {
                Exit::Fast
            } else if sum >> 63 != 0 || later >> 40 != 0 {
                Exit::Wide
            } else {
                Exit::Carry
            }
        }
    }
}
