//! The kernel's side: frames at boot, four slots and the image in each process, a tick.

use datapage::{ABI, ClockId, PageValues, UpdateError, Writer};

use crate::clock::Clock;
use crate::cpu::{Cpu, Promises};
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
    promises: Promises,
}

impl<F: Copy> Vdso<F> {
    /// Takes frames, fills the image's, formats the data page: from now on it serves nothing.
    ///
    /// `promises` is what the CPUs keep that are up.
    pub fn boot(machine: &mut impl Machine<Frame = F>, promises: Promises) -> Self {
        let (data, page) = machine.frame();
        // SAFETY: the frame is mapped and writable here, belongs to this page alone, and is never
        // freed; programs have it read-only.
        let mut writer = unsafe { Writer::at(page.cast()) };
        // A bit for a way of getcpu is set only when it holds on every CPU.
        writer.format(promises.features, SLOT_PITCH);
        let image = core::array::from_fn(|index| {
            let (frame, memory) = machine.frame();
            let start = index * SLOT_BYTES;
            let bytes = &IMAGE.0[start..IMAGE.0.len().min(start + SLOT_BYTES)];
            // SAFETY: a frame has as many bytes as a slot, and nobody else knows it yet.
            unsafe { memory.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            frame
        });
        Self { data, image, writer, promises }
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

    /// A CPU that comes up later, before it runs a program; `false` if it must not run any, since
    /// the page promises of every CPU what this one does not keep.
    ///
    /// With a counter that programs cannot use, the next [`tick`](Self::tick) leaves precise clocks to
    /// the kernel: it has to come before that CPU's first program.
    pub fn admits(&mut self, cpu: &mut impl Cpu) -> bool {
        let mut kept = self.promises;
        kept.hold_on(cpu);
        if kept.features != self.promises.features {
            // It takes nothing from the others.
            return false;
        }
        self.promises.mode = kept.mode;
        true
    }

    /// In the timer interrupt, under the timekeeper's lock, with this CPU's interrupts off: publishes
    /// the clock as of its last [`Clock::advance`].
    ///
    /// Whoever sets a clock, changes its rate or the counter calls it too, before the lock is let
    /// go. It neither waits nor allocates. Not from an NMI: that may interrupt the lock's holder.
    ///
    /// # Errors
    /// What is wrong with the clock; the page is as it was.
    pub fn tick(&mut self, clock: &Clock) -> Result<(), UpdateError> {
        let mut values = PageValues {
            clock_mode: self.promises.mode,
            cycle_last: clock.cycle_last,
            steered: clock.scale,
            raw: clock.scale,
            hrtimer_res: 1,
            coarse_res: clock.tick_ns,
            ..PageValues::default()
        };
        for id in CLOCKS {
            if let Some(instant) = clock.base(id) {
                values.set(id, instant);
            }
        }
        // A clock without a base is not set, TAI here: programs get the system call's answer.
        self.writer.publish(&values.validate()?);
        Ok(())
    }
}

/// The clocks that a page serves.
const CLOCKS: [ClockId; 7] = [
    ClockId::REALTIME,
    ClockId::MONOTONIC,
    ClockId::MONOTONIC_RAW,
    ClockId::REALTIME_COARSE,
    ClockId::MONOTONIC_COARSE,
    ClockId::BOOTTIME,
    ClockId::TAI,
];

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
