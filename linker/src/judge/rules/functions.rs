//! The shape of exported functions: programs that patch a running process write over their starts.

use object::elf;

use super::segments::load;
use super::{Arch, Broken, ImageFile, Level, Rule, Scope, broken};
use crate::judge::tables::Symbol;

/// The most that a patcher was seen to write is 35 bytes (sandlock); the next multiple of 16.
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
    demand: "48 bytes from each function's start to the next function, and to the image's end",
    consumers: "Shadow (5 or 13 bytes), reverie (8 or 16), CRIU (16), sandlock (35)",
    check: |file| {
        let functions = functions(file)?;
        let load = load(file)?;
        let end = load.address.saturating_add(load.memory_bytes);
        let starts: Vec<u64> = functions.iter().map(|f| f.value).chain([end]).collect();
        for (function, start) in functions.iter().zip(&starts) {
            let next = starts.iter().find(|next| *next > start).copied().unwrap_or(end);
            let room = next.saturating_sub(*start);
            if room < ROOM {
                broken!("{} at {start:#x} has {room} bytes to {next:#x}", function.name);
            }
        }
        Ok(())
    },
};

/// The exported functions by address, without signal trampolines, which nobody patches.
fn functions<'f, 'a>(file: &'f ImageFile<'a>) -> Result<Vec<&'f Symbol<'a>>, Broken> {
    let mut functions = file.tables.functions();
    functions.retain(|f| f.kind == elf::STT_FUNC && !f.is_trampoline());
    if functions.is_empty() {
        broken!("there is no function");
    }
    Ok(functions)
}
