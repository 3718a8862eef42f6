//! What is called: the functions of a mapped image, known to stay mapped.

use std::marker::PhantomData;

use kernel_sim::functions::Functions;
use kernel_sim::map::MappedImage;

/// The functions of an image that is mapped for all of `'m`.
///
/// # Invariants
/// Each function may be called for as long as `'m` lasts.
#[derive(Clone, Copy, Debug)]
pub struct Callee<'m> {
    functions: Functions,
    image: PhantomData<&'m MappedImage>,
}

impl<'m> Callee<'m> {
    /// The functions of our image.
    #[must_use]
    pub fn of(image: &'m MappedImage) -> Self {
        // INVARIANT: the borrow keeps the mapping.
        Self { functions: image.functions(), image: PhantomData }
    }

    /// The functions.
    #[must_use]
    pub fn functions(&self) -> &Functions {
        &self.functions
    }
}

impl Callee<'static> {
    /// The functions of the host's vDSO, if there is one.
    #[must_use]
    pub fn host() -> Option<Self> {
        // INVARIANT: the kernel's mapping stays as long as the process.
        Some(Self { functions: Functions::of_host()?, image: PhantomData })
    }

    /// Functions that belong to no image.
    ///
    /// # Safety
    /// They stay mapped as long as the process.
    #[must_use]
    pub const unsafe fn lasting(functions: Functions) -> Self {
        Self { functions, image: PhantomData }
    }
}
