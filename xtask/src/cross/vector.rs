//! What the exact answer to a given page is.
//!
//! The pages are the edges of every field in all kinds of company; the answers are computed in 128
//! bits, as the specification words them (`docs/page.md`), and share no code with the reader. They
//! become a C table, for a program that cannot compute them itself.

use std::fmt::Write as _;

/// A page with one clock, in mode MEMORY.
#[derive(Clone, Copy)]
struct Vector {
    clock: i32,
    mult: u32,
    shift: u32,
    mask: u64,
    cycle_last: u64,
    counter: u64,
    sec: i64,
    nsec: u64,
}

const BILLION: i128 = 1_000_000_000;
const MAX_SHIFT: u32 = 34;
const CLOCKS: [i32; 7] = [0, 1, 4, 5, 6, 7, 11];
const EOVERFLOW: i64 = 75;

/// The text of `vectors.h`.
pub(crate) fn header() -> String {
    let mut text = String::from(
        "/* Made by xtask/src/cross/vector.rs. */\n\
         struct vector {\n\
         \tint clock;\n\
         \tuint32_t mult, shift;\n\
         \tuint64_t mask, cycle_last, counter, sec, nsec;\n\
         \t/* The page serves the clock; its seconds are those of the base. */\n\
         \tbool served, time_is_plain;\n\
         \tint64_t want_sec, want_nsec, want_nanos;\n\
         };\n\
         static const struct vector vectors[] = {\n",
    );
    for vector in vectors() {
        let Vector { clock, mult, shift, mask, cycle_last, counter, sec, nsec } = vector;
        let time = vector.time();
        let (want_sec, want_nsec) = time.unwrap_or_default();
        let _ = writeln!(
            text,
            "\t{{{clock}, {mult}u, {shift}u, {mask}ull, {cycle_last}ull, {counter}ull, {}ull, \
             {nsec}ull, {}, {}, {}, {want_nsec}, {}}},",
            sec.cast_unsigned(),
            time.is_some(),
            vector.time_is_plain(),
            literal(want_sec),
            literal(nanos(want_sec, want_nsec)),
        );
    }
    text.push_str("};\n");
    text
}

/// C has no literal for the lowest number.
fn literal(value: i64) -> String {
    if value == i64::MIN { format!("({}ll - 1)", i64::MIN + 1) } else { format!("{value}ll") }
}

impl Vector {
    /// Seconds and nanoseconds; `None` if the page does not serve the clock.
    fn time(&self) -> Option<(i64, i64)> {
        if self.sec == 0 && self.nsec == 0 {
            return None;
        }
        let nanos = if matches!(self.clock, 5 | 6) {
            u128::from(self.nsec)
        } else {
            if self.shift > MAX_SHIFT {
                return None;
            }
            (u128::from(self.nsec) + self.cycles() * u128::from(self.mult)) >> self.shift
        };
        let nanos = i128::try_from(nanos).ok()?;
        let sec = i64::try_from(i128::from(self.sec) + nanos / BILLION).ok()?;
        Some((sec, i64::try_from(nanos % BILLION).ok()?))
    }

    /// Cycles since the update; none for a counter that is behind.
    fn cycles(&self) -> u128 {
        let cycles = self.counter.wrapping_sub(self.cycle_last) & self.mask;
        if cycles > self.mask >> 1 { 0 } else { u128::from(cycles) }
    }

    /// Whether `time()`, which is free to ignore the nanoseconds, has one right answer: a base
    /// within its second, and none of the two values that stand for something else.
    fn time_is_plain(&self) -> bool {
        self.clock == 0
            && self.shift <= MAX_SHIFT
            && !matches!(self.sec, -1 | 0)
            && i128::from(self.nsec >> self.shift) < BILLION
    }
}

/// What `clock_gettime_ns` returns for a time that is served.
fn nanos(sec: i64, nsec: i64) -> i64 {
    match i64::try_from(i128::from(sec) * BILLION + i128::from(nsec)) {
        Ok(-4095..=-1) => 0,
        Ok(nanos) => nanos,
        Err(_) => -EOVERFLOW,
    }
}

fn vectors() -> Vec<Vector> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut vectors = Vec::new();
    // A usual page, for each clock.
    for clock in CLOCKS {
        vectors.push(Vector {
            clock,
            mult: 6_462_419,
            shift: 24,
            mask: u64::MAX,
            cycle_last: 1 << 40,
            counter: (1 << 40) + 10_000_000,
            sec: 1_700_000_000,
            nsec: if matches!(clock, 5 | 6) { 999_999_999 } else { 999_999_999 << 24 },
        });
    }
    // Ends of what `clock_gettime_ns` can say, and of what it calls an error.
    for (sec, nsec) in [
        (9_223_372_036, 854_775_807),
        (9_223_372_036, 854_775_808),
        (-9_223_372_037, 145_224_192),
        (-9_223_372_037, 145_224_191),
        (-1, 999_999_999),
        (-1, 999_995_905),
        (-1, 999_995_904),
        (-1, 1_000_000_000),
    ] {
        for clock in [0, 4, 6] {
            vectors.push(Vector {
                clock,
                mult: 1,
                shift: 0,
                mask: u64::MAX,
                cycle_last: 0,
                counter: 0,
                sec,
                nsec,
            });
        }
    }
    for _ in 0..600 {
        let shift = random.choose(&[0, 1, 8, 24, 31, 32, 33, 34, 35, 63, 64, u32::MAX]);
        let mask = random.choose(&[u64::MAX, (1 << 56) - 1, (1 << 32) - 1, u64::MAX >> 1, 0]);
        let cycle_last = random.choose(&[0, 1, u64::MAX, 1 << 63, 0xffff_ffff, random.0]);
        let passed = random.choose(&[
            0,
            1,
            mask >> 1,
            (mask >> 1).wrapping_add(1),
            mask,
            u64::MAX,
            0xffff_ffff,
            1 << 32,
            10_000_000,
            random.0 >> 20,
        ]);
        let second = 1_000_000_000_u64 << (shift & 63).min(34);
        vectors.push(Vector {
            clock: random.choose(&CLOCKS),
            mult: random.choose(&[0, 1, u32::MAX, 6_462_419, 1 << 24, 1 << 31]),
            shift,
            mask,
            cycle_last,
            counter: cycle_last.wrapping_add(passed),
            sec: random.choose(&[
                0,
                1,
                -1,
                -2,
                i64::MAX,
                i64::MAX - 1,
                i64::MIN,
                0x7fff_ffff,
                0x8000_0000,
                0x1_0000_0000,
                1_700_000_000,
                -5_000_000_000,
            ]),
            nsec: random.choose(&[
                0,
                1,
                second - 1,
                second,
                second + 1,
                u64::MAX,
                u64::MAX - 1,
                1 << 63,
                999_999_999,
                random.0,
            ]),
        });
    }
    vectors
}

/// The same numbers in every build (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let count = u64::try_from(from.len()).unwrap_or(1);
        from[usize::try_from(self.0 % count).unwrap_or(0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_are_those_of_the_specification() {
        let usual = vectors()[0];
        // 10^7 cycles at 6462419 / 2^24 ns are 3851901 ns and a fraction.
        assert_eq!(usual.time(), Some((1_700_000_001, 3_851_900)));
        assert_eq!(Vector { sec: 0, nsec: 0, ..usual }.time(), None, "unpublished");
        assert_eq!(Vector { shift: 35, ..usual }.time(), None, "no legal shift");
        let behind = Vector { counter: usual.cycle_last - 1, ..usual };
        assert_eq!(behind.time(), Some((1_700_000_000, 999_999_999)), "a counter behind");
        assert_eq!(nanos(-1, 999_999_999), 0);
        assert_eq!(nanos(9_223_372_036, 854_775_808), -EOVERFLOW);
    }

    #[test]
    fn the_table_has_both_kinds_for_every_clock() {
        for clock in CLOCKS {
            let all = vectors();
            let of_clock = || all.iter().filter(move |vector| vector.clock == clock);
            assert!(of_clock().filter(|vector| vector.time().is_some()).count() > 20);
            assert!(of_clock().any(|vector| vector.time().is_none()));
        }
    }
}
