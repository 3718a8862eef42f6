//! What the project's chores and its tests both have to know: the tools that tests need.

pub mod tools;
