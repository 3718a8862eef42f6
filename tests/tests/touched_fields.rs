//! Which fields decide a call's answer: changed one by one under the shipped image.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

use datapage::Features;
use datapage::fields::{FIELDS, Field, READS, Read};
use kernel_sim::functions::Functions;
use kernel_sim::map::{MappedImage, WORDS};
use tests::page::RawPage;

/// What a call returned and what it wrote.
type Answer = (i64, [i64; 2]);

/// Makes one of the calls of [`READS`].
fn call(functions: &Functions, name: &str) -> Answer {
    let mut out = [-1_i64; 2];
    let memory = (&raw mut out).cast::<libc::timespec>();
    // SAFETY, for all of them: the image is mapped, and the memory is as large as a timespec, a
    // timeval or a timezone.
    let answer = match name {
        "gettimeofday(tv, NULL)" => {
            let gettimeofday = functions.gettimeofday.unwrap();
            // SAFETY: as above.
            unsafe { gettimeofday(memory.cast(), null_mut()) as i64 }
        }
        "gettimeofday(NULL, tz)" => {
            let gettimeofday = functions.gettimeofday.unwrap();
            // SAFETY: as above.
            unsafe { gettimeofday(null_mut(), memory.cast()) as i64 }
        }
        "time(NULL)" => {
            let time = functions.time.unwrap();
            // SAFETY: as above.
            unsafe { time(null_mut()) }
        }
        "getcpu(cpu, node)" => {
            let getcpu = functions.getcpu.unwrap();
            let node = memory.cast::<u32>().wrapping_add(1);
            // SAFETY: as above.
            unsafe { getcpu(memory.cast(), node, null_mut()) as i64 }
        }
        clock => {
            let (function, clock) = clock.strip_suffix(')').unwrap().split_once('(').unwrap();
            let id = match clock {
                "REALTIME" => 0,
                "MONOTONIC" => 1,
                "MONOTONIC_RAW" => 4,
                "REALTIME_COARSE" => 5,
                "MONOTONIC_COARSE" => 6,
                "BOOTTIME" => 7,
                "TAI" => 11,
                other => panic!("no clock {other}"),
            };
            let function = match function {
                "clock_gettime" => functions.clock_gettime,
                "clock_getres" => functions.clock_getres,
                other => panic!("no call {other}"),
            };
            let function = function.unwrap();
            // SAFETY: as above.
            unsafe { function(id, memory) as i64 }
        }
    };
    (answer, out)
}

/// Whether some change of `field` changes the answer: a few flips in each word, or zeros.
fn decides(words: &[AtomicU64; WORDS], field: &Field, ask: impl Fn() -> Answer) -> bool {
    let before = ask();
    let bytes = field.offset..field.offset + field.bytes;
    let touched: Vec<_> = (bytes.start / 8..bytes.end.div_ceil(8)).map(|at| &words[at]).collect();
    let originals: Vec<u64> = touched.iter().map(|word| word.load(Ordering::Relaxed)).collect();
    // A field of four bytes shares its word with a neighbour.
    let mask = match (field.bytes, field.offset % 8) {
        (4, 0) => 0xffff_ffff,
        (4, _) => 0xffff_ffff << 32,
        _ => u64::MAX,
    };
    let mut changed = false;
    let mut tell = || changed |= ask() != before;
    for (word, original) in touched.iter().zip(&originals) {
        for flip in [1_u64, 2, 0x8000_0000, 0xffff_ffff, u64::MAX].map(|bits| bits | bits << 32) {
            word.store(original ^ (flip & mask), Ordering::Relaxed);
            tell();
        }
        word.store(*original, Ordering::Relaxed);
    }
    for (word, original) in touched.iter().zip(&originals) {
        word.store(original & !mask, Ordering::Relaxed);
    }
    tell();
    for (word, original) in touched.iter().zip(&originals) {
        word.store(*original, Ordering::Relaxed);
    }
    assert_eq!(ask(), before, "{} was put back", field.name);
    changed
}

#[test]
fn each_call_reads_the_fields_that_are_said_and_no_others() {
    // Without a kernel behind it, so that every answer is the page's or -ENOSYS.
    let mut mapped = MappedImage::new(&linker::ENOSYS).unwrap();
    let functions = mapped.functions();
    let (words, _) = mapped.split_words();
    let mut page = RawPage::serving();
    page.features = Features::GETCPU_SEGMENT_LIMIT.bits();
    page.store(words);
    for read in &READS {
        let Read { call: name, fields, counter } = read;
        assert!(call(&functions, name).0 >= 0, "the page serves {name}");
        for field in &FIELDS {
            let is_counter = *counter && field.name == "memory_counter";
            let said = fields.contains(&field.name) || is_counter;
            let seen = decides(words, field, || call(&functions, name));
            assert_eq!(seen, said, "{name} and {}", field.name);
        }
    }
}
