//! Runs scenarios, on pages and images that are made once and used again.

use std::rc::Rc;

use datapage::protocol::{Cells, Native};
use datapage::{Page, Writer};
use kernel_sim::map::MappedImage;

use crate::preempt::Preemptible;
use crate::report::Counts;
use crate::scenario::{Reader, Scenario};
use crate::subject::{Code, Image, Subject};
use crate::world::{Unusable, Violation, World};

/// Where scenarios are run: one page for each kind of reader.
///
/// The pages live as long as the program, since a preempted access can run anything.
#[derive(Default)]
pub struct Stage {
    code: Option<Place<Native>>,
    preemptible: Option<Place<Preemptible>>,
    image: Option<Place<Native>>,
}

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
            Reader::Code => play(&mut self.code, scenario, || Ok(on_page())),
            Reader::Preemptible => play(&mut self.preemptible, scenario, || Ok(on_page())),
            Reader::Image => play(&mut self.image, scenario, || {
                // This one never enters the host's kernel, so a fallback shows as -ENOSYS.
                let mapped = MappedImage::new(&linker::ENOSYS)
                    .map_err(|error| Unusable(format!("mapping the image: {error}")))?;
                let (writer, mapped) = Box::leak(Box::new(mapped)).split();
                Ok(Place { writer, subject: Rc::new(Subject::Image(Image::new(mapped))) })
            }),
        }
    }
}

fn on_page<C: Cells>() -> Place<C> {
    let (writer, page) = Writer::split(Box::leak(Box::new(Page::<C>::of_zeros())));
    Place { writer, subject: Rc::new(Subject::Code(Code::new(page))) }
}

fn play<C: Cells>(
    place: &mut Option<Place<C>>,
    scenario: &Scenario,
    make: impl FnOnce() -> Result<Place<C>, Unusable>,
) -> Result<Outcome, Unusable> {
    let Place { writer, subject } = match place.take() {
        Some(place) => place,
        None => make()?,
    };
    let world = World::new(&scenario.setup, writer, Rc::clone(&subject))?;
    let mut steps = scenario.steps.iter().enumerate();
    let violation =
        steps.find_map(|(index, step)| world.step(step).err().map(|wrong| (index, wrong)));
    let (writer, counts) = world.into_parts();
    *place = writer.map(|writer| Place { writer, subject });
    Ok(Outcome { counts, violation })
}
