//! Calls every function of an image, and compares.
//!
//! Each is called under both of its names, with every id, null or not, on every page. What a page
//! serves must be exact: between the times that belong to the counter before and after the call. What
//! it does not serve must be the kernel's own answer, or `-ENOSYS` where that is the image's policy,
//! with the caller's memory left alone on error. Where null is the caller's mistake the call must
//! fault, in a child. The image's code runs in this process: whoever drives an image of unknown
//! origin does it in a process that may die.
//!
//! | file | answers |
//! |---|---|
//! | `ids.rs` | which clocks are asked for |
//! | `state.rs` | what is the page meanwhile, and what does it serve |
//! | `calls.rs` | which calls are made, and what has each to come to |
//! | `answer.rs` | what does a call come to, and between which two others does it lie |
//! | `kernel.rs` | what does the kernel say where the page does not |

mod answer;
mod calls;
mod ids;
mod kernel;
mod state;
#[cfg(test)]
mod tests;

use std::io;

use datapage::UpdateError;
use linker::Image;

use crate::functions::Functions;
use crate::map::MappedImage;
use calls::Calls;
use kernel::Kernel;
use state::State;

pub use ids::{NEIGHBOURS, ids};
pub use state::MODES;

/// What happens while an image is driven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A call is about to be made.
    Call(String),
    /// The last call did something else than it had to.
    Difference(String),
}

/// What was done when an image was driven to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Made {
    /// Calls.
    pub calls: u64,
    /// Pages that they were made on.
    pub pages: usize,
}

/// Why an image cannot be driven at all, or no further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// Its page has another layout than this program writes.
    #[error("the image reads page ABI {found}, this program writes {wanted}")]
    PageAbi {
        /// What the image's note says.
        found: u32,
        /// What is written here.
        wanted: u32,
    },
    /// There is no room for a time namespace's page before the kernel's.
    #[error("the image has {found} page slots, and a time namespace needs {wanted}")]
    Slots {
        /// What the image's note says.
        found: u32,
        /// Slots of the namespace's page and the kernel's.
        wanted: u32,
    },
    /// It exports nothing that could be called.
    #[error("the image exports none of {}", Functions::NAMES.join(", "))]
    NoFunctions,
    /// The kernel refused a mapping or a child.
    #[error("preparing a call")]
    System(#[from] io::Error),
    /// An update was refused.
    #[error("publishing a page")]
    Update(#[source] UpdateError),
}

/// An image that can be driven.
#[derive(Clone, Copy, Debug)]
pub struct Drive {
    image: Image,
}

impl Drive {
    /// A drive of `image`.
    ///
    /// # Errors
    /// What keeps it from being driven.
    pub fn of(image: &Image) -> Result<Self, DriveError> {
        /// The namespace's page, and the kernel's behind it.
        const SLOTS: u32 = 2;
        let Image { page_abi, slots, .. } = *image;
        if page_abi != datapage::ABI {
            return Err(DriveError::PageAbi { found: page_abi, wanted: datapage::ABI });
        }
        if slots < SLOTS {
            return Err(DriveError::Slots { found: slots, wanted: SLOTS });
        }
        let drive = Self { image: *image };
        if drive.called().is_empty() {
            return Err(DriveError::NoFunctions);
        }
        Ok(drive)
    }

    /// The names that are called.
    #[must_use]
    pub fn called(&self) -> Vec<&'static str> {
        self.exported().filter(|name| is_known(name)).collect()
    }

    /// The exported names that are not: what they have to do is not known here.
    #[must_use]
    pub fn not_called(&self) -> Vec<&'static str> {
        self.exported().filter(|name| !is_known(name)).collect()
    }

    fn exported(&self) -> impl Iterator<Item = &'static str> {
        self.image.symbols.iter().map(|symbol| symbol.name)
    }

    /// Makes every call.
    ///
    /// # Errors
    /// What keeps it from going on. Differences are events, not errors.
    pub fn run(&self, report: impl FnMut(Event)) -> Result<Made, DriveError> {
        self.run_on(State::all(), report)
    }

    fn run_on(
        &self,
        states: Vec<State>,
        mut report: impl FnMut(Event),
    ) -> Result<Made, DriveError> {
        let mut kernels = MappedImage::new(&self.image)?;
        let mut namespaces = MappedImage::in_namespace(&self.image, &state::namespace())?;
        let mut all = Made { calls: 0, pages: states.len() };
        for mut state in states {
            let mapped = if state.is_in_namespace { &mut namespaces } else { &mut kernels };
            state.publish(mapped).map_err(DriveError::Update)?;
            for (prefix, functions) in
                [(Functions::PREFIX, mapped.functions()), ("", mapped.aliases())]
            {
                let kernel = Kernel::behind(self.image.policy);
                let report = &mut report;
                let mut made = Calls { functions, prefix, kernel, state, report, calls: 0 };
                made.all()?;
                all.calls += made.calls;
            }
        }
        Ok(all)
    }
}

/// Whether `name` is that of a function whose contract is known, with the prefix or without.
fn is_known(name: &str) -> bool {
    let mut names = Functions::NAMES.iter();
    names.any(|known| *known == name || known.strip_prefix(Functions::PREFIX) == Some(name))
}
