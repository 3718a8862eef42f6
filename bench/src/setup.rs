//! The pages that the measured image reads: real clocks, published as a kernel would.

use std::ffi::c_int;
use std::io;
use std::sync::{Mutex, PoisonError};

use datapage::{ClockId, ClockMode, Features, Instant, PageValues, Scale, UpdateError, Writer};
use kernel_sim::host::{counter_mode, getcpu_features};
use kernel_sim::map::MappedImage;
use libc::timespec;

use crate::callee::Callee;
use crate::clock;

/// Why nothing can be measured here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The image or its page could not be mapped.
    #[error("cannot map the image into this process")]
    Map(#[source] io::Error),
    /// The CPU could not be chosen.
    #[error("cannot keep the measurement on one CPU")]
    Pin(#[source] nix::Error),
    /// The process may run on no CPU.
    #[error("the scheduler offers no CPU")]
    NoCpu,
    /// The host has no vDSO to compare with.
    #[error("the host mapped no vDSO into this process, so there is nothing to compare with")]
    NoHostVdso,
    /// The host's clocks make no page.
    #[error("the host's clocks make no page: {0}")]
    Update(UpdateError),
}

/// Everything that measurements share: our image on three pages, the host's vDSO, the CPUs.
pub struct Setup<'m> {
    /// Our image in the architecture's usual counter mode.
    pub counter: Kernel<'m>,
    /// Our image with the counter read by `rdtscp`, if the CPU has it.
    pub rdtscp: Option<Kernel<'m>>,
    /// Our image without a counter: the precise clocks fall back.
    pub none: Kernel<'m>,
    /// The host's vDSO.
    pub host: Callee<'static>,
    /// The CPU that measures.
    pub cpu: usize,
    /// Another CPU, for writers, if there is one.
    pub other_cpu: Option<usize>,
}

impl<'m> Setup<'m> {
    /// Maps and publishes everything, keeps the thread on one CPU, and calls `measure`; afterwards
    /// the thread may run anywhere again.
    ///
    /// # Errors
    /// What is missing on this machine.
    pub fn with<R>(measure: impl for<'a> FnOnce(&Setup<'a>) -> R) -> Result<R, SetupError> {
        let cpus = clock::cpus().map_err(SetupError::Pin)?;
        let features = getcpu_features();
        // The last CPU: the first one gets the machine's interrupts more often than not.
        let (&cpu, others) = cpus.split_last().ok_or(SetupError::NoCpu)?;
        clock::pin(cpu).map_err(SetupError::Pin)?;
        let host = Callee::host().ok_or(SetupError::NoHostVdso)?;
        let map = || MappedImage::new(&linker::SYSCALL).map_err(SetupError::Map);
        let (mut counter, mut rdtscp, mut none) = (map()?, map()?, map()?);
        let rdtscp = if has_rdtscp() {
            Some(Kernel::new(&mut rdtscp, ClockMode::RDTSCP, features)?)
        } else {
            None
        };
        let setup = Setup {
            counter: Kernel::new(&mut counter, ClockMode::COUNTER, features)?,
            rdtscp,
            none: Kernel::new(&mut none, ClockMode::NONE, features)?,
            host,
            cpu,
            other_cpu: others.first().copied(),
        };
        let measured = measure(&setup);
        clock::allow(&cpus).map_err(SetupError::Pin)?;
        Ok(measured)
    }

    /// Our image in the mode that a writer should publish on this CPU.
    ///
    /// The rule is `kernel_sim::host::counter_mode`, which launchers follow as well.
    #[must_use]
    pub fn chosen(&self) -> &Kernel<'m> {
        match &self.rdtscp {
            Some(rdtscp) if counter_mode() == ClockMode::RDTSCP => rdtscp,
            _ => &self.counter,
        }
    }

    /// Publishes the host's clocks on every page.
    pub fn tick(&self) {
        let kernels = [&self.counter, &self.none];
        for kernel in kernels.into_iter().chain(&self.rdtscp) {
            kernel.tick();
        }
    }
}

/// A mapped image and the one who publishes on its page.
pub struct Kernel<'m> {
    image: &'m MappedImage,
    writer: Mutex<Writer<'m>>,
    mode: ClockMode,
    scale: Scale,
    resolutions: [u32; 2],
}

impl<'m> Kernel<'m> {
    /// Formats the page of `image` and publishes the host's clocks on it.
    ///
    /// # Errors
    /// If the host's clocks make no valid update.
    pub fn new(
        image: &'m mut MappedImage,
        mode: ClockMode,
        features: Features,
    ) -> Result<Self, SetupError> {
        let slot_bytes = image.image().slot_bytes;
        let (mut writer, image) = image.split();
        writer.format(features, slot_bytes);
        let kernel = Self {
            image,
            writer: Mutex::new(writer),
            mode,
            scale: scale_of(clock::nanos_per_cycle()),
            resolutions: [libc::CLOCK_MONOTONIC, libc::CLOCK_MONOTONIC_COARSE].map(resolution),
        };
        kernel.values().validate().map_err(SetupError::Update)?;
        kernel.tick();
        Ok(kernel)
    }

    /// The mode that it publishes.
    #[must_use]
    pub fn mode(&self) -> ClockMode {
        self.mode
    }

    /// The functions of the image above this page.
    #[must_use]
    pub fn callee(&self) -> Callee<'m> {
        Callee::of(self.image)
    }

    /// The image, and the page as a program sees it.
    #[must_use]
    pub fn image(&self) -> &'m MappedImage {
        self.image
    }

    /// Publishes the host's clocks as they are now.
    pub fn tick(&self) {
        self.publish(&self.values());
    }

    /// Publishes `values` if they are valid.
    #[inline]
    pub fn publish(&self, values: &PageValues) {
        if let Ok(update) = values.validate() {
            self.writer.lock().unwrap_or_else(PoisonError::into_inner).publish(&update);
        }
    }

    /// The host's clocks as a page holds them.
    #[must_use]
    pub fn values(&self) -> PageValues {
        let [hrtimer_res, coarse_res] = self.resolutions;
        let mut values = PageValues {
            clock_mode: self.mode,
            cycle_last: clock::cycles(),
            steered: self.scale,
            raw: self.scale,
            hrtimer_res,
            coarse_res,
            ..PageValues::default()
        };
        for clock in [
            ClockId::REALTIME,
            ClockId::MONOTONIC,
            ClockId::MONOTONIC_RAW,
            ClockId::BOOTTIME,
            ClockId::TAI,
        ] {
            let Instant { secs, nanos } = host_time(clock);
            let nanos = nanos << self.scale.shift;
            values.set(clock, Instant { secs, nanos });
        }
        for clock in [ClockId::REALTIME_COARSE, ClockId::MONOTONIC_COARSE] {
            values.set(clock, host_time(clock));
        }
        values
    }
}

/// A full-width counter's scale. The shift is what Linux chooses for a counter of some GHz.
fn scale_of(nanos_per_cycle: f64) -> Scale {
    const SHIFT: u32 = 24;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a counter above 4 MHz has a multiplier of 32 bits"
    )]
    let mult = (nanos_per_cycle * f64::from(1 << SHIFT)).round() as u32;
    Scale { mask: u64::MAX, mult, shift: SHIFT }
}

fn host_time(clock: ClockId) -> Instant {
    let mut ts = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is alive. These clocks exist on every Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(clock.0, &raw mut ts) };
    Instant { secs: ts.tv_sec, nanos: ts.tv_nsec.unsigned_abs() }
}

fn resolution(id: c_int) -> u32 {
    let mut ts = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is alive.
    unsafe { libc::clock_getres(id, &raw mut ts) };
    u32::try_from(ts.tv_nsec).unwrap_or(0)
}

/// Whether the CPU has RDTSCP (AMD APM volume 3, CPUID Fn8000_0001 EDX bit 27).
fn has_rdtscp() -> bool {
    const LEAF: u32 = 0x8000_0001;
    core::arch::x86_64::__cpuid(0x8000_0000).eax >= LEAF
        && core::arch::x86_64::__cpuid(LEAF).edx & (1 << 27) != 0
}
