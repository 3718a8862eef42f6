//! The oracle's unit: 2^-66 of a nanosecond, in 128 bits.
//!
//! No scale of a page is finer than 2^-34 ns, and NTP's rates are whole numbers of 2^-32 of a
//! multiplier's unit, so everything that the rules say is exact in it. It holds 73 years of
//! MONOTONIC to either side; dates are kept as whole nanoseconds beside it.

/// An amount in 2^-66 ns.
pub(crate) type Fine = i128;

/// Bits below the nanosecond.
pub(crate) const FINE_BITS: u32 = 66;

/// A nanosecond.
pub(crate) const NANO: Fine = 1 << FINE_BITS;

/// Whole nanoseconds, rounded down.
pub(crate) const fn floor(amount: Fine) -> i128 {
    amount >> FINE_BITS
}
