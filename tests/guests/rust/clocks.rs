//! Reads the wall clock and the monotonic clock with Rust's standard library, from two threads.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

fn main() {
    let read = || {
        for _ in 0..1000 {
            let start = Instant::now();
            // Not `elapsed`, which saturates: that would hide a clock that went back.
            assert!(Instant::now().checked_duration_since(start).is_some(), "went back");
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(read);
        scope.spawn(read);
    });
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    println!("realtime {}.{:09}", now.as_secs(), now.subsec_nanos());
    // An instant has no number, but it shows what it holds: `Instant { tv_sec: 7, tv_nsec: 89 }`.
    let shown = format!("{:?}", Instant::now());
    let numbers: Vec<u64> =
        shown.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    let [secs, nanos] = numbers[..] else { panic!("{shown}") };
    println!("monotonic {secs}.{nanos:09}");
}
