//! The dispatch on whole images, on images that lack something, and on none.

use super::*;
use datapage::{ClockId, ClockMode, Features, Instant, PageValues};

/// No kernel has this resolution: an answer with it came from our page.
const OURS: u32 = 1_234_567;

/// Runs `test` with the dispatch on an image that `change` changed.
fn with(change: impl FnOnce(&mut Vec<u8>), test: impl FnOnce(&Libc<'_>)) {
    let mut bytes = linker::SYSCALL.bytes.to_vec();
    change(&mut bytes);
    let mut image = linker::SYSCALL;
    image.bytes = bytes.leak();
    let mut mapped = MappedImage::new(&image).unwrap();
    let (mut writer, mapped) = mapped.split();
    writer.format(Features::empty(), image.slot_bytes);
    let mut values =
        PageValues { clock_mode: ClockMode::NONE, coarse_res: OURS, ..PageValues::default() };
    let instant = Instant { secs: 77, nanos: 5 };
    values.set(ClockId::MONOTONIC_COARSE, instant);
    writer.publish(&values.validate().unwrap());
    test(&Libc::on(mapped));
}

/// Replaces every occurrence of `from` by `to`.
fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    let places: Vec<usize> =
        (0..bytes.len() - from.len()).filter(|&at| bytes[at..].starts_with(from)).collect();
    assert!(!places.is_empty(), "it is there");
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
}

fn errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap()
}

fn resolution(libc: &Libc<'_>, id: c_int) -> (c_int, i64) {
    let mut res = timespec { tv_sec: -1, tv_nsec: -1 };
    let answer = libc.clock_getres(id, Some(&mut res));
    (answer, res.tv_nsec)
}

fn of_kernel(id: c_int) -> (c_int, i64) {
    let (answer, nanos) = resolution(&Libc::without_vdso(), id);
    assert_ne!(nanos, i64::from(OURS));
    (answer, nanos)
}

const COARSE: c_int = libc::CLOCK_MONOTONIC_COARSE;

#[test]
fn a_function_that_the_image_has_is_called() {
    with(
        |_| (),
        |libc| {
            assert_eq!(resolution(libc, COARSE), (0, i64::from(OURS)));
            let mut ts = timespec { tv_sec: 0, tv_nsec: 0 };
            assert_eq!(libc.clock_gettime(COARSE, Some(&mut ts)), 0);
            assert_eq!((ts.tv_sec, ts.tv_nsec), (77, 5));
        },
    );
}

#[test]
fn a_function_that_is_missing_becomes_the_system_call() {
    let without = |bytes: &mut Vec<u8>| {
        replace(bytes, b"__vdso_clock_getres\0", b"__vdso_nobody_knows\0");
    };
    with(without, |libc| {
        assert!(libc.functions.clock_getres.is_none());
        assert_eq!(resolution(libc, COARSE), of_kernel(COARSE));
        // The others are not affected.
        let mut ts = timespec { tv_sec: 0, tv_nsec: 0 };
        assert_eq!(libc.clock_gettime(COARSE, Some(&mut ts)), 0);
        assert_eq!(ts.tv_sec, 77);
    });
}

#[test]
fn a_function_of_another_version_is_not_taken() {
    let other = |bytes: &mut Vec<u8>| replace(bytes, b"LINUX_2.6\0", b"LINUX_9.9\0");
    with(other, |libc| {
        assert!(libc.functions.clock_getres.is_none());
        assert_eq!(resolution(libc, COARSE), of_kernel(COARSE));
    });
}

#[test]
fn in_an_image_without_versions_the_name_suffices() {
    let without = |bytes: &mut Vec<u8>| {
        // DT_VERSYM (0x6ffffff0) becomes a tag that means nothing to anybody.
        let tag = |tag: u64| tag.to_le_bytes();
        replace(bytes, &tag(0x6fff_fff0), &tag(0x6fff_0000));
        replace(bytes, b"LINUX_2.6\0", b"LINUX_9.9\0");
    };
    with(without, |libc| {
        assert_eq!(resolution(libc, COARSE), (0, i64::from(OURS)));
    });
}

#[test]
fn what_is_no_image_at_all_gives_system_calls() {
    let page = vec![0x5a_u8; 4096];
    // SAFETY: nothing is found in it, so nothing of it is called.
    let libc = unsafe { Libc::from_image(&page) };
    assert!(libc.functions.clock_gettime.is_none());
    assert_eq!(resolution(&libc, COARSE), of_kernel(COARSE));
    // A header whose tables point outside.
    let mut bytes = linker::SYSCALL.bytes.to_vec();
    bytes.truncate(0x200);
    // SAFETY: as above.
    let libc = unsafe { Libc::from_image(&bytes) };
    assert!(libc.functions.clock_gettime.is_none());
}

#[test]
fn errors_are_minus_one_and_errno_with_a_vdso_and_without() {
    const UNKNOWN: c_int = 99;
    with(
        |_| (),
        |libc| {
            for libc in [libc, &Libc::without_vdso(), &Libc::from_auxv()] {
                assert_eq!(resolution(libc, UNKNOWN), (-1, -1));
                assert_eq!(errno(), libc::EINVAL);
                let mut ts = timespec { tv_sec: 3, tv_nsec: 4 };
                assert_eq!(libc.clock_gettime(UNKNOWN, Some(&mut ts)), -1);
                assert_eq!(errno(), libc::EINVAL);
                assert_eq!((ts.tv_sec, ts.tv_nsec), (3, 4));
                assert_eq!(libc.clock_gettime(libc::CLOCK_REALTIME, None), -1);
                assert_eq!(errno(), libc::EFAULT);
            }
        },
    );
}

#[test]
fn no_place_for_the_answer_is_legal() {
    with(
        |_| (),
        |libc| {
            for libc in [libc, &Libc::without_vdso(), &Libc::from_auxv()] {
                assert_eq!(libc.clock_getres(COARSE, None), 0);
                assert_eq!(libc.clock_getres(99, None), -1);
                assert_eq!(errno(), libc::EINVAL);
                assert_eq!(libc.gettimeofday(None, None), 0);
                assert_eq!(libc.getcpu(None, None), 0);
            }
        },
    );
}

#[test]
fn an_answer_is_an_error_only_in_the_range_of_errno() {
    assert_eq!(to_errno(0), 0);
    assert_eq!(to_errno(-4096), 0);
    assert_eq!((to_errno(-4095), errno()), (-1, 4095));
    assert_eq!((to_errno(-1), errno()), (-1, 1));
    assert_eq!(to_errno(1), 0);
}

#[test]
fn the_hosts_functions_agree_with_its_system_calls() {
    let libc = Libc::from_auxv();
    assert!(libc.functions.clock_getres.is_some());
    for id in [0, 1, 4, 5, 6, 7, 11] {
        assert_eq!(resolution(&libc, id), of_kernel(id));
    }
    let (mut cpu, mut node) = (u32::MAX, u32::MAX);
    assert_eq!(libc.getcpu(Some(&mut cpu), Some(&mut node)), 0);
    assert!(cpu < 4096 && node < 4096);
    let mut tv = timeval { tv_sec: 0, tv_usec: -1 };
    assert_eq!(libc.gettimeofday(Some(&mut tv), None), 0);
    assert!(tv.tv_sec > 1_700_000_000 && (0..1_000_000).contains(&tv.tv_usec));
}
