//! What the keeper does at each tick, and when it ends.

use std::io;

use datapage::Features;
use nix::errno::Errno;

use crate::host::{HostClocks, NoCounter, counter_is_in_use, getcpu_features};
use crate::keeper::begin::{first_clocks, shown_clocks};
use crate::keeper::clocks::{Clocks, Shift};
use crate::keeper::memory::PageMemory;
use crate::keeper::shown::is_without_counter;
use crate::keeper::ticks::{Looks, Ticks};
use crate::keeper::uncounted::{values_by_tick, values_without_counter};

/// Writes a page until nobody uses it any more.
#[derive(Debug)]
pub struct Keeper {
    /// The memory with the page.
    pub memory: PageMemory,
    /// Ticks a second.
    pub hz: u32,
    /// By how much the wall clock is moved.
    pub shift: Shift,
    /// What the page shows.
    pub shows: Shows,
}

/// What a page shows of the host's clocks; the rest is left to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shows {
    /// All of them; the counter is a clock, and the page says so.
    #[default]
    All,
    /// What takes no counter: coarse clocks, seconds, resolutions, CPU and node.
    WithoutCounter,
    /// Nothing: a page that was formatted and never updated, on which each call is the kernel's.
    Nothing,
}

/// What a keeper has to say while it works.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum News {
    /// The page tells the time.
    Ready,
    /// The host no longer keeps time with the counter, so the page does not either.
    CounterLost(NoCounter),
}

/// Why a keeper ended before its time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeeperError {
    /// The kernel maps no vDSO into the keeper itself.
    #[error("the kernel gives programs no vDSO, so the keeper cannot follow its clocks")]
    NoVdso,
    /// The clocks were set each time that they were looked at.
    #[error("the host's clocks cannot be followed: they change faster than they can be read")]
    Restless,
    /// The page says that it is not one of ours.
    #[error("the page cannot be taken over: {0}")]
    Page(#[from] datapage::HeaderMismatch),
    /// The kernel does not tell whether the page is in use.
    #[error("the kernel does not tell whether the page is in use (is fs.leases-enable 0?): {0}")]
    Lease(io::Error),
}

impl Keeper {
    /// Writes the page until no program has it mapped and nobody else has it open.
    ///
    /// `tell` is called when the page can be used, and when it changes its ways. A page that a
    /// keeper before this one left behind, perhaps in the middle of an update, is taken over.
    ///
    /// # Errors
    /// Why the page cannot be kept.
    pub fn run(self, tell: &mut dyn FnMut(News)) -> Result<(), KeeperError> {
        self.run_while(&counter_is_in_use, tell)
    }

    /// [`run`](Self::run), where `in_use` says whether the host keeps time with the counter.
    fn run_while(
        mut self,
        in_use: &dyn Fn() -> Result<(), NoCounter>,
        tell: &mut dyn FnMut(News),
    ) -> Result<(), KeeperError> {
        let host = HostClocks::new().ok_or(KeeperError::NoVdso)?;
        let inherited = self.memory.page().header().is_ok();
        if !inherited {
            let features = match self.shows {
                Shows::Nothing => Features::empty(),
                Shows::All | Shows::WithoutCounter => getcpu_features(),
            };
            let slot_bytes = self.memory.image().slot_bytes;
            self.memory.writer().format(features, slot_bytes);
        }
        // A counter that was lost stays lost: readers who left it must not come back to it.
        if self.shows == Shows::All && inherited && is_without_counter(self.memory.page()) {
            self.shows = Shows::WithoutCounter;
        }
        let lost = if self.shows == Shows::All { in_use().err() } else { None };
        if lost.is_some() {
            self.shows = Shows::WithoutCounter;
        }
        let mut clocks = None;
        if self.shows == Shows::All {
            let shown = if inherited {
                shown_clocks(self.memory.page(), host, self.shift, self.hz)
            } else {
                None
            };
            clocks = Some(match shown {
                Some(clocks) => clocks,
                None => first_clocks(host, self.shift, self.hz)?,
            });
        }
        self.publish(&host, clocks.as_mut());
        tell(News::Ready);
        if let Some(why) = lost {
            tell(News::CounterLost(why));
        }
        let mut ticks = Ticks::new(self.hz);
        let mut looks = Looks::new();
        loop {
            let tick = ticks.wait();
            if self.memory.is_alone().map_err(lease)? {
                return Ok(());
            }
            if !tick {
                continue;
            }
            if clocks.is_some()
                && looks.is_due()
                && let Err(why) = in_use()
            {
                clocks = None;
                tell(News::CounterLost(why));
            }
            if let Some(clocks) = &mut clocks {
                clocks.update();
            }
            self.publish(&host, clocks.as_mut());
        }
    }

    fn publish(&mut self, host: &HostClocks, clocks: Option<&mut Clocks>) {
        if self.shows == Shows::Nothing {
            return;
        }
        let zone = host.timezone();
        if self.memory.page().timezone() != Some(zone) {
            self.memory.writer().set_timezone(zone);
        }
        let Some(clocks) = clocks else {
            self.publish_without_counter(host);
            return;
        };
        loop {
            let bends = clocks.bend();
            // Values made of lines are within their second, so this does not fail; if it did, the
            // page would be left as it is, which is a page that still tells the time.
            let Ok(update) = clocks.values(&bends).validate() else {
                return;
            };
            if bends.in_time(host.counter()) {
                self.memory.writer().publish(&update);
                clocks.show(&bends);
                return;
            }
        }
    }

    fn publish_without_counter(&mut self, host: &HostClocks) {
        let values = if self.shift == Shift::default() {
            values_without_counter(host, self.hz)
        } else {
            values_by_tick(host, self.shift, self.hz)
        };
        if let Ok(update) = values.validate() {
            let mut writer = self.memory.writer();
            writer.publish(&update);
            writer.set_memory_counter(values.cycle_last);
        }
    }
}

fn lease(error: Errno) -> KeeperError {
    KeeperError::Lease(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use datapage::{ClockId, Page, Writer};
    use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
    use std::num::NonZeroUsize;
    use std::time::Duration;

    /// Runs a keeper on a page that was left as `before` leaves it, until it has called `ready`
    /// with the page as a program sees it.
    fn keep(before: impl FnOnce(&mut PageMemory), hz: u32, mut ready: impl FnMut(&Page)) {
        keep_while(before, Shows::All, Shift::default(), hz, &|| Ok(()), |news, page| {
            assert_eq!(news, &News::Ready);
            ready(page);
            true
        });
    }

    /// The same, until `hear` is true of what the keeper says, on a host where `in_use` tells
    /// whether the counter is in use.
    fn keep_while(
        before: impl FnOnce(&mut PageMemory),
        shows: Shows,
        shift: Shift,
        hz: u32,
        in_use: &dyn Fn() -> Result<(), NoCounter>,
        mut hear: impl FnMut(&News, &'static Page) -> bool,
    ) {
        let (mut memory, readable) = PageMemory::new(&linker::SYSCALL).unwrap();
        before(&mut memory);
        let slot = NonZeroUsize::new(4096).unwrap();
        // SAFETY: a new mapping at an address of the kernel's choice.
        let mapped =
            unsafe { mmap(None, slot, ProtFlags::PROT_READ, MapFlags::MAP_SHARED, &readable, 0) };
        let mapped = mapped.unwrap();
        drop(readable);
        // SAFETY: mapped until all is heard, and used no longer.
        let page = unsafe { Page::at(mapped.as_ptr().cast_const().cast()) };
        let keeper = Keeper { memory, hz, shift, shows };
        let mut tell = |news| {
            if hear(&news, page) {
                leave(page);
            }
        };
        keeper.run_while(in_use, &mut tell).unwrap();
    }

    /// Nobody has the page any more, so its keeper ends.
    fn leave(page: &'static Page) {
        // SAFETY: the mapping of `keep_while`, whose page is used no longer.
        unsafe { munmap(std::ptr::NonNull::from(page).cast(), 4096) }.unwrap();
    }

    fn served(page: &Page, id: i32) -> bool {
        let slot = ClockId(id).slot().unwrap();
        page.resolution(slot).is_some() && page.coarse(slot).is_some()
    }

    #[test]
    fn a_page_left_odd_is_taken_over_whole() {
        let dies = |memory: &mut PageMemory| {
            memory.writer().format(Features::GETCPU_RDPID, 4096);
            memory.leave_odd();
            assert!(memory.page().is_odd());
        };
        keep(dies, 250, |page| {
            assert!(!page.is_odd());
            assert!([0, 1, 4, 5, 6, 7, 11].iter().all(|&id| served(page, id)));
            assert_eq!(page.features(), Features::GETCPU_RDPID, "what was verified stays");
        });
    }

    #[test]
    fn a_keeper_that_takes_over_keeps_the_lines_that_readers_have_seen() {
        let host = HostClocks::new().unwrap();
        // Two microseconds ahead of the host: readers have seen it, so nothing may be less.
        let clocks = first_clocks(host, Shift::default(), 250).unwrap();
        let mut values = clocks.values(&clocks.bend());
        let seen = values.instants[1].as_mut().unwrap();
        seen.nanos += 2_000 << values.steered.shift;
        let values = values.validate().unwrap();
        let leaves = |memory: &mut PageMemory| {
            memory.writer().format(Features::empty(), 4096);
            memory.writer().publish(&values);
        };
        let mut before = Page::zeroed();
        let (mut writer, before) = Writer::split(&mut before);
        writer.publish(&values);
        keep(leaves, 250, |page| {
            let now = host.counter();
            let told = |page: &Page| {
                let read = page.precise(ClockId::MONOTONIC.slot().unwrap(), |_| Some(now));
                let time = read.unwrap().time().unwrap();
                i128::from(time.secs) * 1_000_000_000 + i128::from(time.nanos)
            };
            let step = told(page) - told(before);
            assert!((0..100).contains(&step), "MONOTONIC steps by {step} ns");
        });
    }

    fn lost() -> Result<(), NoCounter> {
        Err(NoCounter::Clocksource { found: "hpet".to_owned() })
    }

    #[test]
    fn a_counter_that_was_lost_is_not_published_again_by_the_next_keeper() {
        let host = HostClocks::new().unwrap();
        for shift in [Shift::default(), Shift(-3_600_000_000_000)] {
            let values = if shift == Shift::default() {
                values_without_counter(&host, 250)
            } else {
                values_by_tick(&host, shift, 250)
            };
            let leaves = |memory: &mut PageMemory| {
                memory.writer().format(Features::empty(), 4096);
                memory.writer().publish(&values.validate().unwrap());
            };
            let mut ready = false;
            // Also where the host took the counter back.
            keep_while(leaves, Shows::All, shift, 250, &|| Ok(()), |news, page| {
                assert_eq!(news, &News::Ready, "the keeper before has said it");
                assert!(is_without_counter(page) && served(page, 6), "{shift:?}");
                ready = true;
                true
            });
            assert!(ready);
        }
    }

    #[test]
    fn a_counter_that_is_lost_when_the_keeper_begins_is_never_published() {
        let dies = |memory: &mut PageMemory| {
            memory.writer().format(Features::empty(), 4096);
            memory.leave_odd();
        };
        let mut heard = Vec::new();
        keep_while(dies, Shows::All, Shift::default(), 250, &lost, |news, page| {
            heard.push(news.clone());
            assert!(is_without_counter(page));
            news != &News::Ready
        });
        assert_eq!(heard, [News::Ready, News::CounterLost(lost().unwrap_err())]);
    }

    #[test]
    fn a_counter_that_is_lost_while_the_keeper_works_is_dropped_and_said_once() {
        let looks = std::cell::Cell::new(0);
        let in_use = || {
            looks.set(looks.get() + 1);
            if looks.get() > 1 { lost() } else { Ok(()) }
        };
        let (mut heard, mut dropped) = (Vec::new(), None);
        keep_while(
            |_| {},
            Shows::All,
            Shift::default(),
            250,
            &in_use,
            |news, page| {
                heard.push(news.clone());
                assert!(!is_without_counter(page), "dropped before it was lost, or not yet");
                if news != &News::Ready {
                    dropped = Some(std::thread::spawn(move || {
                        let mut tries = 0..10_000;
                        let seen = tries.any(|_| {
                            std::thread::sleep(Duration::from_millis(1));
                            is_without_counter(page)
                        });
                        leave(page);
                        seen
                    }));
                }
                false
            },
        );
        assert!(dropped.unwrap().join().unwrap(), "the page still has the counter");
        assert_eq!(heard, [News::Ready, News::CounterLost(lost().unwrap_err())]);
        assert_eq!(looks.get(), 2);
    }

    #[test]
    fn a_page_that_shows_nothing_serves_nothing_also_after_ticks_and_the_next_keeper() {
        let serves_nothing = |page: &Page| {
            assert!(page.header().is_ok() && !page.is_odd());
            assert_eq!(page.features(), Features::empty());
            assert_eq!(page.published(), datapage::ClockSet::empty());
            assert_eq!((page.realtime_seconds(), page.timezone()), (None, None));
            let slots = [0, 1, 4, 5, 6, 7, 11].map(|id| ClockId(id).slot().unwrap());
            assert!(slots.into_iter().all(|slot| page.resolution(slot).is_none()));
        };
        let as_before = |memory: &mut PageMemory| {
            memory.writer().format(Features::empty(), 4096);
        };
        let new = |_: &mut PageMemory| {};
        let befores: [&dyn Fn(&mut PageMemory); 2] = [&new, &as_before];
        for before in befores {
            let mut ticked = None;
            keep_while(before, Shows::Nothing, Shift::default(), 1000, &lost, |news, page| {
                assert_eq!(news, &News::Ready, "a counter that is not used is not missed");
                serves_nothing(page);
                ticked = Some(std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(20));
                    serves_nothing(page);
                    leave(page);
                }));
                false
            });
            ticked.unwrap().join().unwrap();
        }
    }

    #[test]
    fn a_new_page_tells_the_time_before_it_is_called_ready_and_the_keeper_ends_when_it_is_alone() {
        for hz in [1, 100, 1000] {
            keep(
                |_| {},
                hz,
                |page| {
                    let tick = page.resolution(ClockId::REALTIME_COARSE.slot().unwrap());
                    assert_eq!(tick, Some(1_000_000_000 / hz));
                    let seconds = page.realtime_seconds().unwrap();
                    let now = HostClocks::new().unwrap().nanos(libc::CLOCK_REALTIME);
                    assert!((0..2).contains(&(now / 1_000_000_000 - i128::from(seconds))));
                },
            );
        }
    }
}
