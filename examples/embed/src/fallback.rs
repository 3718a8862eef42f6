//! What the image asks of the kernel when its page cannot serve a call: five system calls.
//!
//! The arguments are the program's own, untouched, so nothing about them is to be trusted; the answer
//! goes back to it as it is. Ids that the page never serves come here too.

use datapage::ClockId;

use crate::clock::{Clock, is_coarse};
use crate::vdso::Machine;

/// The numbers on x86_64 (`arch/x86/entry/syscalls/syscall_64.tbl`).
pub mod number {
    /// `clock_gettime(id, ts)`
    pub const CLOCK_GETTIME: usize = 228;
    /// `clock_getres(id, res)`
    pub const CLOCK_GETRES: usize = 229;
    /// `gettimeofday(tv, tz)`
    pub const GETTIMEOFDAY: usize = 96;
    /// `time(t)`
    pub const TIME: usize = 201;
    /// `getcpu(cpu, node, unused)`
    pub const GETCPU: usize = 309;
}

/// What this file needs of the rest of the kernel, beyond a machine.
pub trait User {
    /// Copies to the program's memory; `false` if the program may not write there.
    fn copy_to_user(&mut self, address: usize, bytes: &[u8]) -> bool;

    /// `node << 12 | cpu` of the CPU that makes the call.
    fn place(&self) -> u32;
}

const EFAULT: isize = -14;
const EINVAL: isize = -22;
const ENOSYS: isize = -38;

/// Answers a system call: what the program finds in its register, 0 or a negative errno.
///
/// With the timekeeper's lock held for reading, so that no program sees time step back between a
/// read of the page and this.
pub fn answer<M: Machine + User>(
    number: usize,
    arguments: [usize; 3],
    clock: &Clock,
    machine: &mut M,
) -> isize {
    let [first, second, _] = arguments;
    // Only the lower half of the register is the id.
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "an int in C")]
    let id = ClockId(first as i32);
    match number {
        number::CLOCK_GETTIME => match clock.read(id, machine) {
            Some(now) => store(machine, second, pair(now)),
            // CPU clocks and dynamic ids: a kernel that has them answers here.
            None => EINVAL,
        },
        number::CLOCK_GETRES => {
            let nanos = if is_coarse(id) { clock.tick_ns } else { 1 };
            match clock.base(id) {
                Some(_) if second == 0 => 0,
                Some(_) => store(machine, second, pair((0, nanos.into()))),
                None => EINVAL,
            }
        }
        number::GETTIMEOFDAY => {
            let now = clock.read(ClockId::REALTIME, machine);
            let micros = now.map(|(secs, nanos)| (secs, nanos / 1000));
            match (first, micros) {
                (0, _) => {}
                (_, Some(micros)) if store(machine, first, pair(micros)) == 0 => {}
                _ => return EFAULT,
            }
            // This kernel keeps no timezone: minutes west and the kind of summer time are 0.
            if second == 0 { 0 } else { store(machine, second, [0_u8; 8]) }
        }
        number::TIME => {
            let now = clock.read(ClockId::REALTIME_COARSE, machine);
            let secs = now.map_or(0, |(secs, _)| secs);
            if first != 0 && store(machine, first, secs.to_ne_bytes()) != 0 {
                return EFAULT;
            }
            isize::try_from(secs).unwrap_or(isize::MAX)
        }
        number::GETCPU => {
            let place = machine.place();
            for (address, value) in [(first, place & 0xfff), (second, place >> 12)] {
                if address != 0 && store(machine, address, value.to_ne_bytes()) != 0 {
                    return EFAULT;
                }
            }
            0
        }
        _ => ENOSYS,
    }
}

/// A C `timespec` or `timeval`.
fn pair((secs, fraction): (i64, u64)) -> [u8; 16] {
    let mut bytes = [0; 16];
    let (first, second) = bytes.split_at_mut(8);
    first.copy_from_slice(&secs.to_ne_bytes());
    second.copy_from_slice(&fraction.to_ne_bytes());
    bytes
}

fn store<const N: usize>(user: &mut impl User, address: usize, bytes: [u8; N]) -> isize {
    if user.copy_to_user(address, &bytes) { 0 } else { EFAULT }
}
