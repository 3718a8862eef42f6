//! The system calls that a program makes for the launcher when it is put on the image.

use std::fmt;

/// Each call of the table, its name and its number, so that what is said of them and what is tested
/// follow from the table: no call can be made for a program that does not stand in it.
macro_rules! injected_calls {
    ($($call:ident $name:literal $number:ident)*) => {
        /// A system call that is made for a program. A seccomp filter under which a program is
        /// exec'ed has to allow them, or is suspended by root.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum InjectedCall {
            $(#[doc = concat!("`", $name, "`.")] $call,)*
        }

        impl InjectedCall {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$call),*];

            /// Its name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$call => $name,)* }
            }

            /// Its number in the table of x86_64.
            #[must_use]
            pub fn number(self) -> i64 {
                match self { $(Self::$call => libc::$number,)* }
            }
        }
    };
}

injected_calls! {
    SocketPair "socketpair" SYS_socketpair
    ReceiveMessage "recvmsg" SYS_recvmsg
    Map "mmap" SYS_mmap
    SetLayout "prctl(PR_SET_MM)" SYS_prctl
    Unmap "munmap" SYS_munmap
    CloseRange "close_range" SYS_close_range
    Close "close" SYS_close
}

impl fmt::Display for InjectedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
