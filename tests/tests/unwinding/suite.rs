//! Unwinders and debuggers in the image: a profiler's signal handler, and gdb at each instruction.
//!
//! Both find their way by the image's unwind table alone, which the control proves: without the
//! header that leads to it, they get lost.

use std::process::{Command as HostCommand, ExitCode, Stdio};
use std::sync::Arc;

use kernel_sim::launch::{Command, Status};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use linker::Image;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use object::elf;
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use tests::code::IMAGES;
use tests::skip::{cannot_launch, missing, skip};
use tests::workshop::Workshop;
use xtask::tools::{root, tool};

use crate::ways::Ways;

/// A state of the page that leads calls down another path.
struct Path {
    name: &'static str,
    page: &'static str,
    has_counter: bool,
}

const PATHS: [Path; 3] = [
    Path { name: "served", page: "given", has_counter: true },
    Path { name: "fallback", page: "given", has_counter: false },
    Path { name: "retry", page: "odd", has_counter: true },
];

pub(crate) fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let workshop = Arc::new(Workshop::new());
    let no_launch = cannot_launch();
    let mut trials = Vec::new();
    let mut add = |name: String, needs: &'static [&'static str], test: Test| {
        let (workshop, no_launch) = (Arc::clone(&workshop), no_launch.clone());
        trials.push(Trial::ignorable_test(name, move || {
            match no_launch.or_else(|| missing(needs)) {
                Some(reason) => skip(&reason),
                None => test(&workshop).map(|()| Completion::Completed).map_err(Failed::from),
            }
        }));
    };
    for path in &PATHS {
        let name = path.name;
        add(format!("a profiler's handler finds main: {name}"), &["gcc"], {
            Box::new(move |shop| profiled(shop, path, &linker::SYSCALL, Finds::Always))
        });
        add(format!("gdb finds main from each instruction: {name}"), &["gcc", "gdb"], {
            Box::new(move |shop| stepped(shop, path, &linker::SYSCALL, Finds::Always))
        });
    }
    for (policy, image) in IMAGES {
        let name = format!("gdb finds main from every instruction there is: {policy}");
        add(name, &["gcc", "gdb"], {
            Box::new(move |shop| {
                walked(shop, &format!("walk-{policy}"), image, image, Finds::Always)
            })
        });
    }
    add("gdb is lost at some of them where rows are wrong".to_owned(), &["gcc", "gdb"], {
        Box::new(|shop| {
            walked(shop, "walk-wrong", &linker::SYSCALL, &with_wrong_rows(), Finds::NotAlways)
        })
    });
    add("a Go program that faults in the image says where".to_owned(), &["go", "gcc"], {
        Box::new(go_fault)
    });
    add("a profiler's handler is lost without the table".to_owned(), &["gcc"], {
        Box::new(|shop| profiled(shop, &PATHS[0], &without_unwind_table(), Finds::Never))
    });
    add("gdb is lost without the table".to_owned(), &["gcc", "gdb"], {
        Box::new(|shop| stepped(shop, &PATHS[0], &without_unwind_table(), Finds::NotAlways))
    });
    let conclusion = libtest_mimic::run(&arguments, trials);
    workshop.clear();
    conclusion.exit_code()
}

type Test = Box<dyn FnOnce(&Workshop) -> Result<(), String> + Send>;

/// How often a way to main must be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finds {
    Always,
    NotAlways,
    Never,
}

impl Finds {
    fn check(self, found: u64, of: u64, what: &str) -> Result<(), String> {
        let holds = match self {
            Self::Always => found == of,
            Self::NotAlways => found < of,
            Self::Never => found == 0,
        };
        if holds && of > 0 {
            return Ok(());
        }
        Err(format!("{what}: main was found {found} times of {of}, expected {self:?}"))
    }
}

/// The image without its unwind table, as one would be that was linked without it.
fn without_unwind_table() -> Image {
    let mut bytes = linker::SYSCALL.bytes.to_vec();
    let header = elf::FileHeader64::<object::LittleEndian>::parse(&*bytes).expect("an ELF file");
    let endian = header.endian().expect("little-endian");
    let at = usize::try_from(header.e_phoff(endian)).expect("a small file");
    let size = usize::from(header.e_phentsize(endian));
    let segments = header.program_headers(endian, &*bytes).expect("program headers");
    let table = segments
        .iter()
        .position(|segment| segment.p_type(endian) == elf::PT_GNU_EH_FRAME)
        .expect("the image has an unwind table");
    let segment = &segments[table];
    // gdb reads the sections, libgcc the segment: neither may find frames any more.
    let (offset, length) = (segment.p_offset(endian), segment.p_filesz(endian));
    let (offset, length) = (usize::try_from(offset), usize::try_from(length));
    let (offset, length) = (offset.expect("small"), length.expect("small"));
    let frames = section_offset(&bytes, b".eh_frame");
    bytes[at + table * size..][..4].copy_from_slice(&elf::PT_NULL.to_le_bytes());
    bytes[offset..offset + length].fill(0);
    // A length of 0 ends the section's list.
    bytes[frames..frames + 4].fill(0);
    let mut image = linker::SYSCALL;
    image.bytes = bytes.leak();
    image
}

/// The image with rows that say the caller's frame is a word nearer than it is: those of functions
/// that have saved two registers or more.
fn with_wrong_rows() -> Image {
    const DW_CFA_DEF_CFA_OFFSET: u8 = 0x0e;
    let (place, frames) = tests::code::section(&linker::SYSCALL, ".eh_frame");
    let mut bytes = linker::SYSCALL.bytes.to_vec();
    // What is loaded is where the file has it.
    let place = usize::try_from(place).expect("a small file");
    for (at, pair) in frames.array_windows().enumerate() {
        if let [DW_CFA_DEF_CFA_OFFSET, offset @ 24..128] = pair
            && offset.is_multiple_of(8)
        {
            bytes[place + at + 1] -= 8;
        }
    }
    assert_ne!(bytes, linker::SYSCALL.bytes, "no function saves registers");
    let mut image = linker::SYSCALL;
    image.bytes = bytes.leak();
    image
}

fn section_offset(bytes: &[u8], name: &[u8]) -> usize {
    use object::read::elf::SectionHeader as _;
    let header = elf::FileHeader64::<object::LittleEndian>::parse(bytes).expect("an ELF file");
    let endian = header.endian().expect("little-endian");
    let sections = header.sections(endian, bytes).expect("section headers");
    let (_, section) = sections.section_by_name(endian, name).expect("the section");
    usize::try_from(section.sh_offset(endian)).expect("a small file")
}

fn guest(shop: &Workshop, name: &str) -> Result<std::ffi::OsString, String> {
    let made = shop.compile(name, "c/unwind.c", "gcc -O2 -Wall -Wextra -o OUT SRC")?;
    made.into_iter().next().ok_or_else(|| "no program".to_owned())
}

fn command(program: &std::ffi::OsStr, path: &Path, image: &Image) -> Command {
    let command = Command::new(program).image(*image);
    if path.has_counter { command } else { command.without_counter() }
}

/// Runs the guest under its own profiler.
fn profiled(shop: &Workshop, path: &Path, image: &Image, finds: Finds) -> Result<(), String> {
    let program = guest(shop, &format!("profile-{}-{finds:?}", path.name))?;
    let command = command(&program, path, image).args(["profile", path.page]);
    let output = command.output(None).map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout);
    let said = said.trim();
    let numbers: Vec<u64> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
    let (Status::Exited(0), [inside, reached]) = (output.outcome.status, &*numbers) else {
        return Err(format!("{:?}: {said}", output.outcome.status));
    };
    finds.check(*reached, *inside, "the handler")
}

/// Go's runtime does not know the image as code of its own: it still has to find its way to main.
fn go_fault(shop: &Workshop) -> Result<(), String> {
    let made = shop.go("go", "go-fault", "go/fault.go", true, "-buildmode=exe")?;
    let [program] = &*made else { return Err(format!("no program: {made:?}")) };
    let output = Command::new(program).output(None).map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    // 2 is the exit status of a Go program that ends so.
    let expected = ["SIGSEGV", "goroutine 1", "main.main()", "go/fault.go:12"];
    let missing: Vec<&&str> = expected.iter().filter(|part| !said.contains(**part)).collect();
    if output.outcome.status != Status::Exited(2) || !missing.is_empty() {
        return Err(format!("{:?}, without {missing:?}: {said}", output.outcome.status));
    }
    Ok(())
}

/// Runs the guest and steps through its calls with gdb.
fn stepped(shop: &Workshop, path: &Path, image: &Image, finds: Finds) -> Result<(), String> {
    let name = format!("step-{}-{finds:?}", path.name);
    judge(&debugged(shop, &name, path, image, &["gdb/frames.py", "gdb/step.py"])?, finds)
}

/// Runs the guest and goes every way through the image with gdb, whatever the page says.
///
/// That the stack at an instruction does not depend on the way to it, `unwind_table.rs` asserts.
///
/// `code` is the image whose instructions they are, `image` what is mapped of it.
fn walked(
    shop: &Workshop,
    name: &str,
    code: &Image,
    image: &Image,
    finds: Finds,
) -> Result<(), String> {
    let ways = Ways::of(code)?;
    let file = shop.path(&format!("ways-{name}"));
    std::fs::write(&file, ways.to_text(image)?).map_err(|error| format!("the ways: {error}"))?;
    let said = debugged(shop, name, &PATHS[0], image, &["gdb/frames.py", "gdb/walk.py"])?;
    let line = said.lines().find(|line| line.starts_with("instructions ")).unwrap_or_default();
    let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [instructions, good, calls, forced] = numbers[..] else {
        return Err(format!("gdb did not come to an end:\n{said}"));
    };
    if instructions != ways.count() || calls < 6 || forced == 0 {
        return Err(format!("{} instructions there are: {line}", ways.count()));
    }
    println!("{line}");
    finds.check(good, instructions, "gdb").map_err(|error| format!("{error}\n{said}"))
}

/// Runs the guest under gdb with scripts, of which the last kills it; what they say.
fn debugged(
    shop: &Workshop,
    name: &str,
    path: &Path,
    image: &Image,
    scripts: &[&str],
) -> Result<String, String> {
    let program = guest(shop, name)?;
    let told = shop.path(&format!("pid-{name}"));
    // A program that is traced has no room for a debugger.
    let command = command(&program, path, image).detach(true);
    let command = command.args(["wait", path.page]).arg(&told);
    let runs = std::thread::spawn(move || command.output(None).map_err(|error| error.to_string()));
    let mut said = Err("the guest did not start".to_owned());
    while !runs.is_finished() {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let pid = std::fs::read_to_string(&told).unwrap_or_default();
        if pid.ends_with('\n') {
            said = gdb(pid.trim(), scripts, &shop.path(&format!("ways-{name}")));
            // The script kills the guest at its end; where gdb gave up before, it would go on.
            kill(pid.trim())?;
            break;
        }
    }
    let ended = runs.join().map_err(|_| "the launcher panicked".to_owned())??;
    let said = said?;
    if ended.outcome.status != Status::Signaled(libc::SIGKILL) {
        return Err(format!("the guest ended with {:?}\n{said}", ended.outcome.status));
    }
    Ok(said)
}

fn kill(pid: &str) -> Result<(), String> {
    let pid = pid.parse().map_err(|error| format!("the guest's process id {pid:?}: {error}"))?;
    match nix::sys::signal::kill(Pid::from_raw(pid), Signal::SIGKILL) {
        Ok(()) | Err(nix::errno::Errno::ESRCH) => Ok(()),
        Err(error) => Err(format!("killing the guest {pid}: {error}")),
    }
}

fn gdb(pid: &str, scripts: &[&str], ways: &std::path::Path) -> Result<String, String> {
    let mut command = HostCommand::new(tool("gdb").find().ok_or("no gdb")?);
    command.args(["-q", "-nx", "-batch", "-p", pid]).env("UVDSO_WAYS", ways);
    for script in scripts {
        command.arg("-x").arg(root().join("tests/guests").join(script));
    }
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("gdb: {error}"))?;
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        return Err(format!("gdb: {}\n{said}\n{complained}", output.status));
    }
    Ok(format!("{said}\n{complained}"))
}

/// Reads what the script counted.
fn judge(said: &str, finds: Finds) -> Result<(), String> {
    let (mut good, mut lost, mut functions) = (0, 0, 0);
    for line in said.lines().filter(|line| line.starts_with("__vdso_")) {
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [found, missed, instructions] = numbers[..] else {
            return Err(format!("{line:?}\n{said}"));
        };
        if instructions < 5 {
            return Err(format!("few instructions were seen: {line}"));
        }
        functions += 1;
        good += found;
        lost += missed;
    }
    if said.contains("gave up") && said.contains("lost at") && finds == Finds::NotAlways {
        return Ok(());
    }
    if functions != 6 || said.contains("misnamed") {
        return Err(format!("not every function was stepped through:\n{said}"));
    }
    finds.check(good, good + lost, "gdb").map_err(|error| format!("{error}\n{said}"))
}
