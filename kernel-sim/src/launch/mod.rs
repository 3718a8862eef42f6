//! Running an unmodified, unprivileged program, and whatever it starts, on an image.
//!
//! Five processes take part, and each can be killed without harm to the programs that run. One that is
//! just being exec'ed may end when the tracer is killed in the middle of a call that it makes for the
//! tracer (`instruction.rs`).
//!
//! | process | does | dumpable | ends |
//! |---|---|---|---|
//! | the command | starts the others, waits for the program, passes on its signals and its status, starts the next keeper | no | with the program |
//! | the keeper ([`crate::keeper`]) | writes the page; command and next keeper could, and do not | no | when nobody has the page mapped |
//! | the next keeper | waits for the keeper's end, and takes over | no | with the keeper, if its work is done |
//! | the tracer | puts each program that is exec'ed on the image | no | with the last program |
//! | the program | runs free; nothing of it is trapped for time | yes | when it likes |
//!
//! The program is the command's own child, in its process group and session, so the terminal and
//! its job control see what they would see without us. Keeper and tracer have a session of their
//! own, no terminal, and none of the program's descriptors.
//!
//! | file | answers |
//! |---|---|
//! | `command.rs` | what can be asked for, and what comes of it |
//! | `arrange.rs` | who starts whom, in which order |
//! | `supervise.rs` | what does the command do while the program runs |
//! | `tracer.rs` | how are programs followed over fork and exec |
//! | `tracing.rs` | how is a program noticed that wants to trace |
//! | `swap.rs`, `handover.rs`, `auxv.rs` | how is one program put on the image |
//! | `pidfd.rs` | how is a process held, and its end waited for |
//! | `inject.rs`, `ptrace.rs` | how does it make system calls for us |
//! | `injected.rs` | which are these |
//! | `instruction.rs` | by which instruction |
//! | `filter.rs` | what if its own seccomp filter forbids them |
//! | `calls.rs` | which system calls are counted |
//! | `letters.rs` | what does the tracer tell the command |
//! | `background.rs` | what does a process of ours give up |
//! | `output/` | how do tests and bench run a program, as whom, and look at all of it |
//! | `family.rs` | how are the processes of a run named, and found from outside |
//! | `proc_stat.rs` | what does the kernel say of a process |

mod arrange;
mod auxv;
mod background;
mod calls;
mod command;
mod family;
mod filter;
mod handover;
mod inject;
mod injected;
mod instruction;
mod letters;
pub mod output;
mod pidfd;
mod proc_stat;
mod ptrace;
mod supervise;
mod swap;
mod tracer;
mod tracing;

pub use calls::{Call, SystemCalls};
pub use command::{Clock, Command, LaunchError, Outcome, Status};
pub use family::{Family, is_gone};
pub use injected::InjectedCall;
pub use output::Output;
pub use supervise::{Remark, end_by_signal};
