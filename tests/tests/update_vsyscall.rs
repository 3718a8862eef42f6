//! A kernel's side allocates nothing and enters no kernel: counted, not read off the code.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use datapage::{ClockMode, Page, Time, TimeZone, Writer};
use tests::child::{Outcome, outcome};
use timekeeper::{Clocksource, Config, Error, Leap, Published, Timekeeper, update_vsyscall};

/// The system's allocator, with a count for each thread.
struct Counting;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends has no counter any more, and is none of these tests.
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
}

// SAFETY: each function hands its arguments on to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's own arguments.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller's own arguments.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls of the allocator that `body` makes; the other functions of the trait end in these two.
fn allocations(body: impl FnOnce()) -> u64 {
    let before = CALLS.get();
    body();
    CALLS.get() - before
}

/// How a child ends that may enter the kernel for nothing but its own end.
fn without_system_calls(body: impl FnOnce()) -> Outcome {
    outcome(|| {
        let strict = libc::SECCOMP_MODE_STRICT;
        // SAFETY: plain numbers; from here on the kernel kills this child for any call but `read`,
        // `write`, `exit` and the return from a signal.
        if unsafe { libc::prctl(libc::PR_SET_SECCOMP, strict) } != 0 {
            return 2;
        }
        body();
        // SAFETY: ends this thread, the only one of the child.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
        3
    })
}

const HERTZ: u64 = 1_000_000_000;

fn start() -> Timekeeper {
    let counter = Clocksource::new("tsc", HERTZ, u64::MAX, ClockMode::COUNTER).unwrap();
    let realtime = Time { secs: 1_700_000_000, nanos: 0 };
    Timekeeper::new(counter, 0, realtime, Config::default()).unwrap()
}

/// A thousand ticks, and every other way to change what the page shows.
fn everything(clocks: &mut Published<'_>) -> Result<(), Error> {
    let mut now = 0;
    for round in 0..1000_u32 {
        now += HERTZ / 1000;
        clocks.tick(now)?;
        clocks.update(|clocks| match round % 10 {
            0 => clocks.set_time(now, Time { secs: 1_700_000_000 + i64::from(round), nanos: 7 }),
            1 => clocks.inject_offset(now, Time { secs: 0, nanos: 500 }),
            2 => clocks.set_tai_offset(37),
            3 => clocks.set_frequency(now, i64::from(round % 400) << 16),
            4 => clocks.slew(now, 1000),
            5 => clocks.set_leap(now, Some(Leap::Insert)),
            6 => clocks.set_leap(now, None),
            7 => clocks.suspend(now, None),
            8 => clocks.resume(now, None).map(drop),
            _ => {
                clocks.set_timezone(TimeZone { minutes_west: -60, dst_time: 0 })?;
                let mode = [ClockMode::COUNTER, ClockMode::MEMORY][round as usize / 10 % 2];
                let counter = Clocksource::new("other", HERTZ, u64::MAX, mode)?;
                clocks.set_clocksource(now, counter, now).map(drop)
            }
        })?;
    }
    Ok(())
}

/// Runs all of it on a page that was there before `within`, by which it is watched.
fn watched<T>(within: impl FnOnce(&mut dyn FnMut()) -> T) -> T {
    let mut page = Page::zeroed();
    let (writer, _) = Writer::split(&mut page);
    let timekeeper = start();
    let mut clocks = Published::new(timekeeper, writer).unwrap();
    let mut other = Page::zeroed();
    let (mut writer, _) = Writer::split(&mut other);
    within(&mut || {
        everything(&mut clocks).unwrap();
        update_vsyscall(&mut writer, black_box(&timekeeper)).unwrap();
    })
}

#[test]
fn publishing_allocates_nothing() {
    assert_eq!(watched(|run| allocations(run)), 0);
    // The counter counts.
    assert_eq!(allocations(|| drop(black_box(Box::new(1)))), 2);
}

#[test]
fn publishing_makes_no_system_call() {
    assert_eq!(watched(|run| without_system_calls(run)), Outcome::Exited(0));
    // The kernel kills who makes one.
    let calls = || {
        // SAFETY: asks for the id of the parent; no arguments.
        unsafe { libc::syscall(libc::SYS_getppid) };
    };
    assert_eq!(without_system_calls(calls), Outcome::Signalled(libc::SIGKILL));
}
