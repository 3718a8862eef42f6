//! Measured loops, statistics, tables and plots: our image beside the host's vDSO, libc and the
//! system call, in one process and one run.
//!
//! | module | answers |
//! |---|---|
//! | [`clock`] | how is a stretch of code timed, and on which CPU |
//! | [`setup`] | where do the pages come from that the measured image reads |
//! | [`callee`] | which functions are called, and for how long may they be |
//! | [`subject`] | what is one measured loop |
//! | [`rounds`] | how are loops compared on a machine that is never quiet |
//! | [`statistics`] | what do the numbers of many rounds say |
//! | [`writer`] | who publishes while readers are measured |
//! | [`check`] | which ratios are promised, and does this machine keep them |

pub mod callee;
pub mod check;
pub mod clock;
pub mod rounds;
pub mod setup;
pub mod statistics;
pub mod subject;
pub mod writer;
