//! The simulated timekeeper under random events, with readers that compare every read.

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use kernel_sim::map::MappedImage;
use serde::Serialize;

/// What a drive did.
#[derive(Debug, Serialize)]
pub(super) struct Drive {
    pub(super) seed: u64,
    pub(super) updates: u64,
    pub(super) reads: u64,
    pub(super) readers: usize,
    pub(super) seconds: f64,
    /// The first read that was not exact.
    pub(super) violation: Option<String>,
}

const DURATION: Duration = Duration::from_secs(2);

/// Drives for two seconds; with a progress bar if somebody looks.
pub(super) fn drive(text: bool, failures: &mut Vec<String>) -> anyhow::Result<Drive> {
    // The image without a kernel entry: where the simulated machine has to be asked, the host's time
    // would be the wrong answer.
    let mut mapped = MappedImage::new(&linker::ENOSYS).context("mapping the image")?;
    let bar = if text && std::io::stdout().is_terminal() {
        ProgressBar::new(DURATION.as_millis().try_into()?).with_style(style()?)
    } else {
        ProgressBar::hidden()
    };
    // A seed of its own for each run: what one run cannot reach, many do. It is shown, to repeat.
    let seed = seed();
    let mut report =
        Drive { seed, updates: 0, reads: 0, readers: 0, seconds: 0.0, violation: None };
    let driven = fuzz::demo::drive(&mut mapped, DURATION, seed, |updates, reads| {
        bar.set_position(bar.elapsed().as_millis().try_into().unwrap_or(u64::MAX));
        bar.set_message(format!("{updates} updates, {reads} reads"));
    });
    bar.finish_and_clear();
    match driven {
        Ok(done) => {
            report.updates = done.updates;
            report.reads = done.reads;
            report.readers = done.threads;
            report.seconds = done.elapsed.as_secs_f64();
            if done.reads == 0 || done.updates == 0 {
                failures.push("the drive compared nothing".into());
            }
        }
        Err(violation) => {
            failures.push(format!("seed {seed}: {violation}"));
            report.violation = Some(violation.to_string());
        }
    }
    Ok(report)
}

fn seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| u64::from(since.subsec_nanos()))
}

fn style() -> anyhow::Result<ProgressStyle> {
    Ok(ProgressStyle::with_template("{bar:40} {msg}")?)
}
