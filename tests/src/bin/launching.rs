//! What launching costs on this machine: an exec, and a keeper that is killed.
//!
//! `launching [--turns N] [--kills N] [--busy N]` prints two tables in Markdown, of which 0 leaves
//! out the one. `--busy` runs that many processes beside it that never rest. As root everything is measured for an ordinary user
//! too, whose keeper gets no precedence.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command as HostCommand, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use kernel_sim::launch::Command;
use tests::processes::{Family, eventually, is_gone, kill_hard};
use tests::workshop::Workshop;

const USAGE: &str = "usage: launching [--turns N] [--kills N] [--busy N]";

/// What `nobody` has on Debian.
const ORDINARY_USER: u32 = 65534;

/// Programs that are started in one go, and how often bare and launched ones take turns.
const EXECS: usize = 150;
const TURNS: usize = 6;

struct Options {
    kills: usize,
    busy: usize,
    turns: usize,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match *words {
        // What this program is for itself.
        ["--spin"] => loop {
            std::hint::spin_loop();
        },
        ["--spawn", count] => spawn(count.parse().unwrap_or(0)),
        _ => {
            let Some(options) = options(&words) else {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            };
            match measure(&options) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("launching: {error}");
                    ExitCode::FAILURE
                }
            }
        }
    }
}

fn options(words: &[&str]) -> Option<Options> {
    let mut options = Options { kills: 200, busy: 0, turns: TURNS };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--kills" => options.kills = words.next()?.parse().ok()?,
            "--busy" => options.busy = words.next()?.parse().ok()?,
            "--turns" => options.turns = words.next()?.parse().ok()?,
            _ => return None,
        }
    }
    Some(options)
}

fn measure(options: &Options) -> Result<(), String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let workshop = Workshop::new();
    // Where any user can run it.
    let spawner = workshop.path("spawner");
    std::fs::copy(&this, &spawner).map_err(|error| format!("{}: {error}", this.display()))?;
    let busy = Busy::new(&this, options.busy)?;
    let mut done = Ok(());
    if options.turns > 0 {
        done = execs(&spawner, options);
    }
    if options.kills > 0 && done.is_ok() {
        done = kills(&workshop, options);
    }
    drop(busy);
    workshop.clear();
    done
}

/// Processes that never rest.
struct Busy(Vec<Child>);

impl Busy {
    fn new(this: &Path, count: usize) -> Result<Self, String> {
        let spin = |_| HostCommand::new(this).arg("--spin").stdin(Stdio::null()).spawn();
        let children: Result<Vec<Child>, _> = (0..count).map(spin).collect();
        Ok(Self(children.map_err(|error| error.to_string())?))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It ends by nothing else, so neither can fail.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Who launches, by name.
fn users() -> Vec<(&'static str, Option<u32>)> {
    if nix::unistd::geteuid().is_root() {
        vec![("root", None), ("ordinary user", Some(ORDINARY_USER))]
    } else {
        vec![("ordinary user", None)]
    }
}

/// Starts a program again and again, and prints how many microseconds each took.
fn spawn(count: usize) -> ExitCode {
    for _ in 0..count {
        let start = Instant::now();
        let status = HostCommand::new("/bin/true").status();
        println!("{}", start.elapsed().as_nanos() as f64 / 1e3);
        if !status.is_ok_and(|status| status.success()) {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// What an exec costs, bare and launched, in turn.
fn execs(spawner: &Path, options: &Options) -> Result<(), String> {
    println!(
        "| {EXECS} execs of `/bin/true`, {} turns | least | quarter | median | 99 of 100 below |",
        options.turns
    );
    println!("|---|---|---|---|---|");
    let words = ["--spawn".to_owned(), EXECS.to_string()];
    let mut bare = Vec::new();
    let mut launched: Vec<Vec<f64>> = users().iter().map(|_| Vec::new()).collect();
    for _ in 0..options.turns {
        let output = HostCommand::new(spawner).args(&words).output();
        bare.extend(numbers(&output.map_err(|error| error.to_string())?.stdout));
        for ((_, user), all) in users().into_iter().zip(&mut launched) {
            let output = Command::new(spawner).args(&words).output(user);
            all.extend(numbers(&output.map_err(|error| error.to_string())?.stdout));
        }
    }
    exec_row("bare", &mut bare)?;
    for ((name, _), all) in users().into_iter().zip(&mut launched) {
        exec_row(&format!("under `run`, {name}"), all)?;
    }
    println!();
    Ok(())
}

fn exec_row(name: &str, micros: &mut [f64]) -> Result<(), String> {
    micros.sort_by(f64::total_cmp);
    let at = |percent: usize| -> Result<f64, String> {
        let value = micros.get(micros.len().saturating_sub(1) * percent / 100);
        value.map(|micros| micros / 1e3).ok_or_else(|| format!("{name}: nothing was measured"))
    };
    let (least, quarter, median, most) = (at(0)?, at(25)?, at(50)?, at(99)?);
    println!("| {name} | {least:.2} ms | {quarter:.2} ms | {median:.2} ms | {most:.2} ms |");
    Ok(())
}

fn numbers(text: &[u8]) -> Vec<f64> {
    let text = String::from_utf8_lossy(text);
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// How long the coarse clock stands still, with a keeper that is killed and with one that is not.
fn kills(workshop: &Workshop, options: &Options) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt as _;
    let made = workshop.compile("clocks", "c/launch_clocks.c", "cc -O1 -o OUT SRC")?;
    let guest = made.into_iter().next().ok_or("no guest")?;
    let directory = workshop.path("writable");
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::create_dir(&directory)
        .and_then(|()| std::fs::set_permissions(&directory, open))
        .map_err(|error| format!("{}: {error}", directory.display()))?;
    println!(
        "| longest time without a tick, {} runs | least | median | 99 of 100 below | most |",
        options.kills
    );
    println!("|---|---|---|---|---|");
    for (name, user) in users() {
        for killed in [false, true] {
            let mut still = Vec::new();
            for run in 0..options.kills {
                let file = directory.join(format!("{name}-{killed}-{run}"));
                // A guest that has ended before its keepers were there says nothing.
                let one = || one_run(&guest, &file, user, killed.then_some(run)).transpose();
                let one = (0..REPEATS).find_map(|_| one());
                still.push(one.ok_or("no keeper could be killed while its program ran")??);
            }
            still.sort_by(f64::total_cmp);
            let at = |percent: usize| still[(still.len() - 1) * percent / 100];
            let what = if killed { "keeper killed once" } else { "keeper left alone" };
            println!(
                "| {name}, {what} | {:.1} ms | {:.1} ms | {:.1} ms | {:.1} ms |",
                at(0),
                at(50),
                at(99),
                at(100)
            );
        }
    }
    Ok(())
}

/// Tries at one run.
const REPEATS: usize = 20;

/// Milliseconds that the coarse clock stood still; `kill` varies when the keeper is killed. `None`
/// if the program ended before.
fn one_run(
    guest: &OsString,
    file: &Path,
    user: Option<u32>,
    kill: Option<usize>,
) -> Result<Option<f64>, String> {
    let _ = std::fs::remove_file(file);
    let command = Command::new(guest).arg(file).arg("400");
    let run = std::thread::spawn(move || command.output(user));
    if let Some(kill) = kill {
        let family = Family::read(file);
        eventually("both keepers are there, or the program has ended", || {
            is_gone(family.program) || family.keeper().is_some() && family.next_keeper().is_some()
        });
        // Anywhere between two ticks.
        sleep(Duration::from_micros(50_000 + kill as u64 * 1_237 % 20_000));
        if let Some(keeper) = family.keeper() {
            kill_hard(keeper);
        }
    }
    let output = run.join().map_err(|_| "the launcher panicked")?;
    let output = output.map_err(|error| error.to_string())?;
    if output.remarks.len() != usize::from(kill.is_some()) {
        return Ok(None);
    }
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut words = said.split_whitespace().skip_while(|word| *word != "still").skip(1);
    let nanos = words.next().and_then(|word| word.parse::<f64>().ok());
    nanos.map(|nanos| Some(nanos / 1e6)).ok_or_else(|| format!("the guest said {said:?}"))
}
