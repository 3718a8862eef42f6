//! With which clocks a keeper begins: its own, or those that a page already shows.

use std::thread::sleep;
use std::time::Duration;

use crate::host::HostClocks;
use crate::keeper::clocks::{Clocks, FirstLook, Shift};
use crate::keeper::follow::NotContinued;
use crate::keeper::process::KeeperError;
use crate::keeper::shown::Shown;

/// Time between the two looks that give the clocks' first rates: at a repetition within one
/// nanosecond that is a rate good to 0.4 parts in a million, a nanosecond or two until the first
/// tick refines it.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// How often a look at clocks that were just set, or that was interrupted, is repeated: half a second,
/// because a keeper that gives up leaves coarse clocks standing.
const LOOKS: u32 = 100;

/// How often the host's clocks are looked at beside a page that shows them, where looks are
/// disturbed, and the time in between.
const LOOKS_BESIDE_A_PAGE: u32 = 20;
const BETWEEN_LOOKS_BESIDE_A_PAGE: Duration = Duration::from_millis(1);

/// The clocks that follow the host's from now on.
///
/// # Errors
/// That they change faster than they can be read.
pub(super) fn first_clocks(host: HostClocks, shift: Shift, hz: u32) -> Result<Clocks, KeeperError> {
    for _ in 0..LOOKS {
        let first = FirstLook::new(&host);
        sleep(BETWEEN_LOOKS);
        if let Some(clocks) = Clocks::new(host, &first, shift, hz) {
            return Ok(clocks);
        }
    }
    Err(KeeperError::Restless)
}

/// The clocks that a keeper before this one has left on a page.
pub(super) fn shown_clocks(
    page: &datapage::Page,
    host: HostClocks,
    shift: Shift,
    hz: u32,
) -> Option<Clocks> {
    go_on_from(page, host.counter(), |shown| Clocks::continued(host, shown, shift, hz))
}

/// Looks at the host's clocks beside those that a page shows.
///
/// The page stands still until this is done, so it is read once, and what it shows, or that it shows
/// nothing, is final. A look that was disturbed is repeated: whoever began anew would let MONOTONIC
/// step back by what the two lines differ.
fn go_on_from<T>(
    page: &datapage::Page,
    now: u64,
    look: impl Fn(&Shown) -> Result<T, NotContinued>,
) -> Option<T> {
    let shown = Shown::on(page, now)?;
    for number in 0..LOOKS_BESIDE_A_PAGE {
        if number > 0 {
            sleep(BETWEEN_LOOKS_BESIDE_A_PAGE);
        }
        match look(&shown) {
            Ok(found) => return Some(found),
            Err(NotContinued::Step) => return None,
            Err(NotContinued::Disturbed) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keeper::memory::PageMemory;
    use datapage::Features;

    #[test]
    fn only_a_look_that_was_disturbed_is_repeated_and_not_for_ever() {
        let host = HostClocks::new().unwrap();
        let (mut memory, _readable) = PageMemory::new(&linker::SYSCALL).unwrap();
        let clocks = first_clocks(host, Shift::default(), 250).unwrap();
        memory.writer().format(Features::empty(), 4096);
        memory.writer().publish(&clocks.values(&clocks.bend()).validate().unwrap());
        let looks = std::cell::Cell::new(0);
        let go_on = |memory: &PageMemory, why, good: u32| {
            looks.set(0);
            let found = go_on_from(memory.page(), host.counter(), |_| {
                looks.set(looks.get() + 1);
                if looks.get() == good { Ok(good) } else { Err(why) }
            });
            (found, looks.get())
        };
        let (disturbed, step) = (NotContinued::Disturbed, NotContinued::Step);
        assert_eq!(go_on(&memory, disturbed, 3), (Some(3), 3));
        assert_eq!(go_on(&memory, disturbed, u32::MAX), (None, LOOKS_BESIDE_A_PAGE));
        assert_eq!(go_on(&memory, step, 3), (None, 1), "the clocks stay where they are");
        memory.leave_odd();
        assert_eq!(go_on(&memory, disturbed, 3), (None, 0), "the page shows nothing to go on from");
    }
}
