//! With which programs an architecture is compiled, run and disassembled.

use image_build::{TARGETS, Target};
use xtask::tools::{Tool, tool};

/// An architecture as the host sees it.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) target: &'static Target,
    /// The C compiler; its libc is that of the architecture.
    pub(crate) gcc: &'static str,
    pub(crate) gcc_flags: &'static [&'static str],
    /// The compiler's name for programs with that libc.
    pub(crate) libc_triple: &'static str,
    pub(crate) objdump: &'static str,
    pub(crate) qemu: &'static str,
    /// Whether this machine's own CPU and kernel run its programs.
    pub(crate) native: bool,
    /// Names in the table of tools.
    tools: &'static [&'static str],
}

/// All of them, in the order of [`TARGETS`].
pub(crate) static MACHINES: [Machine; 5] = [
    Machine {
        target: &TARGETS[0],
        gcc: "gcc",
        gcc_flags: &[],
        libc_triple: "x86_64-unknown-linux-gnu",
        objdump: "objdump",
        qemu: "qemu-x86_64-static",
        native: true,
        tools: &["gcc", "qemu-user"],
    },
    Machine {
        target: &TARGETS[1],
        gcc: "aarch64-linux-gnu-gcc",
        gcc_flags: &[],
        libc_triple: "aarch64-unknown-linux-gnu",
        objdump: "aarch64-linux-gnu-objdump",
        qemu: "qemu-aarch64-static",
        native: false,
        tools: &["rustc for core", "core's source", "aarch64 gcc", "aarch64 libc", "qemu-user"],
    },
    Machine {
        target: &TARGETS[2],
        gcc: "riscv64-linux-gnu-gcc",
        gcc_flags: &[],
        libc_triple: "riscv64gc-unknown-linux-gnu",
        objdump: "riscv64-linux-gnu-objdump",
        qemu: "qemu-riscv64-static",
        native: false,
        tools: &["rustc for core", "core's source", "riscv64 gcc", "riscv64 libc", "qemu-user"],
    },
    Machine {
        target: &TARGETS[3],
        gcc: "arm-linux-gnueabihf-gcc",
        gcc_flags: &["-marm"],
        libc_triple: "armv7-unknown-linux-gnueabihf",
        objdump: "arm-linux-gnueabihf-objdump",
        qemu: "qemu-arm-static",
        native: false,
        tools: &["rustc for core", "core's source", "arm gcc", "arm libc", "qemu-user"],
    },
    Machine {
        target: &TARGETS[4],
        gcc: "i686-linux-gnu-gcc",
        gcc_flags: &[],
        libc_triple: "i586-unknown-linux-gnu",
        objdump: "i686-linux-gnu-objdump",
        qemu: "qemu-i386-static",
        native: true,
        tools: &["rustc for core", "core's source", "i386 gcc", "i386 libc", "qemu-user"],
    },
];

/// A way to run a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// This machine's CPU and kernel.
    Native,
    /// QEMU, with pages of so many bytes; 4096 is what the program expects anyway.
    Emulated(u32),
}

impl Machine {
    pub(crate) fn arch(&self) -> &'static str {
        self.target.arch
    }

    /// Why nothing can be done for this architecture here; `None` if all tools are there.
    pub(crate) fn missing(&self) -> Option<String> {
        self.tools().find_map(Tool::missing)
    }

    /// What is needed to build and run for this architecture.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &'static Tool> {
        self.tools.iter().map(|name| tool(name))
    }
}
