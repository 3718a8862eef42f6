//! Stock against ours, side by side.

use std::fmt::Write as _;

use super::judge::{Totals, Verdict};

/// Prints both, and returns the number of complaints: those of either, and every difference.
pub(crate) fn print(title: &str, stock: &Verdict, ours: &Verdict) -> usize {
    let (text, complaints) = render(title, stock, ours);
    print!("{text}");
    complaints
}

fn render(title: &str, stock: &Verdict, ours: &Verdict) -> (String, usize) {
    let mut text = String::new();
    let mut complaints: Vec<String> = Vec::new();
    let _ = writeln!(text, "{title}\n\n| the kernel's tests | stock | ours |\n|---|---|---|");
    let names = stock.selftests.keys().chain(ours.selftests.keys());
    let names: std::collections::BTreeSet<&String> = names.collect();
    for name in names {
        let (left, right) = (stock.selftests.get(name), ours.selftests.get(name));
        let _ = writeln!(text, "| {name} | {} | {} |", totals(left), totals(right));
        if left != right {
            complaints.push(format!("the kernel's test {name} differs"));
        }
    }
    let _ = writeln!(text, "\n| judge | stock: checks, bad | ours: checks, bad |\n|---|---|---|");
    for (name, right) in &ours.judges {
        let left = stock.judges.get(name).copied().unwrap_or_default();
        let _ = writeln!(
            text,
            "| {name} | {}, {} | {}, {} |",
            left.checks, left.bad, right.checks, right.bad
        );
    }
    let _ = writeln!(
        text,
        "\nUpdates during the race: stock {}, ours {}.",
        stock.updates, ours.updates
    );
    for (subject, verdict) in [("stock", stock), ("ours", ours)] {
        complaints.extend(verdict.complaints.iter().map(|line| format!("{subject}: {line}")));
    }
    for complaint in &complaints {
        let _ = writeln!(text, "complaint: {complaint}");
    }
    (text, complaints.len())
}

fn totals(totals: Option<&Totals>) -> String {
    match totals {
        None => "not run".to_owned(),
        Some(Totals { exit, signal: 0, pass, fail, skip }) => {
            format!("exit {exit}, {pass} pass, {fail} fail, {skip} skip")
        }
        Some(Totals { signal, .. }) => format!("signal {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_a_complaint_even_if_both_are_good() {
        let log = |passes: &str| {
            format!(
                "@clocksource-at-begin tsc\n@tai kind=offset checks=1 bad=0 worst=0\n\
                 @begin name=a\n{passes}@selftest name=a exit=0 signal=0\n\
                 @clocksource-at-end tsc\n@end\n"
            )
        };
        let (one, two) = (Verdict::read(&log("ok 1\n")), Verdict::read(&log("ok 1\nok 2\n")));
        assert_eq!(render("t", &one, &one).1, 0);
        let (text, complaints) = render("t", &one, &two);
        assert_eq!(complaints, 1);
        assert!(text.contains("| a | exit 0, 1 pass, 0 fail, 0 skip | exit 0, 2 pass"));
    }
}
