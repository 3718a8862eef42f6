//! What `/proc/PID/stat` says of a process (`proc_pid_stat(5)`).

use std::fs;
use std::io;
use std::str::FromStr;

use libc::pid_t;

/// The fields of a process, as they were when it was read.
#[derive(Debug)]
pub(crate) struct Stat {
    /// The second field, without its parentheses.
    pub(crate) name: String,
    /// The third field and those that follow.
    rest: Vec<String>,
}

/// The first field behind the name.
const AFTER_NAME: usize = 3;

impl Stat {
    /// Reads it.
    ///
    /// # Errors
    /// That there is no such process, or that it cannot be looked into.
    pub(crate) fn of(pid: pid_t) -> io::Result<Self> {
        let bytes = fs::read(format!("/proc/{pid}/stat"))?;
        // A name need not be UTF-8.
        Self::from_text(&String::from_utf8_lossy(&bytes)).ok_or_else(invalid)
    }

    fn from_text(text: &str) -> Option<Self> {
        // The name may hold anything, but it ends at the last parenthesis.
        let (before, rest) = text.rsplit_once(") ")?;
        let (_, name) = before.split_once('(')?;
        let rest = rest.split_whitespace().map(str::to_owned).collect();
        Some(Self { name: name.to_owned(), rest })
    }

    /// A field behind the name, by its number in the manual page.
    ///
    /// # Errors
    /// That there is none, or that it is no such value.
    pub(crate) fn field<T: FromStr>(&self, number: usize) -> io::Result<T> {
        let field = number.checked_sub(AFTER_NAME).and_then(|index| self.rest.get(index));
        field.and_then(|field| field.parse().ok()).ok_or_else(invalid)
    }
}

fn invalid() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_behind_any_name() {
        for name in ["sh", "a b", ") S 1 (", ")", "", "\u{fffd}"] {
            let stat = Stat::from_text(&format!("12 ({name}) Z 7 8 -9\n")).unwrap();
            assert_eq!(stat.name, name);
            assert_eq!(stat.field::<char>(3).unwrap(), 'Z');
            assert_eq!(stat.field::<i32>(4).unwrap(), 7);
            assert_eq!(stat.field::<i64>(6).unwrap(), -9);
            assert!(stat.field::<u64>(6).is_err(), "no number without a sign");
            assert!(stat.field::<u64>(7).is_err() && stat.field::<u64>(2).is_err());
        }
        assert!(Stat::from_text("12 sh Z").is_none());
    }
}
