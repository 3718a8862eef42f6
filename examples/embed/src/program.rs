//! A program that knows its auxiliary vector and nothing else: it reads the image as a libc does.

use std::ffi::{c_int, c_void};

type ClockGettime = unsafe extern "C" fn(c_int, *mut [i64; 2]) -> isize;
type Getcpu = unsafe extern "C" fn(*mut u32, *mut u32, *mut c_void) -> isize;
type Seconds = unsafe extern "C" fn(*mut i64) -> i64;

/// Seconds and nanoseconds.
pub(crate) type Time = (i64, i64);

/// A started program.
pub(crate) struct Program {
    image: Image,
    clock_gettime: ClockGettime,
    clock_getres: ClockGettime,
    time: Seconds,
    getcpu: Getcpu,
}

impl Program {
    /// Finds the functions by name.
    pub(crate) fn start(auxiliary_vector: &[(usize, usize)]) -> Result<Self, String> {
        let (_, base) = auxiliary_vector
            .iter()
            .find(|(kind, _)| *kind == 33)
            .ok_or("no AT_SYSINFO_EHDR: every call would be a system call")?;
        let image = Image { base: std::ptr::with_exposed_provenance(*base) };
        let find = |name: &str| image.find(name).ok_or_else(|| format!("no {name} in the image"));
        let clock_gettime = find("__vdso_clock_gettime")?;
        let clock_getres = find("__vdso_clock_getres")?;
        let (time, getcpu) = (find("__vdso_time")?, find("__vdso_getcpu")?);
        Ok(Self {
            // SAFETY: the function of that name has this type.
            clock_gettime: unsafe {
                std::mem::transmute::<*const c_void, ClockGettime>(clock_gettime)
            },
            // SAFETY: the function of that name has this type, which is that of `clock_gettime`.
            clock_getres: unsafe {
                std::mem::transmute::<*const c_void, ClockGettime>(clock_getres)
            },
            // SAFETY: the function of that name has this type.
            time: unsafe { std::mem::transmute::<*const c_void, Seconds>(time) },
            // SAFETY: the function of that name has this type.
            getcpu: unsafe { std::mem::transmute::<*const c_void, Getcpu>(getcpu) },
            image,
        })
    }

    /// `clock_gettime`, found by name.
    pub(crate) fn clock_gettime(&self, id: c_int) -> Result<Time, isize> {
        read(self.clock_gettime, id)
    }

    /// `clock_getres`, found by name.
    pub(crate) fn clock_getres(&self, id: c_int) -> Result<Time, isize> {
        read(self.clock_getres, id)
    }

    /// Where a symbol is, from the start of the image.
    pub(crate) fn offset(&self, name: &str) -> Option<usize> {
        self.image.find(name).map(|function| function.addr() - self.image.base.addr())
    }

    /// The function at an offset that came with the image's bytes.
    pub(crate) fn clock_gettime_at(
        &self,
        base: usize,
        offset: usize,
        id: c_int,
    ) -> Result<Time, isize> {
        let code = std::ptr::with_exposed_provenance::<c_void>(base + offset);
        // SAFETY: the offset is that of a function of this type in the image at `base`.
        let function = unsafe { std::mem::transmute::<*const c_void, ClockGettime>(code) };
        read(function, id)
    }

    /// `time(NULL)`.
    pub(crate) fn time(&self) -> i64 {
        // SAFETY: null is legal.
        unsafe { (self.time)(std::ptr::null_mut()) }
    }

    /// `clock_gettime` with a pointer to memory that is not the program's: 0 or an error.
    pub(crate) fn clock_gettime_badly(&self, id: c_int) -> isize {
        // SAFETY: nothing is mapped there, so nothing is overwritten.
        unsafe { (self.clock_gettime)(id, std::ptr::without_provenance_mut(16)) }
    }

    /// `node << 12 | cpu`.
    pub(crate) fn getcpu(&self) -> u32 {
        let (mut cpu, mut node) = (0, 0);
        // SAFETY: two places for an int.
        unsafe { (self.getcpu)(&raw mut cpu, &raw mut node, std::ptr::null_mut()) };
        node << 12 | cpu
    }
}

fn read(function: ClockGettime, id: c_int) -> Result<Time, isize> {
    let mut spec = [0_i64; 2];
    // SAFETY: a live timespec; the image is mapped.
    match unsafe { function(id, &raw mut spec) } {
        0 => Ok((spec[0], spec[1])),
        errno => Err(errno),
    }
}

/// A mapped image, read field by field as old parsers do: program headers, `DT_HASH`, symbols.
struct Image {
    base: *const u8,
}

impl Image {
    fn find(&self, name: &str) -> Option<*const c_void> {
        let (headers, count) = (self.u64(32), self.u16(56));
        let dynamic = (0..count)
            .map(|index| headers + 56 * index)
            .find(|&header| self.u32(header) == 2)
            .map(|header| self.u64(header + 16))?;
        let value = |tag: usize| {
            (0..)
                .map(|index| dynamic + 16 * index)
                .take_while(|&entry| self.u64(entry) != 0)
                .find(|&entry| self.u64(entry) == tag)
                .map(|entry| self.u64(entry + 8))
        };
        // DT_HASH, whose second word counts the symbols; DT_STRTAB; DT_SYMTAB.
        let (hash, strings, symbols) = (value(4)?, value(5)?, value(6)?);
        (1..self.u32(hash + 4))
            .map(|index| symbols + 24 * index)
            .find(|&symbol| self.has_name(strings + self.u32(symbol), name))
            .map(|symbol| self.base.wrapping_add(self.u64(symbol + 8)).cast())
    }

    fn has_name(&self, at: usize, name: &str) -> bool {
        let found = (at..).map(|at| self.bytes::<1>(at)[0]).take_while(|&byte| byte != 0);
        found.eq(name.bytes())
    }

    fn u16(&self, at: usize) -> usize {
        u16::from_le_bytes(self.bytes(at)).into()
    }

    fn u32(&self, at: usize) -> usize {
        usize::try_from(u32::from_le_bytes(self.bytes(at))).unwrap_or(usize::MAX)
    }

    fn u64(&self, at: usize) -> usize {
        usize::try_from(u64::from_le_bytes(self.bytes(at))).unwrap_or(usize::MAX)
    }

    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let place = self.base.wrapping_add(at).cast::<[u8; N]>();
        // SAFETY: the image is mapped, and its tables lie inside it: the kernel made it.
        unsafe { place.read_unaligned() }
    }
}
