//! Which calls are made, and what each has to come to.

use std::ffi::{c_int, c_void};
use std::io;
use std::ptr::null_mut;

use libc::timespec;
use linker::Policy;

use super::Event;
use super::answer::{Answer, UNTOUCHED, pointer};
use super::ids::ids;
use super::kernel::{Kernel, nanos};
use super::state::{State, ZONE};
use crate::child::{Outcome, outcome};
use crate::functions::Functions;

/// The upper half of an id's register, which says nothing: an id is an `i32`.
const UPPER_HALF: u64 = 0xdead_beef << 32;

/// How often a comparison is begun anew because the kernel's answer has changed meanwhile: the
/// process of a CPU clock has ended, or this thread moved to another CPU.
const ATTEMPTS: usize = 100;

/// `clock_gettime` and `clock_getres`, with all of the id's register.
type ClockCall = unsafe extern "C" fn(u64, *mut timespec) -> isize;
type NanosCall = unsafe extern "C" fn(u64) -> i64;

/// The functions of an image under one kind of name, on one page.
pub(super) struct Calls<'a, R> {
    pub(super) functions: Functions,
    /// What stands before the names that are reported.
    pub(super) prefix: &'static str,
    pub(super) kernel: Kernel,
    pub(super) state: State,
    pub(super) report: &'a mut R,
    pub(super) calls: u64,
}

impl<R: FnMut(Event)> Calls<'_, R> {
    /// Every function, with all that it may be given.
    pub(super) fn all(&mut self) -> io::Result<()> {
        const BOTH: [bool; 2] = [true, false];
        for id in ids() {
            self.clock_gettime(id)?;
            self.clock_getres(id);
            self.clock_gettime_ns(id);
        }
        for first in BOTH {
            for second in BOTH {
                self.gettimeofday(first, second);
                self.getcpu(first, second);
            }
            self.time(first);
        }
        Ok(())
    }

    fn clock_gettime(&mut self, id: c_int) -> io::Result<()> {
        let Some(call) = self.functions.clock_gettime else {
            return Ok(());
        };
        let call = with_whole_register(call);
        let (state, kernel) = (self.state, self.kernel);
        for (register, is_null) in registers_and_pointers(id) {
            let name = format!("clock_gettime({}, {})", shown(register), given(!is_null, "ts"));
            let ours = || clock_answer(call, register, is_null);
            if !state.serves(id) {
                let wanted = || kernel.clock(libc::SYS_clock_gettime, id, is_null);
                self.compare(&name, wanted, ours);
            } else if is_null {
                self.fault(&name, || ours().returned)?;
            } else {
                self.compare(&name, || Answer { time: state.now(id), ..Answer::returned(0) }, ours);
            }
        }
        Ok(())
    }

    fn clock_getres(&mut self, id: c_int) {
        let Some(call) = self.functions.clock_getres else {
            return;
        };
        let call = with_whole_register(call);
        let (state, kernel) = (self.state, self.kernel);
        for (register, is_null) in registers_and_pointers(id) {
            let name = format!("clock_getres({}, {})", shown(register), given(!is_null, "res"));
            let wanted = || match state.resolution(id) {
                Some(nanos) if !is_null => {
                    Answer { time: [0, nanos.into()], ..Answer::returned(0) }
                }
                Some(_) => Answer::returned(0),
                None => kernel.clock(libc::SYS_clock_getres, id, is_null),
            };
            self.compare(&name, wanted, || clock_answer(call, register, is_null));
        }
    }

    fn clock_gettime_ns(&mut self, id: c_int) {
        let Some(call) = self.functions.clock_gettime_ns else {
            return;
        };
        // SAFETY: as in `with_whole_register`.
        let call =
            unsafe { std::mem::transmute::<unsafe extern "C" fn(c_int) -> i64, NanosCall>(call) };
        let (state, kernel) = (self.state, self.kernel);
        for register in registers(id) {
            let name = format!("clock_gettime_ns({})", shown(register));
            let wanted = || {
                if state.serves(id) {
                    Answer::returned(nanos(state.now(id)))
                } else {
                    kernel.nanos(id)
                }
            };
            // SAFETY: the image is mapped.
            self.compare(&name, wanted, || Answer::returned(unsafe { call(register) }));
        }
    }

    fn gettimeofday(&mut self, has_tv: bool, has_tz: bool) {
        let Some(call) = self.functions.gettimeofday else {
            return;
        };
        let (state, kernel) = (self.state, self.kernel);
        let name = format!("gettimeofday({}, {})", given(has_tv, "tv"), given(has_tz, "tz"));
        let zone = i64::from(ZONE.minutes_west.cast_unsigned()) | i64::from(ZONE.dst_time) << 32;
        let is_served = (!has_tv || state.serves(0)) && (!has_tz || state.serves_zone());
        let wanted = || {
            if !is_served {
                return kernel.gettimeofday(has_tv, has_tz);
            }
            let [secs, nanos] = state.now(0);
            Answer {
                returned: 0,
                time: if has_tv { [secs, nanos / 1000] } else { UNTOUCHED },
                other: if has_tz { [zone, UNTOUCHED[1]] } else { UNTOUCHED },
            }
        };
        self.compare(&name, wanted, || {
            let (mut time, mut other) = (UNTOUCHED, UNTOUCHED);
            let tv = pointer(&mut time, !has_tv).cast();
            let tz = pointer(&mut other, !has_tz).cast();
            // SAFETY: each is null, or memory at least as large; the image is mapped.
            let returned = unsafe { call(tv, tz) } as i64;
            Answer { returned, time, other }
        });
    }

    fn time(&mut self, has_pointer: bool) {
        let Some(call) = self.functions.time else {
            return;
        };
        let (state, kernel) = (self.state, self.kernel);
        let wanted = || match state.seconds() {
            Some(secs) if has_pointer => {
                Answer { time: [secs, UNTOUCHED[1]], ..Answer::returned(secs) }
            }
            Some(secs) => Answer::returned(secs),
            None => kernel.time(has_pointer),
        };
        self.compare(&format!("time({})", given(has_pointer, "t")), wanted, || {
            let mut time = UNTOUCHED;
            // SAFETY: null, or memory as large as a time_t; the image is mapped.
            let returned = unsafe { call(pointer(&mut time, !has_pointer).cast()) };
            Answer { time, ..Answer::returned(returned) }
        });
    }

    fn getcpu(&mut self, has_cpu: bool, has_node: bool) {
        let Some(call) = self.functions.getcpu else {
            return;
        };
        let (state, kernel) = (self.state, self.kernel);
        // The third argument is no longer used by anybody, so it may be anything.
        let somewhere = std::ptr::without_provenance_mut::<c_void>(16);
        for (unused, third) in [(null_mut(), "NULL"), (somewhere, "16")] {
            let (cpu, node) = (given(has_cpu, "cpu"), given(has_node, "node"));
            let asked = if state.serves_cpu() { Kernel::behind(Policy::Syscall) } else { kernel };
            let wanted = || asked.getcpu(has_cpu, has_node);
            self.compare(&format!("getcpu({cpu}, {node}, {third})"), wanted, || {
                let mut other = UNTOUCHED;
                let [cpu, node] = &mut other;
                let cpu = pointer(std::slice::from_mut(cpu), !has_cpu).cast();
                let node = pointer(std::slice::from_mut(node), !has_node).cast();
                // SAFETY: each is null, or memory as large as a number; the image is mapped.
                let returned = unsafe { call(cpu, node, unused) } as i64;
                Answer { other, ..Answer::returned(returned) }
            });
        }
    }

    /// Makes a call between two looks at what it has to come to.
    fn compare(&mut self, name: &str, wanted: impl Fn() -> Answer, ours: impl Fn() -> Answer) {
        self.begin(name);
        for _ in 0..ATTEMPTS {
            let (earlier, ours, later) = (wanted(), ours(), wanted());
            if earlier.agrees_with(&later) {
                if !ours.is_between(&earlier, &later) {
                    let late =
                        if later == earlier { String::new() } else { format!(" to {later}") };
                    self.differ(format!("{ours}; wanted {earlier}{late}"));
                }
                return;
            }
        }
        self.differ(format!("nothing to compare with holds still for {ATTEMPTS} calls"));
    }

    /// Makes a call that has to fault, in a child.
    fn fault(&mut self, name: &str, call: impl Fn() -> i64) -> io::Result<()> {
        self.begin(name);
        // What an errno is fits.
        let code = |returned: i64| i32::try_from(-returned).unwrap_or(255).clamp(0, 255);
        let what = match outcome(|| code(call()))? {
            Outcome::Signalled(libc::SIGSEGV) => return Ok(()),
            Outcome::Signalled(signal) => format!("signal {signal}"),
            Outcome::Exited(code) => format!("{}", -code),
            Outcome::Hung => "no end".to_owned(),
        };
        self.differ(format!("{what}; wanted signal {}, the caller's own fault", libc::SIGSEGV));
        Ok(())
    }

    fn begin(&mut self, name: &str) {
        self.calls += 1;
        (self.report)(Event::Call(format!("{}{name}, {}", self.prefix, self.state)));
    }

    fn differ(&mut self, what: String) {
        (self.report)(Event::Difference(what));
    }
}

/// The function, called with all of the id's register.
fn with_whole_register(call: unsafe extern "C" fn(c_int, *mut timespec) -> isize) -> ClockCall {
    // SAFETY: an i32 is passed in the lower half of the register that a u64 fills.
    unsafe { std::mem::transmute(call) }
}

/// What the register of an id may hold.
fn registers(id: c_int) -> [u64; 2] {
    let lower_half = u64::from(id.cast_unsigned());
    [lower_half, UPPER_HALF | lower_half]
}

/// A register beside a pointer that is null or not.
fn registers_and_pointers(id: c_int) -> [(u64, bool); 3] {
    let [clean, dirty] = registers(id);
    [(clean, false), (dirty, false), (clean, true)]
}

/// An id as people write it; a register of which more is set, in hexadecimal.
fn shown(register: u64) -> String {
    match u32::try_from(register) {
        Ok(id) => id.cast_signed().to_string(),
        Err(_) => format!("{register:#x}"),
    }
}

fn given(is_given: bool, name: &'static str) -> &'static str {
    if is_given { name } else { "NULL" }
}

fn clock_answer(call: ClockCall, register: u64, is_null: bool) -> Answer {
    let mut time = UNTOUCHED;
    // SAFETY: null, or memory as large as a timespec; the image is mapped.
    let returned = unsafe { call(register, pointer(&mut time, is_null).cast()) } as i64;
    Answer { time, ..Answer::returned(returned) }
}
