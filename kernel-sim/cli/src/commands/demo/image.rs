//! The image under the judge.

use linker::judge::{ImageFile, judge};
use serde::Serialize;

/// What the judge says of the image.
#[derive(Debug, Serialize)]
pub(super) struct Image {
    pub(super) bytes: usize,
    pub(super) build_id: String,
    pub(super) functions: Vec<&'static str>,
    pub(super) rules_held: usize,
    pub(super) rules: usize,
    /// Demands that are not met and break no consumer.
    pub(super) remarks: Vec<String>,
}

/// Judges the image that all other parts use.
pub(super) fn check(failures: &mut Vec<String>) -> Image {
    let image = &linker::SYSCALL;
    let mut report = Image {
        bytes: image.bytes.len(),
        build_id: image.build_id.iter().map(|byte| format!("{byte:02x}")).collect(),
        functions: functions(image),
        rules_held: 0,
        rules: 0,
        remarks: Vec::new(),
    };
    match ImageFile::read(image.bytes) {
        Ok(file) => {
            let verdict = judge(&file);
            (report.rules_held, report.rules) = verdict.score();
            report.remarks =
                verdict.broken().map(|(rule, broken)| format!("{}: {broken}", rule.name)).collect();
            if !verdict.is_accepted() {
                failures.push(format!("the image breaks a consumer: {:?}", report.remarks));
            }
        }
        Err(error) => failures.push(format!("the image cannot be read: {error}")),
    }
    report
}

/// The names with the prefix; the others are aliases.
fn functions(image: &linker::Image) -> Vec<&'static str> {
    let names = image.symbols.iter().map(|symbol| symbol.name);
    names.filter(|name| name.starts_with("__vdso_")).collect()
}
