//! Reads clocks with rustix, which finds and calls the vDSO without a libc.

use rustix::time::{ClockId, clock_gettime};

fn main() {
    let clocks = [
        ("realtime", ClockId::Realtime),
        ("monotonic", ClockId::Monotonic),
        ("monotonic_raw", ClockId::MonotonicRaw),
        ("realtime_coarse", ClockId::RealtimeCoarse),
        ("monotonic_coarse", ClockId::MonotonicCoarse),
        ("boottime", ClockId::Boottime),
    ];
    for (key, clock) in clocks {
        let mut now = clock_gettime(clock);
        for _ in 0..1000 {
            now = clock_gettime(clock);
        }
        println!("{key} {}.{:09}", now.tv_sec, now.tv_nsec);
    }
    let mut cpu = rustix::thread::sched_getcpu();
    for _ in 0..1000 {
        cpu = rustix::thread::sched_getcpu();
    }
    println!("cpu {cpu}");
}
