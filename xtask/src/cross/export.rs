//! What the command says of an image, and the forms in which another tree takes it, against the file
//! as another reader reads it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use xtask::tools::root;

use crate::cross::image::Image;
use crate::stage::cargo;

/// Trampolines that an architecture's kernel puts into signal frames, and what stands there: so the
/// offset is shown to be theirs.
const TRAMPOLINES: &[(&str, &str, &[u8])] = &[
    // mov x8, 139; svc 0
    ("aarch64", "__kernel_rt_sigreturn", &[0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4]),
    // li a7, 139; ecall
    ("riscv64", "__vdso_rt_sigreturn", &[0x93, 0x08, 0xb0, 0x08, 0x73, 0x00, 0x00, 0x00]),
    // pop eax; mov eax, 119; int 0x80
    ("i386", "__kernel_sigreturn", &[0x58, 0xb8, 0x77, 0x00, 0x00, 0x00, 0xcd, 0x80]),
    // mov eax, 173; int 0x80
    ("i386", "__kernel_rt_sigreturn", &[0xb8, 0xad, 0x00, 0x00, 0x00, 0xcd, 0x80]),
];

/// Exports the image in each form, and compares each with the file.
pub(crate) fn check(image: &Image, directory: &Path) -> Result<String> {
    judged(image)?;
    let bytes = fs::read(&image.path)?;
    let wanted = Facts::of(image, &bytes)?;
    let stem = image.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let [raw, c, rust] = ["raw", "c", "rust"].map(|form| export(image, directory, &stem, form));
    ensure!(fs::read(raw?)? == bytes, "the raw form is not the file");
    let (c, rust) = (c?, rust?);
    wanted.compare(&Facts::in_c(&fs::read_to_string(&c)?)?).context("the form for C")?;
    wanted.compare(&Facts::in_rust(&fs::read_to_string(&rust)?)?).context("the form for Rust")?;
    compiles(image, &c, &rust)?;
    let trampolines = trampolines(image, &wanted)?;
    Ok(format!("{} symbols, {trampolines} trampolines, in C and Rust", wanted.symbols.len()))
}

/// `image check` accepts the file; what cannot run here is not driven.
fn judged(image: &Image) -> Result<()> {
    let file = image.path.to_str().context("a path of text")?;
    let output = command(&["check", file])?;
    let text = String::from_utf8_lossy(&output.stdout);
    let arch = format!(": {} image, ", image.machine.arch());
    ensure!(output.status.code() == Some(0) && text.contains(&arch), "image check: {text}");
    let output = command(&["check", "--drive", file])?;
    let error = String::from_utf8_lossy(&output.stderr);
    let arch = image.machine.arch();
    let is_driven = arch == "x86_64";
    let code = if is_driven { 0 } else { 2 };
    ensure!(output.status.code() == Some(code), "image check --drive: {error}");
    ensure!(is_driven || error.contains(&format!("cannot be driven: it is for {arch}")), "{error}");
    Ok(())
}

fn command(arguments: &[&str]) -> Result<Output> {
    cargo(&["run", "--quiet", "--locked", "--package", "cli", "--", "image"])
        .args(arguments)
        .current_dir(root())
        .output()
        .context("running the command")
}

fn export(image: &Image, directory: &Path, stem: &str, form: &str) -> Result<PathBuf> {
    let out = directory.join(format!("{stem}.exported.{form}"));
    let (file, to) = (image.path.to_str(), out.to_str());
    let (file, to) = (file.context("a path of text")?, to.context("a path of text")?);
    let output = command(&["export", file, "--format", form, "--out", to])?;
    ensure!(output.status.success(), "{form}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(out)
}

/// What a tree has to know of an image.
#[derive(Debug, PartialEq, Eq)]
struct Facts {
    numbers: BTreeMap<&'static str, i64>,
    build_id: String,
    symbols: BTreeMap<String, i64>,
    bytes: Vec<u8>,
}

impl Facts {
    /// Read from the file by `object`, and from what the image was made as.
    fn of(image: &Image, bytes: &[u8]) -> Result<Self> {
        let file = object::File::parse(bytes)?;
        let text = file.section_by_name(".text").context("the image has no .text")?.index();
        let symbols = file.dynamic_symbols().filter(|symbol| symbol.section_index() == Some(text));
        let symbols = symbols
            .map(|symbol| Ok((symbol.name()?.to_owned(), i64::try_from(symbol.address())?)))
            .collect::<Result<_>>()?;
        let build_id = file.build_id()?.context("the image has no build id")?;
        let slot_bytes = i64::from(image.slot_bytes);
        let policy = i64::from(image.policy == "enosys");
        Ok(Self {
            numbers: BTreeMap::from([
                ("POLICY", policy),
                ("PAGE_ABI", i64::from(datapage::ABI)),
                ("SLOTS", 4),
                ("SLOT_BYTES", slot_bytes),
                ("SLOT_DATA", -4 * slot_bytes),
                ("SLOT_TIMENS", -3 * slot_bytes),
            ]),
            build_id: build_id.iter().map(|byte| format!("{byte:02x}")).collect(),
            symbols,
            bytes: bytes.to_vec(),
        })
    }

    /// Read from a header: `#define UVDSO_IMAGE_SLOTS 4`.
    fn in_c(text: &str) -> Result<Self> {
        let defined =
            text.lines().filter_map(|line| line.strip_prefix("#define ")?.split_once(' '));
        let defined: BTreeMap<&str, &str> = defined.collect();
        let of = |name: &str| {
            let value = defined.get(format!("UVDSO_IMAGE_{name}").as_str());
            value.copied().with_context(|| format!("no {name}"))
        };
        let symbols = defined
            .iter()
            .filter_map(|(name, value)| Some((name.strip_prefix("UVDSO_OFFSET_")?, *value)))
            .map(|(name, value)| Ok((name.to_owned(), number(value)?)));
        Ok(Self {
            numbers: numbers(|name| number(of(name)?))?,
            build_id: of("BUILD_ID")?.trim_matches('"').to_owned(),
            symbols: symbols.collect::<Result<_>>()?,
            bytes: array(text.rsplit("= {").next().unwrap_or_default())?,
        })
    }

    /// Read from a module: `pub const SLOTS: usize = 4;`.
    fn in_rust(text: &str) -> Result<Self> {
        let of = |name: &str| {
            let begin = format!("pub const {name}: ");
            let line = text.lines().find_map(|line| line.strip_prefix(begin.as_str()));
            let value = line.and_then(|line| line.split_once(" = ")).map(|(_, value)| value);
            value.map(|value| value.trim_end_matches(';')).with_context(|| format!("no {name}"))
        };
        // `("time", 0x1080),`
        let rows =
            text.lines().filter_map(|line| line.trim().strip_prefix("(\"")?.split_once("\", "));
        let symbols =
            rows.map(|(name, value)| Ok((name.to_owned(), number(value.trim_end_matches("),"))?)));
        Ok(Self {
            numbers: numbers(|name| match of(name)? {
                "\"syscall\"" => Ok(0),
                "\"enosys\"" => Ok(1),
                value => number(value),
            })?,
            build_id: of("BUILD_ID")?.trim_matches('"').to_owned(),
            symbols: symbols.collect::<Result<_>>()?,
            bytes: array(text.rsplit("= [").next().unwrap_or_default())?,
        })
    }

    fn compare(&self, found: &Self) -> Result<()> {
        ensure!(self.numbers == found.numbers, "{:?}, wanted {:?}", found.numbers, self.numbers);
        ensure!(self.build_id == found.build_id, "build id {}", found.build_id);
        ensure!(self.symbols == found.symbols, "{:?}, wanted {:?}", found.symbols, self.symbols);
        ensure!(self.bytes == found.bytes, "other bytes than the file's");
        Ok(())
    }
}

/// The numbers that a form has to have.
const NUMBERS: [&str; 6] =
    ["POLICY", "PAGE_ABI", "SLOTS", "SLOT_BYTES", "SLOT_DATA", "SLOT_TIMENS"];

fn numbers(of: impl Fn(&str) -> Result<i64>) -> Result<BTreeMap<&'static str, i64>> {
    NUMBERS.into_iter().map(|name| Ok((name, of(name)?))).collect()
}

fn number(text: &str) -> Result<i64> {
    let text = text.trim_matches(['(', ')']);
    let number = match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.with_context(|| format!("{text:?} is no number"))
}

fn array(text: &str) -> Result<Vec<u8>> {
    let words =
        text.split([',', ']', '}']).map(str::trim).take_while(|word| word.starts_with("0x"));
    words.map(|word| Ok(u8::from_str_radix(&word[2..], 16)?)).collect()
}

/// A compiler of the architecture takes the header, Rust's the module.
fn compiles(image: &Image, c: &Path, rust: &Path) -> Result<()> {
    let mut gcc = Command::new(image.machine.gcc);
    gcc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable"]);
    gcc.args(["-fsyntax-only", "-x", "c"]).arg(c);
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "--crate-type", "rlib", "--crate-name", "exported"]);
    rustc.args(["-Dwarnings", "--emit", "metadata", "-o"]);
    rustc.arg(rust.with_extension("rmeta")).arg(rust);
    for mut compiler in [gcc, rustc] {
        let output = compiler.output().context("running a compiler")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {said}", compiler.get_program().display());
    }
    Ok(())
}

/// Each trampoline of the architecture is where the export says; how many there are.
fn trampolines(image: &Image, facts: &Facts) -> Result<usize> {
    let arch = image.machine.arch();
    let wanted: Vec<_> = TRAMPOLINES.iter().filter(|(of, ..)| *of == arch).collect();
    for (_, name, code) in &wanted {
        let at = facts.symbols.get(*name).with_context(|| format!("no {name}"))?;
        let found = usize::try_from(*at).ok().and_then(|at| facts.bytes.get(at..at + code.len()));
        ensure!(found == Some(*code), "{name} at {at:#x} is {found:02x?}, wanted {code:02x?}");
    }
    let named = facts.symbols.keys().filter(|name| name.ends_with("sigreturn")).count();
    ensure!(named == wanted.len(), "{named} trampolines, wanted {}", wanted.len());
    Ok(named)
}
