//! `kernel-sim image check`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use kernel_sim::functions::host_image;
use linker::judge::{Finding, ImageFile, Level, Outcome, judge};

use super::own::Choice;
use super::{print_wrapped, read};

/// Options of `image check`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The image to judge; without it, one of the project's own.
    #[arg(conflicts_with_all = ["policy", "target", "slots"])]
    file: Option<PathBuf>,
    #[command(flatten)]
    choice: Choice,
    /// Judge the image that this machine's kernel mapped into this process.
    #[arg(long, conflicts_with_all = ["file", "policy", "target", "slots", "drive"])]
    host: bool,
    /// Then map it and call every function with every id, null or not, on every page.
    ///
    /// Every function under both of its names; ids beyond any clock's; pages in every clock mode,
    /// zeroed, unpublished, torn, and behind that of a time namespace. What a page serves has to be exact,
    /// the rest the kernel's own answer, and NULL a fault where it is a mistake. This runs the
    /// image's code, in a process of its own, as you. Only x86_64 images with a uVDSO note can be
    /// driven: it says how their page is laid out.
    #[arg(long)]
    drive: bool,
    /// With --drive: give up on an image that has not answered every call so many seconds after
    /// the first.
    ///
    /// Its process is killed then, with all that it forked.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "drive",
          value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// This is the process of its own, of a parent; it gets the image as its input.
    #[arg(long, hide = true, value_name = "PARENT")]
    driven: Option<i32>,
}

/// Prints a line for each rule; an error is what keeps the image from being judged.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(parent) = arguments.driven {
        return Ok(super::driven::run(parent));
    }
    let (name, bytes) = match &arguments.file {
        Some(file) => (file.display().to_string(), read(file)?),
        None if arguments.host => ("the host's image".to_owned(), of_host()?),
        None => arguments.choice.read()?,
    };
    // Kept for the rest of the process, which does nothing else.
    let file = ImageFile::read(bytes.leak()).with_context(|| format!("{name} is no image"))?;
    let verdict = judge(&file);
    for finding in &verdict.findings {
        print_finding(finding);
    }
    let (holds, applicable) = verdict.score();
    let fatal = verdict.findings.iter().filter(|f| f.is_fatal()).count();
    println!(
        "\n{name}: {} image, {holds} of {applicable} rules hold, {fatal} broken that must hold",
        file.arch.name()
    );
    if !verdict.is_accepted() {
        if arguments.drive {
            println!("not driven: it breaks what must hold for any program that maps it");
        }
        return Ok(ExitCode::FAILURE);
    }
    if arguments.drive {
        return super::drive::run(&name, &file, arguments.limit);
    }
    Ok(ExitCode::SUCCESS)
}

fn of_host() -> anyhow::Result<Vec<u8>> {
    let image = host_image().context(
        "this machine's kernel maps no vDSO into its processes (vdso=0, or an emulator)",
    )?;
    Ok(image.to_vec())
}

fn print_finding(finding: &Finding) {
    let rule = finding.rule;
    let (mark, text) = match &finding.outcome {
        Outcome::Holds => ("ok", rule.demand.to_owned()),
        Outcome::NotApplicable(reason) => ("n/a", reason.clone()),
        Outcome::Broken(broken) => {
            let mark = match rule.level {
                Level::Must => "MUST",
                Level::Should => "should",
            };
            (mark, broken.to_string())
        }
    };
    print_wrapped(mark, rule.name, &text);
    if matches!(finding.outcome, Outcome::Broken(_)) {
        print_wrapped("", "", &format!("demanded: {}", rule.demand));
        print_wrapped("", "", &format!("by: {}", rule.consumers));
    }
}
