//! Why a file cannot be judged at all.

/// What keeps a file from being read as an image.
///
/// A table that is missing is a rule's affair; a table that lies about where or how long it is makes
/// the whole file untrustworthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// Too few bytes for the first thing in an ELF file.
    #[error("{found} bytes, and an ELF header alone has {wanted}")]
    Short {
        /// Bytes in the file.
        found: usize,
        /// Bytes of the header.
        wanted: usize,
    },
    /// More bytes than any vDSO has.
    #[error("{found} bytes or more, and an image of more than {limit} is not read")]
    Long {
        /// Bytes in the file.
        found: usize,
        /// The largest file that is read.
        limit: usize,
    },
    /// Another kind of file.
    #[error("not an ELF file: it begins with {found:02x?} where one has [7f, 45, 4c, 46]")]
    Magic {
        /// The first four bytes.
        found: [u8; 4],
    },
    /// A class (32 or 64 bits) or byte order that is none.
    #[error("ELF class {class} and data encoding {data}; legal are 1 and 2 for each")]
    Ident {
        /// `EI_CLASS`.
        class: u8,
        /// `EI_DATA`.
        data: u8,
    },
    /// A machine whose vDSO has no rules here.
    #[error(
        "machine {machine} with {bits}-bit {order}-endian words; known are x86_64, i386, riscv64, \
         aarch64 and arm, the last two in either order"
    )]
    Machine {
        /// `e_machine`.
        machine: u16,
        /// Bits of a word.
        bits: u32,
        /// The order of its bytes: `little` or `big`.
        order: &'static str,
    },
    /// A table's entries have another size than the format's.
    #[error("{what} are {found} bytes each, and the format has {wanted}")]
    EntrySize {
        /// The table.
        what: &'static str,
        /// What the file says.
        found: u64,
        /// What the format says.
        wanted: usize,
    },
    /// More entries than any vDSO has.
    #[error("{found} {what}, and more than {limit} are not read")]
    Count {
        /// The table.
        what: &'static str,
        /// What the file says.
        found: u64,
        /// The most that are read.
        limit: usize,
    },
    /// Something that lies outside the file: it was cut short, or an offset is wrong.
    #[error("{what} at {offset:#x}, {bytes:#x} bytes long, but the file ends at {limit:#x}")]
    Outside {
        /// What is outside.
        what: &'static str,
        /// Where it should begin.
        offset: u64,
        /// How long it should be.
        bytes: u64,
        /// Where the file ends.
        limit: usize,
    },
    /// Sections that hold each other's bytes.
    #[error("sections of {bytes:#x} bytes together in a file of {limit:#x}: they overlap")]
    Overlap {
        /// What their sizes add up to.
        bytes: u64,
        /// Bytes in the file.
        limit: usize,
    },
    /// An address that no load segment holds.
    #[error("{what} at address {address:#x}, which no load segment holds")]
    Unmapped {
        /// What is there.
        what: &'static str,
        /// The address.
        address: u64,
    },
    /// A name that does not end inside its string table.
    #[error("name of {what} number {index} at offset {offset:#x} does not end in its string table")]
    Name {
        /// What is named.
        what: &'static str,
        /// Its number in its table.
        index: usize,
        /// The offset that it gives for its name.
        offset: u64,
    },
    /// A name longer than any that a vDSO has.
    #[error(
        "name of {what} number {index} at offset {offset:#x} of its string table has more than \
         {limit} bytes, which are not read"
    )]
    LongName {
        /// What is named.
        what: &'static str,
        /// Its number in its table.
        index: usize,
        /// The offset that it gives for its name.
        offset: u64,
        /// The longest name that is read.
        limit: usize,
    },
    /// A name that holds something else than names are made of.
    #[error(
        "name of {what} number {index} at offset {offset:#x} of its string table holds byte \
         {byte:#04x}; names are of letters, digits and any of _.$@+-"
    )]
    NameByte {
        /// What is named.
        what: &'static str,
        /// Its number in its table.
        index: usize,
        /// The offset that it gives for its name.
        offset: u64,
        /// What no name holds.
        byte: u8,
    },
}
