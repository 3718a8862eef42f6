//! What the shipped images do with pages that no writer would leave: every mode, a dead writer,
//! noise.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "a test fails by panicking, and registers are 64 bits wide here"
)]

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use datapage::ClockMode;
use kernel_sim::drive::MODES;
use kernel_sim::functions::Functions;
use kernel_sim::map::MappedImage;
use libc::{timespec, timeval};
use tests::kernel;
use tests::page::RawPage;

const ENOSYS: isize = -38;
const PRECISE: [i32; 5] = [0, 1, 4, 7, 11];
const COARSE: [i32; 2] = [5, 6];

fn gettime(functions: &Functions, id: i32) -> (isize, i64, i64) {
    let mut spec = timespec { tv_sec: -7, tv_nsec: -7 };
    // SAFETY: a live timespec.
    let answer = unsafe { functions.clock_gettime.unwrap()(id, &raw mut spec) };
    (answer, spec.tv_sec, spec.tv_nsec)
}

/// Calls everything once and returns the answers.
fn call_all(functions: &Functions) -> Vec<isize> {
    let mut answers = Vec::new();
    let mut spec = timespec { tv_sec: 0, tv_nsec: 0 };
    for id in -2..14 {
        // SAFETY: a live timespec.
        answers.push(unsafe { functions.clock_gettime.unwrap()(id, &raw mut spec) });
        // SAFETY: as above.
        answers.push(unsafe { functions.clock_getres.unwrap()(id, &raw mut spec) });
        // SAFETY: the image is mapped.
        answers.push(unsafe { functions.clock_gettime_ns.unwrap()(id) } as isize);
    }
    let mut tv = timeval { tv_sec: 0, tv_usec: 0 };
    let mut zone = [0_i32; 2];
    // SAFETY: live structures.
    answers.push(unsafe { functions.gettimeofday.unwrap()(&raw mut tv, (&raw mut zone).cast()) });
    let mut seconds = 0_i64;
    // SAFETY: a live i64.
    answers.push(unsafe { functions.time.unwrap()(&raw mut seconds) } as isize);
    answers
}

#[test]
fn each_mode_is_read_as_its_own_counter_and_every_other_falls_back() {
    let mut mapped = MappedImage::new(&linker::ENOSYS).unwrap();
    let (words, mapped) = mapped.split_words();
    let functions = mapped.functions();
    // 0x102 and 0x103 are other architectures' (0x103 is this one's counter, for 64-bit images).
    for ClockMode(mode) in MODES {
        RawPage { clock_mode: mode, cycle_last: 0, ..RawPage::serving() }.store(words);
        let served = matches!(mode, 1 | 0x100 | 0x101 | 0x103);
        for id in PRECISE {
            let (answer, ..) = gettime(&functions, id);
            assert_eq!(answer, if served { 0 } else { ENOSYS }, "mode {mode:#x}, id {id}");
        }
        for id in COARSE {
            assert_eq!(gettime(&functions, id).0, 0, "mode {mode:#x}, id {id}");
        }
        // SAFETY: null is legal.
        let seconds = unsafe { functions.time.unwrap()(std::ptr::null_mut()) };
        assert_eq!(seconds, 1_700_000_000, "time() works in mode {mode:#x}");
    }
}

#[test]
fn the_counter_modes_read_the_cpus_counter() {
    let mut mapped = MappedImage::new(&linker::ENOSYS).unwrap();
    let (words, mapped) = mapped.split_words();
    let functions = mapped.functions();
    for mode in [1, 0x101] {
        let mut page =
            RawPage { clock_mode: mode, cycle_last: 0, memory_counter: 0, ..RawPage::serving() };
        // A cycle is a nanosecond after second 10: what is read is the counter itself.
        for scale in &mut page.cs {
            (scale.mult, scale.shift) = (1, 0);
        }
        page.basetime = [(10, 0); 12];
        page.store(words);
        for id in PRECISE {
            // SAFETY: reads the counter.
            let before = unsafe { std::arch::x86_64::_rdtsc() };
            let (answer, secs, nanos) = gettime(&functions, id);
            // SAFETY: as above.
            let after = unsafe { std::arch::x86_64::_rdtsc() };
            assert_eq!(answer, 0);
            let cycles = u64::try_from((secs - 10) * 1_000_000_000 + nanos).unwrap();
            assert!(
                (before..=after).contains(&cycles),
                "mode {mode:#x}, id {id}: {before} <= {cycles} <= {after}"
            );
        }
    }
}

#[test]
fn mode_none_asks_the_kernel_and_passes_its_answer_on() {
    let mut mapped = MappedImage::new(&linker::SYSCALL).unwrap();
    let (words, mapped) = mapped.split_words();
    let functions = mapped.functions();
    RawPage { clock_mode: 0, ..RawPage::serving() }.store(words);
    for id in PRECISE {
        let before = kernel::clock_gettime(id);
        let (answer, secs, nanos) = gettime(&functions, id);
        let after = kernel::clock_gettime(id);
        assert_eq!(answer, 0);
        assert!(
            before <= (secs, nanos) && (secs, nanos) <= after,
            "id {id}: {before:?} {secs}.{nanos} {after:?}"
        );
    }
}

#[test]
fn a_zero_page_serves_nothing() {
    let mut mapped = MappedImage::new(&linker::ENOSYS).unwrap();
    let (_, mapped) = mapped.split_words();
    let answers = call_all(&mapped.functions());
    assert!(answers.iter().all(|answer| *answer == ENOSYS), "{answers:?}");
    let getcpu = mapped.functions().getcpu.unwrap();
    let mut cpu = 7;
    // SAFETY: a live word, and legal nulls.
    let answer = unsafe { getcpu(&raw mut cpu, std::ptr::null_mut(), std::ptr::null_mut()) };
    assert_eq!((answer, cpu), (ENOSYS, 7));
}

#[test]
fn a_page_left_odd_costs_a_bounded_wait_and_then_the_fallback() {
    let mut mapped = MappedImage::new(&linker::ENOSYS).unwrap();
    let (words, mapped) = mapped.split_words();
    for seq in [1, 3, u32::MAX] {
        RawPage { seq, ..RawPage::serving() }.store(words);
        let functions = mapped.functions();
        let start = Instant::now();
        let mut answers = call_all(&functions);
        // time() is one word, which no update can tear.
        assert_eq!(answers.pop(), Some(1_700_000_000));
        assert!(answers.iter().all(|answer| *answer == ENOSYS), "{answers:?}");
        // A bound against hanging, not a measurement: some twenty waits of 100 us at most each.
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn a_page_that_changes_all_the_time_hangs_nobody() {
    let mut mapped = MappedImage::new(&linker::ENOSYS).unwrap();
    let (words, mapped) = mapped.split_words();
    RawPage::serving().store(words);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut seq = 0_u32;
            while !done.load(Ordering::Relaxed) {
                seq = seq.wrapping_add(1);
                words[0].store(u64::from(seq) | 0x100 << 32, Ordering::Relaxed);
            }
        });
        let functions = mapped.functions();
        for _ in 0..2000 {
            for answer in call_all(&functions) {
                assert!(answer >= 0 || answer == ENOSYS, "{answer}");
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn no_page_of_noise_faults_or_hangs_or_gives_a_time_out_of_range() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut noise = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut mapped = MappedImage::new(&linker::ENOSYS).unwrap();
    let (words, mapped) = mapped.split_words();
    let functions = mapped.functions();
    // RDPID is an instruction that the CPU may not have: the bit is the writer's to promise.
    let features = datapage::layout::offset::FEATURES / 8;
    for round in 0..20_000 {
        for word in words {
            word.store(noise(), Ordering::Relaxed);
        }
        words[features].store(noise() & !1, Ordering::Relaxed);
        if round % 2 == 0 {
            // Stable, in a mode that is served, and one shift in two legal: or little is reached.
            let mode = [1_u64, 0x100, 0x101][round / 2 % 3];
            words[0].store(noise() & 0xffff_fffe | mode << 32, Ordering::Relaxed);
            for scale in [3, 5] {
                words[scale].store(noise() & 0x3f_ffff_ffff, Ordering::Relaxed);
            }
        }
        for id in PRECISE.into_iter().chain(COARSE) {
            let (answer, secs, nanos) = gettime(&functions, id);
            assert!(answer == 0 || answer == ENOSYS);
            if answer == 0 {
                assert!((0..1_000_000_000).contains(&nanos), "{secs}.{nanos}");
            } else {
                assert_eq!((secs, nanos), (-7, -7));
            }
        }
        call_all(&functions);
        let (mut cpu, mut node) = (0, 0);
        // SAFETY: live words, and a legal null.
        let answer =
            unsafe { functions.getcpu.unwrap()(&raw mut cpu, &raw mut node, std::ptr::null_mut()) };
        assert!(answer == 0 || answer == ENOSYS);
    }
}

#[test]
fn a_page_that_claims_a_namespace_cannot_fault() {
    let mut mapped = MappedImage::new(&linker::ENOSYS).unwrap();
    let (words, mapped) = mapped.split_words();
    RawPage { seq: 1, clock_mode: i32::MAX, ..RawPage::serving() }.store(words);
    let functions = mapped.functions();
    for id in PRECISE.into_iter().chain(COARSE) {
        assert_eq!(gettime(&functions, id).0, ENOSYS, "id {id}");
    }
}
