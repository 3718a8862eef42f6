//! The section headers: some consumers look no further, and they tell what an image must not hold.

use object::elf;

use super::{Broken, ImageFile, Level, Rule, Scope, broken};
use crate::judge::file::Section;

pub(crate) const SECTION_HEADERS: Rule = Rule {
    name: "section-headers",
    level: Level::Must,
    scope: Scope::Every,
    demand: "section headers, with names of their own (e_shstrndx is not 0)",
    consumers: "Shadow (panics), dietlibc, bionic, old Go runtimes, gdb and perf by way of binutils",
    check: |file| {
        sections(file)?;
        let index = file.header.section_names_index;
        match file.sections.get(usize::from(index)) {
            Some(section) if section.kind == elf::SHT_STRTAB => Ok(()),
            _ => broken!("e_shstrndx is {index}, which is no string table"),
        }
    },
};

pub(crate) const SECTIONS_VISIBLE: Rule = Rule {
    name: "sections-visible",
    level: Level::Must,
    scope: Scope::Every,
    demand: "section headers, .dynsym, .dynstr and .shstrtab inside the pages that are mapped",
    consumers: "the vdso crate (reads e_shoff unchecked), DynamoRIO, Shadow",
    check: |file| {
        let sections = sections(file)?;
        let Some(visible) = file.visible_bytes() else {
            broken!("there is no PT_LOAD to map");
        };
        let header_bytes = if file.is_64 { 64 } else { 40 };
        let headers_end =
            file.header.section_headers_offset.saturating_add(sections.len() as u64 * header_bytes);
        if headers_end > visible {
            broken!(
                "the section headers end at {headers_end:#x}, the mapped pages at {visible:#x}"
            );
        }
        for section in sections {
            let end = section.offset.saturating_add(section.size);
            if matches!(section.name, ".dynsym" | ".dynstr" | ".shstrtab") && end > visible {
                broken!("{} ends at {end:#x}, the mapped pages at {visible:#x}", section.name);
            }
        }
        Ok(())
    },
};

pub(crate) const FIRST_STRING_TABLE: Rule = Rule {
    name: "first-string-table",
    level: Level::Must,
    scope: Scope::Every,
    demand: "the first string table is .dynstr, at DT_STRTAB",
    consumers: "the vdso crate (takes the first it finds)",
    check: |file| {
        let first = sections(file)?.iter().find(|section| section.kind == elf::SHT_STRTAB);
        let Some(first) = first else {
            broken!("there is no string table");
        };
        if first.name != ".dynstr" {
            broken!("the first is called {:?}", first.name);
        }
        match file.dynamic.as_ref().and_then(|dynamic| dynamic.get(elf::DT_STRTAB)) {
            Some(address) if address == first.address => Ok(()),
            Some(address) => {
                broken!(".dynstr is at {:#x}, DT_STRTAB at {address:#x}", first.address)
            }
            None => broken!("there is no DT_STRTAB that it could be"),
        }
    },
};

pub(crate) const DYNSYM_SECTION: Rule = Rule {
    name: "dynsym-section",
    level: Level::Must,
    scope: Scope::Every,
    demand: "one symbol section, .dynsym: DT_SYMTAB with as many symbols as the hash table counts",
    consumers: "bionic, Shadow, old Go runtimes (count symbols by the section)",
    check: |file| {
        let mut found = sections(file)?.iter().filter(|s| s.kind == elf::SHT_DYNSYM);
        let (Some(section), None) = (found.next(), found.next()) else {
            broken!("there are none or several");
        };
        if section.name != ".dynsym" {
            broken!("it is called {:?}", section.name);
        }
        let symtab = file.dynamic.as_ref().and_then(|dynamic| dynamic.get(elf::DT_SYMTAB));
        if symtab != Some(section.address) {
            broken!(".dynsym is at {:#x}, and DT_SYMTAB does not lead there", section.address);
        }
        let bytes = if file.is_64 { 24 } else { 16 };
        let count = file.tables.symbols.len() as u64;
        if section.size != count * bytes || section.entry_bytes != bytes {
            broken!(
                ".dynsym has {} bytes in entries of {}, the {count} symbols of the hash table have {}",
                section.size,
                section.entry_bytes,
                count * bytes
            );
        }
        match file.sections.get(section.link as usize) {
            Some(strings) if strings.name == ".dynstr" => Ok(()),
            _ => broken!(".dynsym is linked to section {}, not to .dynstr", section.link),
        }
    },
};

pub(crate) const NO_GOT_OR_PLT: Rule = Rule {
    name: "no-got-or-plt",
    level: Level::Must,
    scope: Scope::Every,
    demand: "no global offset table, no procedure linkage table: nobody would fill them",
    consumers: "every program; Linux's build, gVisor's check_vdso",
    check: |file| {
        if super::dynamic::entries(file)?.get(elf::DT_PLTGOT).is_some() {
            broken!("there is a DT_PLTGOT");
        }
        no_section(file, &[".got", ".got.plt", ".plt", ".plt.got", ".plt.sec", ".iplt", ".igot"])
    },
};

pub(crate) const NO_DATA: Rule = Rule {
    name: "no-data",
    level: Level::Must,
    scope: Scope::Every,
    demand: "nothing to write but .dynamic and .rodata, nothing of zeros, nothing for a thread: the \
             image is mapped read-only and shared",
    consumers: "every program; gVisor's check_vdso",
    check: |file| {
        let has = |section: &Section<'_>, flag: u32| section.flags & u64::from(flag) != 0;
        let loaded = sections(file)?.iter().filter(|s| s.is_loaded() && s.size != 0);
        for section in loaded {
            let Section { name, size, .. } = section;
            if section.kind == elf::SHT_NOBITS {
                broken!("{name} wants {size:#x} bytes of zeros");
            }
            if has(section, elf::SHF_TLS) {
                broken!("{name} wants {size:#x} bytes for each thread");
            }
            if has(section, elf::SHF_WRITE) && !is_only_marked(section) {
                broken!("{name} has {size:#x} bytes that are to be written");
            }
        }
        no_section(file, &[".data", ".bss", ".tdata", ".tbss", ".data.rel.ro", ".init_array"])
    },
};

/// What linkers mark as writable and nobody writes: `.dynamic`, of which a loader fills in an
/// executable's, and in Linux's images `.rodata`, whose script puts data there as well.
fn is_only_marked(section: &Section<'_>) -> bool {
    section.kind == elf::SHT_DYNAMIC || section.name == ".rodata"
}

pub(crate) const NO_ALTERNATIVES: Rule = Rule {
    name: "no-alternatives",
    level: Level::Must,
    scope: Scope::Every,
    demand: "no code that waits to be patched at boot",
    consumers: "kernels that map the file as it is: its counter read is unordered until patched",
    check: |file| {
        sections(file)?;
        no_section(file, &[".altinstructions", ".altinstr_replacement", ".alternative"])
    },
};

/// The section headers, of which another rule demands that there are any.
fn sections<'f, 'a>(file: &'f ImageFile<'a>) -> Result<&'f [Section<'a>], Broken> {
    if file.sections.is_empty() {
        broken!("there are no section headers");
    }
    Ok(&file.sections)
}

fn no_section(file: &ImageFile<'_>, names: &[&str]) -> Result<(), Broken> {
    for section in sections(file)? {
        if names.contains(&section.name) && section.size != 0 {
            broken!("there is a {} of {:#x} bytes", section.name, section.size);
        }
    }
    Ok(())
}
