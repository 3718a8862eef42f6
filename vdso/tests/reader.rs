//! The reader against exact arithmetic: any page, any counter, every function.
//!
//! The page is raw words here, so that every bit pattern can stand in it. What is due is computed
//! from the words in 128-bit arithmetic, which holds every intermediate value exactly: the product
//! has at most 95 bits.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use datapage::layout::offset;
use datapage::protocol::Native;
use datapage::{ClockMode, Features, Page};
use proptest::prelude::*;
use vdso::{Call, Platform, TimeSpec, TimeVal, Timezone, UserPtr};

/// A page of raw words.
#[repr(align(64))]
struct Words([AtomicU64; 64]);

impl Words {
    fn zeroed() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
    fn page(&self) -> &Page {
        // SAFETY: 512 bytes of atomic words, aligned to 64, alive as long as `self` is borrowed.
        unsafe { Page::at(self.0.as_ptr().cast()) }
    }
    fn put64(&self, at: usize, value: u64) {
        self.0[at / 8].store(value, Ordering::Relaxed);
    }
    fn put32(&self, at: usize, value: u32) {
        assert_eq!(at % 4, 0);
        assert!(at < 512);
        let word = self.0.as_ptr().cast::<AtomicU32>().wrapping_add(at / 4);
        // SAFETY: inside the array, aligned; all access to it is atomic.
        let word = unsafe { &*word };
        word.store(value, Ordering::Relaxed);
    }
    /// Publishes `words` as a stable page.
    fn set(&self, clock: Clock) {
        let Clock { id, scale, base, mode } = clock;
        let cs = offset::CS + offset::CS_BYTES * usize::from(id == 4);
        self.put32(offset::SEQ, 2);
        self.put32(offset::CLOCK_MODE, mode.cast_unsigned());
        self.put64(offset::CYCLE_LAST, scale.cycle_last);
        self.put64(cs + offset::CS_MASK, scale.mask);
        self.put32(cs + offset::CS_MULT, scale.mult);
        self.put32(cs + offset::CS_SHIFT, scale.shift);
        self.put_base(id, base);
    }
    fn put_base(&self, id: usize, (sec, nsec): (u64, u64)) {
        let slot = offset::BASETIME + offset::BASETIME_BYTES * id;
        self.put64(slot + offset::BASETIME_SEC, sec);
        self.put64(slot + offset::BASETIME_NSEC, nsec);
    }
}

#[derive(Clone, Copy, Debug)]
struct Scale {
    cycle_last: u64,
    mask: u64,
    mult: u32,
    shift: u32,
}

#[derive(Clone, Copy, Debug)]
struct Clock {
    id: usize,
    scale: Scale,
    base: (u64, u64),
    mode: i32,
}

/// A machine with a scripted counter and a kernel that records what it is asked.
struct Machine<'p> {
    page: &'p Page,
    behind: &'p Page,
    counter: Cell<u64>,
    /// Runs at each read of the counter: between the loads and the closing check.
    meanwhile: &'p dyn Fn(),
    asked: RefCell<Vec<(Call, [usize; 3])>>,
}

const KERNEL_SAYS: isize = -1;

impl<'p> Machine<'p> {
    fn new(page: &'p Page, counter: u64) -> Self {
        Self {
            page,
            behind: page,
            counter: Cell::new(counter),
            meanwhile: &|| (),
            asked: RefCell::default(),
        }
    }
    fn asked(&self) -> usize {
        self.asked.borrow().len()
    }
}

impl Platform for Machine<'_> {
    type Cells = Native;
    fn page(&self) -> &Page {
        self.page
    }
    fn page_behind_namespace(&self) -> &Page {
        self.behind
    }
    fn counter(&self, mode: ClockMode) -> Option<u64> {
        (mode == ClockMode::COUNTER).then(|| {
            (self.meanwhile)();
            self.counter.get()
        })
    }
    fn cpu_and_node(&self, _: Features) -> Option<u32> {
        None
    }
    fn syscall(&self, call: Call, arguments: [usize; 3]) -> isize {
        self.asked.borrow_mut().push((call, arguments));
        KERNEL_SAYS
    }
}

/// What a function did: its answer and what it stored, `None` if nothing.
fn gettime(machine: &Machine<'_>, id: i32) -> (isize, Option<(i64, i64)>) {
    let untouched = TimeSpec { tv_sec: -77, tv_nsec: -77 };
    let mut spec = untouched;
    // SAFETY: a live local.
    let pointer = unsafe { UserPtr::new(&raw mut spec) };
    let answer = vdso::clock_gettime(machine, id, pointer);
    (answer, (spec != untouched).then_some((spec.tv_sec, spec.tv_nsec)))
}

fn gettimeofday(machine: &Machine<'_>) -> (isize, Option<(i64, i64)>) {
    let untouched = TimeVal { tv_sec: -77, tv_usec: -77 };
    let mut val = untouched;
    // SAFETY: a live local.
    let pointer = unsafe { UserPtr::new(&raw mut val) };
    // SAFETY: null is a legal claim.
    let null = unsafe { UserPtr::<Timezone>::new(std::ptr::null_mut()) };
    let answer = vdso::gettimeofday(machine, pointer, null);
    (answer, (val != untouched).then_some((val.tv_sec, val.tv_usec)))
}

const BILLION: i128 = 1_000_000_000;

/// Nanoseconds that are due, or `None` where the reader must fall back.
fn due(clock: Clock, counter: u64) -> Option<i128> {
    let Clock { id, scale, base: (sec, nsec), .. } = clock;
    if (sec, nsec) == (0, 0) {
        return None;
    }
    let coarse = id == 5 || id == 6;
    let nanos = if coarse {
        u128::from(nsec)
    } else {
        if scale.shift > 34 {
            return None;
        }
        let delta = counter.wrapping_sub(scale.cycle_last) & scale.mask;
        let delta = if delta > scale.mask / 2 { 0 } else { delta };
        (u128::from(nsec) + u128::from(delta) * u128::from(scale.mult)) >> scale.shift
    };
    Some(i128::from(sec.cast_signed()) * BILLION + i128::try_from(nanos).expect("96 bits"))
}

/// What `clock_gettime` must do with it.
fn due_spec(due: Option<i128>) -> (isize, Option<(i64, i64)>) {
    let split = due.and_then(|nanos| {
        let secs = i64::try_from(nanos.div_euclid(BILLION)).ok()?;
        Some((secs, i64::try_from(nanos.rem_euclid(BILLION)).expect("30 bits")))
    });
    split.map_or((KERNEL_SAYS, None), |split| (0, Some(split)))
}

const EOVERFLOW: i64 = -75;

/// What `clock_gettime_ns` must do with it.
fn due_ns(due: Option<i128>) -> i64 {
    // Seconds that no i64 holds are a page that cannot be served, as in `clock_gettime`.
    match (due, due_spec(due)) {
        (Some(nanos), (0, _)) => match i64::try_from(nanos) {
            Ok(-4095..=-1) => 0,
            Ok(nanos) => nanos,
            Err(_) => EOVERFLOW,
        },
        _ => i64::try_from(KERNEL_SAYS).expect("an errno"),
    }
}

/// Values at which something changes, and any others.
fn words64() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0..64_u32, -2_i64..=2).prop_map(|(bit, near)| (1_u64 << bit).wrapping_add_signed(near)),
        (0..20_u64, -2_i64..=2).prop_map(|(s, near)| (s * 1_000_000_000).wrapping_add_signed(near)),
        Just(u64::MAX),
        Just(0),
    ]
}

fn seconds() -> impl Strategy<Value = u64> {
    prop_oneof![
        words64(),
        (-3_i64..=3).prop_map(i64::cast_unsigned),
        (9_223_372_030_i64..=9_223_372_040).prop_map(i64::cast_unsigned),
        (-9_223_372_040_i64..=-9_223_372_030).prop_map(i64::cast_unsigned),
        (-3_i64..=3).prop_map(|near| i64::MAX.wrapping_add(near).cast_unsigned()),
    ]
}

fn clocks() -> impl Strategy<Value = (Clock, u64)> {
    let ids = prop::sample::select(vec![0_usize, 1, 4, 5, 6, 7, 11]);
    let masks = prop_oneof![
        Just(u64::MAX),
        (0..=64_u32).prop_map(|bits| u64::MAX.checked_shr(64 - bits).unwrap_or(0)),
        any::<u64>(),
    ];
    let mults = prop_oneof![any::<u32>(), 0..4_u32, Just(u32::MAX)];
    let shifts = prop_oneof![0..=34_u32, 0..=34_u32, 30..70_u32, any::<u32>()];
    let modes = prop_oneof![Just(1), Just(0x100)];
    let deltas = prop_oneof![words64(), 0..100_u64];
    (ids, words64(), masks, mults, shifts, seconds(), words64(), modes, deltas).prop_map(
        |(id, cycle_last, mask, mult, shift, sec, nsec, mode, delta)| {
            let scale = Scale { cycle_last, mask, mult, shift };
            let nsec =
                if shift <= 34 && nsec % 3 == 0 { nsec % (1_000_000_000 << shift) } else { nsec };
            (Clock { id, scale, base: (sec, nsec), mode }, cycle_last.wrapping_add(delta))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn every_function_is_exact_for_every_page((clock, counter) in clocks()) {
        let words = Words::zeroed();
        words.set(clock);
        words.put64(offset::MEMORY_COUNTER, counter);
        let machine = Machine::new(words.page(), counter);
        let id = i32::try_from(clock.id).unwrap();
        let due = due(clock, counter);
        prop_assert_eq!(gettime(&machine, id), due_spec(due));
        prop_assert_eq!(vdso::clock_gettime_ns(&machine, id), due_ns(due));
        if clock.id == 0 {
            let spec = due_spec(due);
            let due_val = (spec.0, spec.1.map(|(secs, nanos)| (secs, nanos / 1000)));
            prop_assert_eq!(gettimeofday(&machine), due_val);
        }
    }
}

/// Where the quick ways end and the exact one takes over.
#[test]
fn the_quick_ways_meet_the_exact_one() {
    let words = Words::zeroed();
    let secs = [0, 1, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, 9_223_372_036, u64::MAX, u64::MAX - 1];
    let nsecs = [0, 1, 999_999_999, 1_000_000_000, 1 << 62, (1 << 62) - 1, 1 << 63, u64::MAX];
    for (id, mult, shift) in [(0, 0, 0), (1, 1, 1), (4, 1, 2), (7, 3, 3), (11, 1, 34), (5, 0, 0)] {
        for (sec, nsec) in secs.iter().flat_map(|sec| nsecs.map(|nsec| (*sec, nsec))) {
            let scale = Scale { cycle_last: 0, mask: u64::MAX, mult, shift };
            let clock = Clock { id, scale, base: (sec, nsec), mode: 1 };
            words.set(clock);
            let machine = Machine::new(words.page(), 3);
            let due = due(clock, 3);
            let id = i32::try_from(id).unwrap();
            assert_eq!(gettime(&machine, id), due_spec(due), "{clock:?}");
            assert_eq!(vdso::clock_gettime_ns(&machine, id), due_ns(due), "{clock:?}");
        }
    }
}

#[test]
fn a_resolution_is_served_for_every_published_clock_and_for_no_other() {
    let words = Words::zeroed();
    words.put32(offset::CLOCK_MODE, 0); // needs no counter
    let served = [0, 1, 4, 5, 6, 7, 11];
    let resolutions = [0, 1, 999_999_999, 1_000_000_000, 1_000_000_001, u32::MAX];
    for resolution in resolutions {
        let precise = resolution;
        let coarse = resolution.wrapping_mul(3);
        words.put32(offset::HRTIMER_RES, precise);
        words.put32(offset::COARSE_RES, coarse);
        for id in -20..20_i32 {
            for base in [(0, 0), (0, 1), (1, 0), (u64::MAX, 1_000_000_000)] {
                if let Ok(id) = usize::try_from(id)
                    && served.contains(&id)
                {
                    words.put_base(id, base);
                }
                let of_clock = if matches!(id, 5 | 6) { coarse } else { precise };
                let is_served = usize::try_from(id).is_ok_and(|id| served.contains(&id));
                let due = (is_served && base != (0, 0) && of_clock != 0).then(|| {
                    (i64::from(of_clock / 1_000_000_000), i64::from(of_clock % 1_000_000_000))
                });
                let machine = Machine::new(words.page(), 0);
                let mut spec = TimeSpec { tv_sec: -77, tv_nsec: -77 };
                // SAFETY: a live local.
                let pointer = unsafe { UserPtr::new(&raw mut spec) };
                // SAFETY: null is a legal claim.
                let null = unsafe { UserPtr::<TimeSpec>::new(std::ptr::null_mut()) };
                let answers = [
                    vdso::clock_getres(&machine, id, pointer),
                    vdso::clock_getres(&machine, id, null),
                ];
                let (answer, stored) = due.map_or((KERNEL_SAYS, (-77, -77)), |due| (0, due));
                let told = (answers, (spec.tv_sec, spec.tv_nsec));
                assert_eq!(told, ([answer; 2], stored), "clock {id}, {base:?}, {of_clock} ns");
                assert_eq!(machine.asked(), if due.is_some() { 0 } else { 2 });
            }
        }
    }
}

fn plain(id: usize) -> Clock {
    let scale = Scale { cycle_last: 100, mask: u64::MAX, mult: 1, shift: 0 };
    Clock { id, scale, base: (7, 5), mode: 1 }
}

#[test]
fn a_zeroed_page_serves_nothing_and_every_call_asks_the_kernel_once() {
    let words = Words::zeroed();
    let machine = Machine::new(words.page(), 0);
    for id in -20..20 {
        assert_eq!(gettime(&machine, id), (KERNEL_SAYS, None));
        assert_eq!(vdso::clock_gettime_ns(&machine, id), -1);
        assert_eq!(machine.asked.borrow_mut().drain(..).count(), 2, "clock {id}");
    }
    // SAFETY: null is a legal claim.
    let null = unsafe { UserPtr::<i64>::new(std::ptr::null_mut()) };
    assert_eq!((vdso::time(&machine, null), machine.asked()), (-1, 1));
}

#[test]
fn the_fallback_passes_the_callers_own_arguments() {
    let words = Words::zeroed();
    let machine = Machine::new(words.page(), 0);
    let mut spec = TimeSpec::default();
    // SAFETY: a live local.
    let pointer = unsafe { UserPtr::new(&raw mut spec) };
    vdso::clock_gettime(&machine, -6, pointer);
    vdso::clock_getres(&machine, 12, pointer);
    let asked = machine.asked.borrow();
    let minus_six = (-6_isize).cast_unsigned();
    assert_eq!(asked[0], (Call::ClockGettime, [minus_six, pointer.address(), 0]));
    assert_eq!(asked[1], (Call::ClockGetres, [12, pointer.address(), 0]));
}

#[test]
fn modes_that_are_not_this_machines_fall_back_and_leave_coarse_clocks_alone() {
    let words = Words::zeroed();
    words.put_base(5, (9, 3));
    for mode in [0, 2, 3, 4, 0x102, -1, i32::MIN, i32::MAX] {
        words.set(Clock { mode, ..plain(1) });
        let machine = Machine::new(words.page(), 100);
        assert_eq!(gettime(&machine, 1), (KERNEL_SAYS, None), "mode {mode}");
        assert_eq!(gettime(&machine, 5), (0, Some((9, 3))), "mode {mode}");
    }
}

#[test]
fn a_read_that_an_update_overtakes_is_repeated_and_then_given_up() {
    let words = Words::zeroed();
    words.set(plain(1));
    let left = Cell::new(3_u32);
    let update = || {
        if left.get() > 0 {
            left.set(left.get() - 1);
            words.put64(offset::CYCLE_LAST, 50 * u64::from(left.get()));
            words.put32(offset::SEQ, 100 - 2 * left.get());
        }
    };
    let mut machine = Machine::new(words.page(), 100);
    machine.meanwhile = &update;
    assert_eq!(gettime(&machine, 1), (0, Some((7, 105))), "the last update's cycle_last is 0");

    let forever = Cell::new(0_u32);
    let update = || {
        forever.set(forever.get() + 1);
        words.put32(offset::SEQ, 2 * forever.get());
    };
    machine.meanwhile = &update;
    assert_eq!(gettime(&machine, 1), (KERNEL_SAYS, None));
    assert_eq!(
        forever.get(),
        1 + datapage::protocol::ATTEMPTS,
        "one quick attempt, then the bound"
    );
}

#[test]
fn an_odd_page_is_given_up_and_not_read() {
    let words = Words::zeroed();
    words.set(plain(1));
    words.put32(offset::SEQ, 3);
    let machine = Machine::new(words.page(), 100);
    assert_eq!(gettime(&machine, 1), (KERNEL_SAYS, None));
}

#[test]
fn a_namespace_adds_its_offsets_to_the_kernels_page() {
    let front = Words::zeroed();
    front.put32(offset::SEQ, 1);
    front.put32(offset::CLOCK_MODE, i32::MAX.cast_unsigned());
    let back = Words::zeroed();
    for id in [0, 1, 4, 7, 11] {
        back.set(plain(id));
    }
    back.put_base(5, (20, 999_999_999));
    back.put_base(6, (30, 999_999_999));
    back.put32(offset::HRTIMER_RES, 1);
    back.put32(offset::TZ_MINUTESWEST, 60);
    for id in [1, 4, 6] {
        front.put_base(id, ((-2_i64).cast_unsigned(), 999_999_990));
    }
    front.put_base(7, (1000, 1));

    let mut machine = Machine::new(front.page(), 110);
    machine.behind = back.page();
    let due = [
        (0, (7, 15)),
        (11, (7, 15)),
        (1, (6, 5)),
        (4, (6, 5)),
        (7, (1007, 16)),
        (5, (20, 999_999_999)),
        (6, (29, 999_999_989)),
    ];
    for (id, (secs, nanos)) in due {
        assert_eq!(gettime(&machine, id), (0, Some((secs, nanos))), "clock {id}");
        assert_eq!(vdso::clock_gettime_ns(&machine, id), secs * 1_000_000_000 + nanos);
    }
    assert_eq!(gettimeofday(&machine), (0, Some((7, 0))));
    // SAFETY: null is a legal claim.
    let null = unsafe { UserPtr::<i64>::new(std::ptr::null_mut()) };
    assert_eq!(vdso::time(&machine, null), 7);
    let mut spec = TimeSpec::default();
    // SAFETY: a live local.
    let pointer = unsafe { UserPtr::new(&raw mut spec) };
    assert_eq!((vdso::clock_getres(&machine, 1, pointer), spec.tv_nsec), (0, 1));
    let mut zone = Timezone::default();
    // SAFETY: a live local.
    let zone_pointer = unsafe { UserPtr::new(&raw mut zone) };
    // SAFETY: null is a legal claim.
    let null = unsafe { UserPtr::<TimeVal>::new(std::ptr::null_mut()) };
    assert_eq!((vdso::gettimeofday(&machine, null, zone_pointer), zone.tz_minuteswest), (0, 60));
    assert_eq!(machine.asked(), 0);
    assert_eq!(gettime(&machine, 2), (KERNEL_SAYS, None), "CPU clocks are the kernel's here too");
}

#[test]
fn the_timezone_and_the_time_are_served_together_or_not_at_all() {
    let words = Words::zeroed();
    words.set(plain(0));
    let machine = Machine::new(words.page(), 100);
    let (mut val, mut zone) = (TimeVal::default(), Timezone::default());
    // SAFETY: a live local.
    let val_pointer = unsafe { UserPtr::new(&raw mut val) };
    // SAFETY: a live local.
    let zone_pointer = unsafe { UserPtr::new(&raw mut zone) };
    assert_eq!(vdso::gettimeofday(&machine, val_pointer, zone_pointer), KERNEL_SAYS);
    assert_eq!((val, zone, machine.asked()), (TimeVal::default(), Timezone::default(), 1));
    words.put32(offset::HRTIMER_RES, 1);
    words.put32(offset::TZ_MINUTESWEST, (-5_i32).cast_unsigned());
    assert_eq!(vdso::gettimeofday(&machine, val_pointer, zone_pointer), 0);
    assert_eq!((val.tv_sec, zone.tz_minuteswest, machine.asked()), (7, -5, 1));
    // SAFETY: null is a legal claim.
    let no_val = unsafe { UserPtr::<TimeVal>::new(std::ptr::null_mut()) };
    // SAFETY: null is a legal claim.
    let no_zone = unsafe { UserPtr::<Timezone>::new(std::ptr::null_mut()) };
    assert_eq!(vdso::gettimeofday(&machine, no_val, no_zone), 0);
    words.put32(offset::CLOCK_MODE, 0);
    assert_eq!(vdso::gettimeofday(&machine, no_val, zone_pointer), 0, "needs no counter");
    assert_eq!(machine.asked(), 1);
}

#[test]
fn time_is_the_second_of_the_last_update_also_at_zero_and_before() {
    let words = Words::zeroed();
    // SAFETY: null is a legal claim.
    let null = unsafe { UserPtr::<i64>::new(std::ptr::null_mut()) };
    let at = |sec: i64, nsec: u64| {
        words.set(Clock { base: (sec.cast_unsigned(), nsec), mode: 0, ..plain(0) });
        vdso::time(&Machine::new(words.page(), 0), null)
    };
    assert_eq!(at(5, 999_999_999), 5);
    assert_eq!(at(-1, 1_000_000_000), 0, "the writer's way to write 0");
    assert_eq!(at(-1, 999_999_999), -1);
    assert_eq!(at(0, 1), 0);
    assert_eq!(at(-2, 0), -2);
    assert_eq!(at(4_294_967_296, 0), 4_294_967_296);
    assert_eq!(at(0, 0), -1, "unpublished: the kernel's answer");
}

/// -4095..=-1 are errors to whoever calls; the times next to them are none.
#[test]
fn a_time_that_would_be_an_error_is_returned_as_zero() {
    let words = Words::zeroed();
    for (nanos, due) in [(-4096, -4096), (-4095, 0), (-4094, 0), (-2, 0), (-1, 0), (1, 1)] {
        for id in [1_u8, 5] {
            let nsec = 1_000_000_000_u64.wrapping_add_signed(nanos);
            words.set(Clock { base: (u64::MAX, nsec), ..plain(id.into()) });
            let machine = Machine::new(words.page(), 100);
            assert_eq!(vdso::clock_gettime_ns(&machine, id.into()), due, "clock {id}, {nanos} ns");
            assert_eq!(machine.asked(), 0);
        }
    }
}
