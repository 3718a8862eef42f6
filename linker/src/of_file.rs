//! The image that a file holds, for tools that map one which no build knew.

use crate::judge::{ImageFile, OwnNote};
use crate::{Image, Policy, Symbol};

/// Why a file does not say how its image is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unstated {
    /// It has no note of ours, or one of another form.
    #[error("no uVDSO note of four words says how its page is laid out")]
    Note,
    /// Its note names a policy that is none.
    #[error("its uVDSO note has policy {found}; 0 is syscall, 1 is enosys")]
    Policy {
        /// The policy's number.
        found: u32,
    },
    /// A function's place or size is no number of this machine.
    #[error("a function is {size:#x} bytes at {value:#x}, more than this machine has")]
    Function {
        /// Its value in the table of symbols.
        value: u64,
        /// Its size there.
        size: u64,
    },
}

impl Image {
    /// The image in `file`. The list of its functions is kept for the rest of the process, as its
    /// bytes are.
    ///
    /// # Errors
    /// What the file does not say. Whether what it says is sound is the judge's to find out.
    pub fn of_file(file: &ImageFile<'static>) -> Result<Self, Unstated> {
        let OwnNote { policy, page_abi, slots, slot_bytes } =
            file.own_note().ok_or(Unstated::Note)?;
        let mut symbols = std::vec::Vec::new();
        for function in file.tables.functions() {
            let (value, size) = (function.value, function.size);
            let (Ok(offset), Ok(bytes)) = (value.try_into(), size.try_into()) else {
                return Err(Unstated::Function { value, size });
            };
            symbols.push(Symbol { name: function.name, offset, size: bytes });
        }
        symbols.sort_by_key(|symbol| symbol.name);
        Ok(Self {
            bytes: file.bytes,
            policy: match policy {
                0 => Policy::Syscall,
                1 => Policy::Enosys,
                found => return Err(Unstated::Policy { found }),
            },
            page_abi,
            slots,
            slot_bytes,
            build_id: file.build_id().unwrap_or_default(),
            symbols: symbols.leak(),
        })
    }
}
