//! The verdict over a boot: everything that must be there, is, and nothing is bad.
//!
//! The guest only counts. What it does not print is missed here: every judge on every clock and
//! CPU is expected by name, with a least number of checks. Above all a run in which the counter
//! could not be read is refused, since then every call would ask the kernel and agree with it.

use std::collections::BTreeMap;
use std::fmt;

use linker::Image;

use super::guest;
use super::machine::Machine;

/// How long a reader races the writer, at the least, for the result to count.
pub(crate) const RACE_SECONDS: u32 = 30;

/// Which of the two kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Debian's sources as they are.
    Stock,
    /// With our writer, page and image.
    Ours,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stock => "stock",
            Self::Ours => "ours",
        })
    }
}

/// What a boot was.
#[derive(Clone, Copy)]
pub(crate) struct Boot<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) subject: Subject,
    /// What programs have if it is our kernel.
    pub(crate) image: &'a Image,
    /// Seconds of the race.
    pub(crate) race: u32,
}

/// What one of the kernel's tests came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) exit: i32,
    pub(crate) signal: i32,
    pub(crate) pass: u32,
    pub(crate) fail: u32,
    pub(crate) skip: u32,
}

/// What our judges counted, by judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) lines: u64,
    pub(crate) checks: u64,
    pub(crate) bad: u64,
}

/// Everything of one boot.
pub(crate) struct Verdict {
    pub(crate) selftests: BTreeMap<String, Totals>,
    pub(crate) judges: BTreeMap<String, Count>,
    /// Updates that were published during the race.
    pub(crate) updates: u64,
    pub(crate) complaints: Vec<String>,
}

/// The conditions under which every clock is compared with the kernel, on each CPU, and the judge
/// that brings each about.
const WHEN: [(&str, &str); 7] = [
    ("rest", "bracket"),
    ("timens-carry", "timens"),
    ("timens-borrow", "timens"),
    ("timens-large", "timens"),
    ("hpet", "clocksource"),
    ("tsc-again", "clocksource"),
    ("resumed", "suspend"),
];
const CLOCKS: [&str; 10] = [
    "clock-0",
    "clock-1",
    "clock-2",
    "clock-3",
    "clock-4",
    "clock-5",
    "clock-6",
    "clock-7",
    "clock-11",
    "gettimeofday",
];
/// Through `clock_gettime_ns`, which only our image has.
const OUR_CLOCKS: [&str; 2] = ["ns-monotonic", "ns-realtime"];
const JUDGES: [&str; 12] = [
    "identity",
    "bracket",
    "getcpu",
    "signals",
    "timezone",
    "settime",
    "tai",
    "leap",
    "timens",
    "clocksource",
    "suspend",
    "race",
];
/// Updates a second below which there was no race.
const UPDATES_A_SECOND: u64 = 1000;

/// A line with counts that must be there: its beginning, and the least number of checks (and of
/// updates, where it has them).
fn expected(boot: Boot<'_>) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    let Boot { machine, subject, race, .. } = boot;
    let ours = subject == Subject::Ours;
    let has = |judge| !machine.without.contains(&judge);
    let more = if ours { &OUR_CLOCKS[..] } else { &[] };
    let time = machine.has_time_and_getcpu.then_some("time");
    for (when, _) in WHEN.iter().filter(|(_, judge)| has(judge)) {
        for cpu in 0..2 {
            for clock in CLOCKS.iter().chain(more).copied().chain(time) {
                all.push((format!("@bracket when={when} cpu={cpu} clock={clock} "), 10_000));
            }
        }
    }
    // Two of the calls are of our image alone, two not of every machine.
    let calls = 19 + if ours { 2 } else { 0 } + if machine.has_time_and_getcpu { 2 } else { 0 };
    let after = [("after-timens", "timens")];
    for (when, _) in WHEN.iter().chain(&after).filter(|(_, judge)| has(judge)) {
        let precise = u32::from(*when != "hpet");
        all.push((format!("@served when={when} precise={precise} "), calls));
    }
    // All but the two CPU clocks.
    let clocks = CLOCKS.iter().chain(more).copied().chain(time).count() - 2;
    let shifts = 200 * u64::try_from(clocks).unwrap_or(u64::MAX);
    // The first word is the judge.
    for (line, least) in [
        ("@timezone kind=at-once ", 3200),
        ("@settime kind=seen ", 3000),
        ("@settime kind=undisturbed ", 500),
        ("@tai kind=offset ", 800),
        ("@leap kind=bracket ", 10_000),
        ("@leap kind=shape ", 5),
        ("@timens offsets=carry ", shifts),
        ("@timens offsets=borrow ", shifts),
        ("@timens offsets=large ", shifts),
        ("@clocksource kind=under-load cpu=0 ", 10_000),
        ("@clocksource kind=under-load cpu=1 ", 10_000),
        ("@suspend slept_ms=", 10_000),
    ] {
        if has(line.trim_start_matches('@').split(' ').next().unwrap_or_default()) {
            all.push((line.to_owned(), least));
        }
    }
    if machine.has_time_and_getcpu {
        all.push(("@getcpu kind=pinned ".to_owned(), 800));
    }
    if machine.returns_signals {
        all.push(("@signals kind=return ".to_owned(), 2000));
    }
    for kind in ["bracket", "ascent"] {
        all.push((
            format!("@race kind={kind} seconds={race} updates="),
            u64::from(race) * UPDATES_A_SECOND,
        ));
    }
    all
}

impl Verdict {
    /// Judges a whole run.
    pub(crate) fn of(boot: Boot<'_>, log: &str) -> Self {
        let machine = boot.machine;
        let mut verdict = Self::read(machine, log);
        let mut complaints = std::mem::take(&mut verdict.complaints);
        for (line, least) in expected(boot) {
            let found: Vec<&str> = log.lines().filter(|found| found.starts_with(&line)).collect();
            match found[..] {
                [found]
                    if number(found, "checks").is_some_and(|checks| checks >= least)
                        && number(found, "updates").is_none_or(|updates| updates >= least) => {}
                [found] => {
                    complaints.push(format!("fewer than {least} checks or updates: {found}"))
                }
                _ => complaints.push(format!("{} lines {line:?}, not one", found.len())),
            }
        }
        for judge in judges(machine) {
            if !log.contains(&format!("@judge name={judge} exit=0 signal=0")) {
                complaints.push(format!("the judge {judge} did not end well"));
            }
        }
        for name in guest::selftests(machine) {
            if !verdict.selftests.contains_key(name) {
                complaints.push(format!("the kernel's test {name} did not run"));
            }
        }
        complaints.extend(identity(boot, log));
        verdict.complaints = complaints;
        verdict
    }

    /// What stands in the log, and what must hold of any, whatever part of the judges it has.
    pub(crate) fn read(machine: &Machine, log: &str) -> Self {
        let mut complaints = Vec::new();
        let (mut judges, mut updates) = (BTreeMap::<String, Count>::new(), 0);
        for line in log.lines() {
            if let (Some(checks), Some(bad)) = (number(line, "checks"), number(line, "bad")) {
                let name = line.trim_start_matches('@').split(' ').next().unwrap_or_default();
                let count = judges.entry(name.to_owned()).or_default();
                count.lines += 1;
                count.checks += checks;
                count.bad += bad;
                updates = updates.max(number(line, "updates").unwrap_or(0));
                if bad != 0 {
                    complaints.push(line.to_owned());
                }
            }
            // The kernel's own words: of the shim, and of anything that went wrong in it.
            let alarm = ["uvdso: ", "WARNING:", "BUG:", "Oops", "Call Trace", "died: "];
            if alarm.iter().any(|alarm| line.contains(alarm)) {
                complaints.push(format!("the guest says: {line}"));
            }
        }
        for when in ["begin", "end"] {
            let clocksource = machine.clocksource;
            if !log.contains(&format!("@clocksource-at-{when} {clocksource}\n")) {
                complaints.push(format!("the clocksource at the {when} was not {clocksource}"));
            }
        }
        if !log.lines().any(|line| line == "@end") {
            complaints.push("the guest did not come to its end".to_owned());
        }
        if judges.values().all(|count| count.checks == 0) {
            complaints.push("nothing was checked".to_owned());
        }
        let selftests = selftests(log);
        for (name, totals) in &selftests {
            if (totals.exit, totals.signal, totals.fail) != (0, 0, 0) {
                complaints.push(format!("the kernel's test {name} came to {totals:?}"));
            }
        }
        Self { selftests, judges, updates, complaints }
    }
}

/// The judges of a machine.
fn judges(machine: &Machine) -> impl Iterator<Item = &'static str> {
    JUDGES.into_iter().filter(|judge| !machine.without.contains(judge))
}

/// Whose image and page the guest has.
fn identity(boot: Boot<'_>, log: &str) -> Vec<String> {
    let line = log.lines().find(|line| line.starts_with("@identity ")).unwrap_or_default();
    let build_id: String = boot.image.build_id.iter().map(|b| format!("{b:02x}")).collect();
    let wanted = match boot.subject {
        Subject::Stock => vec!["note=0".to_owned()],
        Subject::Ours => vec![
            format!("build_id={build_id}"),
            "note=1".to_owned(),
            format!("magic={:016x}", datapage::MAGIC),
            format!("mode={}", datapage::ClockMode::COUNTER.0),
        ],
    };
    wanted
        .into_iter()
        .filter(|wanted| !line.split(' ').any(|word| word == wanted))
        .map(|wanted| format!("the image is another: no {wanted} in {line:?}"))
        .collect()
}

fn number(line: &str, key: &str) -> Option<u64> {
    line.strip_prefix('@')?
        .split(' ')
        .find_map(|word| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
}

/// Counts what the kernel's tests print, in the styles that they use.
fn selftests(log: &str) -> BTreeMap<String, Totals> {
    let mut all = BTreeMap::new();
    let mut totals = Totals::default();
    for line in log.lines() {
        if line.starts_with("@begin ") {
            totals = Totals::default();
        } else if let Some(end) = line.strip_prefix("@selftest name=") {
            let name = end.split(' ').next().unwrap_or_default().to_owned();
            let value = |key| {
                end.split(' ')
                    .find_map(|word: &str| word.strip_prefix(key)?.parse().ok())
                    .unwrap_or(-1)
            };
            totals.exit = value("exit=");
            totals.signal = value("signal=");
            all.insert(name, totals);
        } else if line.contains("# SKIP") || line.contains("[SKIP]") {
            totals.skip += 1;
        } else if line.starts_with("not ok ") || line.contains("[FAIL") {
            totals.fail += 1;
        } else if line.starts_with("ok ") || line.contains("[OK]") || line.contains("[PASS]") {
            totals.pass += 1;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::machine::Arch;
    use super::*;

    const OURS: Subject = Subject::Ours;

    fn boot(arch: Arch, subject: Subject) -> Boot<'static> {
        Boot { machine: arch.machine(), subject, image: &linker::SYSCALL, race: 30 }
    }

    /// A log in which everything is as it should be.
    fn good(boot: Boot<'_>) -> String {
        let machine = boot.machine;
        let clocksource = machine.clocksource;
        let mut log = format!("@clocksource-at-begin {clocksource}\n");
        let build_id: String = boot.image.build_id.iter().map(|b| format!("{b:02x}")).collect();
        log += &match boot.subject {
            Subject::Stock => "@identity build_id=00 note=0\n".to_owned(),
            Subject::Ours => format!(
                "@identity build_id={build_id} note=1 magic={:016x} mode=1\n",
                datapage::MAGIC
            ),
        };
        for (line, least) in expected(boot) {
            let line = line.replace("updates=", "updates=100000 ").replace("ms=", "ms=2000 ");
            log += &format!("{line}checks={least} bad=0 worst=0\n");
        }
        for judge in judges(machine) {
            log += &format!("@judge name={judge} exit=0 signal=0\n");
        }
        for name in guest::selftests(machine) {
            log += &format!("@begin name={name}\nok 1\n@selftest name={name} exit=0 signal=0\n");
        }
        log + &format!("@clocksource-at-end {clocksource}\n@end\n")
    }

    const ARCHES: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];

    #[test]
    fn a_good_run_has_no_complaint() {
        for arch in ARCHES {
            for subject in [Subject::Stock, OURS] {
                let boot = boot(arch, subject);
                assert_eq!(Verdict::of(boot, &good(boot)).complaints, [""; 0]);
            }
        }
    }

    /// A machine is judged by what it has: one's good run is not the other's, whatever its counter.
    #[test]
    fn a_run_of_another_machine_is_refused() {
        for (one, other, lacks) in [
            (Arch::X86_64, Arch::Aarch64, ["clock=time", "@getcpu kind=pinned"].as_slice()),
            (Arch::Aarch64, Arch::X86_64, &["@signals kind=return"]),
        ] {
            let (one, other) = (boot(one, OURS), boot(other, OURS));
            let log = good(other).replace(other.machine.clocksource, one.machine.clocksource);
            let complaints = Verdict::of(one, &log).complaints.join("\n");
            for line in lacks {
                assert!(complaints.contains(line), "{line}: {complaints}");
            }
        }
    }

    /// Also of a part of the judges, as for the faults.
    #[test]
    fn a_test_of_the_kernels_that_fails_is_a_complaint_of_any_run() {
        let boot = boot(Arch::X86_64, OURS);
        let log = good(boot);
        let name = guest::selftests(boot.machine).next().unwrap();
        let good = format!("@selftest name={name} exit=0");
        assert!(log.contains(&good));
        let bad = log.replace(&good, &format!("@selftest name={name} exit=1"));
        assert_eq!(Verdict::read(boot.machine, &log).complaints, [""; 0]);
        assert_eq!(Verdict::read(boot.machine, &bad).complaints.len(), 1);
    }

    /// Every line of a good run is there for a reason: without any one of them it is refused.
    #[test]
    fn a_run_that_lacks_any_line_is_refused() {
        for arch in ARCHES {
            refuses_without_any_line(boot(arch, OURS));
        }
    }

    fn refuses_without_any_line(boot: Boot<'_>) {
        let log = good(boot);
        let lines: Vec<&str> = log.lines().collect();
        for (at, missing) in lines.iter().enumerate() {
            // What a test printed is compared with the other kernel, not demanded.
            if missing.starts_with("@begin") || missing.starts_with("ok ") {
                continue;
            }
            let rest: String = lines
                .iter()
                .enumerate()
                .filter(|&(other, _)| other != at)
                .flat_map(|(_, line)| [line, "\n"])
                .collect();
            let verdict = Verdict::of(boot, &rest);
            assert!(!verdict.complaints.is_empty(), "without {missing}");
        }
    }

    #[test]
    fn a_run_that_proves_nothing_is_refused() {
        let boot = boot(Arch::X86_64, OURS);
        let log = good(boot);
        for (find, replace) in [
            ("@clocksource-at-begin tsc", "@clocksource-at-begin hpet"),
            ("@clocksource-at-end tsc", "@clocksource-at-end jiffies"),
            ("mode=1", "mode=0"),
            ("note=1", "note=0"),
            ("clock=clock-7 checks=10000", "clock=clock-7 checks=0"),
            ("updates=100000", "updates=5"),
            ("seconds=30", "seconds=3"),
            ("bad=0", "bad=1"),
            ("@judge name=leap exit=0 signal=0", "@judge name=leap exit=-1 signal=11"),
            ("@selftest name=timens exit=0", "@selftest name=timens exit=1"),
            ("@end\n", "WARNING: CPU: 0\n@end\n"),
            ("@end\n", "uvdso: update refused: 4\n@end\n"),
        ] {
            let changed = log.replacen(find, replace, 1);
            assert_ne!(changed, log, "{find}");
            let verdict = Verdict::of(boot, &changed);
            assert!(!verdict.complaints.is_empty(), "{find} -> {replace}");
        }
    }

    #[test]
    fn the_kernels_tests_are_counted_in_each_of_their_styles() {
        let log = "@begin name=a\nok 1 x\nnot ok 2 y\nok 3 # SKIP z\n[OK]\tfine\n[FAIL]\tno\n\
                   set it: [OK]\n@selftest name=a exit=1 signal=0\n@begin name=b\nok 1\n\
                   @selftest name=b exit=-1 signal=11\n";
        let all = selftests(log);
        assert_eq!(all["a"], Totals { exit: 1, signal: 0, pass: 3, fail: 2, skip: 1 });
        assert_eq!(all["b"], Totals { exit: -1, signal: 11, pass: 1, fail: 0, skip: 0 });
    }
}
