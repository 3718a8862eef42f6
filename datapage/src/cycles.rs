//! From a base and a counter to a time: exact for every input, without a division.
//!
//! With `d` the cycles since the last update, the time is `floor((base + d * mult) / 2^shift)`
//! nanoseconds after the base's second, in unbounded arithmetic. The product has up to 95 bits;
//! the usual one fits in 63, and the rest of the work is kept off that path.
//!
//! Splitting nanoseconds into seconds is a division by a constant. Compilers turn that into a
//! multiplication on 64-bit machines and into a call of a runtime function on 32-bit ones, which
//! an image must not have; and they undo hand-written subtraction loops into the same call. So the
//! multiplication is written out ([`split_seconds`]); it takes the same few steps for every input.

/// Nanoseconds in a second.
pub const NANOS_PER_SEC: u32 = 1_000_000_000;

/// Largest shift that a page may hold: 10^9 << 34 is the last that fits in a `u64`.
pub const MAX_SHIFT: u32 = 34;

/// A time as a program gets it: seconds and the nanoseconds of the second that has begun.
///
/// # Invariants
/// `nanos` is below 10^9. Times before zero have negative seconds and count their nanoseconds
/// upwards: -1.5 s is `{ -2, 500_000_000 }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Whole seconds, rounded towards minus infinity.
    pub secs: i64,
    /// Nanoseconds, 0..=999_999_999.
    pub nanos: u32,
}

/// A [`Time`] in whole registers, as the quick way hands it to the caller's 64-bit fields: to make
/// a `u32` of the nanoseconds and widen it again would cost a cycle behind the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WideTime {
    /// Whole seconds, as in [`Time`].
    pub secs: i64,
    /// Nanoseconds, 0..=999_999_999.
    pub nanos: u64,
}

impl From<Time> for WideTime {
    #[inline(always)] // a register is a register
    fn from(Time { secs, nanos }: Time) -> Self {
        Self { secs, nanos: nanos.into() }
    }
}

impl From<WideTime> for Time {
    #[inline(always)] // as above
    #[allow(clippy::cast_possible_truncation, reason = "below 10^9")]
    fn from(WideTime { secs, nanos }: WideTime) -> Self {
        Self { secs, nanos: nanos as u32 }
    }
}

/// Cycles from `last` to `now` on a counter of width `mask`, 0 if the counter is behind.
///
/// A counter is behind if it seems to have moved by more than half of its range: another CPU
/// whose counter lags read it, or a virtual machine was moved. The time then stands still at the
/// base, instead of leaping by up to a whole range.
#[inline]
#[must_use]
pub const fn elapsed_cycles(now: u64, last: u64, mask: u64) -> u64 {
    ahead(distance(now, last, mask))
}

/// A [`distance`] as elapsed cycles: 0 if the counter is behind.
#[inline(always)] // a comparison
#[must_use]
pub(crate) const fn ahead(distance: i64) -> u64 {
    if distance < 0 { 0 } else { distance.cast_unsigned() }
}

/// [`elapsed_cycles`], but negative if the counter is behind: quick arithmetic refuses that together
/// with what is too large.
///
/// A counter of all 64 bits needs no mask, and asking for that costs nothing, while applying it would
/// delay the product behind it (measured: 0.8 ns of 21 on a Sapphire Rapids guest).
#[inline(always)] // a subtraction, on the critical path behind the counter
#[must_use]
pub(crate) const fn distance(now: u64, last: u64, mask: u64) -> i64 {
    let mut distance = now.wrapping_sub(last);
    if mask != u64::MAX {
        core::hint::cold_path();
        distance &= mask;
        if distance > mask >> 1 {
            return -1;
        }
    }
    distance.cast_signed()
}

/// `floor((base + cycles * mult) / 2^shift)`; `shift` is taken modulo 128.
#[inline(always)] // one multiplication, one addition with carry
#[must_use]
#[allow(clippy::arithmetic_side_effects, reason = "2^64 * 2^32 + 2^64 fits in a u128")]
pub(crate) const fn scaled(base: u64, cycles: u64, mult: u32) -> u128 {
    cycles as u128 * mult as u128 + base as u128
}

/// Largest shift that readers are quick with: anything from 2^63 on is a second or more by it. Linux
/// computes 32 at most.
pub const QUICK_SHIFT: u32 = 33;
const _: () = assert!(1 << 63 >> QUICK_SHIFT >= NANOS_PER_SEC as u64);

/// `base + distance * mult` if the product is below 2^63 and the sum below 2^64, else `None`;
/// [`scaled`] knows every product.
///
/// A counter that is behind makes the product negative, and the result is `None`, 2^63 or more, or, for
/// a multiplier of 0, the base. Up to [`QUICK_SHIFT`] 2^63 is beyond the second that has begun, so a
/// test is needed only where that has ended.
#[inline(always)] // on the critical path behind the counter
#[must_use]
pub(crate) const fn scaled_narrow(base: u64, distance: i64, mult: u32) -> Option<u64> {
    let product = if cfg!(target_pointer_width = "64") {
        signed_product(distance, mult)
    } else {
        product_of_words(distance, mult)
    };
    let Some(product) = product else {
        core::hint::cold_path();
        return None;
    };
    let scaled = base.checked_add(product);
    if scaled.is_none() {
        core::hint::cold_path();
    }
    scaled
}

/// `distance * mult` in two's complement where it fits in an `i64`: the flag of a signed
/// multiplication costs less than the high half of an unsigned one.
#[inline(always)] // a multiplication and the flag that it sets
const fn signed_product(distance: i64, mult: u32) -> Option<u64> {
    match distance.checked_mul(mult as i64) {
        Some(product) => Some(product.cast_unsigned()),
        None => None,
    }
}

/// The same below 2^32 cycles, and never negative: on 32-bit machines a checked 64-bit multiplication
/// is a call of a runtime function. Compiled and tested on all.
#[inline(always)] // a comparison and one multiplication
#[allow(clippy::cast_possible_truncation, reason = "behind a test of the high half")]
#[allow(clippy::arithmetic_side_effects, reason = "2^32 * 2^32 = 2^64 is not reached")]
const fn product_of_words(distance: i64, mult: u32) -> Option<u64> {
    let cycles = distance.cast_unsigned();
    if cycles >> 32 != 0 {
        return None;
    }
    Some(cycles as u32 as u64 * mult as u64)
}

/// Adds `shifted >> shift` nanoseconds to `secs` seconds, for a `shift` up to [`QUICK_SHIFT`] (it is
/// taken modulo 64). `None` from 2^40 nanoseconds on, which are 18 minutes; where `shifted` is 2^63 or
/// more, as it is for a counter that is behind; or if the seconds do not fit in an `i64`. [`carry`] tells
/// these apart.
#[inline(always)] // the usual exit is one comparison
#[must_use]
pub(crate) fn carry_narrow(secs: i64, shifted: u64, shift: u32) -> Option<WideTime> {
    let nanos = shifted >> (shift & 63);
    if nanos < NANOS_PER_SEC as u64 {
        return Some(WideTime { secs, nanos });
    }
    // The base's second has ended.
    core::hint::cold_path();
    // The highest bit is shifted back, so that the usual way need not keep the sum.
    if nanos << (shift & 63) >> 63 != 0 || nanos >> SHORT_BITS != 0 {
        return None;
    }
    let (carried, nanos) = split_seconds_short(nanos);
    Some(WideTime { secs: secs.checked_add_unsigned(carried)?, nanos })
}

/// Adds `shifted >> shift` nanoseconds to `secs` seconds; `None` if the seconds do not fit in an
/// `i64`.
#[inline]
#[must_use]
#[allow(clippy::cast_possible_truncation, reason = "32-bit digits of a long number")]
#[allow(clippy::arithmetic_side_effects, reason = "each step's bounds stand beside it")]
pub(crate) fn carry(secs: i64, shifted: u128, shift: u32) -> Option<Time> {
    let nanos = shift_right(shifted, shift);
    // Long division in base 2^32: each remainder is below 2^30, so each dividend is below 2^62.
    let (high, rest) = split_seconds((nanos >> 64) as u64);
    let (middle, rest) = split_seconds(((rest as u64) << 32) | (nanos >> 32) as u32 as u64);
    let (low, nanos) = split_seconds(((rest as u64) << 32) | nanos as u32 as u64);
    if high != 0 {
        // 2^64 seconds after any i64 is beyond every i64.
        return None;
    }
    // Both quotients are below 2^32, since each remainder was below the divisor.
    Some(Time { secs: secs.checked_add_unsigned((middle << 32) | low)?, nanos })
}

/// `value >> (shift mod 64)`, from 64-bit parts: a 128-bit shift by a variable is a call of a
/// runtime function on 32-bit machines.
#[inline(always)] // a shift
#[allow(clippy::cast_possible_truncation, reason = "the parts of a long number")]
#[allow(clippy::arithmetic_side_effects, reason = "shifts below 64")]
const fn shift_right(value: u128, shift: u32) -> u128 {
    let (high, low) = ((value >> 64) as u64, value as u64);
    let shift = shift & 63;
    // `high << 1 << (63 - shift)` is `high << (64 - shift)` without a shift by 64.
    let low = (low >> shift) | (high << 1 << (63 - shift));
    ((high >> shift) as u128) << 64 | low as u128
}

/// Whole seconds in `nanos`, and the nanoseconds that remain.
///
/// 10^9 is 2^9 * 1953125. After a shift by 9 the dividend has 55 bits, for which the multiplier
/// `ceil(2^75 / 1953125)` gives the exact quotient (Granlund and Montgomery 1994, theorem 4.2; the
/// tests compare it with a division at every boundary).
#[cfg_attr(target_pointer_width = "64", inline(always))] // two multiplications
#[cfg_attr(not(target_pointer_width = "64"), cold, inline)] // seven: one copy, out of line
#[must_use]
#[allow(clippy::cast_possible_truncation, reason = "the remainder is below 10^9")]
#[allow(
    clippy::arithmetic_side_effects,
    reason = "the quotient times the divisor is at most nanos"
)]
pub const fn split_seconds(nanos: u64) -> (u64, u32) {
    const MULTIPLIER: u64 = (1_u128 << 75).div_ceil(1_953_125) as u64;
    let secs = (((nanos >> 9) as u128 * MULTIPLIER as u128) >> 64) as u64 >> 11;
    (secs, (nanos - secs * NANOS_PER_SEC as u64) as u32)
}

/// Number of bits that [`split_seconds_short`] takes.
const SHORT_BITS: u32 = 40;

/// [`split_seconds`] below 2^40, with a product of 64 bits: whatever registers are free will do for it.
///
/// The dividend has 31 bits after a shift by 9, for which `ceil(2^51 / 1953125)`, a number of 31 bits,
/// gives the exact quotient.
#[inline(always)] // two multiplications
#[must_use]
#[allow(clippy::cast_possible_truncation, reason = "31 bits")]
#[allow(
    clippy::arithmetic_side_effects,
    reason = "the quotient times the divisor is at most nanos"
)]
const fn split_seconds_short(nanos: u64) -> (u64, u64) {
    const MULTIPLIER: u64 = (1_u64 << 51).div_ceil(1_953_125);
    const _: () = assert!(MULTIPLIER >> 31 == 0);
    let secs = ((nanos >> 9) as u32 as u64 * MULTIPLIER) >> 51;
    (secs, nanos - secs * NANOS_PER_SEC as u64)
}

/// Nanoseconds since zero, if they are not negative and `shifted` is below 2^63, which a counter that
/// is behind does not get to. `None` sends to [`carry`] and [`nanos_of`], which know every sum.
#[inline(always)] // a multiplication, a shift, an addition, and the flags that they set
#[must_use]
pub(crate) const fn total_narrow(secs: i64, shifted: u64, shift: u32) -> Option<i64> {
    if shifted >> 63 != 0 || shift > MAX_SHIFT {
        core::hint::cold_path();
        return None;
    }
    let nanos = (shifted >> shift).cast_signed();
    let Some(base) = checked_secs_to_nanos(secs) else {
        core::hint::cold_path();
        return None;
    };
    // Nothing negative is added, so a sum that does not fit ends below zero, too.
    let total = base.wrapping_add(nanos);
    if total < 0 {
        core::hint::cold_path();
        return None;
    }
    Some(total)
}

/// A time in nanoseconds; `None` beyond an `i64`.
#[inline]
#[must_use]
pub fn nanos_of(time: Time) -> Option<i64> {
    if time.secs < 0 {
        // Towards zero first: the lowest second is not wholly inside an i64, its end is.
        let base = checked_secs_to_nanos(time.secs.checked_add(1)?)?;
        base.checked_sub(i64::from(NANOS_PER_SEC).checked_sub(i64::from(time.nanos))?)
    } else {
        checked_secs_to_nanos(time.secs)?.checked_add(i64::from(time.nanos))
    }
}

/// `secs * 10^9`, `None` beyond an `i64`.
#[inline(always)] // a multiplication and the flag that it sets
const fn checked_secs_to_nanos(secs: i64) -> Option<i64> {
    if cfg!(target_pointer_width = "64") {
        secs.checked_mul(NANOS_PER_SEC as i64)
    } else {
        secs_to_nanos_in_range(secs)
    }
}

/// The same by a comparison, because a checked 64-bit multiplication is a call of a runtime function
/// on 32-bit machines. Compiled and tested on all.
#[inline(always)] // a comparison and a multiplication
const fn secs_to_nanos_in_range(secs: i64) -> Option<i64> {
    const LIMIT: i64 = i64::MAX / NANOS_PER_SEC as i64;
    if secs > LIMIT || secs < -LIMIT { None } else { Some(secs.wrapping_mul(NANOS_PER_SEC as i64)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BILLION: u64 = NANOS_PER_SEC as u64;

    #[test]
    fn seconds_are_split_exactly_at_every_boundary() {
        let mut edges: std::vec::Vec<u64> = std::vec![0, 1, u64::MAX, u64::MAX - 1];
        for bit in 0..64 {
            edges.extend([(1_u64 << bit).wrapping_sub(1), 1 << bit, (1 << bit) + 1]);
        }
        let last = u64::MAX / BILLION;
        for multiple in (0..3_000).chain(last - 3_000..=last).chain((0..last).step_by(1_000_003)) {
            let at = multiple * BILLION;
            edges.extend([at.wrapping_sub(1), at, at + 1]);
        }
        for nanos in edges {
            let expected = (nanos / BILLION, (nanos % BILLION) as u32);
            assert_eq!(split_seconds(nanos), expected, "{nanos}");
        }
    }

    #[test]
    fn a_counter_behind_the_base_stands_still() {
        for mask in [u64::MAX, (1 << 56) - 1, (1 << 48) - 1, (1 << 32) - 1] {
            assert_eq!(elapsed_cycles(99, 100, mask), 0, "one behind, mask {mask:x}");
            assert_eq!(elapsed_cycles(10, mask - 5, mask), 16, "a wrap, mask {mask:x}");
            assert_eq!(elapsed_cycles(mask >> 1, 0, mask), mask >> 1, "half the range");
            assert_eq!(elapsed_cycles((mask >> 1) + 1, 0, mask), 0, "past half the range");
            assert!(distance((mask >> 1) + 1, 0, mask) < 0, "past half the range, mask {mask:x}");
        }
    }

    fn exact(secs: i64, shifted: u128, shift: u32) -> (i128, u32) {
        let nanos = shifted >> shift;
        let total = i128::from(secs) + (nanos / u128::from(BILLION)) as i128;
        (total, (nanos % u128::from(BILLION)) as u32)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn seconds_are_split_exactly(nanos: u64) {
            prop_assert_eq!(split_seconds(nanos), (nanos / BILLION, (nanos % BILLION) as u32));
        }

        #[test]
        fn the_product_is_exact(base: u64, cycles: u64, mult: u32) {
            // By digits of 32 bits, as on paper.
            let digits = [cycles & 0xffff_ffff, cycles >> 32].map(|digit| digit * u64::from(mult));
            let exact = u128::from(base) + u128::from(digits[0]) + (u128::from(digits[1]) << 32);
            prop_assert_eq!(scaled(base, cycles, mult), exact);
        }

        #[test]
        fn the_carry_is_exact(secs in edge_i64(), base: u64, cycles: u64, mult: u32, shift in 0..=MAX_SHIFT, narrow in 0..64_u32) {
            let shifted = scaled(base >> (narrow / 2), cycles >> narrow, mult);
            let (exact_secs, exact_nanos) = exact(secs, shifted, shift);
            let expected = i64::try_from(exact_secs).ok().map(|secs| Time { secs, nanos: exact_nanos });
            prop_assert_eq!(carry(secs, shifted, shift), expected);
            if let Ok(shifted) = u64::try_from(shifted) {
                let narrow = carry_narrow(secs, shifted, shift).map(Time::from);
                let nanos = shifted >> shift;
                let quick = nanos < BILLION || shifted >> 63 == 0 && nanos >> SHORT_BITS == 0;
                prop_assert_eq!(narrow, expected.filter(|_| quick));
            }
        }

        #[test]
        fn the_quick_product_is_the_product(base: u64, distance: i64, mult: u32, narrow in 0..64_u32) {
            let distance = distance >> narrow;
            let product = i128::from(distance) * i128::from(mult);
            let signed = i64::try_from(product).ok().map(i64::cast_unsigned);
            prop_assert_eq!(signed_product(distance, mult), signed);
            let words = u32::try_from(distance).ok().and(product.try_into().ok());
            prop_assert_eq!(product_of_words(distance, mult), words);

            let usual = if cfg!(target_pointer_width = "64") { signed } else { words };
            let sum = usual.and_then(|product| base.checked_add(product));
            prop_assert_eq!(scaled_narrow(base, distance, mult), sum);
            if distance < 0 && mult != 0 {
                prop_assert!(sum.is_none_or(|sum| sum >> 63 == 1), "{sum:?}");
            }
        }

        #[test]
        fn the_total_is_exact(secs in edge_i64(), base: u64, cycles: u64, mult: u32, shift in 0..=MAX_SHIFT, narrow in 0..64_u32) {
            let shifted = scaled(base >> (narrow / 2), cycles >> narrow, mult);
            let (exact_secs, exact_nanos) = exact(secs, shifted, shift);
            let expected = i64::try_from(exact_secs * i128::from(BILLION) + i128::from(exact_nanos)).ok();
            prop_assert_eq!(total(secs, shifted, shift), expected);
            if shifted >> 63 == 0 {
                let quick = expected.filter(|&total| total >= 0);
                prop_assert_eq!(quick_total(secs, shifted, shift), quick);
            } else {
                prop_assert_eq!(quick_total(secs, shifted, shift), None);
            }
        }
    }

    /// As a reader does it: the short way, else the long one.
    fn total(secs: i64, shifted: u128, shift: u32) -> Option<i64> {
        quick_total(secs, shifted, shift).or_else(|| nanos_of(carry(secs, shifted, shift)?))
    }

    fn quick_total(secs: i64, shifted: u128, shift: u32) -> Option<i64> {
        total_narrow(secs, shifted.try_into().ok()?, shift)
    }

    fn edge_i64() -> impl Strategy<Value = i64> {
        prop_oneof![
            any::<i64>(),
            -20_i64..20,
            (i64::MAX - 20)..=i64::MAX,
            i64::MIN..=(i64::MIN + 20),
            (9_223_372_030_i64..9_223_372_040),
            (-9_223_372_040_i64..-9_223_372_030),
            (0_i64..5_000_000_000),
        ]
    }

    #[test]
    fn a_product_of_which_only_the_high_half_is_set_is_carried_too() {
        for shifted in [1 << 64, 3 << 90, 1 << 127] {
            for shift in [0, 1, MAX_SHIFT] {
                let (secs, nanos) = exact(7, shifted, shift);
                let expected = i64::try_from(secs).ok().map(|secs| Time { secs, nanos });
                assert_eq!(carry(7, shifted, shift), expected, "{shifted:x} >> {shift}");
            }
        }
    }

    #[test]
    fn the_quick_total_serves_what_is_not_negative_and_nothing_else() {
        let most = 9_223_372_036;
        assert_eq!(total_narrow(most, 854_775_807, 0), Some(i64::MAX));
        assert_eq!(total_narrow(most, 854_775_808, 0), None);
        assert_eq!(total_narrow(most + 1, 0, 0), None);
        assert_eq!(total_narrow(0, u64::MAX >> 1, 0), Some(i64::MAX));
        assert_eq!(total_narrow(most, u64::MAX >> 1, 0), None, "63 bits and 63 bits");
        assert_eq!(total_narrow(0, 1 << 63, 1), None, "a product that may be negative");
        assert_eq!(total_narrow(-1, BILLION, 0), Some(0));
        assert_eq!(total_narrow(-1, BILLION - 1, 0), None, "before zero");
        assert_eq!(total_narrow(i64::MIN, 0, 0), None);
        assert_eq!(total_narrow(5, 1 << MAX_SHIFT, MAX_SHIFT), Some(5_000_000_001));
        assert_eq!(total_narrow(5, 0, MAX_SHIFT + 1), None);
    }

    #[test]
    fn the_quick_products_end_with_the_last_that_fits() {
        assert_eq!(signed_product(i64::MAX, 1), Some(u64::MAX >> 1));
        assert_eq!(signed_product(i64::MAX, 2), None);
        assert_eq!(signed_product(i64::MIN, 2), None);
        assert_eq!(signed_product(1 << 62, 1), Some(1 << 62));
        assert_eq!(signed_product(1 << 62, 2), None);
        let last = u32::MAX.into();
        assert_eq!(product_of_words(last, u32::MAX), Some(u64::from(u32::MAX).pow(2)));
        for distance in [last + 1, i64::MAX, -1, i64::MIN] {
            assert_eq!(product_of_words(distance, 0), None, "{distance}");
        }
        assert_eq!(scaled_narrow(u64::MAX - 6, 2, 3), Some(u64::MAX));
        assert_eq!(scaled_narrow(u64::MAX - 5, 2, 3), None);
    }

    #[test]
    fn short_seconds_are_split_exactly_at_every_boundary() {
        for secs in 0..=(1 << SHORT_BITS) / BILLION {
            for nanos in [0, 1, 2, 511, 512, 513, BILLION / 2, BILLION - 2, BILLION - 1] {
                let total = (secs * BILLION + nanos).min((1 << SHORT_BITS) - 1);
                let expected = (total / BILLION, total % BILLION);
                assert_eq!(split_seconds_short(total), expected, "{total}");
            }
        }
    }

    #[test]
    fn the_quick_carry_ends_where_its_division_does() {
        let at = |nanos| carry_narrow(7, nanos, 0).map(Time::from);
        assert_eq!(at(BILLION - 1), Some(Time { secs: 7, nanos: 999_999_999 }));
        assert_eq!(at(BILLION), Some(Time { secs: 8, nanos: 0 }));
        assert_eq!(at((1 << 40) - 1), Some(Time { secs: 7 + 1099, nanos: 511_627_775 }));
        assert_eq!(at(1 << 40), None);
        assert_eq!(at(1 << 63), None);
        assert_eq!(carry_narrow(7, 1 << 63, QUICK_SHIFT), None, "a counter that is behind");
        assert_eq!(carry_narrow(i64::MAX, BILLION, 0), None);
    }

    #[test]
    fn both_ways_to_multiply_agree_at_every_limit() {
        for near in -3..=3 {
            for secs in [9_223_372_036 + near, -9_223_372_036 + near, near, i64::MAX - 3 + near] {
                assert_eq!(checked_secs_to_nanos(secs), secs_to_nanos_in_range(secs), "{secs}");
            }
        }
    }

    #[test]
    fn the_edges_of_an_i64_of_nanoseconds_are_exact() {
        let at = |secs, nanos: u64| total(secs, u128::from(nanos), 0);
        assert_eq!(at(9_223_372_036, 854_775_807), Some(i64::MAX));
        assert_eq!(at(9_223_372_036, 854_775_808), None);
        assert_eq!(at(-9_223_372_037, 145_224_192), Some(i64::MIN));
        assert_eq!(at(-9_223_372_037, 145_224_191), None);
        assert_eq!(at(-1, BILLION), Some(0));
        assert_eq!(at(i64::MAX, u64::MAX), None);
    }
}
