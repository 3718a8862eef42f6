//! Which names and versions the vDSO of each architecture promises.
//!
//! From Linux's linker scripts and images (`arch/*/vdso/`, 5.4 to 6.18); a libc has them compiled in.

use object::elf;

/// An architecture whose vDSO has rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arch {
    /// x86, 64 bits.
    X86_64,
    /// x86, 32 bits.
    I386,
    /// Arm, 64 bits.
    Aarch64,
    /// Arm, 32 bits.
    Arm,
    /// RISC-V, 64 bits.
    Riscv64,
}

const X86_64: &[(&str, &str)] = &[
    ("__vdso_clock_gettime", "LINUX_2.6"),
    ("__vdso_clock_getres", "LINUX_2.6"),
    ("__vdso_gettimeofday", "LINUX_2.6"),
    ("__vdso_time", "LINUX_2.6"),
    ("__vdso_getcpu", "LINUX_2.6"),
];
const I386: &[(&str, &str)] = &[
    ("__vdso_clock_gettime", "LINUX_2.6"),
    ("__vdso_clock_gettime64", "LINUX_2.6"),
    ("__vdso_clock_getres", "LINUX_2.6"),
    ("__vdso_gettimeofday", "LINUX_2.6"),
    ("__vdso_time", "LINUX_2.6"),
    ("__kernel_vsyscall", "LINUX_2.5"),
    ("__kernel_sigreturn", "LINUX_2.5"),
    ("__kernel_rt_sigreturn", "LINUX_2.5"),
];
const AARCH64: &[(&str, &str)] = &[
    ("__kernel_clock_gettime", "LINUX_2.6.39"),
    ("__kernel_clock_getres", "LINUX_2.6.39"),
    ("__kernel_gettimeofday", "LINUX_2.6.39"),
    ("__kernel_rt_sigreturn", "LINUX_2.6.39"),
];
const ARM: &[(&str, &str)] = &[
    ("__vdso_clock_gettime", "LINUX_2.6"),
    ("__vdso_clock_gettime64", "LINUX_2.6"),
    ("__vdso_clock_getres", "LINUX_2.6"),
    ("__vdso_gettimeofday", "LINUX_2.6"),
];
const RISCV64: &[(&str, &str)] = &[
    ("__vdso_clock_gettime", "LINUX_4.15"),
    ("__vdso_clock_getres", "LINUX_4.15"),
    ("__vdso_gettimeofday", "LINUX_4.15"),
    ("__vdso_getcpu", "LINUX_4.15"),
    ("__vdso_rt_sigreturn", "LINUX_4.15"),
];

impl Arch {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::X86_64, Self::Aarch64, Self::Riscv64, Self::Arm, Self::I386];

    /// The architecture of an ELF machine and word size.
    #[must_use]
    pub fn of(machine: u16, is_64: bool) -> Option<Self> {
        Some(match (machine, is_64) {
            (elf::EM_X86_64, true) => Self::X86_64,
            (elf::EM_386, false) => Self::I386,
            (elf::EM_AARCH64, true) => Self::Aarch64,
            (elf::EM_ARM, false) => Self::Arm,
            (elf::EM_RISCV, true) => Self::Riscv64,
            _ => return None,
        })
    }

    /// Its name, as in a target triple.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::I386 => "i386",
            Self::Aarch64 => "aarch64",
            Self::Arm => "arm",
            Self::Riscv64 => "riscv64",
        }
    }

    /// The name under which a program may `dlopen` the image.
    #[must_use]
    pub fn soname(self) -> &'static str {
        match self {
            Self::I386 => "linux-gate.so.1",
            _ => "linux-vdso.so.1",
        }
    }

    /// What every image of this architecture has to export: name and version.
    ///
    /// Names that Linux added later are not demanded: each consumer of those asks first. See
    /// [`late_functions`](Self::late_functions).
    #[must_use]
    pub fn functions(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::X86_64 => X86_64,
            Self::I386 => I386,
            Self::Aarch64 => AARCH64,
            Self::Arm => ARM,
            Self::Riscv64 => RISCV64,
        }
    }

    /// What Linux's image got later for the calls that [`functions`](Self::functions) has, under
    /// their version: without them a consumer makes a system call.
    #[must_use]
    pub fn late_functions(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::I386 => {
                &[("__vdso_getcpu", "LINUX_2.6"), ("__vdso_clock_getres_time64", "LINUX_2.6")]
            }
            Self::Arm => &[("__vdso_clock_getres_time64", "LINUX_2.6")],
            Self::X86_64 | Self::Aarch64 | Self::Riscv64 => &[],
        }
    }

    /// What else Linux's image of some version exports: calls that read no clock.
    #[must_use]
    pub fn other_functions(self) -> &'static [&'static str] {
        match self {
            Self::X86_64 => &["__vdso_getrandom", "__vdso_sgx_enter_enclave"],
            Self::I386 | Self::Arm => &[],
            Self::Aarch64 => &["__kernel_getrandom"],
            Self::Riscv64 => &["__vdso_flush_icache", "__vdso_riscv_hwprobe", "__vdso_getrandom"],
        }
    }

    /// Whether the image has each function under its name without the prefix as well.
    #[must_use]
    pub fn has_aliases(self) -> bool {
        self == Self::X86_64
    }

    /// The instructions that enter the kernel, each with the distance of places where one can begin:
    /// at least one, and first the one that this project's images use.
    #[must_use]
    pub fn system_calls(self) -> &'static [(&'static [u8], usize)] {
        match self {
            Self::X86_64 => &[(&[0x0f, 0x05], 1)],
            // int 0x80, sysenter, and syscall on AMD.
            Self::I386 => &[(&[0xcd, 0x80], 1), (&[0x0f, 0x34], 1), (&[0x0f, 0x05], 1)],
            Self::Aarch64 => &[(&[0x01, 0x00, 0x00, 0xd4], 4)],
            // As A32 and as T32.
            Self::Arm => &[(&[0x00, 0x00, 0x00, 0xef], 4), (&[0x00, 0xdf], 2)],
            Self::Riscv64 => &[(&[0x73, 0x00, 0x00, 0x00], 2)],
        }
    }
}
