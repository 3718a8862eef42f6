//! Which system calls each function falls back to, as the emulator sees them.
//!
//! The program marks each call by a system call of its own that does nothing; what stands between
//! two marks is what the image asked of the kernel. A function of 32-bit seconds that fell back to
//! the call of 64-bit ones would be killed by the sandboxes of programs that never heard of it.

use anyhow::{Result, ensure};

use crate::cross::Report;
use crate::cross::host::Host;
use crate::cross::image::Image;

/// Where the program maps the image (`tests/cross/image.c`).
const IMAGE_AT: u64 = 0x2000_0000;

/// Checks the fallbacks of an image; prints what its calls cost, for one with a kernel.
pub(crate) fn check(host: &Host, image: &Image, report: &mut Report) {
    let name = format!("{}: {} fallbacks", image.machine.arch(), image.name());
    report.check(&name, || {
        let output = host.emulate(image, &["-strace"], "fallbacks")?;
        let calls = calls(&String::from_utf8_lossy(&output.stderr));
        ensure!(calls.len() > 20, "only {} marks in the trace", calls.len());
        for (mark, found) in &calls {
            let wanted = wanted(mark, image);
            ensure!(found.iter().eq(wanted.iter()), "{mark}: found {found:?}, wanted {wanted:?}");
        }
        Ok(format!("{} calls", calls.len()))
    });
    if image.policy == "syscall" && image.slot_bytes == 4096 {
        let name = format!("{}: {} costs", image.machine.arch(), image.name());
        report.check(&name, || costs(host, image));
    }
}

/// The system calls between marks, by the mark before them.
fn calls(trace: &str) -> Vec<(String, Vec<String>)> {
    let mut marks: Vec<(String, Vec<String>)> = Vec::new();
    for line in trace.lines() {
        if let Some((_, rest)) = line.split_once("\"mark:") {
            let mark = rest.split('"').next().unwrap_or_default();
            marks.push((mark.to_owned(), Vec::new()));
        } else if let Some(name) = called(line)
            && let Some((_, calls)) = marks.last_mut()
        {
            calls.push(name.to_owned());
        }
    }
    // What follows the last mark is the program's own end.
    marks.pop();
    marks
}

/// The name in a line like `4711 clock_gettime(0,1073741824) = 0`.
fn called(line: &str) -> Option<&str> {
    let (process, rest) = line.split_once(' ')?;
    if let Some(number) = rest.strip_prefix("Unknown syscall ") {
        // QEMU 7.2 has no name for the newest; the number is the same on all 32-bit architectures.
        return Some(if number == "406" { "clock_getres_time64" } else { "unknown" });
    }
    let (name, _) = rest.split_once('(')?;
    let is_name = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    (process.bytes().all(|b| b.is_ascii_digit()) && is_name(name)).then_some(name)
}

/// The one call that a marked call of the program may make.
fn wanted(mark: &str, image: &Image) -> Option<&'static str> {
    if image.policy == "enosys" || mark.starts_with("served ") {
        return None;
    }
    let narrow = matches!(image.machine.arch(), "arm" | "i386");
    let (state, call) = match mark.strip_prefix("none ") {
        Some(call) => ("none", call),
        None => ("unpublished", mark),
    };
    let coarse = call.ends_with(" coarse");
    let function = call.split(' ').next().unwrap_or_default();
    match (state, function) {
        // Without a counter, all that needs none is served.
        ("none", _) if coarse => None,
        ("none", "clock_getres") => None,
        ("none", "gettimeofday") if call.ends_with(" zone") => None,
        (_, "clock_gettime") => Some("clock_gettime"),
        (_, "clock_gettime64" | "clock_gettime_ns") if narrow => Some("clock_gettime64"),
        (_, "clock_gettime64" | "clock_gettime_ns") => Some("clock_gettime"),
        (_, "clock_getres") => Some("clock_getres"),
        (_, "clock_getres64") if narrow => Some("clock_getres_time64"),
        (_, "clock_getres64") => Some("clock_getres"),
        (_, "gettimeofday") => Some("gettimeofday"),
        (_, "getcpu") => Some("getcpu"),
        (_, "time") => Some("time"),
        _ => Some("a mark that nobody knows"),
    }
}

/// Prints instructions and system calls of some calls, counted: an emulator's time says nothing.
fn costs(host: &Host, image: &Image) -> Result<String> {
    let range = format!("{IMAGE_AT:#x}+0x2000");
    // One instruction a block, each block logged as it runs, inside the image only.
    let flags = ["-singlestep", "-d", "exec,nochain,strace", "-dfilter", &range];
    let output = host.emulate(image, &flags, "table")?;
    let mut rows: Vec<(String, u32, u32)> = Vec::new();
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        if let Some((_, rest)) = line.split_once("\"mark:") {
            rows.push((rest.split('"').next().unwrap_or_default().to_owned(), 0, 0));
        } else if let Some((_, instructions, calls)) = rows.last_mut() {
            *instructions += u32::from(line.starts_with("Trace "));
            *calls += u32::from(called(line).is_some());
        }
    }
    rows.pop();
    ensure!(!rows.is_empty(), "no marks in the log");
    println!("{}, emulated:", image.machine.arch());
    println!("  {:34} {:>12} {:>12}", "call", "instructions", "system calls");
    for (name, instructions, calls) in &rows {
        println!("  {name:34} {instructions:>12} {calls:>12}");
        let wanted = u32::from(name.ends_with("unsupported"));
        ensure!(*calls == wanted, "{name}: {calls} system calls, wanted {wanted}");
        ensure!(*instructions > 4, "{name}: {instructions} instructions were seen");
    }
    Ok(format!("{} rows", rows.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_between_marks() {
        let trace = "7 brk(NULL) = 5\n7 access(\"mark:a b\",F_OK) = -1 errno=2 (No such file)\n\
                     7 clock_gettime64(0,1) = 0\n7 faccessat(AT_FDCWD,\"mark:c\",F_OK,0x0) = -1\n\
                     7 access(\"mark:end\",F_OK) = -1\n7 exit_group(0)\n";
        let found = calls(trace);
        let wanted =
            [("a b".to_owned(), vec!["clock_gettime64".to_owned()]), ("c".to_owned(), vec![])];
        assert_eq!(found, wanted);
    }
}
