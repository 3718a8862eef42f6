//! The shape of exported functions: programs that patch a running process write over their starts.

use object::elf;

use super::segments::load;
use super::{Arch, Broken, ImageFile, Level, Rule, Scope, broken};
use crate::judge::tables::Symbol;

/// The most that a patcher was seen to write is 35 bytes (sandlock).
const WRITTEN: u64 = 35;

/// That, up to the next multiple of 16.
const ROOM: u64 = 48;

/// The least that a patcher needs inside the function: a jump through a register (Shadow 13, CRIU 16).
const LEAST: u64 = 16;

pub(crate) const FUNCTION_ALIGNMENT: Rule = Rule {
    name: "function-alignment",
    level: Level::Must,
    scope: Scope::NotOn(&[Arch::Arm]),
    demand: "exported functions begin at multiples of 16",
    consumers: "reverie, CRIU, sandlock (patch aligned words of a running program)",
    check: |file| {
        for function in functions(file)? {
            if !function.value.is_multiple_of(16) {
                broken!("{} is at {:#x}", function.name, function.value);
            }
        }
        Ok(())
    },
};

pub(crate) const FUNCTION_SIZE: Rule = Rule {
    name: "function-size",
    level: Level::Must,
    scope: Scope::Every,
    demand: "st_size is at least 16 (__kernel_vsyscall may be a bare system call) and ends where \
             the function's unwind row ends",
    consumers: "Shadow (refuses below 13), gdb and perf (names of addresses)",
    check: |file| {
        let functions = functions(file)?;
        let frames = super::unwind::ranges(file).unwrap_or_default();
        for (index, function) in functions.iter().enumerate() {
            let (name, size) = (function.name, function.size);
            // Who patches `__kernel_vsyscall` (rr) first compares its bytes with those of Linux's.
            if size < LEAST && name != "__kernel_vsyscall" {
                broken!("{name} has st_size {size}, wanted at least {LEAST}");
            }
            let end = function.value.saturating_add(size);
            let next = functions.iter().skip(index).find(|f| f.value > function.value);
            if let Some(next) = next
                && next.value < end
            {
                broken!("{name} ends at {end:#x}, inside {} at {:#x}", next.name, next.value);
            }
            let at = frames.partition_point(|frame| frame.end <= function.value);
            if let Some(frame) = frames.get(at)
                && frame.contains(&function.value)
                && frame.end != end
            {
                broken!("{name} ends at {end:#x}, its code at {:#x}", frame.end);
            }
        }
        Ok(())
    },
};

pub(crate) const FUNCTION_ROOM: Rule = Rule {
    name: "function-room",
    level: Level::Must,
    scope: Scope::Every,
    demand: "48 bytes from each function's start to the next piece of code, exported or not, and 35 \
             to the end of the code (16 are enough for __kernel_vsyscall)",
    consumers: "Shadow (5 or 13 bytes), reverie (8 or 16), CRIU (16), sandlock (35)",
    check: |file| {
        let functions = functions(file)?;
        let starts = starts_of_code(file);
        for function in functions {
            let (name, start) = (function.name, function.value);
            // As above: its patchers know what Linux has right behind it, the signal trampolines.
            let (between, last) =
                if name == "__kernel_vsyscall" { (LEAST, LEAST) } else { (ROOM, WRITTEN) };
            let end = end_of_code(file, start)?;
            let room = end.saturating_sub(start);
            // Linux's image of a small configuration ends 37 bytes behind the start of `getcpu`.
            if room < last {
                broken!("{name} at {start:#x} has {room} bytes to the end of its code, {end:#x}");
            }
            let next = starts.get(starts.partition_point(|next| *next <= start));
            if let Some(next) = next
                && next - start < between
            {
                broken!("{name} at {start:#x} has {} bytes to {next:#x}", next - start);
            }
        }
        Ok(())
    },
};

/// Where a piece of code begins that somebody may be in while a function is patched: what is
/// exported, trampolines included, and whatever else an unwind entry covers.
fn starts_of_code(file: &ImageFile<'_>) -> Vec<u64> {
    let exported = file.tables.functions().into_iter().map(|function| function.value);
    let covered = super::unwind::ranges(file).unwrap_or_default();
    let mut starts: Vec<_> = exported.chain(covered.iter().map(|range| range.start)).collect();
    starts.sort_unstable();
    starts
}

/// Where the code ends that begins at `start`: with its section, or with the load segment in a file
/// that has no sections.
fn end_of_code(file: &ImageFile<'_>, start: u64) -> Result<u64, Broken> {
    let load = load(file)?;
    let mut sections = file.sections.iter().filter(|section| section.is_code());
    let ends = |from: u64, bytes: u64| (from..from.saturating_add(bytes)).contains(&start);
    let section = sections.find(|section| ends(section.address, section.size));
    let end = load.address.saturating_add(load.memory_bytes);
    Ok(section.map_or(end, |section| end.min(section.address.saturating_add(section.size))))
}

/// The exported functions by address, without signal trampolines, which nobody patches.
fn functions<'f, 'a>(file: &'f ImageFile<'a>) -> Result<Vec<&'f Symbol<'a>>, Broken> {
    let mut functions = file.tables.functions();
    functions.retain(|f| f.kind == elf::STT_FUNC && !f.is_trampoline());
    if functions.is_empty() {
        broken!("there is no function");
    }
    Ok(functions)
}
