//! The rules: what is demanded of an image, by whom, and how it is seen in the file.
//!
//! Each family is a file. A rule that finds nothing to look at is broken, never silently true.

mod code;
mod dynamic;
mod functions;
mod hashes;
mod header;
mod notes;
mod padding;
mod sections;
mod segments;
mod size;
mod symbols;
mod unwind;
mod versions;

use std::fmt;

use super::arch::Arch;
use super::file::ImageFile;

/// A demand on images.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Rule {
    /// Its name, in words with hyphens.
    pub name: &'static str,
    /// What happens to its consumers without it.
    pub level: Level,
    /// Which images it is for.
    pub scope: Scope,
    /// What it demands, in a line.
    pub demand: &'static str,
    /// Who demands it.
    pub consumers: &'static str,
    pub(crate) check: fn(&ImageFile<'_>) -> Result<(), Broken>,
}

/// What happens to the named consumers of an image that breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// They break.
    Must,
    /// They do not, as far as was seen; the image is still less than it should be.
    Should,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Must => "must",
            Self::Should => "should",
        })
    }
}

/// Which images a rule is for.
#[derive(Clone, Copy, Debug)]
pub enum Scope {
    /// All.
    Every,
    /// Those of these architectures.
    On(&'static [Arch]),
    /// Those of all other architectures.
    NotOn(&'static [Arch]),
    /// Those with this project's note.
    Ours,
    /// Those that enter the kernel for what they cannot serve: all but our policy `enosys`.
    EntersKernel,
    /// Those of our policy `enosys`.
    NeverEntersKernel,
}

/// The policy word of an image that never enters the kernel.
const ENOSYS: u32 = 1;

impl Scope {
    /// The architectures that the rule holds for.
    pub fn architectures(self) -> impl Iterator<Item = Arch> {
        Arch::ALL.into_iter().filter(move |arch| match self {
            Self::On(archs) => archs.contains(arch),
            Self::NotOn(archs) => !archs.contains(arch),
            _ => true,
        })
    }

    /// The images of these architectures that it holds for, by the policy that their note states.
    #[must_use]
    pub fn policies(self) -> &'static str {
        match self {
            Self::Every | Self::On(_) | Self::NotOn(_) => "all",
            Self::Ours => "syscall, enosys (images with a uVDSO note)",
            Self::EntersKernel => "all but enosys",
            Self::NeverEntersKernel => "enosys",
        }
    }

    /// Why `file` is outside the scope, if it is.
    pub(crate) fn excludes(self, file: &ImageFile<'_>) -> Option<String> {
        let arch = file.arch;
        let is_enosys = file.own_note().is_some_and(|note| note.policy == ENOSYS);
        let names = |archs: &[Arch]| {
            let names: Vec<_> = archs.iter().map(|arch| arch.name()).collect();
            names.join(", ")
        };
        match self {
            Self::On(archs) if !archs.contains(&arch) => Some(format!("only for {}", names(archs))),
            Self::NotOn(archs) if archs.contains(&arch) => {
                Some(format!("not for {}", names(archs)))
            }
            Self::Ours if file.raw_own_note().is_none() => {
                Some("only for images with a uVDSO note".to_owned())
            }
            Self::EntersKernel if is_enosys => Some("not for policy enosys".to_owned()),
            Self::NeverEntersKernel if !is_enosys => Some("only for policy enosys".to_owned()),
            _ => None,
        }
    }
}

/// How an image breaks a rule: what was found, and what was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    found: String,
    place: &'static str,
}

impl Broken {
    /// The line of the judge's source that found it: each is one part of a demand, and the tests
    /// have a bad image for each.
    #[must_use]
    pub fn place(&self) -> &'static str {
        self.place
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.found)
    }
}

/// Leaves a check with what was found.
macro_rules! broken {
    ($($message:tt)*) => {
        return Err($crate::judge::rules::Broken {
            found: format!($($message)*),
            place: concat!(file!(), ":", line!()),
        })
    };
}
use broken;

/// Every rule.
pub static RULES: &[Rule] = &[
    header::ELF_HEADER,
    header::OS_ABI,
    header::ENTRY_POINT,
    segments::ONE_LOAD_SEGMENT,
    segments::LOAD_SEGMENT_ORIGIN,
    segments::LOAD_SEGMENT_ACCESS,
    segments::LOAD_SEGMENT_WHOLE,
    segments::OFFSETS_ARE_ADDRESSES,
    segments::SEGMENTS_INSIDE_LOAD,
    segments::SECTIONS_INSIDE_LOAD,
    segments::NO_LOADER_SEGMENTS,
    segments::ONE_DYNAMIC_SEGMENT,
    segments::DYNAMIC_READ_ONLY,
    segments::DYNAMIC_PLACE,
    dynamic::DYNAMIC_ENTRIES,
    dynamic::DYNAMIC_ORDER,
    dynamic::SONAME,
    dynamic::NO_RELOCATIONS,
    dynamic::NO_DEPENDENCIES,
    dynamic::NO_BUILDER_PATHS,
    hashes::SYSV_HASH,
    hashes::GNU_HASH,
    sections::SECTION_HEADERS,
    sections::SECTIONS_VISIBLE,
    sections::FIRST_STRING_TABLE,
    sections::DYNSYM_SECTION,
    sections::NO_GOT_OR_PLT,
    sections::NO_DATA,
    sections::NO_ALTERNATIVES,
    symbols::NAMES,
    symbols::LATE_NAMES,
    symbols::ALIASES,
    symbols::SYMBOL_TYPES,
    symbols::SYMBOL_BINDING,
    symbols::SYMBOL_VALUES,
    symbols::SYMBOL_SECTIONS,
    symbols::NO_UNDEFINED_SYMBOLS,
    versions::VERSION_TABLES,
    versions::SYMBOL_VERSIONS,
    versions::EXTENSION_VERSIONS,
    versions::VERSION_NODE_SYMBOLS,
    functions::FUNCTION_ALIGNMENT,
    functions::FUNCTION_SIZE,
    functions::FUNCTION_ROOM,
    code::SYSTEM_CALL,
    code::NO_SYSTEM_CALL,
    notes::BUILD_ID,
    notes::OWN_NOTE,
    unwind::UNWIND_TABLES,
    unwind::UNWIND_EVERY_PATH,
    unwind::SIGNAL_FRAMES,
    size::TWO_PAGES,
];
