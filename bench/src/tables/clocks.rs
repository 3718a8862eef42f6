//! Four clocks, each through libc, the vDSO and the system call, with the time that it told.
//!
//! The message that this reproduces is a patch that brought TAI into the vDSO. It shows TAI in the
//! zone `right/UTC`, which takes a count that includes leap seconds and shows UTC.

use std::ffi::c_int;
use std::fmt::Write as _;

use libc::timespec;
use serde_json::json;

use super::Bench;
use crate::callee::Callee;
use crate::calls::{self, Call};
use crate::chart::{Body, Chart, NANOSECONDS};
use crate::report::{Noise, Report};
use crate::statistics::Spread;
use crate::subject::Subject;

const CLOCKS: [(&str, c_int, &str); 4] = [
    ("CLOCK_REALTIME", libc::CLOCK_REALTIME, "UTC"),
    ("CLOCK_TAI", libc::CLOCK_TAI, "right/UTC"),
    ("CLOCK_MONOTONIC", libc::CLOCK_MONOTONIC, "UTC"),
    ("CLOCK_BOOTTIME", libc::CLOCK_BOOTTIME, "UTC"),
];

const TYPES: [&str; 4] = ["0 glibc", "1 vdso", "2 sys", "3 host"];

struct Row {
    clock: &'static str,
    zone: &'static str,
    kind: &'static str,
    time: timespec,
    nanos: Spread,
}

pub(super) fn measure(bench: &Bench<'_, '_>) -> Report {
    let ours = bench.setup.chosen().callee();
    let host = bench.setup.host;
    let (mut rows, mut noise) = (Vec::new(), Noise::default());
    let mut tai = f64::NAN;
    let mut realtime = f64::NAN;
    for (clock, id, zone) in CLOCKS {
        let call = Call::Gettime(id);
        let mut subjects = [
            calls::through_libc(call),
            or_nothing(calls::through_image(&ours, call)),
            calls::through_syscall(call),
            or_nothing(calls::through_image(&host, call)),
        ];
        let measured = bench.interleave(clock, &mut subjects, &bench.plan());
        let subjects = subjects.map(|s| s.named(clock));
        noise.add(&subjects, &measured);
        bench.setup.tick();
        let told = [
            told_by_libc(id),
            told_by_image(&ours, id),
            told_by_syscall(id),
            told_by_image(&host, id),
        ];
        for (index, (kind, time)) in TYPES.into_iter().zip(told).enumerate() {
            let nanos = measured.spread(index);
            rows.push(Row { clock, zone, kind, time, nanos });
        }
        match id {
            libc::CLOCK_TAI => tai = measured.spread(1).median,
            libc::CLOCK_REALTIME => realtime = measured.spread(1).median,
            _ => {}
        }
    }
    let mut notes = noise.notes();
    notes.push(format!("TAI takes {:.3} of the time of REALTIME through our vDSO", tai / realtime));
    notes.push("type 1 is our vDSO, type 3 the host's; min and p99 are of the rounds".to_owned());
    Report {
        table: "clocks",
        title: "Four clocks through libc, the vDSO and the system call",
        text: text(&rows),
        rows: rows
            .iter()
            .map(|row| {
                json!({ "sec": row.time.tv_sec, "timestamp": timestamp(&row.time, row.zone),
                        "nanos": row.nanos, "clockname": row.clock, "tzname": row.zone,
                        "type": row.kind })
            })
            .collect(),
        notes,
        charts: vec![chart(&rows)],
    }
}

/// A function that an image lacks takes no time that could be told.
fn or_nothing(subject: Option<Subject<'_>>) -> Subject<'_> {
    subject.unwrap_or_else(|| Subject::timed("", |_| f64::NAN))
}

const EMPTY: timespec = timespec { tv_sec: 0, tv_nsec: 0 };

fn told_by_libc(id: c_int) -> timespec {
    let mut time = EMPTY;
    // SAFETY: `time` is alive.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    time
}

fn told_by_syscall(id: c_int) -> timespec {
    let mut time = EMPTY;
    // SAFETY: `time` is alive.
    unsafe { libc::syscall(libc::SYS_clock_gettime, id, &raw mut time) };
    time
}

fn told_by_image(callee: &Callee<'_>, id: c_int) -> timespec {
    let mut time = EMPTY;
    if let Some(call) = callee.functions().clock_gettime {
        // SAFETY: the callee is mapped, `time` is alive.
        unsafe { call(id, &raw mut time) };
    }
    time
}

fn text(rows: &[Row]) -> String {
    let mut text = String::from(
        "       sec                     Timestamp nanos       clockname    tzname type      min   p99\n\
         ---------- ----------------------------- ----- --------------- --------- ------- ----- -----\n",
    );
    for row in rows {
        let _ = writeln!(
            text,
            "{:>10} {:>29} {:>5.1} {:>15} {:>9} {:<7} {:>5.1} {:>5.1}",
            row.time.tv_sec,
            timestamp(&row.time, row.zone),
            row.nanos.median,
            row.clock,
            row.zone,
            row.kind,
            row.nanos.min,
            row.nanos.p99
        );
    }
    text
}

fn chart(rows: &[Row]) -> Chart {
    let series = |kind: &str| {
        let of_kind = rows.iter().filter(|row| row.kind == kind);
        of_kind.map(|row| row.nanos).collect()
    };
    Chart {
        file: "clocks",
        title: "Reading a clock through libc, the vDSO and the system call".to_owned(),
        value_label: NANOSECONDS,
        body: Body::Bars {
            categories: CLOCKS.map(|(name, ..)| name.to_owned()).to_vec(),
            series: vec![
                ("our vDSO".to_owned(), series("1 vdso")),
                ("host's vDSO".to_owned(), series("3 host")),
                ("glibc".to_owned(), series("0 glibc")),
                ("system call".to_owned(), series("2 sys")),
            ],
        },
    }
}

/// A date and a time of day, as the zone shows the seconds.
fn timestamp(time: &timespec, zone: &str) -> String {
    let seconds = if zone == "right/UTC" {
        time.tv_sec - leap_seconds_before(time.tv_sec)
    } else {
        time.tv_sec
    };
    let (year, month, day) = date(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    format!(
        "{year:04}/{month:02}/{day:02} {:02}:{:02}:{:02}.{:09}",
        second / 3600,
        second / 60 % 60,
        second % 60,
        time.tv_nsec
    )
}

/// Leap seconds that a count of seconds, itself including them, has behind it.
fn leap_seconds_before(count: i64) -> i64 {
    // The n-th leap second is the one before this UTC time, which the count reaches n later.
    let mut passed = 0;
    for utc in LEAP_SECONDS {
        if utc + passed > count {
            break;
        }
        passed += 1;
    }
    passed
}

/// The UTC times right after which each leap second was inserted (IERS Bulletin C; none since).
const LEAP_SECONDS: [i64; 27] = [
    78_796_800,
    94_694_400,
    126_230_400,
    157_766_400,
    189_302_400,
    220_924_800,
    252_460_800,
    283_996_800,
    315_532_800,
    362_793_600,
    394_329_600,
    425_865_600,
    489_024_000,
    567_993_600,
    631_152_000,
    662_688_000,
    709_948_800,
    741_484_800,
    773_020_800,
    820_454_400,
    867_715_200,
    915_148_800,
    1_136_073_600,
    1_230_768_000,
    1_341_100_800,
    1_435_708_800,
    1_483_228_800,
];

/// Year, month and day of a day since 1970, in the Gregorian calendar.
///
/// The year begins in March, so that the leap day is its last: then the days before a month are a
/// straight line, `(153 * month + 2) / 5`.
fn date(days: i64) -> (i64, i64, i64) {
    const DAYS_OF_ERA: i64 = 146_097;
    let shifted = days + 719_468;
    let era = shifted.div_euclid(DAYS_OF_ERA);
    let day = shifted.rem_euclid(DAYS_OF_ERA);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(tv_sec: i64, tv_nsec: i64, zone: &str) -> String {
        timestamp(&timespec { tv_sec, tv_nsec }, zone)
    }

    #[test]
    fn the_messages_own_timestamps_come_out() {
        assert_eq!(at(1_535_466_985, 483_377_529, "UTC"), "2018/08/28 14:36:25.483377529");
        assert_eq!(at(1_535_466_975, 530_621_935, "right/UTC"), "2018/08/28 14:35:48.530621935");
        assert_eq!(at(224, 575_542_852, "UTC"), "1970/01/01 00:03:44.575542852");
    }

    #[test]
    fn leap_seconds_count_from_their_end_on() {
        assert_eq!(leap_seconds_before(0), 0);
        assert_eq!(leap_seconds_before(78_796_799), 0);
        assert_eq!(leap_seconds_before(78_796_800), 1);
        assert_eq!(leap_seconds_before(1_483_228_800 + 25), 26);
        assert_eq!(leap_seconds_before(1_483_228_800 + 26), 27);
    }

    #[test]
    fn dates_are_right_around_leap_days_and_before_1970() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(-1), (1969, 12, 31));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(11_017), (2000, 3, 1));
        assert_eq!(date(47_540), (2100, 2, 28));
        assert_eq!(date(47_541), (2100, 3, 1));
    }
}
