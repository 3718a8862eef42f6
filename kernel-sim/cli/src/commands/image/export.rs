//! `kernel-sim image export`: an image for another source tree.
//!
//! What is written is complete: bytes, build id, policy, page layout, slots, offsets. A tree that
//! takes it needs no part of this project to build.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use linker::judge::{ImageFile, OwnNote, judge};

use super::own::Choice;
use super::{read, unreadable};
use crate::output;

/// Options of `image export`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The image to export; without it, one of the project's own.
    #[arg(conflicts_with_all = ["policy", "target", "slots"])]
    file: Option<PathBuf>,
    #[command(flatten)]
    choice: Choice,
    /// The form.
    #[arg(long, value_enum)]
    format: Format,
    /// The file to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// The ELF file itself.
    Raw,
    /// A C header: the bytes and macros.
    C,
    /// A Rust module without dependencies: the bytes and constants.
    Rust,
}

/// Writes the image in another form.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let bytes = match &arguments.file {
        None => arguments.choice.read()?.1,
        Some(file) => match read(file) {
            Ok(bytes) => bytes,
            Err(error) => return Ok(unreadable(&error)),
        },
    };
    let file = match ImageFile::read(&bytes).context("this is no image") {
        Ok(file) => file,
        Err(error) => return Ok(unreadable(&error)),
    };
    // Whoever takes the bytes cannot ask again.
    if let Some((rule, broken)) =
        judge(&file).broken().find(|(rule, _)| rule.level == linker::judge::Level::Must)
    {
        bail!("the image breaks {}: {broken}; `image check` says more", rule.name);
    }
    let exported = Exported::of(&file)?;
    let text = match arguments.format {
        Format::Raw => bytes.clone(),
        Format::C => exported.to_c()?.into_bytes(),
        Format::Rust => exported.to_rust().into_bytes(),
    };
    output::write(&arguments.out, &text)?;
    println!("{}: {} bytes", arguments.out.display(), text.len());
    Ok(ExitCode::SUCCESS)
}

/// What a form has to say.
struct Exported<'a> {
    arch: &'static str,
    bytes: &'a [u8],
    build_id: String,
    note: OwnNote,
    policy: &'static str,
    /// Names and offsets, by name.
    symbols: Vec<(&'a str, u64)>,
}

impl<'a> Exported<'a> {
    fn of(file: &ImageFile<'a>) -> anyhow::Result<Self> {
        let note =
            file.own_note().context("the image has no uVDSO note that says how to map it")?;
        let id = file.build_id().unwrap_or_default();
        let functions = file.tables.functions();
        let mut symbols: Vec<_> = functions.iter().map(|s| (s.name, s.value)).collect();
        symbols.sort_unstable();
        Ok(Self {
            arch: file.arch.name(),
            bytes: file.bytes,
            build_id: id.iter().map(|byte| format!("{byte:02x}")).collect(),
            note,
            policy: if note.policy == 0 { "syscall" } else { "enosys" },
            symbols,
        })
    }

    /// Offsets of slots from the start of the image, by what is in them.
    fn slots(&self) -> [(&'static str, i64); 2] {
        let bytes = i64::from(self.note.slot_bytes);
        let data = -i64::from(self.note.slots) * bytes;
        [("DATA", data), ("TIMENS", data + bytes)]
    }

    fn title(&self) -> String {
        format!(
            "The unified vDSO for {}, policy {}, build id {}.",
            self.arch, self.policy, self.build_id
        )
    }

    fn rows(&self) -> String {
        let mut rows = String::new();
        for row in self.bytes.chunks(16) {
            rows.push_str("   ");
            for byte in row {
                let _ = write!(rows, " {byte:#04x},");
            }
            rows.push('\n');
        }
        rows
    }

    fn to_rust(&self) -> String {
        let OwnNote { page_abi, slots, slot_bytes, .. } = self.note;
        let mut text = format!(
            "//! {}\n//!\n//! Written by `kernel-sim image export`; not to be edited.\n\n\
             /// What the image does about a call that its page cannot serve.\n\
             pub const POLICY: &str = \"{}\";\n\
             /// Version of the page layout that it reads.\n\
             pub const PAGE_ABI: u32 = {page_abi};\n\
             /// Page slots right below it.\n\
             pub const SLOTS: usize = {slots};\n\
             /// Bytes from one slot to the next.\n\
             pub const SLOT_BYTES: usize = {slot_bytes};\n\
             /// The build id.\n\
             pub const BUILD_ID: &str = \"{}\";\n",
            self.title(),
            self.policy,
            self.build_id
        );
        for (name, offset) in self.slots() {
            let _ = writeln!(
                text,
                "/// Where slot {name} lies, from the start of the image.\n\
                 pub const SLOT_{name}: isize = {offset};"
            );
        }
        text.push_str(
            "\n/// Functions and trampolines: name, and bytes from the start of the image.\n\
             pub const SYMBOLS: &[(&str, usize)] = &[\n",
        );
        for (name, offset) in &self.symbols {
            let _ = writeln!(text, "    (\"{name}\", {offset:#x}),");
        }
        let _ = write!(
            text,
            "];\n\n/// The offset of a symbol.\n\
             pub fn symbol(name: &str) -> Option<usize> {{\n    \
             SYMBOLS.iter().find(|(known, _)| *known == name).map(|(_, offset)| *offset)\n}}\n\n\
             /// The ELF file, at the start of a page.\n\
             pub static IMAGE: Image = Image(BYTES);\n\n\
             /// Puts the bytes at the start of a page.\n\
             #[repr(C, align({slot_bytes}))]\n\
             pub struct Image(pub [u8; {}]);\n\n\
             #[rustfmt::skip]\nconst BYTES: [u8; {}] = [\n{}];\n",
            self.bytes.len(),
            self.bytes.len(),
            self.rows()
        );
        text
    }

    fn to_c(&self) -> anyhow::Result<String> {
        let OwnNote { policy, page_abi, slots, slot_bytes } = self.note;
        let mut text = format!(
            "/* {} */\n/* Written by `kernel-sim image export`; not to be edited. */\n\
             #ifndef UVDSO_IMAGE_H\n#define UVDSO_IMAGE_H\n\n\
             /* 0: it enters the kernel for what its page cannot serve; 1: it returns -ENOSYS. */\n\
             #define UVDSO_IMAGE_POLICY {policy}\n\
             #define UVDSO_IMAGE_PAGE_ABI {page_abi}\n\
             #define UVDSO_IMAGE_SLOTS {slots}\n\
             #define UVDSO_IMAGE_SLOT_BYTES {slot_bytes}\n\
             #define UVDSO_IMAGE_BYTES {}\n\
             #define UVDSO_IMAGE_BUILD_ID \"{}\"\n\n\
             /* Slots, from the start of the image. */\n",
            self.title(),
            self.bytes.len(),
            self.build_id
        );
        for (name, offset) in self.slots() {
            let _ = writeln!(text, "#define UVDSO_IMAGE_SLOT_{name} ({offset})");
        }
        text.push_str("\n/* Functions and trampolines, from the start of the image. */\n");
        for (name, offset) in &self.symbols {
            // What an image may be read with is more than C has in identifiers: `a.b` would define
            // `a`.
            if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                bail!("the image exports {name}, which cannot stand in the name of a C macro");
            }
            let _ = writeln!(text, "#define UVDSO_OFFSET_{name} {offset:#x}");
        }
        let _ = write!(
            text,
            "\n/* Its alignment lets its pages be mapped where they are. */\n\
             static const unsigned char uvdso_image[UVDSO_IMAGE_BYTES]\n\
             \t__attribute__((aligned({slot_bytes}))) = {{\n{}}};\n\n#endif\n",
            self.rows()
        );
        Ok(text)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_c_identifier_is_an_error_in_c_alone() {
        let file = ImageFile::read(linker::SYSCALL.bytes).unwrap();
        let mut exported = Exported::of(&file).unwrap();
        assert!(exported.to_c().is_ok());
        for name in ["a.b", "a-b", "a$b", "a@b"] {
            exported.symbols = vec![("__vdso_time", 64), (name, 128)];
            assert!(exported.to_c().unwrap_err().to_string().contains(name));
            assert!(exported.to_rust().contains(&format!("(\"{name}\", 0x80)")));
        }
    }
}
