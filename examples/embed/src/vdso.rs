//! The kernel's side: frames at boot, four slots and the image in each process, a tick.

use datapage::{
    ABI, ClockId, ClockMode, Features, Instant, PageValues, Scale, UpdateError, Writer,
};

use crate::uvdso_image::{IMAGE, PAGE_ABI, SLOT_BYTES, SLOT_DATA, SLOTS};

// The image reads the layout that this writer writes. An image of another major version is refused
// before there is a kernel to boot.
const _: () = assert!(PAGE_ABI == ABI, "export the image of this version of datapage");

/// Pages of the image.
pub const IMAGE_PAGES: usize = IMAGE.0.len().div_ceil(SLOT_BYTES);

/// What this file needs of the rest of the kernel.
pub trait Machine {
    /// A physical page.
    type Frame: Copy;

    /// A zeroed frame that is never freed, and where the kernel reads and writes it.
    fn frame(&mut self) -> (Self::Frame, *mut u8);

    /// Lets the process see a frame at an address, and never lets it make the page writable: the
    /// mapping's maximum protection is what is given here.
    fn map(&mut self, address: usize, frame: Self::Frame, access: Access);

    /// The counter that programs read, in the same order towards memory: `lfence; rdtsc` on x86.
    fn counter(&self) -> u64;
}

/// What a process may do with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read it.
    Read,
    /// Read and run it.
    ReadExecute,
}

/// Made once, when the kernel boots: one data page and one copy of the image for all processes.
pub struct Vdso<F> {
    data: F,
    image: [F; IMAGE_PAGES],
    writer: Writer<'static>,
}

impl<F: Copy> Vdso<F> {
    /// Takes frames, fills the image's, formats the data page: from now on it serves nothing.
    pub fn boot(machine: &mut impl Machine<Frame = F>) -> Self {
        let (data, page) = machine.frame();
        // SAFETY: the frame is mapped and writable here, belongs to this page alone, and is never
        // freed; programs have it read-only.
        let mut writer = unsafe { Writer::at(page.cast()) };
        // A bit for a way of getcpu is set only when it holds on every CPU: none is claimed here.
        writer.format(Features::empty(), SLOT_PITCH);
        let image = core::array::from_fn(|index| {
            let (frame, memory) = machine.frame();
            let start = index * SLOT_BYTES;
            let bytes = &IMAGE.0[start..IMAGE.0.len().min(start + SLOT_BYTES)];
            // SAFETY: a frame has as many bytes as a slot, and nobody else knows it yet.
            unsafe { memory.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            frame
        });
        Self { data, image, writer }
    }

    /// At exec: maps the data page and the image into a free range of [`RANGE_BYTES`] at `start`.
    ///
    /// Returns what `AT_SYSINFO_EHDR` is in the process's auxiliary vector.
    ///
    /// ```text
    /// start                                                base
    ///   | data (r--) | time ns | reserved | reserved | image (r-x) ...
    /// ```
    ///
    /// The slots between are left unmapped: a kernel without time namespaces has nothing for them.
    pub fn map(&self, machine: &mut impl Machine<Frame = F>, start: usize) -> usize {
        let base = start + SLOTS * SLOT_BYTES;
        machine.map(base.wrapping_add_signed(SLOT_DATA), self.data, Access::Read);
        for (index, frame) in self.image.iter().enumerate() {
            machine.map(base + index * SLOT_BYTES, *frame, Access::ReadExecute);
        }
        base
    }

    /// In the timer interrupt, under the timekeeper's lock: publishes the clocks as of now.
    ///
    /// Whoever sets a clock, changes its rate or the counter calls it too, before the lock is let
    /// go. It neither waits nor allocates.
    ///
    /// # Errors
    /// What is wrong with the clock; the page is as it was.
    pub fn tick(&mut self, clock: &Clock) -> Result<(), UpdateError> {
        let mut values = PageValues {
            clock_mode: ClockMode::COUNTER,
            cycle_last: clock.cycle_last,
            steered: clock.scale,
            raw: clock.scale,
            hrtimer_res: 1,
            coarse_res: clock.tick_ns,
            ..PageValues::default()
        };
        let (monotonic, realtime) = (clock.monotonic, clock.realtime());
        for (id, instant) in [
            (ClockId::MONOTONIC, monotonic),
            (ClockId::MONOTONIC_RAW, monotonic),
            (ClockId::BOOTTIME, monotonic),
            (ClockId::MONOTONIC_COARSE, clock.coarse(monotonic)),
            (ClockId::REALTIME, realtime),
            (ClockId::REALTIME_COARSE, clock.coarse(realtime)),
        ] {
            values.set(id, instant);
        }
        // TAI is not set: this kernel does not know it, so programs get its system call's answer.
        self.writer.publish(&values.validate()?);
        Ok(())
    }
}

/// Address space that a process gives up for the vDSO.
pub const RANGE_BYTES: usize = (SLOTS + IMAGE_PAGES) * SLOT_BYTES;

#[allow(clippy::cast_possible_truncation, reason = "64 KiB at most")]
const SLOT_PITCH: u32 = SLOT_BYTES as u32;

/// The entries of a process's auxiliary vector that this adds: type and value.
#[must_use]
pub fn auxiliary_vector(base: usize) -> [(usize, usize); 1] {
    /// Where the vDSO's ELF header is (`include/uapi/linux/auxvec.h`).
    const AT_SYSINFO_EHDR: usize = 33;
    [(AT_SYSINFO_EHDR, base)]
}

/// The smallest timekeeper: a counter of constant rate, an origin, a date.
///
/// It is what this example publishes, not what a kernel should keep time with: no steering, no
/// leap seconds, no suspend. The crate `timekeeper` of this project has those.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    scale: Scale,
    cycle_last: u64,
    /// MONOTONIC at `cycle_last`; the nanoseconds are shifted, so that no fraction is ever lost
    /// and no program sees a tick take back a nanosecond.
    monotonic: Instant,
    /// REALTIME minus MONOTONIC, plain nanoseconds.
    wall_offset: Instant,
    tick_ns: u32,
}

const NANOS_PER_SEC: u64 = 1_000_000_000;

impl Clock {
    /// A clock on a counter of `hz`, which starts now, at a date in seconds since 1970.
    pub fn new(machine: &impl Machine, hz: u64, date: i64, tick_ns: u32) -> Self {
        // The finest scale whose factor fits 32 bits.
        let mut shift = 32;
        let factor = |shift: u32| (u128::from(NANOS_PER_SEC) << shift) / u128::from(hz.max(1));
        while shift > 0 && factor(shift) > u128::from(u32::MAX) {
            shift -= 1;
        }
        let mult = u32::try_from(factor(shift)).unwrap_or(u32::MAX);
        Self {
            scale: Scale { mask: u64::MAX, mult, shift },
            cycle_last: machine.counter(),
            monotonic: Instant::default(),
            wall_offset: Instant { secs: date, nanos: 0 },
            tick_ns,
        }
    }

    /// Moves the clock to the counter's present value.
    pub fn advance(&mut self, machine: &impl Machine) {
        let now = machine.counter();
        let cycles = now.saturating_sub(self.cycle_last);
        let second = u128::from(NANOS_PER_SEC) << self.scale.shift;
        let nanos =
            u128::from(self.monotonic.nanos) + u128::from(cycles) * u128::from(self.scale.mult);
        self.monotonic.secs += i64::try_from(nanos / second).unwrap_or(i64::MAX);
        self.monotonic.nanos = u64::try_from(nanos % second).unwrap_or(u64::MAX);
        self.cycle_last += cycles;
    }

    /// REALTIME at `cycle_last`, its nanoseconds shifted.
    fn realtime(&self) -> Instant {
        let second = NANOS_PER_SEC << self.scale.shift;
        let nanos = self.monotonic.nanos + (self.wall_offset.nanos << self.scale.shift);
        let carry = nanos / second;
        Instant {
            secs: self.monotonic.secs + self.wall_offset.secs + carry.cast_signed(),
            nanos: nanos % second,
        }
    }

    /// An instant without the fraction, as a coarse clock has it.
    fn coarse(&self, instant: Instant) -> Instant {
        Instant { nanos: instant.nanos >> self.scale.shift, ..instant }
    }
}
