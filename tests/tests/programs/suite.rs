//! Real programs on the image: right time, and no clock, time or getcpu call that reaches the
//! kernel.
//!
//! Each program runs three times, as root and as an ordinary user:
//!
//! 1. with the host's time: what it prints lies between two system calls of this process, and no
//!    call that the page can serve was made;
//! 2. on a page that was never updated and serves nothing, so that each call of each function enters
//!    the kernel: the same time, and each kind of call that the program makes was counted, at least
//!    as often as its source makes it. So the zero of the first run is no blind counter's;
//! 3. with a time that is years away: it reads this page and no other, and again makes no call.
//!
//! What was found is compared with its row in `docs/programs.md`, and the README's table with all
//! rows. Blessing (`cargo xtask bless`) writes both.

mod calls;
mod guests;
mod readme;
mod run;
mod table;
mod times;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tests::skip::{cannot_launch, missing, skip};
use tests::users::{self, User};
use tests::workshop::Workshop;

use self::guests::GUESTS;
use self::table::Table;

pub(crate) fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let workshop = Arc::new(Workshop::new());
    let table = Arc::new(Mutex::new(Table::default()));
    let no_launch = cannot_launch();
    let blesses = std::env::var_os("UVDSO_BLESS").is_some_and(|value| value == "1");
    let mut trials = Vec::new();
    if !blesses {
        trials.push(Trial::test("the tables have each program", || Ok(table::is_whole()?)));
    }
    for guest in GUESTS {
        // Built once, by whoever comes first.
        let built = Arc::new(OnceLock::new());
        for user in User::ALL {
            let (workshop, table) = (Arc::clone(&workshop), Arc::clone(&table));
            let (built, no_launch) = (Arc::clone(&built), no_launch.clone());
            let name = format!("{} as {}", guest.name, user.name());
            trials.push(Trial::ignorable_test(name, move || {
                let missing = || users::missing(user).or_else(|| missing(guest.needs));
                if let Some(reason) = no_launch.or_else(missing) {
                    return skip(&reason);
                }
                let command = built.get_or_init(|| (guest.make)(&workshop));
                let command = command.as_ref().map_err(Failed::from)?;
                let found = run::all(guest, command, user.id())?;
                let version = (guest.version)();
                if !blesses {
                    table::compare(guest, &version, &found)?;
                }
                table.lock().expect("no test panics with it").add(guest, version, found);
                Ok(Completion::Completed)
            }));
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    workshop.clear();
    let table = table.lock().expect("all tests have ended");
    if blesses && !conclusion.has_failed() {
        table.bless();
    }
    conclusion.exit_code()
}
