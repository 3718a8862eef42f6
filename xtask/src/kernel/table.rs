//! Stock against ours, side by side, in Markdown.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::Case;
use super::judge::{Totals, Verdict};

/// Prints a case, and returns the number of complaints: those of either boot, and every difference.
pub(crate) fn print(case: &Case) -> usize {
    let (tables, complaints) = render(&case.stock, &case.ours);
    print!("### {}\n\n{tables}", case.title);
    let times = &case.times;
    println!(
        "{}: {:.0?} for the stock kernel and the guest's programs, {:.0?} to exchange and link, \
         boots of {:.0?} (stock) and {:.0?} (ours).\n",
        match complaints {
            0 => "All equal, nothing bad".to_owned(),
            complaints => format!("{complaints} complaints"),
        },
        times.built,
        times.exchanged,
        times.booted[0],
        times.booted[1],
    );
    complaints
}

/// One line for each case.
pub(crate) fn summary(cases: &[Case]) -> String {
    let mut text = String::from(
        "### All cases\n\n| kernel | the kernel's tests: stock, ours | judges' checks: stock, ours \
         | bad | complaints | boot: stock, ours |\n|---|---|---|---|---|---|\n",
    );
    for case in cases {
        let passes = |verdict: &Verdict| -> String {
            let sum = |of: fn(&Totals) -> u32| verdict.selftests.values().map(of).sum::<u32>();
            format!("{} ({} pass)", verdict.selftests.len(), sum(|totals| totals.pass))
        };
        let checks = |verdict: &Verdict| verdict.judges.values().map(|count| count.checks).sum();
        let bad = |verdict: &Verdict| verdict.judges.values().map(|count| count.bad).sum::<u64>();
        let (left, right): (u64, u64) = (checks(&case.stock), checks(&case.ours));
        let _ = writeln!(
            text,
            "| {} | {}, {} | {left}, {right} | {} | {} | {:.0?}, {:.0?} |",
            case.title,
            passes(&case.stock),
            passes(&case.ours),
            bad(&case.stock) + bad(&case.ours),
            case.complaints,
            case.times.booted[0],
            case.times.booted[1],
        );
    }
    text.push('\n');
    text
}

fn render(stock: &Verdict, ours: &Verdict) -> (String, usize) {
    let mut text = String::new();
    let mut complaints: Vec<String> = Vec::new();
    let _ = writeln!(text, "| the kernel's tests | stock | ours |\n|---|---|---|");
    let names: BTreeSet<&String> = stock.selftests.keys().chain(ours.selftests.keys()).collect();
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
        "\nUpdates during the race: stock {}, ours {}.\n",
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
    use super::super::machine::Arch;
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
        let read = |passes| Verdict::read(Arch::X86_64.machine(), &log(passes));
        let (one, two) = (read("ok 1\n"), read("ok 1\nok 2\n"));
        assert_eq!(render(&one, &one).1, 0);
        let (text, complaints) = render(&one, &two);
        assert_eq!(complaints, 1);
        assert!(text.contains("| a | exit 0, 1 pass, 0 fail, 0 skip | exit 0, 2 pass"));
    }
}
