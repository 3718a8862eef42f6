//! The demonstration as text of 80 columns.

use std::fmt::Write as _;

use super::clocks::Clock;
use super::drive::Drive;
use super::image::Image;
use super::programs::Program;

/// What the judge said.
pub(super) fn image(image: &Image) -> String {
    let mut text = heading("The image");
    let _ = writeln!(
        text,
        "{} bytes, build id {}\n{} of {} rules hold",
        image.bytes, image.build_id, image.rules_held, image.rules
    );
    for remark in &image.remarks {
        let _ = writeln!(text, "  not met, and no consumer breaks: {remark}");
    }
    let _ = writeln!(text, "exports {}", image.functions.join(", ").replace("__vdso_", ""));
    text
}

/// The data page.
pub(super) fn page() -> String {
    format!("{}{}", heading("The page"), crate::commands::layout::picture())
}

/// What the fuzzed timekeeper did.
pub(super) fn drive(drive: &Drive) -> String {
    let mut text = heading("The timekeeper, driven with random updates");
    let _ = writeln!(
        text,
        "{} updates, {} reads by {} threads, each compared with the exact value: {}",
        thousands(drive.updates),
        thousands(drive.reads),
        drive.readers,
        drive.violation.as_deref().unwrap_or("none was off")
    );
    text
}

/// Our clocks beside the host's.
pub(super) fn clocks(clocks: &[Clock]) -> String {
    let mut text = heading("Our clocks beside the host's");
    let _ = writeln!(
        text,
        "{:<16} {:>20} {:>20} {:>9} {:>5} {:>5}",
        "clock", "ours", "host, just before", "outside", "ours", "host"
    );
    let _ =
        writeln!(text, "{:<16} {:>20} {:>20} {:>9} {:>5} {:>5}", "", "s", "s", "ns", "ns", "ns");
    for clock in clocks {
        let host = clock.host_ns_per_call.map_or_else(|| "-".into(), |ns| format!("{ns:.1}"));
        let _ = writeln!(
            text,
            "{:<16} {:>20} {:>20} {:>9} {:>5.1} {:>5}",
            clock.name,
            seconds(clock.ours),
            seconds(clock.host),
            clock.outside_ns,
            clock.ours_ns_per_call,
            host
        );
    }
    text.push_str("outside: how far ours is from between two system calls around it\n");
    text
}

/// Real programs on the image.
pub(super) fn programs(programs: &[Program]) -> String {
    let mut text = heading("A program on the image");
    for program in programs {
        let _ = writeln!(
            text,
            "{} with {:<20} {}   {} clock calls reached the kernel",
            program.command, program.time, program.output, program.clock_calls
        );
    }
    text
}

fn heading(title: &str) -> String {
    format!("\n{title}\n{}\n", "-".repeat(title.chars().count()))
}

/// Nanoseconds as seconds with all nine digits.
fn seconds(nanos: i64) -> String {
    format!("{}.{:09}", nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000))
}

/// A number with its thousands apart.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1 234 567");
        assert_eq!(seconds(12_000_000_034), "12.000000034");
        assert_eq!(seconds(1_500_000_000), "1.500000000");
    }
}
