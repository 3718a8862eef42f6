//! The fields of the page and who reads each, as data: for drawings, headers and tests.
//!
//! `kernel-sim layout` draws the page from these tables. A test across crates changes each field
//! under the shipped image and sees that exactly the calls named here answer differently.

use crate::layout::{BASES, DATA_BYTES, offset};

/// A field of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in `docs/page.md` and in the C header.
    pub name: &'static str,
    /// What is in it, in a few words; empty for a reserved one.
    pub holds: &'static str,
    /// Bytes from the start of the page.
    pub offset: usize,
    /// Its size in bytes.
    pub bytes: usize,
}

const fn field(name: &'static str, holds: &'static str, offset: usize, bytes: usize) -> Field {
    Field { name, holds, offset, bytes }
}

const fn scale(index: usize, name: &'static str, holds: &'static str) -> Field {
    field(name, holds, place(offset::CS, index, offset::CS_BYTES), offset::CS_BYTES)
}

const fn base(id: usize, name: &'static str, holds: &'static str) -> Field {
    field(name, holds, place(offset::BASETIME, id, offset::BASETIME_BYTES), offset::BASETIME_BYTES)
}

#[allow(clippy::arithmetic_side_effects, reason = "evaluated when this is compiled")]
const fn place(start: usize, index: usize, bytes: usize) -> usize {
    start + index * bytes
}

/// Every byte of the page belongs to exactly one of these; they are in ascending order.
pub static FIELDS: [Field; 29] = [
    field("seq", "", offset::SEQ, 4),
    field("clock_mode", "", offset::CLOCK_MODE, 4),
    field("cycle_last", "", offset::CYCLE_LAST, 8),
    scale(0, "cs[0]", "mask, mult, shift: steered"),
    scale(1, "cs[1]", "mask, mult, shift: raw"),
    base(0, "basetime[0]", "REALTIME"),
    base(1, "basetime[1]", "MONOTONIC"),
    base(2, "basetime[2]", "(never published)"),
    base(3, "basetime[3]", "(never published)"),
    base(4, "basetime[4]", "MONOTONIC_RAW"),
    base(5, "basetime[5]", "REALTIME_COARSE"),
    base(6, "basetime[6]", "MONOTONIC_COARSE"),
    base(7, "basetime[7]", "BOOTTIME"),
    base(8, "basetime[8]", "(never published)"),
    base(9, "basetime[9]", "(never published)"),
    base(10, "basetime[10]", "(never published)"),
    base(11, "basetime[11]", "TAI"),
    field("tz_minuteswest", "", offset::TZ_MINUTESWEST, 4),
    field("tz_dsttime", "", offset::TZ_DSTTIME, 4),
    field("hrtimer_res", "", offset::HRTIMER_RES, 4),
    field("coarse_res", "", offset::COARSE_RES, 4),
    field("magic", "", offset::MAGIC, 8),
    field("abi", "", offset::ABI, 4),
    field("page_bytes", "", offset::PAGE_BYTES, 4),
    field("features", "", offset::FEATURES, 8),
    field("reserved_280", "", offset::RESERVED_280, 40),
    field("memory_counter", "", offset::MEMORY_COUNTER, 8),
    field("reserved_328", "", offset::RESERVED_328, 56),
    field("reserved_384", "", offset::RESERVED_384, 128),
];

/// A call that a page serves, and the fields that decide its answer.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// The call, as a program writes it.
    pub call: &'static str,
    /// Names of the fields.
    pub fields: &'static [&'static str],
    /// Whether the counter is read: in mode MEMORY that is `memory_counter`.
    pub counter: bool,
}

const fn precise(call: &'static str, fields: &'static [&'static str]) -> Read {
    Read { call, fields, counter: true }
}

const fn plain(call: &'static str, fields: &'static [&'static str]) -> Read {
    Read { call, fields, counter: false }
}

/// What each call reads while the page serves it.
///
/// `clock_gettime_ns` reads what `clock_gettime` does.
pub static READS: [Read; 13] = [
    precise(
        "clock_gettime(REALTIME)",
        &["seq", "clock_mode", "cycle_last", "cs[0]", "basetime[0]"],
    ),
    precise(
        "clock_gettime(MONOTONIC)",
        &["seq", "clock_mode", "cycle_last", "cs[0]", "basetime[1]"],
    ),
    precise(
        "clock_gettime(BOOTTIME)",
        &["seq", "clock_mode", "cycle_last", "cs[0]", "basetime[7]"],
    ),
    precise("clock_gettime(TAI)", &["seq", "clock_mode", "cycle_last", "cs[0]", "basetime[11]"]),
    precise("gettimeofday(tv, NULL)", &["seq", "clock_mode", "cycle_last", "cs[0]", "basetime[0]"]),
    precise(
        "clock_gettime(MONOTONIC_RAW)",
        &["seq", "clock_mode", "cycle_last", "cs[1]", "basetime[4]"],
    ),
    plain("clock_gettime(REALTIME_COARSE)", &["seq", "basetime[5]"]),
    plain("clock_gettime(MONOTONIC_COARSE)", &["seq", "basetime[6]"]),
    plain("clock_getres(MONOTONIC)", &["seq", "basetime[1]", "hrtimer_res"]),
    plain("clock_getres(MONOTONIC_COARSE)", &["seq", "basetime[6]", "coarse_res"]),
    plain("gettimeofday(NULL, tz)", &["seq", "tz_minuteswest", "tz_dsttime", "hrtimer_res"]),
    plain("time(NULL)", &["basetime[0]"]),
    plain("getcpu(cpu, node)", &["features"]),
];

/// The field called `name`.
#[must_use]
pub fn named(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.name == name)
}

const _: () = {
    // No byte is left out and none is in two fields.
    let mut at = 0;
    let mut index = 0;
    #[allow(clippy::indexing_slicing, reason = "evaluated when this is compiled")]
    #[allow(clippy::arithmetic_side_effects, reason = "evaluated when this is compiled")]
    while index < FIELDS.len() {
        assert!(FIELDS[index].offset == at, "a gap or an overlap");
        at += FIELDS[index].bytes;
        index += 1;
    }
    assert!(at == DATA_BYTES, "the fields do not end where the page does");
    assert!(BASES == 12, "basetime has another length");
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_name_fields_that_exist() {
        for read in &READS {
            assert!(!read.fields.is_empty(), "{}", read.call);
            for name in read.fields {
                assert!(named(name).is_some(), "{} reads {name}", read.call);
            }
        }
    }

    #[test]
    fn precise_reads_stay_within_two_lines_and_the_wall_clock_in_one_where_the_layout_allows() {
        let line = |name: &&str| named(name).unwrap().offset / 64;
        for read in READS.iter().filter(|read| read.counter) {
            let mut lines: std::vec::Vec<usize> = read.fields.iter().map(line).collect();
            lines.dedup();
            assert!(lines.len() <= 2, "{} reads {lines:?}", read.call);
        }
        let wall = READS[0].fields.iter().map(line).max();
        assert_eq!(wall, Some(0));
    }
}
