//! Nothing is left over when the last program ends: no process, no file, no shared memory.
//!
//! Each run has a machine to itself: this program once more, as the first process of a PID namespace
//! with shared memory, `/tmp`, `/var/tmp` and `/dev/shm` of its own. It takes stock, runs, and waits
//! until the stock is as before. Who waits for whom is seen without that.

use std::ffi::CString;
use std::fs::File;
use std::path::Path;
use std::process::{Command as HostCommand, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use kernel_sim::launch::Command;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::wait::{Id, WaitPidFlag, waitid, waitpid};
use nix::unistd::{ForkResult, fork, mkdtemp};

use crate::unusual::unusual;
use crate::{GUESTS, guest};
use tests::child::{Outcome, outcome};
use tests::processes::{Run, eventually, kill_hard};
use tests::stock::{DIRECTORIES, Stock};

type End = fn(&Run);

/// What becomes of a run.
const ENDS: [(&str, End); 7] = [
    ("everything ends by itself", |_| {}),
    ("the program is killed", |run| kill_hard(run.program)),
    ("the command is killed", |run| kill_hard(run.command)),
    ("the keeper is killed", |run| {
        // A keeper without one is replaced by the command.
        let next = run.next_keeper();
        kill_hard(run.keeper());
        eventually("the next one works", || run.family.keeper() == Some(next));
    }),
    ("the next keeper is killed", |run| kill_hard(run.next_keeper())),
    ("the tracer is killed", |run| kill_hard(run.tracer())),
    ("command and tracer are killed", |run| {
        let both = [run.command, run.tracer()];
        both.into_iter().for_each(kill_hard);
    }),
];

/// What a run could leave, and how the line of a stock that says so begins.
const LEFT: [(&str, fn()); 6] = [
    ("process: ", || {
        // SAFETY: the child only sleeps.
        if let Ok(ForkResult::Child) = unsafe { fork() } {
            loop {
                thread::sleep(Duration::from_secs(1));
            }
        }
    }),
    ("file: /tmp/own/", || drop(mkdtemp(&std::env::temp_dir().join("left-XXXXXX")).unwrap())),
    ("file: /var/tmp/", || drop(File::create("/var/tmp/left").unwrap())),
    ("file: /dev/shm/", || {
        let name = CString::new("/left").unwrap();
        // SAFETY: a live name; the descriptor is this process's until it ends.
        let left = unsafe { libc::shm_open(name.as_ptr(), libc::O_CREAT | libc::O_RDWR, 0o600) };
        assert!(left >= 0);
    }),
    ("System V shm: ", || {
        // SAFETY: plain numbers; the segment is never mapped.
        let left = unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, libc::IPC_CREAT | 0o600) };
        assert!(left >= 0);
    }),
    ("memory: open in ", || {
        std::mem::forget(memfd_create(c"left", MFdFlags::MFD_CLOEXEC).unwrap());
    }),
];

pub(crate) fn a_stock_shows_each_kind_of_thing_that_is_left(_: Option<u32>) {
    for (kind, _) in LEFT {
        with_a_machine(&["--leave", kind]);
    }
}

pub(crate) fn nothing_is_left_of_a_run(user: Option<u32>) {
    let user = user.map_or("0".to_owned(), |user| user.to_string());
    for (end, _) in ENDS {
        with_a_machine(&["--run", end, &user]);
    }
}

/// A command waits for its keepers if no other program is left, also after so many children that many of
/// them end before it is told that they began.
pub(crate) fn no_keeper_is_left_to_another_after_a_storm_of_children(user: Option<u32>) {
    let command = Command::new(unusual()).args(["storm", "2000"]);
    // Processes that are left by their parent are this one's children then.
    let reaper = || {
        // SAFETY: sets an attribute of this process; plain numbers.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
        match command.output(user) {
            Ok(output) if output.outcome.status.success() && output.remarks.is_empty() => {}
            _ => return -1,
        }
        let mut keepers = 0;
        // Each keeps its name until it is waited for.
        while let Ok(left) = waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) {
            let Some(pid) = left.pid() else { return -1 };
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            keepers += i32::from(!name.starts_with("kernel-sim-trac"));
            let _ = waitpid(pid, None);
        }
        keepers
    };
    assert_eq!(outcome(reaper), Outcome::Exited(0));
}

/// Where guests and this program are, on a machine of its own.
const GUEST: &str = "/mnt/guests";

/// Mounts what is its own over what is everybody's, and becomes the program that follows.
const MACHINE: &str = "
    set -e
    mount -t tmpfs none /mnt
    mkdir /mnt/guests /mnt/self
    mount --bind \"$1\" /mnt/guests
    mount --bind \"$2\" /mnt/self
    for directory in $3; do mount -t tmpfs -o mode=1777 none $directory; done
    mkdir -m 1777 /tmp/own
    export TMPDIR=/tmp/own
    cd /tmp
    program=/mnt/self/$4
    shift 4
    exec \"$program\" --alone \"$@\"";

/// Runs this program with these words where there is nothing else, and asserts that it succeeds.
fn with_a_machine(words: &[&str]) {
    guest("launch_clocks", "");
    let this = std::env::current_exe().unwrap();
    let (directory, name) = (this.parent().unwrap(), this.file_name().unwrap());
    let output = HostCommand::new("unshare")
        .args(["--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--ipc"])
        .args(["sh", "-c", MACHINE, "sh"])
        .args([GUESTS.workshop.path("").as_path(), directory])
        .arg(DIRECTORIES.join(" "))
        .arg(name)
        .args(words)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {}: {said}", output.status);
}

/// What this program does with a machine to itself.
pub(crate) fn alone(words: &[String]) -> ExitCode {
    let before = Stock::take();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match *words {
        ["--leave", kind] => {
            let (_, leave) = LEFT.iter().find(|(known, _)| *known == kind).unwrap();
            leave();
            let found = Stock::take().unlike(&before);
            assert!(matches!(&*found, [line] if line.starts_with(kind)), "{kind}: {found:?}");
        }
        ["--run", end, user] => {
            let (_, act) = ENDS.iter().find(|(known, _)| *known == end).unwrap();
            let user = user.parse().ok().filter(|user| *user != 0);
            run(user, *act);
            let until = Instant::now() + PATIENCE;
            let mut left = Stock::take().unlike(&before);
            while !left.is_empty() && Instant::now() < until {
                thread::sleep(Duration::from_millis(2));
                left = Stock::take().unlike(&before);
            }
            assert!(left.is_empty(), "{end}, and left is {left:#?}");
        }
        _ => panic!("{words:?} is nothing to do alone"),
    }
    ExitCode::SUCCESS
}

/// Far longer than anything may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

fn run(user: Option<u32>, act: End) {
    let file = Path::new(GUEST).join("writable").join(format!("alone-{}", began()));
    let command = Command::new(Path::new(GUEST).join("launch_clocks")).arg(&file).arg("400");
    let running = thread::spawn(move || drop(command.output(user)));
    let found = Run::read(&file);
    // Everything that a run has is there; what is not seen now cannot be missed later.
    let served = [found.keeper(), found.next_keeper(), found.tracer()];
    let during = format!("{:?}", Stock::take());
    assert!(served.iter().all(|pid| during.contains(&format!("process: {pid} "))), "{during}");
    assert!(during.contains("memory: mapped in "), "{during}");
    act(&found);
    running.join().unwrap();
}

/// Each namespace has a process 1; what tells them apart is when they begin.
fn began() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_nanos().to_string()
}
