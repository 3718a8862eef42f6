//! Scenarios: what happens to a machine and what is read from it, step by step.
//!
//! A scenario is a value that tests build and a text that people read; [`text`] turns one into the
//! other without loss. Everything that a run does follows from it, so a violation is replayed by
//! its scenario.

pub mod text;

use datapage::PageValues;
use kernel_sim::machine::Event;
use kernel_sim::machine::setup::Setup as Machine;

use crate::subject::Call;

/// A complete run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// What is read, and what writes it.
    pub setup: Setup,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// What is read, and what writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Which reader is judged.
    pub reader: Reader,
    /// The time namespace that it is in.
    pub namespace: Option<Namespace>,
    /// The machine whose timekeeper writes the page; `None` for a page that the scenario itself
    /// publishes to, with any values that the writer accepts.
    pub machine: Option<Machine>,
}

/// A time namespace: seconds and nanoseconds, which count upwards, that its page adds to clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// To MONOTONIC, its coarse clock and MONOTONIC_RAW.
    pub monotonic: (i64, u32),
    /// To BOOTTIME.
    pub boottime: (i64, u32),
}

/// Which reader is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reader {
    /// The reader as Rust code on the shipped words.
    Code,
    /// The reader and the writer as Rust code on words at which they can be preempted.
    Preemptible,
    /// The shipped image, counting in the page's own counter.
    Image,
}

/// One step of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// True time passes, in nanoseconds.
    Pass(u64),
    /// Something happens to the machine.
    Event(Event),
    /// The machine runs by itself: an interrupt at every period, and every clock read after it.
    Run {
        /// For how long, in nanoseconds.
        ns: u64,
        /// Time between interrupts, in nanoseconds.
        every: u64,
    },
    /// A call is made on a CPU.
    Read {
        /// The CPU.
        cpu: usize,
        /// Which calls.
        which: Which,
    },
    /// A call is made and preempted right before its load number `at`; `inside` happens meanwhile.
    InterruptedRead {
        /// The CPU.
        cpu: usize,
        /// The call.
        call: Call,
        /// The load.
        at: u32,
        /// What happens on the other CPUs.
        inside: Vec<Step>,
    },
    /// Something happens to the machine, and whoever writes the page for it is preempted right
    /// before store number `at`; every call is made meanwhile.
    InterruptedUpdate {
        /// The event.
        event: Event,
        /// The store.
        at: u32,
    },
    /// Without a machine: an update.
    Publish(Box<PageValues>),
    /// Without a machine: what the counter shows from now on.
    Counter(u64),
}

/// Which calls a step makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// One.
    One(Call),
    /// `clock_gettime` of every served clock.
    Clocks,
    /// Every call there is.
    All,
}

impl Scenario {
    /// Steps, those inside of others included.
    #[must_use]
    pub fn len(&self) -> usize {
        fn count(steps: &[Step]) -> usize {
            let inside = |step: &Step| match step {
                Step::InterruptedRead { inside, .. } => 1 + count(inside),
                _ => 1,
            };
            steps.iter().map(inside).sum()
        }
        count(&self.steps)
    }

    /// Whether nothing happens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}
