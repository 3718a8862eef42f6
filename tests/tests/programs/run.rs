//! The three runs of a program, and what is found.

use std::ffi::OsString;

use kernel_sim::launch::{Call, Clock, Command, Output, Status};

use super::guests::Guest;
use super::times::{Moment, check};

/// Ten years.
const FAR: i128 = 10 * 365 * 86_400 * 1_000_000_000;

/// What a program did, for the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The clocks of which it showed the time.
    pub(crate) clocks: Vec<String>,
    /// The kinds of calls that it makes and that a page can serve, each seen counted.
    pub(crate) calls: Vec<String>,
    /// Calls that it makes by its own choice, with the reason.
    pub(crate) own_calls: Vec<String>,
}

/// Runs it three times.
pub(crate) fn all(guest: &Guest, command: &[OsString], user: Option<u32>) -> Result<Found, String> {
    let (program, arguments) = command.split_first().ok_or("no command")?;
    let command = Command::new(program).args(arguments).count(true);

    let (host, clocks) = once(guest, &command, user, 0, "with the host's time")?;
    let own_calls = own_calls(guest, &host)?;
    let empty = command.clone().on_empty_page();
    let (empty, _) = once(guest, &empty, user, 0, "on a page that serves nothing")?;
    let calls = counted(guest, &empty)?;
    let far = command.clock(Clock::Offset(FAR));
    let (far, _) = once(guest, &far, user, FAR, "ten years ahead")?;
    self::own_calls(guest, &far)?;
    Ok(Found { clocks, calls, own_calls })
}

fn once(
    guest: &Guest,
    command: &Command,
    user: Option<u32>,
    moved: i128,
    how: &str,
) -> Result<(Output, Vec<String>), String> {
    let before = Moment::now();
    let output = command.output(user).map_err(|error| format!("{how}: {error}"))?;
    let after = Moment::now();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let said =
        || format!("{how}: {:?}\n{stdout}\n{stderr}\n{:?}", output.outcome.status, output.remarks);
    if output.outcome.status != Status::Exited(0) {
        return Err(said());
    }
    let clocks =
        check(&stdout, &before, &after, moved).map_err(|error| format!("{error}\n{}", said()))?;
    for expected in guest.clocks {
        if !clocks.iter().any(|clock| clock == expected) {
            return Err(format!("{expected} was not shown; {}", said()));
        }
    }
    if !stdout.contains(guest.says) && !stderr.contains(guest.says) {
        return Err(format!("{:?} was not said; {}", guest.says, said()));
    }
    let mut clocks = clocks;
    clocks.dedup();
    Ok((output, clocks))
}

/// The calls that the page could have served: where it serves nothing, each that the guest is known
/// to make must have been counted.
fn counted(guest: &Guest, output: &Output) -> Result<Vec<String>, String> {
    let calls = &output.outcome.calls;
    for (wanted, least) in guest.calls.iter().copied().flatten() {
        let times: u64 =
            calls.iter().filter(|(call, _)| call.to_string() == *wanted).map(|(_, n)| n).sum();
        if times < *least {
            return Err(format!(
                "of {least} {wanted} or more, {times} were counted on a page that serves nothing: {}",
                listed(output)
            ));
        }
    }
    // A name once, with all clocks that it was called for.
    let mut kinds: Vec<(&str, String)> = Vec::new();
    for (call, _) in calls.iter().filter(|(call, _)| can_be_served(call)) {
        let clock = call.clock.map_or(String::new(), |id| format!(" {id}"));
        match kinds.iter_mut().find(|(name, _)| *name == call.name) {
            Some((_, clocks)) => clocks.push_str(&clock),
            None => kinds.push((&call.name, clock)),
        }
    }
    Ok(kinds.into_iter().map(|(name, clocks)| format!("`{name}`{clocks}")).collect())
}

fn can_be_served(call: &Call) -> bool {
    call.clock.is_none_or(|id| datapage::ClockId(id).slot().is_some())
}

/// The calls that reached the kernel: each that the page could have served must be one that the
/// guest is known to make.
fn own_calls(guest: &Guest, output: &Output) -> Result<Vec<String>, String> {
    let mut own = Vec::new();
    for (call, times) in output.outcome.calls.iter() {
        let served = can_be_served(call);
        let known = guest.own_calls.iter().find(|(name, _)| *name == call.name);
        let why = match known {
            _ if !served => format!("`{}` of a clock that no vDSO serves", call.name),
            Some((name, why)) => format!("`{name}`: {why}"),
            None => {
                return Err(format!("{times} times {call} reached the kernel: {}", listed(output)));
            }
        };
        if !own.contains(&why) {
            own.push(why);
        }
    }
    Ok(own)
}

fn listed(output: &Output) -> String {
    let calls = output.outcome.calls.iter();
    let calls: Vec<String> = calls.map(|(call, times)| format!("{times} {call}")).collect();
    if calls.is_empty() { "none".to_owned() } else { calls.join(", ") }
}
