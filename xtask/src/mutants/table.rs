//! What became of the faults, as a table: for people while it grows, and as Markdown for the docs.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::fault::Fault;
use super::trial::{Catch, Verdict};
use crate::circumstances::{commit, cpus, said};
use crate::kernel::mutants::Trial;

/// One fault.
pub(super) struct Row {
    area: String,
    name: String,
    why: String,
    caught: Result<Caught, String>,
}

/// Who caught it.
struct Caught {
    by: String,
    says: String,
    after: Duration,
}

/// All faults, in the order in which they were tried.
pub(super) struct Table {
    /// Taken when the trials begin: who commits meanwhile does not change what is tried.
    circumstances: String,
    rows: Vec<Row>,
}

impl Row {
    pub(super) fn of_fault(fault: &Fault, verdict: &Verdict) -> Self {
        let caught = match verdict {
            Verdict::Caught(Catch { package, test, says, after }) => {
                Ok(Caught { by: format!("{package}: {test}"), says: says.clone(), after: *after })
            }
            Verdict::Survived => Err("all tests pass".into()),
            Verdict::Hung { package } => Err(format!("the tests of {package} have no end")),
            Verdict::DoesNotCompile => Err("it does not compile".into()),
        };
        let mut why = fault.why.clone();
        if let Some(only) = &fault.only {
            why = format!("{why} ({only})");
        }
        Self { area: fault.area.clone(), name: fault.name.clone(), why, caught }
    }

    pub(super) fn of_trial(area: &str, trial: Trial) -> Self {
        let Trial { name, judge, caught, says, after } = trial;
        let caught = if caught {
            Ok(Caught { by: format!("judge: {judge}"), says, after })
        } else {
            Err(format!("the judge {judge} finds nothing bad"))
        };
        Self { area: area.to_owned(), name: name.to_owned(), why: String::new(), caught }
    }
}

impl Table {
    /// A table without rows, of trials that begin now.
    pub(super) fn begin() -> Result<Self> {
        Ok(Self { circumstances: circumstances()?, rows: Vec::new() })
    }

    /// Takes a row, and shows it.
    pub(super) fn add(&mut self, row: Row) {
        if self.rows.is_empty() {
            println!("{:<12} {:<34} {:>8}  caught by", "area", "fault", "seconds");
        }
        let Row { area, name, why, caught } = &row;
        match caught {
            Ok(Caught { by, after, .. }) => {
                println!("{area:<12} {name:<34} {:>8.2}  {by}", after.as_secs_f64());
            }
            Err(reason) => {
                println!("{area:<12} {name:<34} {:>8}  NOBODY, {reason}: {why}", "-");
            }
        }
        self.rows.push(row);
    }

    pub(super) fn end(&self, all: Duration) {
        println!(
            "{} of {} caught, in {all:.0?} with all compiling",
            self.caught(),
            self.rows.len()
        );
    }

    pub(super) fn all_caught(&self) -> bool {
        self.caught() == self.rows.len()
    }

    fn caught(&self) -> usize {
        self.rows.iter().filter(|row| row.caught.is_ok()).count()
    }

    /// The page of the docs.
    pub(super) fn markdown(&self, all: Duration) -> Result<String> {
        let mut text = String::from(HEAD);
        writeln!(
            text,
            "{}. {} of {} caught, in {:.0} minutes with all compiling.\n",
            self.circumstances,
            self.caught(),
            self.rows.len(),
            all.as_secs_f64() / 60.0
        )?;
        text.push_str(
            "| area | fault | caught by | what it says | seconds |\n|---|---|---|---|---|\n",
        );
        for Row { area, name, why, caught } in &self.rows {
            let fault = if why.is_empty() { name.clone() } else { format!("{name}: {why}") };
            let (by, says, seconds) = match caught {
                Ok(Caught { by, says, after }) => {
                    (format!("`{by}`"), code(says), format!("{:.2}", after.as_secs_f64()))
                }
                Err(reason) => ("nobody".into(), reason.clone(), "-".into()),
            };
            writeln!(text, "| {area} | {fault} | {by} | {says} | {seconds} |")?;
        }
        Ok(text)
    }
}

const HEAD: &str = "# Seeded faults

Made by `cargo xtask mutants --markdown docs/faults.md`. Each fault of `kernel-sim/fuzz/mutants/*.txt` is
made in a copy of the tree, in which all tests pass without it. The tests of the packages that it names run,
the nearest first, up to the first that fails; that one runs once more alone for what it says. The seconds are those of
running tests until then, without compiling. No test counts that fails by taking too long. Faults in `linux`
stand in `xtask/src/kernel/mutants.rs`: a Debian kernel with the faulty writer boots under emulation, and the named
judge in it has to count something bad; their seconds are those of the guest. A run with `--without-kernel` has none
of them; [measurements.md](measurements.md) has those of `cargo xtask kernel --mutants`.

`concurrent`, `wrap` and `cold` mark faults that only an access of another CPU, a counter's end or a rarely taken path
shows.

";

/// `text` as code in a cell of a table, shortened.
fn code(text: &str) -> String {
    const LONGEST: usize = 160;
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    if short.is_empty() {
        return "nothing".into();
    }
    format!("`{}`", short.replace('`', "'").replace('|', "\\|"))
}

/// The machine, the compiler and the commit.
fn circumstances() -> Result<String> {
    let text = fs::read_to_string("/proc/cpuinfo").context("reading /proc/cpuinfo")?;
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("a CPU without a name", |(_, model)| model.trim());
    Ok(format!(
        "Machine: {model}, {} CPUs, Linux {}; {}; commit `{}`",
        cpus()?,
        said("uname", &["-r"])?,
        said("rustc", &["--version"])?,
        commit()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, caught: Result<Caught, String>) -> Row {
        Row { area: "area".into(), name: name.into(), why: "it lies (cold)".into(), caught }
    }

    #[test]
    fn a_page_has_a_row_for_each_fault_and_counts_those_that_were_caught() {
        let caught = Caught {
            by: "fuzz: a_test".into(),
            says: "`left | right`".into(),
            after: Duration::from_millis(1234),
        };
        let rows = vec![row("seen", Ok(caught)), row("unseen", Err("all tests pass".into()))];
        let table = Table { circumstances: "A machine".into(), rows };
        assert!(!table.all_caught());
        let page = table.markdown(Duration::from_secs(90)).unwrap();
        assert!(page.contains("A machine. 1 of 2 caught, in 2 minutes"), "{page}");
        assert!(page.contains(
            "| area | seen: it lies (cold) | `fuzz: a_test` | `'left \\| right'` | 1.23 |\n"
        ));
        assert!(
            page.ends_with("| area | unseen: it lies (cold) | nobody | all tests pass | - |\n")
        );
    }
}
