//! What a timekeeper promises, checked through the page as a reader sees it.
//!
//! | module | promise |
//! |---|---|
//! | `continuity` | no clock goes back, whatever happens, as long as the counters agree |
//! | `rates` | the clocks run at the rate that NTP asks for, and corrections are met exactly |
//! | `setting` | a set stands to the nanosecond, and touches no other clock |
//! | `leaps` | leap seconds come at the end of a day, once, in the right direction |
//! | `sleeping` | time in suspend and in long idle periods is counted where it belongs |
//! | `ticking` | late, missing and burst ticks lose nothing |
//! | `refusals` | what is refused leaves state and page as they were |
//! | `counters` | scales, ratings, the watchdog |
//! | `anything` | no argument whatsoever breaks it |
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "tests"
)]

mod anything;
mod continuity;
mod counters;
mod leaps;
mod rates;
mod refusals;
mod setting;
mod sleeping;
mod ticking;
mod world;
