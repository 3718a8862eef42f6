//! The ELF header.

use object::elf;

use super::{Arch, Broken, ImageFile, Level, Rule, Scope, broken};

pub(crate) const ELF_HEADER: Rule = Rule {
    name: "elf-header",
    level: Level::Must,
    scope: Scope::Every,
    demand: "a shared object of ELF version 1, program headers behind a header of the usual size",
    consumers: "rustix, Linux's parse_vdso",
    check: |file| {
        let header = &file.header;
        let wanted = if file.is_64 { 64 } else { 52 };
        if header.kind != elf::ET_DYN {
            broken!("e_type is {}, a shared object has {}", header.kind, elf::ET_DYN);
        }
        if (header.ident_version, header.version) != (1, 1) {
            broken!(
                "EI_VERSION is {} and e_version is {}, both have to be 1",
                header.ident_version,
                header.version
            );
        }
        if header.header_bytes != wanted {
            broken!("e_ehsize is {}, the format has {wanted}", header.header_bytes);
        }
        if header.program_headers_offset < wanted {
            broken!(
                "program headers at {:#x}, inside the header's {wanted:#x} bytes",
                header.program_headers_offset
            );
        }
        Ok(())
    },
};

pub(crate) const OS_ABI: Rule = Rule {
    name: "os-abi",
    level: Level::Must,
    scope: Scope::Every,
    demand: "ELFOSABI_NONE, ABI version 0, zeros in the rest of e_ident",
    consumers: "Shadow, CRIU 3.17 (compares e_ident byte by byte), rustix",
    check: |file| {
        let found = (file.header.os_abi, file.header.abi_version);
        if found != (elf::ELFOSABI_NONE, 0) {
            broken!("EI_OSABI is {} and EI_ABIVERSION is {}, both have to be 0", found.0, found.1);
        }
        if file.header.ident_padding != [0; 7] {
            broken!("e_ident ends with {:x?}, which have to be 0", file.header.ident_padding);
        }
        Ok(())
    },
};

pub(crate) const ENTRY_POINT: Rule = Rule {
    name: "entry-point",
    level: Level::Must,
    scope: Scope::On(&[Arch::I386]),
    demand: "the entry point is __kernel_vsyscall",
    consumers: "kernels that fill in AT_SYSINFO, and with them every 32-bit libc",
    check: |file| {
        let name = "__kernel_vsyscall";
        let Some(symbol) = file.tables.symbols.iter().find(|s| s.name == name) else {
            broken!("there is no {name} to enter at");
        };
        entry_is(file, symbol.value)
    },
};

fn entry_is(file: &ImageFile<'_>, wanted: u64) -> Result<(), Broken> {
    if file.header.entry != wanted {
        broken!("e_entry is {:#x}, __kernel_vsyscall is at {wanted:#x}", file.header.entry);
    }
    Ok(())
}
