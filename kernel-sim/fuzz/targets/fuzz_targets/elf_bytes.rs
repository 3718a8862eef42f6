//! Any bytes as a vDSO image: the judge says something of them, and neither panics nor loops.
//!
//! Half of the inputs are changes of the shipped image, given as (offset, byte) triples, so that the
//! rules behind the file's headers are reached.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linker::judge::{ImageFile, judge};

fuzz_target!(|bytes: &[u8]| {
    let owned;
    let file = match bytes.split_first() {
        Some((kind, changes)) if kind & 1 == 1 => {
            owned = changed(changes);
            owned.as_slice()
        }
        _ => bytes,
    };
    if let Ok(file) = ImageFile::read(file) {
        let _ = judge(&file).score();
    }
});

fn changed(changes: &[u8]) -> Vec<u8> {
    let mut image = linker::SYSCALL.bytes.to_vec();
    for change in changes.chunks_exact(3) {
        let offset = usize::from(u16::from_le_bytes([change[0], change[1]])) % image.len();
        image[offset] = change[2];
    }
    image
}
