//! A writer that publishes on another CPU while readers are measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::Scope;
use std::time::Duration;

use crate::clock;

const IDLE: u8 = 0;
const PUBLISHES: u8 = 1;
const ENDS: u8 = 2;

/// A thread that publishes at a steady rate while it is told to.
///
/// It wakes up at that rate in any case, so that a reader beside an idle writer differs from one
/// beside a busy writer by the publications alone.
#[derive(Debug)]
pub struct Publisher {
    state: Arc<AtomicU8>,
}

impl Publisher {
    /// Starts the thread on `cpu`, idle.
    pub fn spawn<'scope>(
        scope: &'scope Scope<'scope, '_>,
        cpu: usize,
        period_nanos: u32,
        publish: impl Fn() + Send + 'scope,
    ) -> Self {
        let state = Arc::new(AtomicU8::new(IDLE));
        let told = Arc::clone(&state);
        scope.spawn(move || {
            // A thread that may not move there publishes where it is.
            let _ = clock::pin(cpu);
            let period = Duration::from_nanos(u64::from(period_nanos));
            loop {
                match told.load(Ordering::Relaxed) {
                    ENDS => return,
                    PUBLISHES => publish(),
                    _ => {}
                }
                std::thread::sleep(period);
            }
        });
        Self { state }
    }

    /// Lets the thread publish, or not.
    pub fn set(&self, publishes: bool) {
        self.state.store(if publishes { PUBLISHES } else { IDLE }, Ordering::Relaxed);
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.state.store(ENDS, Ordering::Relaxed);
    }
}
