//! The functions of a mapped vDSO, ours or the host's, as callable pointers.

use std::ffi::{c_int, c_void};

use libc::{timespec, timeval, timezone};
use object::elf;
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _, Sym as _};

type Header = elf::FileHeader64<object::LittleEndian>;

/// What a vDSO of x86_64 exports, each under its prefixed name; `None` where a symbol is missing.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Functions {
    /// `__vdso_clock_gettime`.
    pub clock_gettime: Option<unsafe extern "C" fn(c_int, *mut timespec) -> isize>,
    /// `__vdso_clock_getres`.
    pub clock_getres: Option<unsafe extern "C" fn(c_int, *mut timespec) -> isize>,
    /// `__vdso_gettimeofday`.
    pub gettimeofday: Option<unsafe extern "C" fn(*mut timeval, *mut timezone) -> isize>,
    /// `__vdso_time`.
    pub time: Option<unsafe extern "C" fn(*mut i64) -> i64>,
    /// `__vdso_getcpu`.
    pub getcpu: Option<unsafe extern "C" fn(*mut u32, *mut u32, *mut c_void) -> isize>,
    /// `__vdso_clock_gettime_ns`, this project's own.
    pub clock_gettime_ns: Option<unsafe extern "C" fn(c_int) -> i64>,
}

impl Functions {
    /// What every name of [`NAMES`](Self::NAMES) begins with, and its alias does not.
    pub const PREFIX: &str = "__vdso_";

    /// The prefixed names.
    pub const NAMES: [&str; 6] = [
        "__vdso_clock_gettime",
        "__vdso_clock_getres",
        "__vdso_gettimeofday",
        "__vdso_time",
        "__vdso_getcpu",
        "__vdso_clock_gettime_ns",
    ];

    /// The functions that `address_of` finds.
    ///
    /// # Safety
    /// What `address_of` returns for a name is code with the C signature of that vDSO function,
    /// mapped for as long as the result is used.
    #[must_use]
    pub unsafe fn from_addresses(address_of: impl Fn(&str) -> Option<*const c_void>) -> Self {
        macro_rules! find {
            ($name:literal) => {
                // SAFETY: the caller promises a function of this field's type behind this name.
                address_of($name).map(|code| unsafe { std::mem::transmute(code) })
            };
        }
        Self {
            clock_gettime: find!("__vdso_clock_gettime"),
            clock_getres: find!("__vdso_clock_getres"),
            gettimeofday: find!("__vdso_gettimeofday"),
            time: find!("__vdso_time"),
            getcpu: find!("__vdso_getcpu"),
            clock_gettime_ns: find!("__vdso_clock_gettime_ns"),
        }
    }

    /// The functions of the vDSO that the host's kernel mapped into this process.
    ///
    /// `None` if there is none, or if its ELF file is not what a vDSO is.
    #[must_use]
    pub fn of_host() -> Option<Self> {
        let bytes = host_image()?;
        let symbols = dynamic_symbols(bytes)?;
        let address_of = |name: &str| {
            let (_, value) = symbols.iter().find(|(symbol, _)| symbol == name)?;
            Some(bytes.get(*value..)?.as_ptr().cast())
        };
        // SAFETY: the kernel's own functions have these signatures under these names, and stay.
        Some(unsafe { Self::from_addresses(address_of) })
    }
}

/// The bytes of the vDSO that the host's kernel mapped into this process.
#[must_use]
pub fn host_image() -> Option<&'static [u8]> {
    // SAFETY: reads a value that the kernel left for the process.
    let base = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    let base = std::ptr::with_exposed_provenance::<u8>(usize::try_from(base).ok()?);
    if base.is_null() {
        return None;
    }
    // SAFETY: the kernel maps at least one page there.
    let first = unsafe { std::slice::from_raw_parts(base, 4096) };
    let header = Header::parse(first).ok()?;
    let endian = header.endian().ok()?;
    let load = header
        .program_headers(endian, first)
        .ok()?
        .iter()
        .find(|segment| segment.p_type(endian) == elf::PT_LOAD)?;
    let size = usize::try_from(load.p_memsz(endian)).ok()?.next_multiple_of(4096);
    // SAFETY: the kernel maps its whole load segment, in whole pages.
    Some(unsafe { std::slice::from_raw_parts(base, size) })
}

/// Names and values of the defined functions in `DT_SYMTAB` of a mapped image.
fn dynamic_symbols(bytes: &[u8]) -> Option<Vec<(String, usize)>> {
    let header = Header::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, bytes).ok()?;
    let dynamic = segments.iter().find_map(|segment| segment.dynamic(endian, bytes).ok()?)?;
    let value = |tag: u32| {
        let entry = dynamic.iter().find(|entry| entry.tag32(endian) == Some(tag))?;
        usize::try_from(entry.d_val(endian)).ok()
    };
    let strings = bytes.get(value(elf::DT_STRTAB)?..)?;
    let strings = strings.get(..value(elf::DT_STRSZ)?)?;
    let strings = object::StringTable::new(strings, 0, strings.len() as u64);
    // The SysV hash table's second word is the number of symbols.
    let hash = bytes.get(value(elf::DT_HASH)?..)?;
    let count = u32::from_le_bytes(hash.get(4..8)?.try_into().ok()?);
    let symbols = bytes.get(value(elf::DT_SYMTAB)?..)?;
    let (symbols, _) =
        object::slice_from_bytes::<elf::Sym64<object::LittleEndian>>(symbols, count as usize)
            .ok()?;
    let defined = symbols.iter().filter(|symbol| symbol.st_type() == elf::STT_FUNC);
    defined
        .map(|symbol| {
            let name = symbol.name(endian, strings).ok()?;
            let name = std::str::from_utf8(name).ok()?.to_owned();
            Some((name, usize::try_from(symbol.st_value(endian)).ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn exactly_the_named_functions_are_looked_for() {
        let asked = RefCell::new(Vec::new());
        let address_of = |name: &str| {
            asked.borrow_mut().push(name.to_owned());
            None
        };
        // SAFETY: nothing is found.
        let nothing = unsafe { Functions::from_addresses(address_of) };
        assert!(nothing.clock_gettime.is_none());
        assert_eq!(asked.into_inner(), Functions::NAMES);
        assert!(Functions::NAMES.iter().all(|name| name.starts_with(Functions::PREFIX)));
    }

    #[test]
    fn the_hosts_functions_are_found_and_work() {
        let host = Functions::of_host().expect("this machine has a vDSO");
        let mut spec = timespec { tv_sec: 0, tv_nsec: -1 };
        // SAFETY: a live timespec.
        let answer = unsafe { host.clock_gettime.unwrap()(libc::CLOCK_REALTIME, &raw mut spec) };
        assert_eq!(answer, 0);
        assert!(spec.tv_sec > 1_700_000_000 && (0..1_000_000_000).contains(&spec.tv_nsec));
        assert!(host.clock_gettime_ns.is_none(), "the host's vDSO has none of ours");
    }
}
