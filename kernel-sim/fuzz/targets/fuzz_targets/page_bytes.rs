//! Any bytes as a page: every call returns, in bounded time, with a time or a fallback.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(violation) = fuzz::bytes::judge(bytes) {
        panic!("{violation}");
    }
});
