//! Calls every function of an image with every id, null or not, in every mode, and compares.
//!
//! What a page serves must be exact: between the counter's values before and after the call. What it
//! does not serve must be the kernel's own answer, or `-ENOSYS` where that is the image's policy, with
//! the caller's memory left alone on error. The image's code runs in this process: whoever drives an
//! image of unknown origin does it in a process that may die.

use std::ffi::{c_int, c_void};
use std::io;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;

use datapage::{
    ClockId, ClockMode, ClockSet, Features, Instant, PageValues, Scale, TimeZone, UpdateError,
};
use libc::{timespec, timeval, timezone};
use linker::{Image, Policy};

use crate::functions::Functions;
use crate::map::MappedImage;

/// The ids that are tried.
const IDS: std::ops::RangeInclusive<c_int> = -300..=300;

const UNTOUCHED: [i64; 2] = [0x5a5a_5a5a_5a5a_5a5a, -0x0123_4567_89ab_cdef];
const ENOSYS: i64 = 38;
const SHIFT: u32 = 24;
const HRTIMER_RES: u32 = 1;
const COARSE_RES: u32 = 4_000_000;
const ZONE: TimeZone = TimeZone { minutes_west: -90, dst_time: 1 };

/// What happens while an image is driven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A call is about to be made.
    Call(String),
    /// The last call did something else than it had to.
    Difference(String),
}

/// Why an image cannot be driven at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// Its page has another layout than this program writes.
    #[error("the image reads page ABI {found}, this program writes {wanted}")]
    PageAbi {
        /// What the image's note says.
        found: u32,
        /// What is written here.
        wanted: u32,
    },
    /// The kernel refused a mapping.
    #[error("mapping the image")]
    Map(#[from] io::Error),
    /// An update was refused.
    #[error("publishing a page")]
    Update(UpdateError),
}

/// Drives `image`; the number of calls that were made.
///
/// # Errors
/// What keeps it from being driven. Differences are events, not errors.
pub fn drive(image: &Image, report: impl FnMut(Event)) -> Result<u64, DriveError> {
    if image.page_abi != datapage::ABI {
        return Err(DriveError::PageAbi { found: image.page_abi, wanted: datapage::ABI });
    }
    let mut mapped = MappedImage::new(image)?;
    let mut drive = Drive {
        functions: mapped.functions(),
        policy: image.policy,
        state: State::of(ClockMode::NONE, false, false),
        report,
        calls: 0,
    };
    for state in State::all() {
        let state = state.publish(&mut mapped)?;
        drive.state = state;
        drive.all();
    }
    Ok(drive.calls)
}

/// What the page is while calls are made.
#[derive(Clone, Copy, Debug)]
struct State {
    mode: ClockMode,
    is_published: bool,
    is_odd: bool,
    values: PageValues,
}

impl State {
    const fn of(mode: ClockMode, is_published: bool, is_odd: bool) -> Self {
        const NOTHING: PageValues = PageValues {
            clock_mode: ClockMode::NONE,
            cycle_last: 0,
            steered: Scale { mask: 0, mult: 0, shift: 0 },
            raw: Scale { mask: 0, mult: 0, shift: 0 },
            hrtimer_res: 0,
            coarse_res: 0,
            instants: [None; datapage::layout::BASES],
        };
        Self { mode, is_published, is_odd, values: NOTHING }
    }

    /// Every mode that has a name and some that have none, an unpublished page, a torn one.
    ///
    /// The mode of time namespaces means something on an odd page only, which then needs a second
    /// page behind it; on an even one it is as good as unknown.
    fn all() -> Vec<Self> {
        let modes = [
            ClockMode::NONE,
            ClockMode::COUNTER,
            ClockMode::PVCLOCK,
            ClockMode::HVCLOCK,
            ClockMode::MEMORY,
            ClockMode::RDTSCP,
            ClockMode::CNTVCTSS,
            ClockMode::COUNTER_64BIT_ONLY,
            ClockMode(4),
            ClockMode(-1),
            ClockMode(i32::MIN),
            ClockMode::TIME_NAMESPACE,
        ];
        let is_there = |mode: &ClockMode| *mode != ClockMode::RDTSCP || crate::host::has_rdtscp();
        let published = modes.into_iter().filter(is_there).map(|mode| Self::of(mode, true, false));
        let others =
            [Self::of(ClockMode::COUNTER, false, false), Self::of(ClockMode::COUNTER, true, true)];
        published.chain(others).collect()
    }

    /// Makes the page so.
    fn publish(mut self, mapped: &mut MappedImage) -> Result<Self, DriveError> {
        self.values = PageValues {
            clock_mode: self.mode,
            cycle_last: counter().wrapping_sub(5_000_000),
            steered: Scale { mask: u64::MAX, mult: 6_990_507, shift: SHIFT },
            raw: Scale { mask: u64::MAX, mult: 6_990_000, shift: SHIFT },
            hrtimer_res: HRTIMER_RES,
            coarse_res: COARSE_RES,
            ..PageValues::default()
        };
        for (secs, id) in (1_700_000_000..).zip([0, 1, 4, 5, 6, 7, 11]) {
            let clock = ClockId(id);
            let is_coarse = ClockSet::COARSE.contains(clock.set());
            let nanos = if is_coarse { 123_456_789 } else { 999_999_000 << SHIFT };
            self.values.set(clock, Instant { secs, nanos });
        }
        let slot_bytes = mapped.image().slot_bytes;
        let (mut writer, _) = mapped.split();
        writer.format(Features::empty(), slot_bytes);
        if self.is_published {
            writer.publish(&self.values.validate().map_err(DriveError::Update)?);
            writer.set_timezone(ZONE);
            writer.set_memory_counter(self.values.cycle_last + MEMORY_CYCLES);
        }
        if self.is_odd {
            let (words, _) = mapped.split_words();
            // The lowest word of the page begins with `seq`.
            words[0].fetch_or(1, Ordering::Relaxed);
        }
        Ok(self)
    }

    /// Whether the page serves a clock now.
    fn serves(&self, id: c_int) -> bool {
        let set = ClockId(id).set();
        let counted = [
            ClockMode::COUNTER,
            ClockMode::RDTSCP,
            ClockMode::COUNTER_64BIT_ONLY,
            ClockMode::MEMORY,
        ];
        let counts = counted.contains(&self.mode);
        let stable = self.is_published && !self.is_odd;
        stable
            && !set.is_empty()
            && (ClockSet::COARSE.contains(set) || (counts && ClockSet::PRECISE.contains(set)))
    }

    /// Whether the page serves a clock's resolution: that needs no counter.
    fn serves_resolution(&self, id: c_int) -> bool {
        let set = ClockId(id).set();
        self.is_published && !self.is_odd && !set.is_empty() && ClockSet::SERVED.contains(set)
    }

    /// The exact time of a served clock when its counter has a value: seconds and nanoseconds.
    fn time(&self, id: c_int, counter: u64) -> [i64; 2] {
        let Some(instant) = self.values.get(ClockId(id)) else {
            return UNTOUCHED;
        };
        if ClockSet::COARSE.contains(ClockId(id).set()) {
            return split(instant.secs, u128::from(instant.nanos));
        }
        let scale =
            if id == ClockId::MONOTONIC_RAW.0 { self.values.raw } else { self.values.steered };
        let counter = match self.mode {
            ClockMode::MEMORY => self.values.cycle_last + MEMORY_CYCLES,
            _ => counter,
        };
        let cycles = u128::from(counter - self.values.cycle_last);
        split(instant.secs, (u128::from(instant.nanos) + cycles * u128::from(scale.mult)) >> SHIFT)
    }
}

/// How far the counter in memory is ahead of the last update.
const MEMORY_CYCLES: u64 = 3_333_333;

fn split(secs: i64, nanos: u128) -> [i64; 2] {
    let part = |value: u128| i64::try_from(value).unwrap_or(i64::MAX);
    [secs + part(nanos / 1_000_000_000), part(nanos % 1_000_000_000)]
}

/// An image under way.
struct Drive<R> {
    functions: Functions,
    policy: Policy,
    state: State,
    report: R,
    calls: u64,
}

impl<R: FnMut(Event)> Drive<R> {
    fn all(&mut self) {
        for id in IDS {
            self.clock_gettime(id);
            self.clock_getres(id);
            self.clock_gettime_ns(id);
        }
        for [tv, tz] in [[true, true], [true, false], [false, true], [false, false]] {
            self.gettimeofday(tv, tz);
        }
        for pointer in [true, false] {
            self.time(pointer);
        }
        for [cpu, node] in [[true, true], [true, false], [false, true], [false, false]] {
            self.getcpu(cpu, node);
        }
    }

    fn clock_gettime(&mut self, id: c_int) {
        let Some(call) = self.functions.clock_gettime else {
            return;
        };
        let serves = self.state.serves(id);
        for is_null in [false, true] {
            if is_null && serves {
                // A fault, as with Linux's vDSO: documented, and not to be tried in this process.
                continue;
            }
            self.begin(&format!("clock_gettime({id}, {})", if is_null { "NULL" } else { "ts" }));
            let mut ours = UNTOUCHED;
            let pointer = pointer(&mut ours, is_null).cast::<timespec>();
            let before = counter();
            // SAFETY: null, or memory as large as a timespec; the image is mapped.
            let answer = unsafe { call(id, pointer) } as i64;
            let after = counter();
            if serves {
                let earliest = self.state.time(id, before);
                let latest = self.state.time(id, after);
                if answer != 0 || ours < earliest || ours > latest {
                    self.differ(format!("{answer}, {ours:?}; wanted {earliest:?} to {latest:?}"));
                }
            } else {
                self.like_the_kernel(libc::SYS_clock_gettime, id, is_null, answer, ours);
            }
        }
    }

    fn clock_getres(&mut self, id: c_int) {
        let Some(call) = self.functions.clock_getres else {
            return;
        };
        for is_null in [false, true] {
            self.begin(&format!("clock_getres({id}, {})", if is_null { "NULL" } else { "res" }));
            let mut ours = UNTOUCHED;
            let pointer = pointer(&mut ours, is_null).cast::<timespec>();
            // SAFETY: null, or memory as large as a timespec; the image is mapped.
            let answer = unsafe { call(id, pointer) } as i64;
            if self.state.serves_resolution(id) {
                let is_coarse = ClockSet::COARSE.contains(ClockId(id).set());
                let nanos = if is_coarse { COARSE_RES } else { HRTIMER_RES };
                let wanted = if is_null { UNTOUCHED } else { [0, nanos.into()] };
                if (answer, ours) != (0, wanted) {
                    self.differ(format!("{answer}, {ours:?}; wanted 0, {wanted:?}"));
                }
            } else {
                self.like_the_kernel(libc::SYS_clock_getres, id, is_null, answer, ours);
            }
        }
    }

    fn clock_gettime_ns(&mut self, id: c_int) {
        let Some(call) = self.functions.clock_gettime_ns else {
            return;
        };
        self.begin(&format!("clock_gettime_ns({id})"));
        let before = counter();
        // SAFETY: the image is mapped.
        let answer = unsafe { call(id) };
        let after = counter();
        let total = |[secs, nanos]: [i64; 2]| secs * 1_000_000_000 + nanos;
        if self.state.serves(id) {
            let earliest = total(self.state.time(id, before));
            let latest = total(self.state.time(id, after));
            if !(earliest..=latest).contains(&answer) {
                self.differ(format!("{answer}; wanted {earliest} to {latest}"));
            }
            return;
        }
        let mut theirs = UNTOUCHED;
        let error = self.kernel(libc::SYS_clock_gettime, id, (&raw mut theirs).cast());
        let is_same = if error == 0 { answer >= 0 } else { answer == error };
        if !is_same {
            self.differ(format!("{answer}; the kernel says {error}"));
        }
    }

    fn gettimeofday(&mut self, has_tv: bool, has_tz: bool) {
        let Some(call) = self.functions.gettimeofday else {
            return;
        };
        let name = |given, name| if given { name } else { "NULL" };
        self.begin(&format!("gettimeofday({}, {})", name(has_tv, "tv"), name(has_tz, "tz")));
        let (mut tv, mut tz) = (UNTOUCHED, UNTOUCHED);
        let time = pointer(&mut tv, !has_tv).cast::<timeval>();
        let zone = pointer(&mut tz, !has_tz).cast::<timezone>();
        let before = counter();
        // SAFETY: null, or memory at least as large as a timeval and a timezone.
        let answer = unsafe { call(time, zone) } as i64;
        let after = counter();
        let stable = self.state.is_published && !self.state.is_odd;
        let served = (!has_tv || self.state.serves(0)) && (!has_tz || stable);
        if !served {
            let wanted = if self.policy == Policy::Enosys { -ENOSYS } else { 0 };
            if answer != wanted {
                self.differ(format!("{answer}; wanted {wanted}"));
            }
            return;
        }
        let micros = |[secs, nanos]: [i64; 2]| [secs, nanos / 1000];
        let earliest = micros(self.state.time(0, before));
        let latest = micros(self.state.time(0, after));
        if answer != 0 || (has_tv && (tv < earliest || tv > latest)) {
            self.differ(format!("{answer}, {tv:?}; wanted {earliest:?} to {latest:?}"));
        }
        let words = i64::from(ZONE.minutes_west.cast_unsigned()) | i64::from(ZONE.dst_time) << 32;
        if has_tz && tz != [words, UNTOUCHED[1]] {
            self.differ(format!("timezone {tz:x?}; wanted {words:x}"));
        }
    }

    fn time(&mut self, has_pointer: bool) {
        let Some(call) = self.functions.time else {
            return;
        };
        self.begin(if has_pointer { "time(t)" } else { "time(NULL)" });
        let mut memory = UNTOUCHED;
        // SAFETY: null, or memory as large as a time_t; the image is mapped.
        let answer = unsafe { call(pointer(&mut memory, !has_pointer).cast()) };
        // One word is one update, so even a torn page tells the second.
        let (low, high) = if self.state.is_published {
            let wall = self.state.values.get(ClockId::REALTIME).unwrap_or_default();
            (wall.secs, wall.secs)
        } else if self.policy == Policy::Enosys {
            (-ENOSYS, -ENOSYS)
        } else {
            (1, i64::MAX)
        };
        let stored = if has_pointer && answer >= 0 { answer } else { UNTOUCHED[0] };
        if !(low..=high).contains(&answer) || memory[0] != stored {
            self.differ(format!("{answer}, {memory:?}; wanted {low} to {high}"));
        }
    }

    fn getcpu(&mut self, has_cpu: bool, has_node: bool) {
        let Some(call) = self.functions.getcpu else {
            return;
        };
        let name = |given, name| if given { name } else { "NULL" };
        self.begin(&format!("getcpu({}, {})", name(has_cpu, "cpu"), name(has_node, "node")));
        let (mut cpu, mut node) = (UNTOUCHED, UNTOUCHED);
        let (first, second) = (pointer(&mut cpu, !has_cpu), pointer(&mut node, !has_node));
        // SAFETY: null, or memory as large as a number each; the image is mapped.
        let answer = unsafe { call(first.cast(), second.cast(), null_mut()) } as i64;
        // The page promises no way to ask the CPU, so the kernel is asked.
        let wanted = if self.policy == Policy::Enosys { -ENOSYS } else { 0 };
        let wrote = |memory: [i64; 2]| memory != UNTOUCHED;
        let is_written = wanted == 0;
        if answer != wanted
            || wrote(cpu) != (is_written && has_cpu)
            || wrote(node) != (is_written && has_node)
        {
            self.differ(format!("{answer}, cpu {cpu:x?}, node {node:x?}; wanted {wanted}"));
        }
    }

    /// Compares an answer that the page could not give with the kernel's.
    fn like_the_kernel(
        &mut self,
        number: libc::c_long,
        id: c_int,
        is_null: bool,
        answer: i64,
        ours: [i64; 2],
    ) {
        let mut theirs = UNTOUCHED;
        let wanted = self.kernel(number, id, pointer(&mut theirs, is_null));
        if answer != wanted {
            self.differ(format!("{answer}; the kernel says {wanted}"));
        }
        if answer != 0 && ours != UNTOUCHED {
            self.differ(format!("{answer}, and memory was touched: {ours:x?}"));
        }
    }

    /// The kernel's own answer, or what stands for it in this image's policy.
    fn kernel(&self, number: libc::c_long, id: c_int, pointer: *mut c_void) -> i64 {
        if self.policy == Policy::Enosys {
            return -ENOSYS;
        }
        // SAFETY: both calls take an id and null or memory as large as a timespec.
        if unsafe { libc::syscall(number, id, pointer) } == 0 {
            return 0;
        }
        -i64::from(io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }

    fn begin(&mut self, call: &str) {
        self.calls += 1;
        let State { mode, is_published, is_odd, .. } = self.state;
        let page = match (is_published, is_odd) {
            (_, true) => "torn",
            (false, _) => "unpublished",
            _ => "published",
        };
        (self.report)(Event::Call(format!("{call}, mode {:#x}, page {page}", mode.0)));
    }

    fn differ(&mut self, what: String) {
        (self.report)(Event::Difference(what));
    }
}

fn pointer(memory: &mut [i64; 2], is_null: bool) -> *mut c_void {
    if is_null { null_mut() } else { (&raw mut *memory).cast() }
}

/// The counter, ordered after everything before it.
fn counter() -> u64 {
    // SAFETY: every x86_64 CPU has it.
    unsafe { std::arch::x86_64::_mm_lfence() };
    // SAFETY: every x86_64 CPU has it, and a kernel that forbids it has no counter mode either.
    let value = unsafe { std::arch::x86_64::_rdtsc() };
    // SAFETY: as above; what follows must not run before the counter was read.
    unsafe { std::arch::x86_64::_mm_lfence() };
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_images_of_this_build_answer_every_call_as_they_must() {
        for image in [&linker::SYSCALL, &linker::ENOSYS] {
            let mut last = String::new();
            let mut differences = Vec::new();
            let calls = drive(image, |event| match event {
                Event::Call(call) => last = call,
                Event::Difference(what) => differences.push(format!("{last}: {what}")),
            })
            .unwrap();
            assert_eq!(differences, [] as [&str; 0], "{:?}", image.policy);
            assert!(calls > 30_000, "{calls} calls");
        }
    }

    #[test]
    fn an_image_with_the_other_policys_note_is_found_out() {
        // The bytes of one policy under the constants of the other: it makes system calls that it
        // says it does not make.
        let mut liar = linker::SYSCALL;
        liar.policy = Policy::Enosys;
        let mut differences = 0;
        drive(&liar, |event| differences += u64::from(matches!(event, Event::Difference(_))))
            .unwrap();
        assert!(differences > 1000, "{differences}");
    }
}
