//! The shipped images in mode MEMORY against exact arithmetic, over the edges of every field.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "a test fails by panicking, and registers are 64 bits wide here"
)]

use std::ffi::c_void;

use kernel_sim::functions::Functions;
use kernel_sim::map::MappedImage;
use libc::{timespec, timeval};
use linker::Image;
use proptest::prelude::*;
use tests::oracle::Answer;
use tests::page::{RawPage, RawScale};

const CLOCKS: [i32; 7] = [0, 1, 4, 5, 6, 7, 11];
const ENOSYS: isize = -38;
const UNTOUCHED: [i64; 2] = [0x5a5a_5a5a_5a5a_5a5a; 2];

/// What the image that never asks a kernel answers, in the oracle's terms.
struct Image0<'m> {
    functions: Functions,
    mapped: &'m MappedImage,
}

impl Image0<'_> {
    fn pair(answer: isize, words: [i64; 2]) -> Answer<(i64, i64)> {
        match answer {
            0 => Answer::Served((words[0], words[1])),
            ENOSYS => {
                assert_eq!(words, UNTOUCHED, "an error must not touch memory");
                Answer::Fallback
            }
            other => panic!("answer {other}"),
        }
    }

    fn time_of(&self, id: i32) -> Answer<(i64, i64)> {
        let mut spec = UNTOUCHED;
        // SAFETY: a live pair of words, which is what a timespec is.
        let answer = unsafe {
            self.functions.clock_gettime.unwrap()(id, (&raw mut spec).cast::<timespec>())
        };
        Self::pair(answer, spec)
    }

    fn resolution_of(&self, id: i32) -> Answer<(i64, i64)> {
        let mut spec = UNTOUCHED;
        // SAFETY: a live pair of words, which is what a timespec is.
        let answer =
            unsafe { self.functions.clock_getres.unwrap()(id, (&raw mut spec).cast::<timespec>()) };
        Self::pair(answer, spec)
    }

    fn ns_of(&self, id: i32) -> Answer<i64> {
        // SAFETY: the image is mapped.
        match unsafe { self.functions.clock_gettime_ns.unwrap()(id) } {
            -38 => Answer::Fallback,
            nanos => Answer::Served(nanos),
        }
    }

    fn seconds(&self) -> i64 {
        let mut stored = 7;
        // SAFETY: a live i64.
        let returned = unsafe { self.functions.time.unwrap()(&raw mut stored) };
        // SAFETY: null is legal.
        let without = unsafe { self.functions.time.unwrap()(std::ptr::null_mut()) };
        assert_eq!(without, returned);
        assert_eq!(stored, if returned == -38 { 7 } else { returned });
        returned
    }

    fn day(&self) -> Answer<(i64, i64)> {
        let mut tv = UNTOUCHED;
        let tv_pointer = (&raw mut tv).cast::<timeval>();
        // SAFETY: a live pair of words, which is what a timeval is, and a legal null.
        let answer =
            unsafe { self.functions.gettimeofday.unwrap()(tv_pointer, std::ptr::null_mut()) };
        Self::pair(answer, tv)
    }

    /// Every call on the page as it is, against the oracle's `page`.
    fn check(&self, page: &RawPage) {
        for id in CLOCKS {
            assert_eq!(self.time_of(id), page.exact_time(id), "clock {id} of {page:?}");
            let (exact, ours) = (page.exact_ns(id), self.ns_of(id));
            // -38 ns is inside the range that is returned as 0, so -38 is always the errno.
            assert_eq!(ours, exact, "ns of clock {id} of {page:?}");
            assert_eq!(
                self.resolution_of(id),
                page.exact_resolution(id),
                "resolution of clock {id} of {page:?}"
            );
        }
        let micros = match page.exact_time(0) {
            Answer::Served((secs, nanos)) => Answer::Served((secs, nanos / 1000)),
            Answer::Fallback => Answer::Fallback,
        };
        assert_eq!(self.day(), micros, "gettimeofday of {page:?}");
        if let Some(exact) = page.exact_seconds() {
            let exact = match exact {
                Answer::Served(secs) => secs,
                Answer::Fallback => -38,
            };
            assert_eq!(self.seconds(), exact, "time of {page:?}");
        }
    }
}

fn with_image(image: &Image, test: impl FnOnce(&Image0<'_>, &mut dyn FnMut(&RawPage))) {
    let mut mapped = MappedImage::new(image).unwrap();
    let (words, mapped) = mapped.split_words();
    let image = Image0 { functions: mapped.functions(), mapped };
    assert_eq!(image.mapped.image().bytes, mapped.image().bytes);
    test(&image, &mut |page| page.store(words));
}

const MULTS: [u32; 5] = [0, 1, 6_990_507, 0x8000_0000, u32::MAX];
const SHIFTS: [u32; 12] = [0, 1, 8, 24, 31, 32, 33, 34, 35, 63, 64, u32::MAX];
const MASKS: [u64; 7] = [0, 1, 0xffff, 0xffff_ffff, (1 << 56) - 1, u64::MAX >> 1, u64::MAX];
const SECS: [i64; 12] = [
    i64::MIN,
    i64::MIN + 1,
    -9_223_372_037,
    -1,
    0,
    1,
    (1 << 31) - 1,
    1 << 31,
    1 << 32,
    9_223_372_036,
    i64::MAX - 1,
    i64::MAX,
];
/// The counter now and at the update: stood still, behind, just ahead, wrapped, half a range.
const COUNTERS: [(u64, u64); 12] = [
    (0, 0),
    (1, 0),
    (0, 1),
    (5, u64::MAX - 5),
    (10, 0xffff_fffa),
    (0xffff_ffff, 0x1_0000_0000),
    (u64::MAX, 0),
    (u64::MAX >> 1, 0),
    ((u64::MAX >> 1) + 1, 0),
    (1 << 54, (1 << 54) - 2_400_000),
    (1 << 63, (1 << 63) - 1),
    (1 << 40, 7),
];

fn nanos_edges(shift: u32) -> [u64; 7] {
    // Beyond shift 34 a second has no representation, and no page with such a shift is served.
    let second = 1_000_000_000 << shift.min(34);
    [0, 1, second / 2, second - 1, second, u64::MAX - 1, u64::MAX]
}

#[test]
fn every_clock_is_exact_over_the_edges_of_every_field() {
    with_image(&linker::ENOSYS, |image, store| {
        let mut checked = 0_u64;
        for mult in MULTS {
            for shift in SHIFTS {
                for mask in MASKS {
                    for (counter, last) in COUNTERS {
                        let scale = RawScale { mask, mult, shift };
                        // The bases rotate: each clock meets each of them with each scale.
                        for (turn, sec) in SECS.into_iter().enumerate() {
                            let nanos = nanos_edges(shift);
                            let mut page = RawPage {
                                cycle_last: last,
                                memory_counter: counter,
                                cs: [scale; 2],
                                ..RawPage::serving()
                            };
                            for (id, base) in page.basetime.iter_mut().enumerate() {
                                *base = (sec.cast_unsigned(), nanos[(turn + id) % nanos.len()]);
                            }
                            store(&page);
                            image.check(&page);
                            checked += 1;
                        }
                    }
                }
            }
        }
        assert_eq!(checked, 5 * 12 * 7 * 12 * 12);
    });
}

#[test]
fn the_two_scales_are_not_mixed_up() {
    with_image(&linker::ENOSYS, |image, store| {
        let mut page = RawPage::serving();
        page.cs[1] = RawScale { mask: 0xffff, mult: 3, shift: 1 };
        for counter in [1_000_000, 1_000_001, 1_032_768, 1_100_000] {
            page.memory_counter = counter;
            store(&page);
            image.check(&page);
        }
    });
}

#[test]
fn resolutions_and_unpublished_clocks_are_the_pages() {
    with_image(&linker::ENOSYS, |image, store| {
        for resolution in [0, 1, 999_999_999, 1_000_000_000, 1_000_000_001, u32::MAX] {
            for missing in 0..12 {
                let mut page = RawPage::serving();
                page.hrtimer_res = resolution;
                page.coarse_res = resolution;
                page.basetime[missing] = (0, 0);
                store(&page);
                image.check(&page);
            }
        }
    });
}

#[test]
fn the_edges_of_an_i64_of_nanoseconds_are_exact() {
    with_image(&linker::ENOSYS, |image, store| {
        let second = 1_000_000_000_i128;
        let edges = [i128::from(i64::MIN), i128::from(i64::MAX), -4095, -1, 0, -second];
        for edge in edges {
            for off in -3..=3 {
                let instant: i128 = edge + off;
                let secs = i64::try_from(instant.div_euclid(second)).unwrap();
                let nanos = u64::try_from(instant.rem_euclid(second)).unwrap();
                let mut page = RawPage::serving();
                for scale in &mut page.cs {
                    scale.shift = 0;
                }
                page.memory_counter = page.cycle_last;
                page.basetime = [(secs.cast_unsigned(), nanos); 12];
                if (secs, nanos) == (0, 0) {
                    page.basetime = [(u64::MAX, 1_000_000_000); 12];
                }
                store(&page);
                image.check(&page);
            }
        }
    });
}

#[test]
fn the_image_that_asks_the_kernel_has_the_same_arithmetic() {
    with_image(&linker::SYSCALL, |image, store| {
        for (counter, last) in COUNTERS {
            let mut page = RawPage::serving();
            page.cycle_last = last;
            page.memory_counter = counter;
            store(&page);
            for id in CLOCKS {
                assert_eq!(image.time_of(id), page.exact_time(id), "{id} of {page:?}");
                assert_eq!(image.ns_of(id), page.exact_ns(id), "{id} of {page:?}");
            }
        }
    });
}

#[test]
fn a_timezone_and_a_time_come_together_or_alone() {
    with_image(&linker::ENOSYS, |image, store| {
        let page = RawPage::serving();
        store(&page);
        let call = image.functions.gettimeofday.unwrap();
        let mut words = [0x5a5a_5a5a_i32; 4];
        let mut tv = UNTOUCHED;
        // SAFETY: a live pair of words, and room for a timezone.
        let answer = unsafe { call((&raw mut tv).cast(), (&raw mut words).cast()) };
        assert_eq!(answer, 0);
        assert_eq!(words[..2], [-60, 1]);
        assert_eq!(words[2..], [0x5a5a_5a5a; 2], "exactly 8 bytes are written");
        assert_eq!(Image0::pair(0, tv), image.day());
        // SAFETY: both null is legal.
        assert_eq!(unsafe { call(std::ptr::null_mut(), std::ptr::null_mut()) }, 0);

        // Without tv neither the counter nor its mode matters.
        let stopped = RawPage { clock_mode: 0, tz_minuteswest: 7, ..page };
        store(&stopped);
        // SAFETY: a legal null, and room for a timezone.
        let answer = unsafe { call(std::ptr::null_mut(), (&raw mut words).cast()) };
        assert_eq!((answer, words[0]), (0, 7));

        // A page that serves no timezone leaves both to the kernel: one fallback, nothing stored.
        store(&RawPage { hrtimer_res: 0, ..page });
        let (mut tv, mut words) = (UNTOUCHED, [0x5a5a_5a5a_i32; 2]);
        // SAFETY: a live pair of words, and room for a timezone.
        let answer = unsafe { call((&raw mut tv).cast(), (&raw mut words).cast()) };
        assert_eq!((answer, tv, words), (ENOSYS, UNTOUCHED, [0x5a5a_5a5a; 2]));
    });
}

#[test]
fn getcpu_is_the_cpus_own_answer_or_the_kernels() {
    with_image(&linker::SYSCALL, |image, store| {
        let call = image.functions.getcpu.unwrap();
        let null = std::ptr::null_mut::<c_void>();
        // Only what Linux maintains here may be promised: the segment always, RDPID by the CPU.
        let rdpid = std::arch::x86_64::__cpuid_count(7, 0).ecx & 1 << 22 != 0;
        let mut features = vec![0, 2];
        if rdpid {
            features.extend([1, 3]);
        }
        for cpu in 0..std::thread::available_parallelism().unwrap().get() {
            let mut set = nix::sched::CpuSet::new();
            set.set(cpu).unwrap();
            if nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set).is_err() {
                continue;
            }
            for features in &features {
                store(&RawPage { features: *features, ..RawPage::serving() });
                let (mut on, mut node) = (u32::MAX, u32::MAX);
                // SAFETY: two live words; the third argument is ignored.
                let answer = unsafe {
                    call(&raw mut on, &raw mut node, std::ptr::without_provenance_mut(8))
                };
                assert_eq!((answer, on as usize), (0, cpu), "features {features}");
                assert!(node < 1024, "node {node}");
                // SAFETY: either pointer may be null.
                let answer = unsafe { call(std::ptr::null_mut(), &raw mut node, null) };
                assert_eq!(answer, 0);
                // SAFETY: as above.
                let answer = unsafe { call(&raw mut on, std::ptr::null_mut(), null) };
                assert_eq!((answer, on as usize), (0, cpu));
                // SAFETY: as above.
                let answer = unsafe { call(std::ptr::null_mut(), std::ptr::null_mut(), null) };
                assert_eq!(answer, 0);
            }
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_page_is_exact(
        mult: u32,
        shift in 0_u32..40,
        mask_bits in 0_u32..=64,
        last: u64,
        delta in prop_oneof![any::<u64>(), 0_u64..1 << 40],
        sec in prop_oneof![any::<u64>(), 0_u64..1 << 34],
        nsec in prop_oneof![any::<u64>(), 0_u64..1_000_000_000],
    ) {
        let mask = u64::MAX.checked_shr(64 - mask_bits).unwrap_or(0);
        let mut page = RawPage {
            cycle_last: last,
            memory_counter: last.wrapping_add(delta),
            cs: [RawScale { mask, mult, shift }; 2],
            ..RawPage::serving()
        };
        page.basetime = [(sec, nsec); 12];
        with_image(&linker::ENOSYS, |image, store| {
            store(&page);
            image.check(&page);
        });
    }
}
