//! Runs scenarios, on pages and images that are made once and used again.

use std::rc::Rc;

use datapage::protocol::{Cells, Native};
use datapage::{Features, Offset, Offsets, Page, SLOT_BYTES, Writer};
use kernel_sim::map::MappedImage;

use crate::preempt::Preemptible;
use crate::report::Counts;
use crate::scenario::{Namespace, Reader, Scenario};
use crate::subject::{Code, Image, Subject};
use crate::world::{Unusable, Violation, World};

/// Where scenarios are run: a page for each kind of reader and each namespace.
///
/// The pages live as long as the program, since a preempted access can run anything.
#[derive(Default)]
pub struct Stage {
    code: Places<Native>,
    preemptible: Places<Preemptible>,
    image: Places<Native>,
}

/// The places of a kind of reader that are not in use, by namespace.
type Places<C> = Vec<(Option<Namespace>, Place<C>)>;

/// How a scenario ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What was done and read.
    pub counts: Counts,
    /// The first thing that was wrong, and the number of the step in which it showed.
    pub violation: Option<(usize, Violation)>,
}

struct Place<C: Cells> {
    writer: Writer<'static, C>,
    subject: Rc<Subject<'static, C>>,
}

impl Stage {
    /// An empty stage.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs `scenario` up to its end or its first violation.
    ///
    /// # Errors
    /// A setup that no machine can have, or an image that cannot be mapped.
    pub fn run(&mut self, scenario: &Scenario) -> Result<Outcome, Unusable> {
        match scenario.setup.reader {
            Reader::Code => play(&mut self.code, scenario, on_page),
            Reader::Preemptible => play(&mut self.preemptible, scenario, on_page),
            Reader::Image => play(&mut self.image, scenario, |offsets| {
                // This one never enters the host's kernel, so a fallback shows as -ENOSYS.
                let image = &linker::ENOSYS;
                let mapped = match offsets {
                    None => MappedImage::new(image),
                    Some(offsets) => MappedImage::in_namespace(image, offsets),
                };
                let mapped =
                    mapped.map_err(|error| Unusable(format!("mapping the image: {error}")))?;
                let (writer, mapped) = Box::leak(Box::new(mapped)).split();
                Ok(Place { writer, subject: Rc::new(Subject::Image(Image::new(mapped))) })
            }),
        }
    }
}

fn on_page<C: Cells>(offsets: Option<&Offsets>) -> Result<Place<C>, Unusable> {
    let fresh = || Writer::split(Box::leak(Box::new(Page::<C>::of_zeros())));
    let (writer, page) = fresh();
    let code = match offsets {
        None => Code::new(page),
        Some(offsets) => {
            let (namespace, front) = fresh();
            namespace.format_namespace(offsets, Features::empty(), SLOT_BYTES);
            Code::in_namespace(front, page)
        }
    };
    Ok(Place { writer, subject: Rc::new(Subject::Code(code)) })
}

fn offsets(namespace: &Namespace) -> Result<Offsets, Unusable> {
    let offset = |(secs, nanos)| {
        let wrong = || Unusable(format!("an offset of {nanos} ns; it must be below 10^9"));
        Offset::new(secs, nanos).ok_or_else(wrong)
    };
    Ok(Offsets { monotonic: offset(namespace.monotonic)?, boottime: offset(namespace.boottime)? })
}

fn play<C: Cells>(
    places: &mut Places<C>,
    scenario: &Scenario,
    make: impl FnOnce(Option<&Offsets>) -> Result<Place<C>, Unusable>,
) -> Result<Outcome, Unusable> {
    let namespace = scenario.setup.namespace;
    let Place { writer, subject } = match places.iter().position(|place| place.0 == namespace) {
        Some(place) => places.swap_remove(place).1,
        None => make(namespace.as_ref().map(offsets).transpose()?.as_ref())?,
    };
    let world = World::new(&scenario.setup, writer, Rc::clone(&subject))?;
    let mut steps = scenario.steps.iter().enumerate();
    let violation =
        steps.find_map(|(index, step)| world.step(step).err().map(|wrong| (index, wrong)));
    let (writer, counts) = world.into_parts();
    places.extend(writer.map(|writer| (namespace, Place { writer, subject })));
    Ok(Outcome { counts, violation })
}
