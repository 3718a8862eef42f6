//! A writer that publishes on another CPU while readers are measured.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

use crate::clock;

const IDLE: u8 = 0;
const PUBLISHES: u8 = 1;
const ENDS: u8 = 2;

/// The time between two publications.
#[derive(Clone, Copy, Debug)]
pub struct Pace(Duration);

impl Pace {
    /// So many a second.
    #[must_use]
    pub fn per_second(rate: u32) -> Self {
        Self(Duration::from_secs(1) / rate)
    }

    /// The time between two publications in nanoseconds.
    #[must_use]
    pub fn nanos(self) -> f64 {
        self.0.as_secs_f64() * 1e9
    }

    /// Waits until `due`: asleep if it is far, else spinning, since a sleep takes some 60
    /// microseconds longer than it was asked for.
    fn wait(self, due: Instant) {
        const SLEEPABLE: Duration = Duration::from_micros(200);
        if self.0 > SLEEPABLE {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        } else {
            while Instant::now() < due {
                spin_loop();
            }
        }
    }
}

#[derive(Debug, Default)]
struct Shared {
    state: AtomicU8,
    published: AtomicU64,
}

/// A thread that publishes at a steady pace while it is told to.
///
/// It wakes up at that pace in any case, so that a reader beside an idle writer differs from one
/// beside a busy writer by the publications alone.
#[derive(Debug)]
pub struct Publisher {
    shared: Arc<Shared>,
}

impl Publisher {
    /// Starts the thread on `cpu`, idle.
    pub fn spawn<'scope>(
        scope: &'scope Scope<'scope, '_>,
        cpu: usize,
        pace: Pace,
        publish: impl Fn() + Send + 'scope,
    ) -> Self {
        let shared = Arc::<Shared>::default();
        let told = Arc::clone(&shared);
        scope.spawn(move || {
            // A thread that may not move there publishes where it is.
            let _ = clock::pin(cpu);
            let mut due = Instant::now();
            loop {
                match told.state.load(Ordering::Relaxed) {
                    ENDS => return,
                    PUBLISHES => {
                        publish();
                        told.published.fetch_add(1, Ordering::Relaxed);
                    }
                    _ => {}
                }
                // What was missed while the thread did not run stays missed.
                due = (due + pace.0).max(Instant::now());
                pace.wait(due);
            }
        });
        Self { shared }
    }

    /// Lets the thread publish, or not.
    pub fn set(&self, publishes: bool) {
        let state = if publishes { PUBLISHES } else { IDLE };
        self.shared.state.store(state, Ordering::Relaxed);
    }

    /// How often it has published.
    #[must_use]
    pub fn published(&self) -> u64 {
        self.shared.published.load(Ordering::Relaxed)
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.shared.state.store(ENDS, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publisher_publishes_only_while_it_is_told_to_and_ends_with_its_owner() {
        let count = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let publisher = Publisher::spawn(scope, 0, Pace::per_second(2000), || {
                count.fetch_add(1, Ordering::Relaxed);
            });
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(publisher.published(), 0);
            publisher.set(true);
            while publisher.published() < 5 {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        assert!(count.into_inner() >= 5);
    }
}
