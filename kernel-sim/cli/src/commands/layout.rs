//! `kernel-sim layout`: the data page, cache line by cache line.
//!
//! Drawn from `datapage::fields`, in proportion, so that what is shown is what the
//! code has. `abi/page-layout.txt` holds the picture.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::process::ExitCode;

use datapage::fields::{FIELDS, Field, READS, Read};

/// Options of `layout`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

/// Bytes of a cache line, and of a row of the picture.
const LINE: usize = 64;
const ROW: usize = 16;

/// Columns of four bytes, border included: room for a name and the letters of its readers.
const COLUMNS: usize = 17;

/// Columns between the borders of a cell.
const fn columns(bytes: usize) -> usize {
    bytes / 4 * COLUMNS - 1
}

/// Draws the page.
pub(crate) fn run(_: &Arguments) -> anyhow::Result<ExitCode> {
    print!("{}", picture());
    Ok(ExitCode::SUCCESS)
}

/// The page, coloured if somebody looks.
pub(crate) fn picture() -> String {
    page(&Ink { colours: std::io::stdout().is_terminal() })
}

/// Whether the picture is coloured.
struct Ink {
    colours: bool,
}

impl Ink {
    fn paint(&self, style: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn name(&self, text: &str) -> String {
        self.paint("1", text)
    }

    fn letters(&self, text: &str) -> String {
        self.paint("36", text)
    }

    fn faint(&self, text: &str) -> String {
        self.paint("2", text)
    }
}

fn page(ink: &Ink) -> String {
    let mut text = format!(
        "The data page, ABI {}: offsets in bytes, and the calls that read each field.\n\n",
        datapage::ABI
    );
    let mut start = 0;
    while start < datapage::layout::DATA_BYTES {
        // Lines that a reserved field fills are drawn as one.
        let length = FIELDS
            .iter()
            .find(|field| field.offset == start && field.bytes >= LINE)
            .map_or(LINE, |field| field.bytes);
        line(ink, &mut text, start, length);
        start += length;
    }
    let _ = writeln!(text, "{}\n", ink.faint(&format!("      └{}┘", "─".repeat(columns(ROW)))));
    legend(ink, &mut text);
    text
}

/// One cache line.
fn line(ink: &Ink, text: &mut String, start: usize, length: usize) {
    let title = if length == LINE {
        format!(" line {} ", start / LINE)
    } else {
        format!(" lines {} to {} ", start / LINE, (start + length) / LINE - 1)
    };
    let width = columns(ROW);
    let (left, right) = if start == 0 { ('┌', '┐') } else { ('├', '┤') };
    let rule = format!("      {left}{title:─<width$}{right}");
    let _ = writeln!(text, "{}", ink.faint(&rule));
    let mut row = start;
    while row < start + length {
        let fields: Vec<&Field> =
            FIELDS.iter().filter(|f| f.offset < row + ROW && f.offset + f.bytes > row).collect();
        if let [field] = fields.as_slice()
            && field.offset < row
        {
            // The rest of a reserved field has nothing to say.
            row += ROW;
            continue;
        }
        let _ = write!(text, "{:>5} {}", row, ink.faint("│"));
        for field in fields {
            let from = field.offset.max(row);
            let to = (field.offset + field.bytes).min(row + ROW);
            let cell = columns(to - from);
            let _ = write!(text, "{}{}", cell_of(ink, field, cell), ink.faint("│"));
        }
        text.push('\n');
        row += ROW;
    }
}

/// A field's name and what it holds on the left, the letters of its readers on the right.
fn cell_of(ink: &Ink, field: &Field, width: usize) -> String {
    let letters = letters_of(field);
    let mut cell = if field.name.starts_with("reserved") || field.holds.starts_with('(') {
        ink.faint(field.name)
    } else {
        ink.name(field.name)
    };
    let mut length = field.name.len() + letters.len();
    if !field.holds.is_empty() {
        let _ = write!(cell, " {}", ink.faint(field.holds));
        length += 1 + field.holds.len();
    }
    cell.push_str(&" ".repeat(width.saturating_sub(length)));
    if !letters.is_empty() {
        cell.push_str(&ink.letters(&letters));
    }
    cell
}

/// The readers of a field, as `a-cf`.
fn letters_of(field: &Field) -> String {
    let reads = |read: &Read| {
        read.fields.contains(&field.name) || (read.counter && field.name == "memory_counter")
    };
    let mut letters = String::new();
    let mut readers = (0..READS.len()).filter(|index| reads(&READS[*index])).peekable();
    while let Some(first) = readers.next() {
        let mut last = first;
        while readers.next_if_eq(&(last + 1)).is_some() {
            last += 1;
        }
        letters.push(letter(first));
        if last > first + 1 {
            letters.push('-');
        }
        if last > first {
            letters.push(letter(last));
        }
    }
    letters
}

fn letter(index: usize) -> char {
    let index = u8::try_from(index).unwrap_or(u8::MAX);
    char::from(b'a'.saturating_add(index))
}

/// Each call with its letter and the cache lines that it needs.
fn legend(ink: &Ink, text: &mut String) {
    let _ = writeln!(text, "  reader                             cache lines");
    for (index, read) in READS.iter().enumerate() {
        let fields: Vec<&Field> = FIELDS.iter().filter(|f| read.fields.contains(&f.name)).collect();
        let mut lines: Vec<String> =
            fields.iter().map(|field| (field.offset / LINE).to_string()).collect();
        lines.dedup();
        let _ = writeln!(
            text,
            "  {} {:<33} {}",
            ink.letters(&letter(index).to_string()),
            read.call,
            lines.join(", ")
        );
    }
    text.push_str(
        "\nCounter: the CPU's; in mode MEMORY, memory_counter, on a line of its own.\n\
         The writer changes lines 0 to 3 at each tick, and what follows once.\n",
    );
}
