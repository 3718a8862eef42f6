//! Pages for each path through the image, and every call on them.

use std::ops::Range;

use datapage::namespace::{Offset, Offsets};
use kernel_sim::map::MappedImage;
use linker::{Image, Policy};
use tests::page::RawPage;

/// A page that sends calls down one of their paths.
pub(crate) struct Case {
    pub(crate) path: &'static str,
    pub(crate) page: RawPage,
    /// Seconds of REALTIME by this page; `None` if the kernel is asked.
    pub(crate) shown: Option<Range<i64>>,
}

/// Pages for each path; the date that they serve is years from any machine's.
pub(crate) fn cases() -> Vec<Case> {
    let serving = RawPage { features: 2, ..RawPage::serving() };
    let in_kernel = RawPage { features: 0, ..serving };
    let mut unpublished = in_kernel;
    unpublished.basetime = [(0, 0); 12];
    let case = |path, page, shown| Case { path, page, shown };
    let date = 1_700_000_000;
    let by_counter = Some(date..date + 50_000_000);
    vec![
        case("served", serving, Some(date..date + 1)),
        case("counter", RawPage { clock_mode: 1, ..serving }, by_counter.clone()),
        case("rdtscp", RawPage { clock_mode: 0x101, ..serving }, by_counter),
        case("carry", RawPage { memory_counter: 1 << 40, ..serving }, Some(date + 458..date + 459)),
        case(
            "wide carry",
            RawPage { memory_counter: 1 << 62, ..serving },
            Some(2 * date..i64::MAX),
        ),
        case(
            "fallback",
            RawPage { clock_mode: 0, hrtimer_res: 0, coarse_res: 0, ..in_kernel },
            None,
        ),
        case("retry", RawPage { seq: 1, ..in_kernel }, None),
        case("no namespace", RawPage { seq: 1, clock_mode: i32::MAX, ..in_kernel }, None),
        case("unpublished", unpublished, None),
    ]
}

/// The image with its page, and with its page behind that of a namespace.
pub(crate) fn mapped(image: &Image) -> [MappedImage; 2] {
    let nearly_two = Offset::new(1, 999_999_999).unwrap();
    let offsets = Offsets { monotonic: nearly_two, boottime: nearly_two };
    [MappedImage::new(image).unwrap(), MappedImage::in_namespace(image, &offsets).unwrap()]
}

/// Every exported call with its arguments; `memory` takes what is stored.
pub(crate) fn calls(mapped: &MappedImage, memory: u64) -> Vec<(String, u64, [u64; 3])> {
    let mut calls = Vec::new();
    for symbol in mapped.image().symbols {
        let Some(name) = symbol.name.strip_prefix("__vdso_") else { continue };
        let function = mapped.base().addr() as u64 + symbol.offset as u64;
        let arguments: Vec<[u64; 3]> = match name {
            "clock_gettime" | "clock_getres" => {
                [0, 1, 2, 4, 5, 6, 7, 11, 99].map(|id| [id, memory, 0]).to_vec()
            }
            "clock_gettime_ns" => [0, 1, 2, 4, 5, 7, 11, 99].map(|id| [id, 0, 0]).to_vec(),
            "gettimeofday" => {
                vec![[memory, memory + 16, 0], [memory, 0, 0], [0, memory, 0], [0, 0, 0]]
            }
            "time" => vec![[memory, 0, 0], [0, 0, 0]],
            "getcpu" => vec![[memory, memory + 8, 0], [0, 0, 0]],
            other => panic!("a new export, {other}, wants a case here"),
        };
        calls.extend(arguments.into_iter().map(|arguments| (name.to_owned(), function, arguments)));
    }
    assert!(calls.len() > 20);
    calls
}

pub(crate) fn address_of(memory: &mut [u64; 4]) -> u64 {
    std::ptr::from_mut(memory).expose_provenance() as u64
}

/// Whether a call of `clock_gettime` for REALTIME has taken the path that its page leads to, by what
/// it returned and the seconds that it stored.
pub(crate) fn is_of_path(
    (answer, secs): (i64, i64),
    shown: Option<&Range<i64>>,
    image: &Image,
) -> bool {
    const ENOSYS: i64 = -38;
    match shown {
        Some(shown) => answer == 0 && shown.contains(&secs),
        None if image.policy == Policy::Syscall => {
            answer == 0 && (1_780_000_000..2_200_000_000).contains(&secs)
        }
        None => answer == ENOSYS,
    }
}
