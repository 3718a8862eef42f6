//! The unwind tables: a debugger, a profiler or an exception finds its way out of every instruction.

use std::ops::Range;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EhFrameHdr, EndianSlice, Pointer, RegisterRule,
    RunTimeEndian, UnwindContext, UnwindSection as _,
};
use object::{Endianness, elf};

use super::{Arch, Broken, ImageFile, Level, Rule, Scope, broken, padding};
use crate::judge::file::Section;

type Reader<'a> = EndianSlice<'a, RunTimeEndian>;
type Fde<'a> = gimli::FrameDescriptionEntry<Reader<'a>>;

/// The most bytes of `.eh_frame` that are read: each entry may run its common part again.
const LIMIT: usize = 32 << 10;

pub(crate) const UNWIND_TABLES: Rule = Rule {
    name: "unwind-tables",
    level: Level::Must,
    scope: Scope::NotOn(&[Arch::Arm]),
    demand: "a row for every address of every function, found through PT_GNU_EH_FRAME",
    consumers: "gdb, perf, libunwind, libgcc, asynchronous profilers, pprof",
    check: |file| {
        let frames = Frames::read(file)?;
        let entries = frames.entries()?;
        frames.leads_to(&entries)?;
        for fde in &entries {
            frames.has_rows(file, fde)?;
        }
        let covered = ranges(file)?;
        // A trampoline that is no function to the linker (aarch64's) is recognised by its code.
        let mut functions = file.tables.functions();
        functions.retain(|function| function.kind == elf::STT_FUNC);
        if functions.is_empty() {
            broken!("there is no function");
        }
        for function in functions {
            let end = function.value.saturating_add(function.size);
            let at = covered.partition_point(|range| range.end <= function.value);
            // A trampoline's size may count the padding up to the next multiple of 16.
            let is_whole = |range: &Range<u64>| {
                let rest = end.saturating_sub(range.end);
                let is_padding = |bytes: &[u8]| padding::bytes(file.arch, bytes) as u64 == rest;
                rest == 0
                    || function.is_trampoline()
                        && rest < 16
                        && is_padding(code_between(file, &(range.end..end)))
            };
            match covered.get(at) {
                Some(range) if range.start <= function.value && is_whole(range) => {}
                _ => broken!(
                    "{} from {:#x} to {end:#x} is not covered by an entry",
                    function.name,
                    function.value
                ),
            }
        }
        Ok(())
    },
};

/// Linux's own image breaks it on x86: the ChaCha20 rounds behind `getrandom` have no entry.
pub(crate) const UNWIND_EVERY_PATH: Rule = Rule {
    name: "unwind-every-path",
    level: Level::Must,
    scope: Scope::NotOn(&[Arch::Arm]),
    demand: "what no unwind entry covers is padding, in every section of code: what is not exported \
             has rows too",
    consumers: "asynchronous profilers (a signal may come anywhere), libgcc's backtrace",
    check: |file| {
        let mut covered = ranges(file)?;
        for trampoline in file.tables.symbols.iter().filter(|s| s.is_trampoline()) {
            let start = trampoline.value;
            // The byte before it, where its entry begins, is the end of an instruction of padding.
            if let Some(entry) = covered.iter_mut().find(|entry| entry.start + 1 == start) {
                entry.start = start;
            }
            // Recognised by its code, as above.
            if file.arch == Arch::Aarch64 {
                covered.push(start..start.saturating_add(trampoline.size));
            }
        }
        covered.sort_by_key(|range| range.start);
        only_padding_between(file, &covered)
    },
};

pub(crate) const SIGNAL_FRAMES: Rule = Rule {
    name: "signal-frames",
    level: Level::Must,
    scope: Scope::On(&[Arch::I386]),
    demand: "the sigreturn trampolines have signal frames that begin one byte before them",
    consumers: "libgcc and gdb (look up the return address minus one)",
    check: |file| {
        let entries = Frames::read(file)?.entries()?;
        for name in ["__kernel_sigreturn", "__kernel_rt_sigreturn"] {
            let Some(symbol) = file.tables.symbols.iter().find(|s| s.name == name) else {
                broken!("there is no {name}");
            };
            let before = symbol.value.saturating_sub(1);
            match entries.iter().find(|fde| fde.contains(before)) {
                Some(fde) if fde.cie().is_signal_trampoline() => {}
                Some(_) => broken!("the entry of {name} is not marked as a signal frame"),
                None => broken!("no entry covers {before:#x}, one byte before {name}"),
            }
        }
        Ok(())
    },
};

/// The address ranges of all entries, in ascending order.
pub(crate) fn ranges(file: &ImageFile<'_>) -> Result<Vec<Range<u64>>, Broken> {
    let entries = Frames::read(file)?.entries()?;
    let mut ranges: Vec<_> =
        entries.iter().map(|fde| fde.initial_address()..fde.end_address()).collect();
    ranges.sort_by_key(|range| range.start);
    Ok(ranges)
}

/// `.eh_frame` and the table that leads into it.
struct Frames<'a> {
    header: gimli::ParsedEhFrameHdr<Reader<'a>>,
    frame: EhFrame<Reader<'a>>,
    bases: BaseAddresses,
    /// Of `.eh_frame`.
    address: u64,
}

impl<'a> Frames<'a> {
    fn read(file: &ImageFile<'a>) -> Result<Self, Broken> {
        let Some(segment) = file.segments_of(elf::PT_GNU_EH_FRAME).next() else {
            broken!("there is no PT_GNU_EH_FRAME");
        };
        let Some(section) = file.section(".eh_frame") else {
            broken!("there is no .eh_frame");
        };
        let endian = match file.endian {
            Endianness::Little => RunTimeEndian::Little,
            Endianness::Big => RunTimeEndian::Big,
        };
        let word = if file.is_64 { 8 } else { 4 };
        let header = crate::judge::file::slice(
            file.bytes,
            "PT_GNU_EH_FRAME",
            segment.offset,
            segment.file_bytes,
        );
        let (Ok(header), Some(frame)) = (header, file.section_bytes(section)) else {
            broken!("the tables are not in the file");
        };
        if frame.len() > LIMIT {
            broken!(".eh_frame has {} bytes, more than {LIMIT} are not read", frame.len());
        }
        let bases = BaseAddresses::default()
            .set_eh_frame_hdr(segment.address)
            .set_eh_frame(section.address)
            .set_text(0);
        let header = match EhFrameHdr::new(header, endian).parse(&bases, word) {
            Ok(header) => header,
            Err(error) => broken!(".eh_frame_hdr: {error}"),
        };
        if header.eh_frame_ptr() != Pointer::Direct(section.address) {
            broken!(
                ".eh_frame_hdr leads to {:x?}, .eh_frame is at {:#x}",
                header.eh_frame_ptr(),
                section.address
            );
        }
        let mut frame = EhFrame::new(frame, endian);
        frame.set_address_size(word);
        Ok(Self { header, frame, bases, address: section.address })
    }

    /// Every entry. Whoever looks for one in particular finds out that there is none.
    fn entries(&self) -> Result<Vec<Fde<'a>>, Broken> {
        let mut entries = Vec::new();
        let mut walk = self.frame.entries(&self.bases);
        loop {
            match walk.next() {
                Ok(Some(CieOrFde::Cie(_))) => {}
                Ok(Some(CieOrFde::Fde(partial))) => {
                    match partial.parse(|frame, bases, at| frame.cie_from_offset(bases, at)) {
                        Ok(fde) => entries.push(fde),
                        Err(error) => broken!("an entry of .eh_frame: {error}"),
                    }
                }
                Ok(None) => break,
                Err(error) => broken!(".eh_frame: {error}"),
            }
        }
        Ok(entries)
    }

    /// The sorted table leads to exactly these entries, each by the start of its range.
    ///
    /// It is compared as a whole, not searched as a reader would: an unwinder that searches a
    /// table out of order finds some entries and misses others.
    fn leads_to(&self, entries: &[Fde<'a>]) -> Result<(), Broken> {
        let Some(table) = self.header.table() else {
            broken!(".eh_frame_hdr has no table");
        };
        let mut wanted: Vec<(u64, u64)> = entries
            .iter()
            .map(|fde| (fde.initial_address(), self.address.wrapping_add(fde.offset() as u64)))
            .collect();
        wanted.sort_unstable();
        let mut rows = table.iter(&self.bases);
        for (start, entry) in wanted {
            match rows.next() {
                Ok(Some((Pointer::Direct(from), Pointer::Direct(to))))
                    if (from, to) == (start, entry) => {}
                Ok(found) => broken!(
                    ".eh_frame_hdr has {found:x?} where the entry of {start:#x} at {entry:#x} belongs"
                ),
                Err(error) => broken!("the table of .eh_frame_hdr: {error}"),
            }
        }
        match rows.next() {
            Ok(None) => Ok(()),
            _ => broken!(".eh_frame_hdr has more rows than .eh_frame has entries"),
        }
    }

    /// Every row says where the caller's frame and, on x86, the return address are.
    fn has_rows(&self, file: &ImageFile<'_>, fde: &Fde<'a>) -> Result<(), Broken> {
        let start = fde.initial_address();
        let mut context = UnwindContext::new();
        let mut rows = match fde.rows(&self.frame, &self.bases, &mut context) {
            Ok(rows) => rows,
            Err(error) => broken!("the entry of {start:#x}: {error}"),
        };
        let on_stack = matches!(file.arch, Arch::X86_64 | Arch::I386);
        loop {
            let row = match rows.next_row() {
                Ok(Some(row)) => row,
                Ok(None) => break,
                Err(error) => broken!("the entry of {start:#x}: {error}"),
            };
            let (at, reached) = (row.start_address(), row.end_address());
            // The last row ends where the entry does; one before it that ends later hides it.
            if reached > fde.end_address() {
                broken!(
                    "the row of {at:#x} ends at {reached:#x}, its code at {:#x}",
                    fde.end_address()
                );
            }
            if fde.cie().is_signal_trampoline() {
                continue;
            }
            match row.cfa() {
                CfaRule::RegisterAndOffset { offset, .. } if on_stack && *offset <= 0 => {
                    broken!("the row of {at:#x} has its frame {offset} bytes above a register")
                }
                _ => {}
            }
            let answer = row.register(fde.cie().return_address_register());
            if on_stack && !matches!(answer, RegisterRule::Offset(_)) {
                broken!("the row of {at:#x} does not say where the return address is");
            }
        }
        Ok(())
    }
}

/// What no entry covers is never run: padding.
fn only_padding_between(file: &ImageFile<'_>, covered: &[Range<u64>]) -> Result<(), Broken> {
    let mut sections = code(file).peekable();
    if sections.peek().is_none() {
        broken!("there is no section of code");
    }
    for section in sections {
        let (mut at, end) = (section.address, section.address.saturating_add(section.size));
        let starts = covered.iter().map(|range| range.start..range.end);
        for next in starts.chain(std::iter::once(end..end)) {
            let gap = bytes_between(file, section, at..next.start.min(end));
            let padding = padding::bytes(file.arch, gap);
            if padding != gap.len() {
                let place = at + padding as u64;
                broken!("code at {place:#x}, in {}, is covered by no entry", section.name);
            }
            at = at.max(next.end);
        }
    }
    Ok(())
}

/// The sections that hold code, but what the kernel copies over other code at boot: nobody runs it
/// where it lies. That there is any is another rule's affair.
fn code<'f, 'a>(file: &'f ImageFile<'a>) -> impl Iterator<Item = &'f Section<'a>> {
    let sections = file.sections.iter();
    sections.filter(|section| section.is_code() && section.name != ".altinstr_replacement")
}

/// The bytes of code in a range of addresses; none where no section has them all.
fn code_between<'a>(file: &ImageFile<'a>, range: &Range<u64>) -> &'a [u8] {
    let mut found = code(file).map(|section| bytes_between(file, section, range.clone()));
    found.find(|bytes| !bytes.is_empty()).unwrap_or_default()
}

/// The bytes of a section in a range of addresses; none where the range is none of its.
fn bytes_between<'a>(file: &ImageFile<'a>, section: &Section<'_>, range: Range<u64>) -> &'a [u8] {
    let inside = |address: u64| usize::try_from(address.checked_sub(section.address)?).ok();
    let bytes = file.section_bytes(section).unwrap_or_default();
    let range = inside(range.start).zip(inside(range.end));
    range.and_then(|(start, end)| bytes.get(start..end)).unwrap_or_default()
}
