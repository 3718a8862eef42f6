//! Progress bars: on a terminal only, and gone when the part is done.

use std::cell::RefCell;
use std::io::IsTerminal as _;

use bench::report::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// A bar for the part that runs.
pub(super) struct Bars {
    bar: RefCell<ProgressBar>,
}

impl Bars {
    /// No bar yet.
    pub(super) fn new() -> Self {
        Self { bar: RefCell::new(ProgressBar::hidden()) }
    }
}

impl Progress for Bars {
    fn begin(&self, what: &str, steps: usize) {
        if !std::io::stderr().is_terminal() {
            return;
        }
        let bar = ProgressBar::new(steps as u64);
        if let Ok(style) = ProgressStyle::with_template("{msg:<40} {bar:30} {pos}/{len} {eta}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        self.bar.replace(bar);
    }

    fn step(&self) {
        self.bar.borrow().inc(1);
    }

    fn end(&self) {
        self.bar.borrow().finish_and_clear();
    }
}
