//! The quick arithmetic says what the exact one says, or nothing.

use super::*;
use proptest::prelude::*;

/// A number of any length in bits, of either sign: the edges of every width are near.
fn any_length() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32, any::<bool>()).prop_map(|(bits, shift, negate)| {
        let short = bits >> shift;
        if negate { short.wrapping_neg() } else { short }
    })
}

fn any_precise() -> impl Strategy<Value = Precise> {
    (any_length(), any_length(), 0..40_u32, any_length(), any_length()).prop_map(
        |(cycles, mult, shift, sec, nsec)| Precise {
            cycles: cycles.cast_signed(),
            mult: mult as u32,
            shift,
            sec,
            nsec,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100_000))]

    #[test]
    fn a_quick_time_is_the_time(read in any_precise()) {
        if let Some(quick) = read.quick_time() {
            prop_assert_eq!(Some(Time::from(quick)), read.time());
        }
        if let Some(quick) = read.quick_nanos() {
            prop_assert_eq!(Some(quick), read.time().and_then(cycles::nanos_of));
        }
    }
}

/// What a page of a 2.3 GHz counter holds, some cycles after an update.
const USUAL: Precise =
    Precise { cycles: 2_300_000, mult: 7_294_456, shift: 24, sec: 5, nsec: 900_000_000 << 24 };

#[test]
fn what_is_usual_is_quick() {
    assert_eq!(USUAL.quick_time().map(Time::from), USUAL.time());
    assert_eq!(USUAL.quick_nanos(), USUAL.time().and_then(cycles::nanos_of));
    let second_later = Precise { cycles: 2_300_000_000, ..USUAL };
    assert_eq!(second_later.quick_time().map(Time::from), second_later.time());
}

#[test]
fn a_counter_that_is_behind_is_never_quick() {
    for shift in 0..=MAX_SHIFT {
        for mult in [1, 2, 7_294_456, u32::MAX] {
            for cycles in [-1, -2, -1 << 33, -1 << 62, i64::MIN + 1, i64::MIN] {
                for nsec in [0, 1, 1 << 63, u64::MAX] {
                    let read = Precise { cycles, mult, shift, sec: 5, nsec };
                    let base = Precise { cycles: 0, ..read }.time();
                    assert_eq!(read.time(), base, "{read:?}");
                    assert_eq!(read.quick_time(), None, "{read:?}");
                    assert_eq!(read.quick_nanos(), None, "{read:?}");
                }
            }
        }
    }
}

#[test]
fn a_shift_that_no_page_may_hold_has_no_time() {
    for shift in [MAX_SHIFT + 1, 63, 64, u32::MAX] {
        let read = Precise { shift, ..USUAL };
        assert_eq!((read.time(), read.quick_time(), read.quick_nanos()), (None, None, None));
    }
}
