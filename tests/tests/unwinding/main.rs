//! The suite, on the machines that it can run on.

use std::process::ExitCode;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[path = "suite.rs"]
mod suite;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[path = "ways.rs"]
mod ways;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() -> ExitCode {
    suite::main()
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() -> ExitCode {
    println!("skip: unwinders are tested on the image on x86_64 Linux only");
    ExitCode::SUCCESS
}
