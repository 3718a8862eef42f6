//! Names: what stands at an offset of a string table.
//!
//! They are hashed and compared by many rules, printed on terminals and written into source, so one
//! that a linker would not have made keeps the file from being read.

use super::unreadable::Unreadable;

/// The most bytes of a name that are read, without the closing zero. The longest in a Linux image has
/// 26. It bounds the work of rules that hash and compare names, and the length of a line that has one.
pub const NAME_LIMIT: usize = 256;

/// What names are made of, besides letters and digits: symbols, sections and libraries of any
/// language, and nothing that means something to a terminal or inside a literal.
const PUNCTUATION: &[u8] = b"_.$@+-";

/// The name of the `index`th of something, at `offset` of its string table.
pub(crate) fn name<'a>(
    strings: &'a [u8],
    what: &'static str,
    index: usize,
    offset: u64,
) -> Result<&'a str, Unreadable> {
    let tail = usize::try_from(offset).ok().and_then(|start| strings.get(start..));
    let tail = tail.ok_or(Unreadable::Name { what, index, offset })?;
    let end = tail.iter().take(NAME_LIMIT + 1).position(|&byte| byte == 0);
    let Some(name) = end.and_then(|end| tail.get(..end)) else {
        return Err(if tail.len() > NAME_LIMIT {
            Unreadable::LongName { what, index, offset, limit: NAME_LIMIT }
        } else {
            Unreadable::Name { what, index, offset }
        });
    };
    let is_legal = |byte: &u8| byte.is_ascii_alphanumeric() || PUNCTUATION.contains(byte);
    if let Some(&byte) = name.iter().find(|byte| !is_legal(byte)) {
        return Err(Unreadable::NameByte { what, index, offset, byte });
    }
    std::str::from_utf8(name).map_err(|_| Unreadable::Name { what, index, offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(strings: &[u8], offset: u64) -> Result<&str, Unreadable> {
        name(strings, "symbol", 7, offset)
    }

    #[test]
    fn a_name_ends_at_its_zero_and_begins_anywhere() {
        assert_eq!(read(b"\0time\0", 1), Ok("time"));
        assert_eq!(read(b"\0time\0", 3), Ok("me"));
        assert_eq!(read(b"\0time\0", 5), Ok(""));
        let (what, index) = ("symbol", 7);
        for (strings, offset) in
            [(&b"\0time"[..], 1), (b"\0time\0", 6), (b"", 0), (b"a\0", 1 << 40)]
        {
            assert_eq!(read(strings, offset), Err(Unreadable::Name { what, index, offset }));
        }
    }

    #[test]
    fn the_longest_name_is_read_and_the_next_is_not() {
        let strings = [vec![b'a'; NAME_LIMIT + 1], vec![0]].concat();
        assert_eq!(read(&strings, 1).map(str::len), Ok(NAME_LIMIT));
        let (what, index, offset, limit) = ("symbol", 7, 0, NAME_LIMIT);
        let long = Err(Unreadable::LongName { what, index, offset, limit });
        assert_eq!(read(&strings, 0), long);
        // One that has no end either is as long.
        assert_eq!(read(&strings[..=NAME_LIMIT], 0), long);
    }

    #[test]
    fn names_are_of_bytes_that_linkers_write_and_terminals_show() {
        for good in ["__vdso_time", ".data..ro", "$x.1", "f@@V_2.6", "linux-vdso.so.1", "libc++"] {
            let strings = [good.as_bytes(), &[0]].concat();
            assert_eq!(read(&strings, 0), Ok(good));
        }
        for byte in (1..=255).filter(|byte: &u8| !byte.is_ascii_alphanumeric()) {
            let strings = [b'a', byte, 0];
            let is_read = read(&strings, 0).is_ok();
            assert_eq!(is_read, PUNCTUATION.contains(&byte), "{byte:#04x}");
            let (what, index, offset) = ("symbol", 7, 0);
            let refused = Err(Unreadable::NameByte { what, index, offset, byte });
            assert!(is_read || read(&strings, 0) == refused);
        }
    }
}
