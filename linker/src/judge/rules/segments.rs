//! The program headers: what a loader that knows nothing else makes of the file.

use object::elf;

use super::{Broken, ImageFile, Level, Rule, Scope, broken};
use crate::judge::file::Segment;

pub(crate) const ONE_LOAD_SEGMENT: Rule = Rule {
    name: "one-load-segment",
    level: Level::Must,
    scope: Scope::Every,
    demand: "exactly one PT_LOAD",
    consumers: "CRIU, glibc (takes the last when the first is at 0), musl (takes the last)",
    check: |file| {
        let count = file.segments_of(elf::PT_LOAD).count();
        if count != 1 {
            broken!("{count} PT_LOAD segments");
        }
        Ok(())
    },
};

pub(crate) const LOAD_SEGMENT_ORIGIN: Rule = Rule {
    name: "load-segment-origin",
    level: Level::Must,
    scope: Scope::Every,
    demand: "the load segment begins at file offset 0 and address 0",
    consumers: "Shadow, Linux's vdso2c, parsers by hand that add st_value to the base",
    check: |file| {
        let load = load(file)?;
        if (load.offset, load.address) != (0, 0) {
            broken!("it begins at file offset {:#x}, address {:#x}", load.offset, load.address);
        }
        Ok(())
    },
};

pub(crate) const LOAD_SEGMENT_ACCESS: Rule = Rule {
    name: "load-segment-access",
    level: Level::Must,
    scope: Scope::Every,
    demand: "the load segment is readable and executable, not writable",
    consumers: "rustix, gVisor's validator, every kernel that maps it",
    check: |file| {
        let flags = load(file)?.flags;
        if flags & (elf::PF_R | elf::PF_W | elf::PF_X) != elf::PF_R | elf::PF_X {
            broken!("its p_flags are {flags:#x}, read and execute are 0x5");
        }
        Ok(())
    },
};

pub(crate) const LOAD_SEGMENT_WHOLE: Rule = Rule {
    name: "load-segment-whole",
    level: Level::Must,
    scope: Scope::Every,
    demand: "the load segment has as many bytes in memory as in the file",
    consumers: "Linux's vdso2c, gVisor's validator; an image has nobody who would clear a .bss",
    check: |file| {
        let load = load(file)?;
        if load.memory_bytes != load.file_bytes {
            broken!("p_memsz {:#x}, p_filesz {:#x}", load.memory_bytes, load.file_bytes);
        }
        if load.file_bytes == 0 {
            broken!("it is empty");
        }
        Ok(())
    },
};

pub(crate) const OFFSETS_ARE_ADDRESSES: Rule = Rule {
    name: "offsets-are-addresses",
    level: Level::Must,
    scope: Scope::Every,
    demand: "each loaded segment and section is at the same offset in the file and in memory",
    consumers: "glibc (reads PT_DYNAMIC by address), musl (by offset), abseil, Shadow",
    check: |file| {
        if file.segments.is_empty() {
            broken!("there is no segment");
        }
        for segment in &file.segments {
            if segment.offset != segment.address {
                broken!(
                    "segment of type {:#x} at offset {:#x}, address {:#x}",
                    segment.kind,
                    segment.offset,
                    segment.address
                );
            }
        }
        for section in file.sections.iter().filter(|section| section.is_loaded()) {
            if section.offset != section.address {
                broken!(
                    "section {} at offset {:#x}, address {:#x}",
                    section.name,
                    section.offset,
                    section.address
                );
            }
        }
        Ok(())
    },
};

pub(crate) const SEGMENTS_INSIDE_LOAD: Rule = Rule {
    name: "segments-inside-load",
    level: Level::Must,
    scope: Scope::Every,
    demand: "every other segment lies inside the load segment",
    consumers: "CRIU's bounds check, gVisor's validator",
    check: |file| {
        let load = load(file)?;
        let end = |s: &Segment| s.offset.saturating_add(s.memory_bytes.max(s.file_bytes));
        for segment in file.segments.iter().filter(|s| s.kind != elf::PT_LOAD) {
            if segment.offset < load.offset || end(segment) > end(load) {
                broken!(
                    "segment of type {:#x} reaches from {:#x} to {:#x}, the load segment to {:#x}",
                    segment.kind,
                    segment.offset,
                    end(segment),
                    end(load)
                );
            }
        }
        Ok(())
    },
};

pub(crate) const SECTIONS_INSIDE_LOAD: Rule = Rule {
    name: "sections-inside-load",
    level: Level::Must,
    scope: Scope::Every,
    demand: "every section that is loaded, code above all, lies inside the load segment",
    consumers: "Go 1.27 (knows the vDSO's code by p_memsz), kernels that map p_memsz bytes",
    check: |file| {
        let load = load(file)?;
        let end = load.address.saturating_add(load.memory_bytes);
        let mut loaded = file.sections.iter().filter(|s| s.is_loaded() && s.size != 0).peekable();
        if loaded.peek().is_none() {
            broken!("there is no loaded section");
        }
        for section in loaded {
            let last = section.address.saturating_add(section.size);
            if section.address < load.address || last > end {
                broken!(
                    "{} reaches from {:#x} to {last:#x}, the load segment from {:#x} to {end:#x}",
                    section.name,
                    section.address,
                    load.address
                );
            }
        }
        Ok(())
    },
};

pub(crate) const NO_LOADER_SEGMENTS: Rule = Rule {
    name: "no-loader-segments",
    level: Level::Must,
    scope: Scope::Every,
    demand: "no PT_INTERP, no PT_GNU_RELRO, no PT_TLS",
    consumers: "rustix (returns nothing), glibc (asserts that there is no PT_TLS)",
    check: |file| {
        if file.segments.is_empty() {
            broken!("there is no segment");
        }
        for (kind, name) in [
            (elf::PT_INTERP, "PT_INTERP"),
            (elf::PT_GNU_RELRO, "PT_GNU_RELRO"),
            (elf::PT_TLS, "PT_TLS"),
        ] {
            if file.segments_of(kind).next().is_some() {
                broken!("there is a {name}");
            }
        }
        Ok(())
    },
};

pub(crate) const ONE_DYNAMIC_SEGMENT: Rule = Rule {
    name: "one-dynamic-segment",
    level: Level::Must,
    scope: Scope::Every,
    demand: "exactly one PT_DYNAMIC",
    consumers: "CRIU, and every parser that finds symbols without section headers",
    check: |file| {
        let count = file.segments_of(elf::PT_DYNAMIC).count();
        if count != 1 {
            broken!("{count} PT_DYNAMIC segments");
        }
        Ok(())
    },
};

pub(crate) const DYNAMIC_READ_ONLY: Rule = Rule {
    name: "dynamic-read-only",
    level: Level::Must,
    scope: Scope::Every,
    demand: "PT_DYNAMIC is not writable",
    consumers: "glibc 2.35 and later (relocates a writable one in place: a fault)",
    check: |file| {
        let flags = dynamic(file)?.flags;
        if flags & elf::PF_W != 0 {
            broken!("its p_flags are {flags:#x}, which includes write (0x2)");
        }
        Ok(())
    },
};

pub(crate) const DYNAMIC_PLACE: Rule = Rule {
    name: "dynamic-place",
    level: Level::Must,
    scope: Scope::Every,
    demand: "PT_DYNAMIC lies behind the ELF header and ends with DT_NULL",
    consumers: "rustix; everybody else reads on until DT_NULL",
    check: |file| {
        let segment = dynamic(file)?;
        if segment.offset < file.header.header_bytes {
            broken!("it begins at {:#x}, inside the ELF header", segment.offset);
        }
        if !file.dynamic.as_ref().is_some_and(|dynamic| dynamic.is_terminated) {
            broken!("no DT_NULL in its {:#x} bytes", segment.file_bytes);
        }
        Ok(())
    },
};

/// The load segment, of which another rule demands that there is one.
pub(crate) fn load<'f>(file: &'f ImageFile<'_>) -> Result<&'f Segment, Broken> {
    let Some(load) = file.segments_of(elf::PT_LOAD).next() else {
        broken!("there is no PT_LOAD");
    };
    Ok(load)
}

fn dynamic<'f>(file: &'f ImageFile<'_>) -> Result<&'f Segment, Broken> {
    let Some(dynamic) = file.segments_of(elf::PT_DYNAMIC).next() else {
        broken!("there is no PT_DYNAMIC");
    };
    Ok(dynamic)
}
