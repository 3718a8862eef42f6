//! What differs between the machines whose kernel is built and booted.

use clap::ValueEnum;

/// The machines whose kernel we know how to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Arch {
    /// A PC, emulated, with two CPUs.
    #[value(name = "x86_64")]
    X86_64,
    /// QEMU's `virt` board, with two CPUs.
    #[value(name = "aarch64")]
    Aarch64,
}

impl Arch {
    /// Its properties.
    pub(crate) fn machine(self) -> &'static Machine {
        match self {
            Self::X86_64 => &X86_64,
            Self::Aarch64 => &AARCH64,
        }
    }
}

/// CPUs and memory of every guest, for QEMU.
pub(crate) const SIZE: [&str; 4] = ["-smp", "2", "-m", "256"];

/// One machine.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) arch: Arch,
    pub(crate) name: &'static str,
    /// The kernel's name for it.
    pub(crate) linux: &'static str,
    /// What the names of compiler and binutils begin with.
    pub(crate) prefix: &'static str,
    /// Names in the table of tools, beyond those of every kernel.
    pub(crate) tools: &'static [&'static str],
    /// What `make` builds, and where it lies then.
    pub(crate) goal: &'static str,
    pub(crate) kernel: &'static str,
    /// The kernel's own image in the build tree, before the kernel's build strips it, and after.
    pub(crate) image: &'static str,
    pub(crate) stripped: &'static str,
    pub(crate) qemu: &'static str,
    pub(crate) qemu_arguments: &'static [&'static str],
    /// What the board's description has to say beyond QEMU's own, as a source of one.
    pub(crate) board_addition: Option<&'static str>,
    /// The kernel's command line.
    pub(crate) command_line: &'static str,
    /// The clocksource whose counter programs read.
    pub(crate) clocksource: &'static str,
    /// Judges that have nothing to judge here.
    pub(crate) without: &'static [&'static str],
    /// Whether Linux's image has `time` and `getcpu`.
    pub(crate) has_time_and_getcpu: bool,
    /// Whether signals return through the image.
    pub(crate) returns_signals: bool,
    /// glibc for programs that are not static: path in the guest, and here.
    pub(crate) libraries: [(&'static str, &'static str); 2],
}

static X86_64: Machine = Machine {
    arch: Arch::X86_64,
    name: "x86_64",
    linux: "x86_64",
    prefix: "",
    tools: &["gcc", "qemu"],
    goal: "bzImage",
    kernel: "arch/x86/boot/bzImage",
    image: "arch/x86/entry/vdso/vdso64.so.dbg",
    stripped: "arch/x86/entry/vdso/vdso64.so",
    qemu: "qemu-system-x86_64",
    qemu_arguments: &["-cpu", "max"],
    board_addition: None,
    // `tsc=reliable`: emulated CPUs start their counters a little apart, for which the kernel would
    // give up the TSC, and with it every read that does not enter the kernel.
    command_line: "console=ttyS0 panic=-1 quiet clocksource=tsc tsc=reliable",
    clocksource: "tsc",
    without: &[],
    has_time_and_getcpu: true,
    returns_signals: false,
    libraries: [
        ("lib64/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2"),
        ("lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6"),
    ],
};

static AARCH64: Machine = Machine {
    arch: Arch::Aarch64,
    name: "aarch64",
    linux: "arm64",
    prefix: "aarch64-linux-gnu-",
    tools: &["aarch64 gcc", "aarch64 libc", "rustc for core", "core's source", "qemu for aarch64"],
    goal: "Image",
    kernel: "arch/arm64/boot/Image",
    image: "arch/arm64/kernel/vdso/vdso.so.dbg",
    stripped: "arch/arm64/kernel/vdso/vdso.so",
    qemu: "qemu-system-aarch64",
    qemu_arguments: &["-M", "virt", "-cpu", "cortex-a57"],
    // With such a residency the state is chosen by a suspend alone.
    board_addition: Some(
        "/ { cpus {
            cpu@0 { cpu-idle-states = <0xfffe>; };
            cpu@1 { cpu-idle-states = <0xfffe>; };
            idle-states {
                entry-method = \"psci\";
                standby {
                    compatible = \"arm,idle-state\";
                    arm,psci-suspend-param = <0>;
                    entry-latency-us = <1>;
                    exit-latency-us = <1>;
                    min-residency-us = <1000000000>;
                    phandle = <0xfffe>;
                };
            };
        }; };\n",
    ),
    command_line: "console=ttyAMA0 panic=-1 quiet",
    clocksource: "arch_sys_counter",
    // The board has one counter.
    without: &["clocksource"],
    has_time_and_getcpu: false,
    returns_signals: true,
    libraries: [
        ("lib/ld-linux-aarch64.so.1", "/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1"),
        ("lib/libc.so.6", "/usr/aarch64-linux-gnu/lib/libc.so.6"),
    ],
};

impl Machine {
    /// A program of the compiler's and binutils' family.
    pub(crate) fn program(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}
