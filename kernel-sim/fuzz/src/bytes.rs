//! Any bytes at all as a page: every call returns, in bounded time, with a time or a fallback.
//!
//! What stands in such a page is nobody's publication, so nothing is due but that: no panic, no
//! wait without bound, nanoseconds below a second, and memory that is either written whole or not
//! at all.

use datapage::layout::DATA_BYTES;
use oracle::publication::SERVED;

use crate::expect;
use crate::subject::{Answer, Call, UNTOUCHED, on_bytes};
use crate::world::Violation;

/// Makes every call on a page of `bytes` (as many as there are; the others are 0), with a counter
/// taken from their end.
///
/// # Errors
/// The first answer that no page may lead to.
pub fn judge(bytes: &[u8]) -> Result<(), Violation> {
    let mut page = [0; DATA_BYTES];
    let length = bytes.len().min(DATA_BYTES);
    page[..length].copy_from_slice(&bytes[..length]);
    let mut counter = [0; 8];
    let tail = bytes.len().saturating_sub(8);
    counter[..bytes.len() - tail].copy_from_slice(&bytes[tail..]);
    on_bytes(&page, u64::from_le_bytes(counter), |subject| {
        for id in SERVED.into_iter().chain([-1, 2, 3, 8, 9, 10, 12, i32::MAX, i32::MIN]) {
            for call in [Call::ClockGettime(id), Call::ClockGettimeNs(id), Call::ClockGetres(id)] {
                check(call, subject.call(call), subject.fallback(call))?;
            }
        }
        for (tv, tz) in [(true, false), (true, true), (false, true), (false, false)] {
            let call = Call::Gettimeofday { tv, tz };
            check(call, subject.call(call), subject.fallback(call))?;
        }
        check(Call::Time, subject.call(Call::Time), subject.fallback(Call::Time))
    })
}

fn check(call: Call, answer: Answer, fallback: Answer) -> Result<(), Violation> {
    if answer == fallback {
        return Ok(());
    }
    let [first, second, third, fourth] = answer.words;
    let is_legal = match call {
        Call::ClockGettime(_) | Call::ClockGetres(_) => {
            answer == (Answer { returned: 0, words: [first, second, UNTOUCHED, UNTOUCHED] })
                && (0..1_000_000_000).contains(&second)
        }
        Call::ClockGettimeNs(_) => {
            answer == Answer::bare(answer.returned)
                && (answer.returned == -75 || !(-4095..0).contains(&answer.returned))
        }
        Call::Gettimeofday { tv, tz } => {
            let time = if tv {
                (0..1_000_000).contains(&second)
            } else {
                (first, second) == (UNTOUCHED, UNTOUCHED)
            };
            answer.returned == 0 && time && (tz || (third, fourth) == (UNTOUCHED, UNTOUCHED))
        }
        Call::Time => answer == expect::seconds(answer.returned),
    };
    if is_legal {
        return Ok(());
    }
    Err(Violation {
        what: format!("{} on a page of any bytes", expect::name(call)),
        read: expect::words(call, answer),
        due: "a time, or a fallback that writes nothing".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn no_bytes_make_a_reader_wait_panic_or_lie() {
        let mut rng = Rng::new(11, 0);
        judge(&[]).unwrap();
        judge(&[0xff; DATA_BYTES]).unwrap();
        for _ in 0..20_000 {
            let mut bytes = Vec::new();
            while bytes.len() < DATA_BYTES {
                let word = if rng.one_in(2) { rng.edge() } else { rng.next() };
                bytes.extend(word.to_le_bytes());
            }
            // A sequence number that is even, or the mode of a namespace, more often than chance.
            if rng.one_in(2) {
                bytes[0] &= 0xfe;
            }
            let mode: u32 = rng.of(&[0, 1, 0x100, 0x7fff_ffff]);
            bytes[4..8].copy_from_slice(&mode.to_le_bytes());
            judge(&bytes).unwrap();
        }
    }
}
