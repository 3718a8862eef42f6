//! What differs between the images of the architectures, apart from their code.

/// An architecture that an image can be made for.
#[derive(Debug)]
pub struct Target {
    /// Its name: of the version map in `linker/src`, and on the command line.
    pub arch: &'static str,
    /// The compiler's name for it.
    ///
    /// i386 is `i586`, so that no SSE register appears: programs of that age keep the stack aligned
    /// to 4 bytes. Arm is soft-float, so that the image runs on CPUs without a floating-point unit.
    pub triple: &'static str,
    /// Distances between page slots that there are builds for.
    pub slot_bytes: &'static [u32],
    pub(crate) soname: &'static str,
    /// Version nodes, which the image also has as symbols.
    pub(crate) versions: &'static [&'static str],
    /// The entry point of the ELF header.
    pub(crate) entry: Option<&'static str>,
    /// Whether unwinders find a table (`.eh_frame`). Arm has a format of its own that needs
    /// symbols of a runtime library.
    pub(crate) unwind: bool,
    /// What stands between functions, as the linker writes it: an instruction that traps.
    pub(crate) padding: &'static str,
    /// The compiler's model of addresses.
    ///
    /// On i386 `pic` reserves a register for a table of addresses, loads it in each function that
    /// calls another, and thereby asks for the table. With `static` an address of the program's own
    /// would be an absolute one, which the link refuses; there is none, since all of them are
    /// relative in `arch/x86.rs`.
    pub(crate) relocation_model: &'static str,
    /// Functions begin at multiples of so many bytes.
    pub(crate) function_align: u32,
    /// Whether the code is made small before it is made fast. On i386, where each value has two
    /// registers' width and there are six registers, an image made fast has three pages.
    pub(crate) small: bool,
    /// Flags of this architecture alone.
    pub(crate) flags: &'static [&'static str],
}

/// All of them.
pub static TARGETS: [Target; 5] = [
    Target {
        arch: "x86_64",
        triple: "x86_64-unknown-linux-gnu",
        slot_bytes: &[4096],
        soname: "linux-vdso.so.1",
        versions: &["LINUX_2.6", "UVDSO_1"],
        entry: None,
        unwind: true,
        padding: "0xcccccccc", // int3
        relocation_model: "pic",
        function_align: 64,
        small: false,
        flags: &[],
    },
    Target {
        arch: "aarch64",
        triple: "aarch64-unknown-linux-gnu",
        // Page tables of 4, 16 or 64 KiB: slots of 64 KiB serve all three.
        slot_bytes: &[4096, 65536],
        soname: "linux-vdso.so.1",
        versions: &["LINUX_2.6.39", "UVDSO_1"],
        entry: None,
        unwind: true,
        padding: "0x00000000", // udf #0
        // x18 may be a platform's own (Linux's shadow call stack); landing pads let a kernel map
        // the image as guarded pages.
        relocation_model: "pic",
        function_align: 64,
        small: false,
        flags: &["-Zfixed-x18", "-Zbranch-protection=bti"],
    },
    Target {
        arch: "riscv64",
        triple: "riscv64gc-unknown-linux-gnu",
        slot_bytes: &[4096],
        soname: "linux-vdso.so.1",
        versions: &["LINUX_4.15", "UVDSO_1"],
        entry: None,
        unwind: true,
        padding: "0x00000000", // c.unimp
        relocation_model: "pic",
        function_align: 64,
        small: false,
        flags: &[],
    },
    Target {
        arch: "arm",
        triple: "armv7-unknown-linux-gnueabi",
        slot_bytes: &[4096],
        soname: "linux-vdso.so.1",
        versions: &["LINUX_2.6", "UVDSO_1"],
        entry: None,
        unwind: false,
        padding: "0xf000f0e7", // udf #0, the bytes in memory order
        relocation_model: "pic",
        function_align: 64,
        small: false,
        flags: &[],
    },
    Target {
        arch: "i386",
        triple: "i586-unknown-linux-gnu",
        slot_bytes: &[4096],
        soname: "linux-gate.so.1",
        versions: &["LINUX_2.5", "LINUX_2.6", "UVDSO_1"],
        entry: Some("__kernel_vsyscall"),
        unwind: true,
        padding: "0xcccccccc", // int3
        relocation_model: "static",
        function_align: 16,
        small: true,
        flags: &[],
    },
];

impl Target {
    /// The target of that name.
    #[must_use]
    pub fn of(arch: &str) -> Option<&'static Self> {
        TARGETS.iter().find(|target| target.arch == arch)
    }

    /// Flags for the compiler of `core` and of the image alike: a flag that changes the ABI must
    /// be the same for every crate.
    #[must_use]
    pub fn flags(&self) -> Vec<&'static str> {
        let tables =
            if self.unwind { "-Cforce-unwind-tables=yes" } else { "-Cforce-unwind-tables=no" };
        self.flags.iter().copied().chain([tables]).collect()
    }
}
