//! What tracer and keeper tell the command, one datagram each.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, recv, send, socketpair};

use crate::launch::calls::Call;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Letter {
    /// The program is traced and may start; the page tells the time.
    Ready,
    /// The keeper cannot keep the page.
    Failed(String),
    /// It cannot be traced.
    NotTraced(i32),
    /// What a user has to know.
    Warning(String),
    /// What a user may want to know.
    Note(String),
    /// The program that was started is gone; whether others still run.
    MainGone {
        /// They do.
        others: bool,
    },
    /// A call that was counted, and how often; after the last program has ended.
    Count(Call, u64),
}

/// One end of the connection.
#[derive(Debug)]
pub(crate) struct Post(OwnedFd);

/// Longest datagram.
const ROOM: usize = 4096;

impl Post {
    /// Both ends.
    pub(crate) fn pair() -> io::Result<(Self, Self)> {
        let (one, other) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        Ok((Self(one), Self(other)))
    }

    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.0
    }

    /// Sends a letter. A warning or note is dropped if the command does not take its post (it is
    /// stopped, or gone): programs do not wait for that.
    pub(crate) fn send(&self, letter: &Letter) {
        let mut flags = MsgFlags::MSG_NOSIGNAL;
        if matches!(letter, Letter::Warning(_) | Letter::Note(_)) {
            flags |= MsgFlags::MSG_DONTWAIT;
        }
        let mut bytes = letter.to_text().into_bytes();
        bytes.truncate(ROOM);
        let _ = send(self.0.as_raw_fd(), &bytes, flags);
    }

    /// The next letter; `None` when the other end is closed.
    pub(crate) fn receive(&self) -> io::Result<Option<Letter>> {
        let mut bytes = [0; ROOM];
        let length = loop {
            match recv(self.0.as_fd().as_raw_fd(), &mut bytes, MsgFlags::empty()) {
                Err(Errno::EINTR) => {}
                other => break other?,
            }
        };
        let bytes = bytes.get(..length).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(None);
        }
        let letter = Letter::from_text(&String::from_utf8_lossy(bytes));
        letter.map(Some).ok_or(io::ErrorKind::InvalidData.into())
    }
}

impl Letter {
    /// As text: a keyword, then what belongs to it.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Ready => "ready ".to_owned(),
            Self::Failed(text) => format!("failed {text}"),
            Self::NotTraced(errno) => format!("not-traced {errno}"),
            Self::Warning(text) => format!("warning {text}"),
            Self::Note(text) => format!("note {text}"),
            Self::MainGone { others } => format!("main-gone {others}"),
            Self::Count(call, times) => match call.clock {
                Some(clock) => format!("count {times} {} {clock}", call.name),
                None => format!("count {times} {}", call.name),
            },
        }
    }

    /// The letter with this text.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let (keyword, rest) = text.split_once(' ')?;
        Some(match keyword {
            "ready" => Self::Ready,
            "failed" => Self::Failed(rest.to_owned()),
            "not-traced" => Self::NotTraced(rest.parse().ok()?),
            "warning" => Self::Warning(rest.to_owned()),
            "note" => Self::Note(rest.to_owned()),
            "main-gone" => Self::MainGone { others: rest.parse().ok()? },
            "count" => {
                let mut words = rest.split(' ');
                let times = words.next()?.parse().ok()?;
                let name = words.next()?.to_owned();
                let clock = words.next().map(str::parse).transpose().ok()?;
                Self::Count(Call { name, clock }, times)
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_arrives_as_it_was_sent() {
        let (one, other) = Post::pair().unwrap();
        let call = |clock| Call { name: "time".to_owned(), clock };
        for letter in [
            Letter::Ready,
            Letter::Failed("why not".to_owned()),
            Letter::NotTraced(1),
            Letter::Warning("a program: 5".to_owned()),
            Letter::Note(String::new()),
            Letter::MainGone { others: true },
            Letter::Count(call(None), 7),
            Letter::Count(call(Some(-6)), u64::MAX),
        ] {
            one.send(&letter);
            assert_eq!(other.receive().unwrap(), Some(letter));
        }
        drop(one);
        assert_eq!(other.receive().unwrap(), None);
    }
}
