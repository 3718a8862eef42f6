//! `kernel-sim run`: an unmodified program on our image.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::ExitCode;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp, Zoned};
use kernel_sim::launch::{Clock, Command, Outcome, Remark, Status, SystemCalls};

/// What `--verbose` says once of what a page cannot change.
const STAYS_THE_HOSTS: &str = "\
the host's time stays in: direct system calls, the vsyscall page, waits with an absolute REALTIME deadline, times of \
files, raw reads of the counter, 32-bit programs, and, from an exec on, programs in a time namespace of their own and \
children that were made with CLONE_UNTRACED";

/// Options of `run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The program keeps its terminal, its descriptors and its exit status. Programs that it starts are \
followed over fork and exec.

Exit status: the program's own; 127 if it is not found, 126 if it cannot be executed, 3 if this \
machine cannot run programs on an image (the message says what to change), 2 for wrong options.")]
pub(crate) struct Arguments {
    /// Ticks a second, 1 to 1000: how often coarse clocks move [default: as the host's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    hz: Option<u32>,
    /// Start REALTIME at this date, such as '2038-01-19 03:14:00', '2038-01-19T03:14:00Z' or
    /// '@2147483640'
    #[arg(long, value_name = "DATE", value_parser = date, conflicts_with = "offset")]
    at: Option<Clock>,
    /// Move REALTIME by this much, such as '+90s', '-1h30m', '2 years' or 'P1DT2H'
    #[arg(long, value_name = "SPAN", value_parser = offset, allow_hyphen_values = true)]
    offset: Option<Clock>,
    /// Count the clock, time and getcpu calls that reach the kernel
    #[arg(long, conflicts_with = "detach")]
    count: bool,
    /// Let the program go once it is on the image: it can trace others itself, and what it execs
    /// has the host's time
    #[arg(long)]
    detach: bool,
    /// Leave precise clocks to the kernel (mode NONE): shows that --count counts them
    #[arg(long, conflicts_with_all = ["at", "offset"])]
    without_counter: bool,
    /// Say what happens, and what keeps the host's time
    #[arg(long, short)]
    verbose: bool,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Runs the program.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut words = arguments.program.iter();
    let Some(program) = words.next() else {
        anyhow::bail!("no program to run");
    };
    let mut command =
        Command::new(program).args(words).count(arguments.count).detach(arguments.detach);
    if let Some(hz) = arguments.hz {
        command = command.hz(hz);
    }
    let clock = arguments.at.or(arguments.offset);
    if let Some(clock) = clock {
        command = command.clock(clock);
    }
    if arguments.without_counter {
        command = command.without_counter();
    }
    if arguments.verbose && clock.is_some() {
        eprintln!("kernel-sim: {STAYS_THE_HOSTS}");
    }
    let outcome = command.run(&mut |remark| match remark {
        Remark::Warning(text) => eprintln!("kernel-sim: {text}"),
        Remark::Note(text) if arguments.verbose => eprintln!("kernel-sim: {text}"),
        _ => {}
    });
    match outcome {
        Ok(outcome) => {
            if arguments.count {
                eprint!("{}", table(&outcome.calls));
            }
            Ok(end_like(&outcome))
        }
        Err(error) => {
            eprintln!("kernel-sim: {error}");
            Ok(ExitCode::from(error.exit_code()))
        }
    }
}

/// The counted calls, a line each and a total.
fn table(calls: &SystemCalls) -> String {
    let mut text = String::new();
    for (call, times) in calls.iter() {
        let _ = writeln!(text, "kernel-sim: {times:>8} {call}");
    }
    let total = calls.total();
    let _ = writeln!(text, "kernel-sim: {total} clock, time and getcpu calls reached the kernel");
    text
}

/// Ends this command as the program ended: with its code, or by its signal.
fn end_like(outcome: &Outcome) -> ExitCode {
    match outcome.status {
        Status::Exited(code) => ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1)),
        Status::Signaled(signal) => {
            kernel_sim::launch::end_by_signal(signal);
            // Where the signal does not end this process, as a shell reports it.
            ExitCode::from(u8::try_from(128 + signal).unwrap_or(1))
        }
    }
}

const DATES: &str = "\
'2038-01-19 03:14:00' (UTC), '2038-01-19', '2038-01-19T03:14:00Z', \
'2038-01-19T03:14:00+02:00[Europe/Berlin]' or '@2147483640' (seconds since 1970)";

/// A date in one of the forms that the message of a wrong one shows.
fn date(text: &str) -> Result<Clock, String> {
    let found = if let Some(seconds) = text.strip_prefix('@') {
        seconds
            .parse::<i64>()
            .map(|seconds| i128::from(seconds) * 1_000_000_000)
            .map_err(|error| error.to_string())
    } else {
        moment(text).map(Timestamp::as_nanosecond).map_err(|error| error.to_string())
    };
    found.map(Clock::At).map_err(|why| format!("{why}; accepted are {DATES}"))
}

fn moment(text: &str) -> Result<Timestamp, jiff::Error> {
    if let Ok(zoned) = text.parse::<Zoned>() {
        return Ok(zoned.timestamp());
    }
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Ok(timestamp);
    }
    let local: DateTime = text.parse()?;
    Ok(local.to_zoned(TimeZone::UTC)?.timestamp())
}

const SPANS: &str = "'+90s', '-1h30m', '2 years', '1y2mo3d', 'P1DT2H' or '-00:00:00.5'";

/// A span in one of the forms that the message of a wrong one shows. Years and months are counted
/// from now.
fn offset(text: &str) -> Result<Clock, String> {
    let wrong = |error: jiff::Error| format!("{error}; accepted are {SPANS}");
    let span: Span = text.parse().map_err(wrong)?;
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    let duration: SignedDuration = span.to_duration(SpanRelativeTo::from(&now)).map_err(wrong)?;
    Ok(Clock::Offset(duration.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_that_the_messages_show_is_accepted() {
        let at = |nanos: i128| Ok(Clock::At(nanos * 1_000_000_000));
        for text in [
            "2038-01-19 03:14:00",
            "2038-01-19T03:14:00Z",
            "2038-01-19T04:14:00+01:00[Europe/Berlin]",
            "2038-01-19T05:14:00+02:00",
            "@2147483640",
        ] {
            assert_eq!(date(text), at(2_147_483_640), "{text}");
        }
        assert_eq!(date("2038-01-19"), at(2_147_483_640 - 3 * 3600 - 14 * 60));
        assert_eq!(date("@-1"), at(-1));
        let by = |millis: i128| Ok(Clock::Offset(millis * 1_000_000));
        assert_eq!(offset("+90s"), by(90_000));
        assert_eq!(offset("-1h30m"), by(-5_400_000));
        assert_eq!(offset("P1DT2H"), by(26 * 3_600_000));
        assert_eq!(offset("-00:00:00.5"), by(-500));
        for text in ["2 years", "1y2mo3d"] {
            assert!(offset(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_wrong_date_or_span_is_told_what_is_right() {
        for text in ["tomorrow", "2038-13-01", "@soon", ""] {
            let error = date(text).unwrap_err();
            assert!(error.contains(DATES), "{error}");
        }
        for text in ["soon", "5 parsecs", ""] {
            let error = offset(text).unwrap_err();
            assert!(error.contains(SPANS), "{error}");
        }
    }
}
