//! Every way through the image: what may be the next instruction after each.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use iced_x86::{Code, FlowControl, Instruction, Mnemonic};
use linker::Image;
use tests::code::{instructions, successors};

/// The instructions that a call of an exported function may reach, by their offsets.
pub(crate) struct Ways(BTreeMap<u64, Instruction>);

impl Ways {
    /// Those of `image`.
    ///
    /// # Errors
    /// An instruction whose successors are not known, or code that no function leads to.
    pub(crate) fn of(image: &Image) -> Result<Self, String> {
        let code: BTreeMap<u64, Instruction> =
            instructions(image).into_iter().map(|found| (found.ip(), found)).collect();
        let mut reached = BTreeMap::new();
        let mut todo: Vec<u64> = image.symbols.iter().map(|symbol| symbol.offset as u64).collect();
        while let Some(at) = todo.pop() {
            let found = code.get(&at).ok_or_else(|| format!("no instruction at {at:#x}"))?;
            if reached.insert(at, *found).is_none() {
                todo.extend(successors(found)?);
            }
        }
        // What is left is padding: nobody ever stops there.
        let left = code.iter().filter(|(at, _)| !reached.contains_key(at));
        let code: Vec<_> =
            left.filter(|(_, left)| left.mnemonic() != Mnemonic::Nop).map(|(at, _)| at).collect();
        if !code.is_empty() {
            return Err(format!("no function leads to {code:x?}"));
        }
        Ok(Self(reached))
    }

    /// How many instructions there are.
    pub(crate) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// As `gdb/walk.py` reads them.
    pub(crate) fn to_text(&self, image: &Image) -> Result<String, String> {
        let mut text = String::new();
        let mut known = BTreeSet::new();
        for symbol in image.symbols.iter().filter(|symbol| symbol.name.starts_with("__vdso_")) {
            known.insert(symbol.offset);
            let _ = writeln!(text, "function {} {:x}", symbol.name, symbol.offset);
        }
        // Names without the prefix are at the same places.
        if let Some(other) = image.symbols.iter().find(|symbol| !known.contains(&symbol.offset)) {
            return Err(format!("{} would not be called", other.name));
        }
        for (at, found) in &self.0 {
            let kind = match found.flow_control() {
                FlowControl::ConditionalBranch => "branch",
                FlowControl::Call if found.code() != Code::Syscall => "call",
                _ => "plain",
            };
            let _ = write!(text, "{at:x} {kind}");
            for next in successors(found)? {
                let _ = write!(text, " {next:x}");
            }
            text.push('\n');
        }
        Ok(text)
    }
}
