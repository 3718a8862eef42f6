//! A single read after its page left the caches.

use std::arch::x86_64::{_mm_clflush, _mm_mfence};

use crate::clock;
use crate::statistics;
use crate::subject::Subject;

const LINE: usize = 64;

/// A loop of single reads, each after the `bytes` at `page` left the caches: the median of them,
/// less what timing nothing takes. The code of `read` is warm.
pub fn read<'m>(name: &str, page: *const u8, bytes: usize, read: impl Fn() + 'm) -> Subject<'m> {
    Subject::timed(name, move |calls| {
        let (mut reads, mut nothing) = (Vec::new(), Vec::new());
        for _ in 0..calls {
            read();
            for line in (0..bytes).step_by(LINE) {
                // SAFETY: the page is mapped, as `read` reads it; a flush changes no memory.
                unsafe { _mm_clflush(page.wrapping_add(line)) };
            }
            // SAFETY: a fence, which every x86_64 CPU has.
            unsafe { _mm_mfence() };
            reads.push(timed(&read));
            nothing.push(timed(|| ()));
        }
        (statistics::median(&reads) - statistics::median(&nothing)) * f64::from(calls)
    })
}

fn timed(run: impl Fn()) -> f64 {
    let start = clock::cycles();
    run();
    (clock::cycles() - start) as f64
}
