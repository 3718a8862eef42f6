//! The project's chores: tests with their tools, goldens, mutants.
fn main() {}
