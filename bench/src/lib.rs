//! Measured loops, statistics, tables and plots: our image beside the host's vDSO, libc and the
//! system call, in one process and one run.
//!
//! | module | answers |
//! |---|---|
//! | [`clock`] | how is a stretch of code timed, and on which CPU |
//! | [`setup`] | where do the pages come from that the measured image reads |
//! | [`calls`] | which calls do programs make, and in which ways |
//! | [`callee`] | which functions are called, and for how long may they be |
//! | [`cold`] | what does a read cost after its page left the caches |
//! | [`dispatch`] | what does a C library do with a vDSO |
//! | [`subject`] | what is one measured loop |
//! | [`rounds`] | how are loops compared on a machine that is never quiet |
//! | [`statistics`] | what do the numbers of many rounds say |
//! | [`writer`] | who publishes while readers are measured |
//! | [`report`] | what is a measured table |
//! | [`tables`] | how are the tables measured that the project promises |
//! | [`model`] | what would a page of another layout cost |
//! | [`limit`] | how fast could a reader be on this CPU |
//! | [`launching`] | what does it cost a program to be launched |
//! | [`chart`] | how is a table drawn |
//! | [`check`] | what is promised, and does this machine keep it |

pub mod callee;
pub mod calls;
pub mod chart;
pub mod check;
pub mod clock;
pub mod cold;
pub mod dispatch;
pub mod launching;
pub mod limit;
pub mod model;
pub mod report;
pub mod rounds;
pub mod setup;
pub mod statistics;
pub mod subject;
pub mod tables;
pub mod writer;
