//! The notes that an image carries, this project's own among them.

use object::{Endianness, elf, pod};

use super::file::{Segment, TABLE_LIMIT, slice};
use super::unreadable::Unreadable;

/// A note.
#[derive(Clone, Copy, Debug)]
pub struct Note<'a> {
    /// Whose it is, without the closing zero.
    pub owner: &'a [u8],
    /// What it says, in the owner's numbering.
    pub kind: u32,
    /// Its contents.
    pub contents: &'a [u8],
}

/// What the note of this project says: how an image wants to be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnNote {
    /// 0: it enters the kernel for what the page cannot serve; 1: it returns `-ENOSYS`.
    pub policy: u32,
    /// Version of the page layout that it reads.
    pub page_abi: u32,
    /// Page slots right below the image.
    pub slots: u32,
    /// Bytes from one slot to the next.
    pub slot_bytes: u32,
}

/// The notes of all `PT_NOTE` segments.
pub(crate) fn notes<'a>(
    segments: &[Segment],
    endian: Endianness,
    bytes: &'a [u8],
) -> Result<Vec<Note<'a>>, Unreadable> {
    let mut notes = Vec::new();
    for segment in segments.iter().filter(|s| s.kind == elf::PT_NOTE) {
        let mut rest = slice(bytes, "the notes", segment.offset, segment.file_bytes)?;
        let mut at = segment.offset;
        while !rest.is_empty() {
            let outside = |bytes: u64| Unreadable::Outside {
                what: "a note",
                offset: at,
                bytes,
                limit: usize::try_from(segment.offset + segment.file_bytes).unwrap_or(usize::MAX),
            };
            let (header, after) =
                pod::from_bytes::<elf::NoteHeader32<Endianness>>(rest).map_err(|()| outside(12))?;
            let owner_bytes = u64::from(header.n_namesz.get(endian));
            let contents_bytes = u64::from(header.n_descsz.get(endian));
            let contents_at = owner_bytes.next_multiple_of(4);
            let length = contents_at + contents_bytes;
            let owner = slice(after, "a note", 0, owner_bytes).map_err(|_| outside(length))?;
            let contents =
                slice(after, "a note", contents_at, contents_bytes).map_err(|_| outside(length))?;
            if notes.len() == TABLE_LIMIT {
                return Err(Unreadable::Count {
                    what: "notes",
                    found: TABLE_LIMIT as u64 + 1,
                    limit: TABLE_LIMIT,
                });
            }
            if contents_bytes > TABLE_LIMIT as u64 {
                return Err(Unreadable::Count {
                    what: "bytes in a note",
                    found: contents_bytes,
                    limit: TABLE_LIMIT,
                });
            }
            notes.push(Note {
                owner: owner.strip_suffix(&[0]).unwrap_or(owner),
                kind: header.n_type.get(endian),
                contents,
            });
            let next = length.next_multiple_of(4);
            rest =
                usize::try_from(next).ok().and_then(|next| after.get(next..)).unwrap_or_default();
            at += 12 + next;
        }
    }
    Ok(notes)
}
