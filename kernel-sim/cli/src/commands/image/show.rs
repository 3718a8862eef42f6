//! `kernel-sim image show`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use linker::judge::ImageFile;
use object::elf;

use super::own::Choice;
use super::{read, unreadable};

/// Options of `image show`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The image to show; without it, one of the project's own.
    #[arg(conflicts_with_all = ["policy", "target", "slots"])]
    file: Option<PathBuf>,
    #[command(flatten)]
    choice: Choice,
}

/// Prints what the image holds.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (name, bytes) = match &arguments.file {
        Some(file) => match read(file) {
            Ok(bytes) => (file.display().to_string(), bytes),
            Err(error) => return Ok(unreadable(&error)),
        },
        None => arguments.choice.read()?,
    };
    let file = match ImageFile::read(&bytes).with_context(|| format!("{name} is no image")) {
        Ok(file) => file,
        Err(error) => return Ok(unreadable(&error)),
    };
    println!("{name}: {} vDSO", file.arch.name());
    print_identity(&file);
    print_budget(&file);
    print_segments(&file);
    print_symbols(&file);
    Ok(ExitCode::SUCCESS)
}

fn print_identity(file: &ImageFile<'_>) {
    if let Some(id) = file.build_id() {
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("  build id  {id}");
    }
    let Some(note) = file.own_note() else {
        println!("  note      none of ours: how its page is laid out is not stated");
        return;
    };
    let policy = match note.policy {
        0 => "syscall (it enters the kernel)".to_owned(),
        1 => "enosys (it returns -ENOSYS)".to_owned(),
        other => format!("{other}, which is none"),
    };
    println!("  policy    {policy}");
    println!("  page ABI  {}", note.page_abi);
    println!(
        "  slots     {} of {} bytes below the image, data in the lowest",
        note.slots, note.slot_bytes
    );
}

/// How many bytes of its pages each part takes.
fn print_budget(file: &ImageFile<'_>) {
    let page = file.page_bytes();
    let total = file.bytes.len() as u64;
    let pages = total.div_ceil(page);
    println!("\n{total} bytes in {pages} page(s) of {page}, {} left", pages * page - total);
    let (segment_bytes, section_bytes) = if file.is_64 { (56, 64) } else { (32, 40) };
    let headers = file.header.header_bytes + file.segments.len() as u64 * segment_bytes;
    let mut named: Vec<(&str, u64)> = vec![("ELF and program headers", headers)];
    for section in &file.sections {
        if section.kind != elf::SHT_NULL && section.kind != elf::SHT_NOBITS {
            named.push((section.name, section.size));
        }
    }
    named.push(("section headers", file.sections.len() as u64 * section_bytes));
    let known: u64 = named.iter().map(|(_, bytes)| bytes).sum();
    named.push(("alignment", total.saturating_sub(known)));
    for (name, bytes) in named {
        println!("  {name:<24} {bytes:>6}  {}", bar(bytes, pages * page));
    }
}

/// A bar of up to 40 columns.
fn bar(part: u64, whole: u64) -> String {
    let columns = part.saturating_mul(40).div_ceil(whole.max(1)).min(40);
    (0..columns).map(|_| '#').collect()
}

fn print_segments(file: &ImageFile<'_>) {
    println!("\n  {:<14} {:>8} {:>8}  access", "segment", "from", "to");
    for segment in &file.segments {
        let name = match segment.kind {
            elf::PT_LOAD => "LOAD",
            elf::PT_DYNAMIC => "DYNAMIC",
            elf::PT_NOTE => "NOTE",
            elf::PT_GNU_EH_FRAME => "GNU_EH_FRAME",
            _ => "other",
        };
        let flag = |bit, letter| {
            if segment.flags & bit != 0 { letter } else { '-' }
        };
        println!(
            "  {name:<14} {:>8} {:>8}  {}{}{}",
            format!("{:#x}", segment.offset),
            format!("{:#x}", segment.offset.saturating_add(segment.file_bytes)),
            flag(elf::PF_R, 'r'),
            flag(elf::PF_W, 'w'),
            flag(elf::PF_X, 'x'),
        );
    }
}

fn print_symbols(file: &ImageFile<'_>) {
    println!("\n  {:>8} {:>6}  {:<6}  symbol", "offset", "bytes", "bind");
    for symbol in file.tables.functions() {
        let version = file.tables.definition(symbol).map_or("", |d| d.name);
        let binding = match symbol.binding {
            elf::STB_GLOBAL => "global",
            elf::STB_WEAK => "weak",
            elf::STB_LOCAL => "local",
            _ => "other",
        };
        println!(
            "  {:>8} {:>6}  {binding:<6}  {}@{version}",
            format!("{:#x}", symbol.value),
            symbol.size,
            symbol.name,
        );
    }
}
