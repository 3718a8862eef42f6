//! What the kernel answers, and what it promises, on a machine of numbers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use datapage::{ClockMode, Features};
use embed::clock::Clock;
use embed::cpu::{Cpu, Promises};
use embed::fallback::{User, answer, number};
use embed::uvdso_image::SLOT_BYTES;
use embed::vdso::{Access, IMAGE_PAGES, Machine, RANGE_BYTES, Vdso, auxiliary_vector};

const EFAULT: isize = -14;
const EINVAL: isize = -22;
const ENOSYS: isize = -38;

/// A frame's memory, at the start of a page.
#[repr(C, align(4096))]
struct Frame([u8; SLOT_BYTES]);

/// Memory of the program is the addresses from 0x1000 on; what is written there is kept.
#[derive(Default)]
struct Numbers {
    counter: u64,
    frames: Vec<*mut u8>,
    mapped: Vec<(usize, usize, Access)>,
    written: Vec<(usize, Vec<u8>)>,
}

impl Machine for Numbers {
    type Frame = usize;

    fn frame(&mut self) -> (usize, *mut u8) {
        let memory = Box::leak(Box::new(Frame([0; SLOT_BYTES]))).0.as_mut_ptr();
        self.frames.push(memory);
        (self.frames.len(), memory)
    }

    fn map(&mut self, address: usize, frame: usize, access: Access) {
        self.mapped.push((address, frame, access));
    }

    fn counter(&self) -> u64 {
        self.counter
    }
}

impl User for Numbers {
    fn copy_to_user(&mut self, address: usize, bytes: &[u8]) -> bool {
        if address >= 0x1000 {
            self.written.push((address, bytes.to_vec()));
        }
        address >= 0x1000
    }

    fn place(&self) -> u32 {
        3 << 12 | 7
    }
}

/// A counter of 1 GHz that starts at 0, a tick of 4 ms, and 1.5 s since it was told.
fn kernel() -> (Numbers, Clock) {
    let mut machine = Numbers::default();
    let mut clock = Clock::new(&machine, 1_000_000_000, 1_700_000_000, 4_000_000);
    machine.counter = 1_000_000_000;
    clock.advance(&machine);
    machine.counter = 1_500_000_000;
    (machine, clock)
}

/// What a call returns, and the words that it wrote.
fn call(number: usize, arguments: [usize; 3]) -> (isize, Vec<(usize, Vec<i64>)>) {
    let (mut machine, clock) = kernel();
    let result = answer(number, arguments, &clock, &mut machine);
    let word = |bytes: &[u8]| match bytes.try_into() {
        Ok(bytes) => i64::from_ne_bytes(bytes),
        Err(_) => i32::from_ne_bytes(bytes.try_into().unwrap()).into(),
    };
    let words = |bytes: Vec<u8>| bytes.chunks(8).map(word).collect();
    (result, machine.written.into_iter().map(|(at, bytes)| (at, words(bytes))).collect())
}

#[test]
fn the_kernel_answers_with_its_own_clock() {
    let wall = 1_700_000_001;
    for (id, secs, nanos) in [
        (0, wall, 500_000_000),
        (1, 1, 500_000_000),
        (4, 1, 500_000_000),
        (7, 1, 500_000_000),
        (5, wall, 0),
        (6, 1, 0),
    ] {
        let found = call(number::CLOCK_GETTIME, [id, 0x1000, 0]);
        assert_eq!(found, (0, vec![(0x1000, vec![secs, nanos])]), "clock {id}");
        // Only the lower half of the register is the id.
        assert_eq!(call(number::CLOCK_GETTIME, [id | 1 << 40, 0x1000, 0]), found);
        let res = if id == 5 || id == 6 { 4_000_000 } else { 1 };
        let found = call(number::CLOCK_GETRES, [id, 0x2000, 0]);
        assert_eq!(found, (0, vec![(0x2000, vec![0, res])]), "clock {id}");
        assert_eq!(call(number::CLOCK_GETRES, [id, 0, 0]), (0, vec![]));
    }
    let seconds = isize::try_from(wall).unwrap();
    assert_eq!(call(number::TIME, [0; 3]), (seconds, vec![]));
    assert_eq!(call(number::TIME, [0x1000, 0, 0]), (seconds, vec![(0x1000, vec![wall])]));
    let today = (0x1000, vec![wall, 500_000]);
    assert_eq!(call(number::GETTIMEOFDAY, [0x1000, 0, 0]), (0, vec![today.clone()]));
    assert_eq!(
        call(number::GETTIMEOFDAY, [0x1000, 0x2000, 0]),
        (0, vec![today, (0x2000, vec![0])])
    );
    assert_eq!(call(number::GETTIMEOFDAY, [0; 3]), (0, vec![]));
    let place = vec![(0x1000, vec![7]), (0x2000, vec![3])];
    assert_eq!(call(number::GETCPU, [0x1000, 0x2000, 0]), (0, place));
    assert_eq!(call(number::GETCPU, [0; 3]), (0, vec![]));
}

#[test]
fn a_bad_pointer_is_an_error_and_so_is_what_the_kernel_does_not_know() {
    for (number, arguments) in [
        (number::CLOCK_GETTIME, [1, 16, 0]),
        (number::CLOCK_GETTIME, [1, 0, 0]),
        (number::CLOCK_GETRES, [1, 16, 0]),
        (number::GETTIMEOFDAY, [16, 0, 0]),
        (number::GETTIMEOFDAY, [0, 16, 0]),
        (number::TIME, [16, 0, 0]),
        (number::GETCPU, [16, 0, 0]),
        (number::GETCPU, [0, 16, 0]),
    ] {
        assert_eq!(call(number, arguments), (EFAULT, vec![]), "{number} {arguments:x?}");
    }
    for id in [2, 3, 8, 9, 11, 12, usize::MAX, 1 << 31] {
        assert_eq!(call(number::CLOCK_GETTIME, [id, 0x1000, 0]), (EINVAL, vec![]), "clock {id:#x}");
        assert_eq!(call(number::CLOCK_GETRES, [id, 0x1000, 0]), (EINVAL, vec![]), "clock {id:#x}");
    }
    assert_eq!(call(39, [0; 3]), (ENOSYS, vec![]));
}

/// A CPU that has what it is said to have, and what was written into it.
#[derive(Default)]
struct Said {
    counter: bool,
    rdpid: bool,
    segment: bool,
    written: Vec<u32>,
}

impl Cpu for Said {
    fn place(&self) -> u32 {
        1 << 12 | 5
    }

    fn enable_counter(&mut self) -> bool {
        self.counter
    }

    fn set_tsc_aux(&mut self, value: u32) -> bool {
        self.written.push(value);
        self.rdpid
    }

    fn set_segment_limit(&mut self, limit: u32) -> bool {
        self.written.push(limit);
        self.segment
    }
}

#[test]
fn the_page_promises_what_every_cpu_keeps() {
    let full = || Said { counter: true, rdpid: true, segment: true, written: Vec::new() };
    let mut promises = Promises::all();
    let mut first = full();
    promises.hold_on(&mut first);
    assert_eq!(promises, Promises::all());
    assert_eq!(first.written, [1 << 12 | 5; 2], "each way gets the place, whichever is promised");
    promises.hold_on(&mut Said { rdpid: false, ..full() });
    assert_eq!(promises.features, Features::GETCPU_SEGMENT_LIMIT);
    promises.hold_on(&mut Said { counter: false, ..full() });
    assert_eq!(promises.mode, ClockMode::NONE);
    // What one CPU lacks, no later one brings back.
    promises.hold_on(&mut full());
    assert_eq!((promises.mode, promises.features.bits()), (ClockMode::NONE, 2));
}

#[test]
fn a_cpu_that_comes_too_late_must_keep_what_was_promised() {
    let (mut machine, clock) = kernel();
    let mut vdso = Vdso::boot(&mut machine, Promises::all());
    let page = machine.frames[0];
    // SAFETY: the frame is there for good, and nobody writes to it meanwhile.
    let mode = || ClockMode(unsafe { page.wrapping_add(4).cast::<i32>().read() });
    vdso.tick(&clock).unwrap();
    assert_eq!(mode(), ClockMode::COUNTER);
    let full = || Said { counter: true, rdpid: true, segment: true, written: Vec::new() };
    assert!(vdso.admits(&mut full()));
    assert!(!vdso.admits(&mut Said { rdpid: false, ..full() }));
    assert!(!vdso.admits(&mut Said { segment: false, ..full() }));
    // One that is refused takes no clock from the others.
    assert!(!vdso.admits(&mut Said { counter: false, rdpid: false, ..full() }));
    vdso.tick(&clock).unwrap();
    assert_eq!(mode(), ClockMode::COUNTER);
    // The mode can be taken back: the next tick does.
    assert!(vdso.admits(&mut Said { counter: false, ..full() }));
    vdso.tick(&clock).unwrap();
    assert_eq!(mode(), ClockMode::NONE);
}

#[test]
fn a_process_has_the_page_four_slots_below_the_image() {
    let mut machine = Numbers::default();
    let vdso = Vdso::boot(&mut machine, Promises::all());
    let start = 0x7000_0000;
    let base = vdso.map(&mut machine, start);
    assert_eq!((base, RANGE_BYTES), (start + 4 * SLOT_BYTES, (4 + IMAGE_PAGES) * SLOT_BYTES));
    assert_eq!(auxiliary_vector(base), [(33, base)]);
    let image =
        (0..IMAGE_PAGES).map(|page| (base + page * SLOT_BYTES, 2 + page, Access::ReadExecute));
    let wanted: Vec<_> = [(start, 1, Access::Read)].into_iter().chain(image).collect();
    assert_eq!(machine.mapped, wanted);
}
