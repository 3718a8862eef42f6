//! The functions of 32-bit programs: 32-bit seconds are truncated as Linux truncates them, and each
//! function falls back to the call of its own width.
//!
//! The same code serves both widths, so it is tested here on any machine.

use std::cell::RefCell;

use datapage::{ClockId, ClockMode, Features, Instant, Page, PageValues, Scale, Writer};
use vdso::{Call, Platform, TimeSpec, TimeSpec32, TimeVal32, Timezone, UserPtr};

/// A machine whose kernel notes what it is asked, and refuses it.
struct Machine<'p> {
    page: &'p Page,
    asked: RefCell<Vec<Call>>,
}

const EPERM: isize = 1;

impl Platform for Machine<'_> {
    type Cells = datapage::protocol::Native;
    fn page(&self) -> &Page {
        self.page
    }
    fn page_behind_namespace(&self) -> &Page {
        unreachable!("no page of these tests belongs to a namespace")
    }
    fn counter(&self, _: ClockMode) -> Option<u64> {
        None
    }
    fn cpu_and_node(&self, _: Features) -> Option<u32> {
        None
    }
    fn syscall(&self, call: Call, _: [usize; 3]) -> isize {
        self.asked.borrow_mut().push(call);
        -EPERM
    }
}

fn with_machine<T>(realtime_secs: Option<i64>, test: impl FnOnce(&Machine<'_>) -> T) -> T {
    let mut page = Page::zeroed();
    let (mut writer, page) = Writer::split(&mut page);
    writer.format(Features::empty(), 4096);
    if let Some(secs) = realtime_secs {
        let mut values = PageValues {
            clock_mode: ClockMode::MEMORY,
            steered: Scale { mask: u64::MAX, mult: 1, shift: 0 },
            hrtimer_res: 1,
            ..PageValues::default()
        };
        values.set(ClockId::REALTIME, Instant { secs, nanos: 0 });
        writer.publish(&values.validate().expect("a legal page"));
        writer.set_memory_counter(999_999_999);
    }
    test(&Machine { page, asked: RefCell::default() })
}

fn to<T>(place: &mut T) -> UserPtr<T>
where
    T: Copy,
{
    // SAFETY: a live local of the caller.
    unsafe { UserPtr::new(&raw mut *place) }
}

#[test]
fn narrow_seconds_are_the_wide_ones_modulo_2_to_the_32() {
    for (secs, narrow) in [
        (1, 1),
        (-1, -1),
        (0x7fff_ffff, i32::MAX),
        (0x8000_0000, i32::MIN),
        (0xffff_ffff, -1),
        (0x1_0000_0000, 0),
        (0x1_2345_6789, 0x2345_6789),
    ] {
        with_machine(Some(secs), |machine| {
            let (mut spec, mut wide) = (TimeSpec32::default(), TimeSpec::default());
            let (mut val, mut t) = (TimeVal32::default(), 7_i32);
            let no_zone: UserPtr<Timezone> = {
                // SAFETY: null is legal.
                unsafe { UserPtr::new(std::ptr::null_mut()) }
            };
            assert_eq!(vdso::clock_gettime(machine, 0, to(&mut wide)), 0);
            assert_eq!((wide.tv_sec, wide.tv_nsec), (secs, 999_999_999));
            assert_eq!(vdso::clock_gettime(machine, 0, to(&mut spec)), 0);
            assert_eq!((spec.tv_sec, spec.tv_nsec), (narrow, 999_999_999));
            assert_eq!(vdso::gettimeofday(machine, to(&mut val), no_zone), 0);
            assert_eq!((val.tv_sec, val.tv_usec), (narrow, 999_999));
            assert_eq!((vdso::time(machine, to(&mut t)), t), (narrow, narrow));
            assert_eq!(*machine.asked.borrow(), [], "{secs} is served by the page");
        });
    }
}

#[test]
fn each_width_falls_back_to_its_own_call() {
    with_machine(None, |machine| {
        let (mut narrow, mut wide) = (TimeSpec32::default(), TimeSpec::default());
        assert_eq!(vdso::clock_gettime(machine, 0, to(&mut narrow)), -EPERM);
        assert_eq!(vdso::clock_gettime(machine, 0, to(&mut wide)), -EPERM);
        assert_eq!(vdso::clock_getres(machine, 0, to(&mut narrow)), -EPERM);
        assert_eq!(vdso::clock_getres(machine, 0, to(&mut wide)), -EPERM);
        assert_eq!(vdso::clock_gettime_ns(machine, 0), -1);
        assert_eq!(vdso::time(machine, to(&mut 0_i32)), -1);
        assert_eq!(
            *machine.asked.borrow(),
            [
                Call::ClockGettime32,
                Call::ClockGettime,
                Call::ClockGetres32,
                Call::ClockGetres,
                Call::ClockGettime,
                Call::Time
            ]
        );
    });
}
