//! What a call comes to, and between which two others it has to lie.

use std::ffi::c_void;
use std::ptr::null_mut;

/// What memory holds that nothing was stored to.
pub(super) const UNTOUCHED: [i64; 2] = [0x5a5a_5a5a_5a5a_5a5a, -0x0123_4567_89ab_cdef];

/// What a call returned and stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// What it returned: a raw negative errno for an error.
    pub(super) returned: i64,
    /// The time that it stored, which is late if the call is.
    pub(super) time: [i64; 2],
    /// What else it stored, which is not.
    pub(super) other: [i64; 2],
}

impl Answer {
    /// A call that stored nothing.
    pub(super) const fn returned(returned: i64) -> Self {
        Self { returned, time: UNTOUCHED, other: UNTOUCHED }
    }

    /// Whether both came to the same end: what was before a call and after it says something of the
    /// call only then.
    pub(super) fn agrees_with(&self, later: &Self) -> bool {
        let is_error = self.returned < 0 || later.returned < 0;
        (!is_error || self.returned == later.returned) && self.other == later.other
    }

    /// Whether it is what a call has to come to that is made between these two, which agree.
    pub(super) fn is_between(&self, earlier: &Self, later: &Self) -> bool {
        (earlier.returned..=later.returned).contains(&self.returned)
            && (earlier.time..=later.time).contains(&self.time)
            && self.other == earlier.other
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.returned)?;
        let words = |words: [i64; 2]| words.into_iter().zip(UNTOUCHED);
        let stored = |(word, before): (i64, i64)| (word != before).then_some(word);
        let time = words(self.time).filter_map(stored).map(|word| word.to_string());
        let other = words(self.other).filter_map(stored).map(|word| format!("{word:#x}"));
        let stored: Vec<_> = time.chain(other).collect();
        if stored.is_empty() { Ok(()) } else { write!(f, ", stored {}", stored.join(" and ")) }
    }
}

/// A pointer to words of memory, or none.
pub(super) fn pointer(memory: &mut [i64], is_null: bool) -> *mut c_void {
    if is_null { null_mut() } else { memory.as_mut_ptr().cast() }
}
