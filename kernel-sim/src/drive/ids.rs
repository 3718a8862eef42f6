//! Which clocks are asked for.

use std::ffi::c_int;

use datapage::{ClockId, ClockSet};

/// Ids that are all tried, one by one: named ones, unknown ones, and CPU clocks of the first
/// processes of the machine.
pub const NEIGHBOURS: std::ops::RangeInclusive<c_int> = -300..=300;

/// Every id that is tried; the list is the same until the process or its thread changes.
///
/// Beyond the [`NEIGHBOURS`]: the ends of an `i32`, what a narrower type or a shift by the id takes
/// for a served clock, CPU clocks of this process and of its thread, and clocks of descriptors.
#[must_use]
pub fn ids() -> Vec<c_int> {
    let ends = [c_int::MIN, c_int::MAX];
    let alike = (0..c_int::BITS)
        .flat_map(|bit| served().map(move |clock| clock | 1_u32.wrapping_shl(bit).cast_signed()));
    // Neither call can fail, and both numbers are positive.
    let of_processes = [nix::unistd::getpid(), nix::unistd::gettid()]
        .into_iter()
        .flat_map(|id| (0..8).map(move |kind| dynamic(id.as_raw(), kind)));
    // No descriptor of an unlimited process is the last one.
    let of_descriptors = [0, 1023, c_int::MAX >> 3].map(|descriptor| dynamic(descriptor, 3));
    let further = ends.into_iter().chain(alike).chain(of_processes).chain(of_descriptors);
    let further = further.filter(|id| !NEIGHBOURS.contains(id));
    let mut ids: Vec<c_int> = NEIGHBOURS.chain(further).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The ids that a page can serve.
fn served() -> impl Iterator<Item = c_int> {
    (0..32).filter(|&id| !(ClockId(id).set() & ClockSet::SERVED).is_empty())
}

/// The clock of a process, a thread or a descriptor (`clock_getres(2)`, "Dynamic clocks", and
/// `clock_getcpuclockid(3)`): kinds 0 to 2 are CPU times, 4 to 6 those of a thread, 3 a descriptor.
fn dynamic(number: c_int, kind: c_int) -> c_int {
    !number << 3 | kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_of_this_process_are_among_them_and_exist() {
        let ids = ids();
        let mut own = 0;
        // SAFETY: a live number; the id of this process' own CPU clock.
        let answer = unsafe { libc::clock_getcpuclockid(0, &raw mut own) };
        assert_eq!((answer, own), (0, dynamic(0, 2)));
        let process = std::process::id().cast_signed();
        // SAFETY: as above.
        let answer = unsafe { libc::clock_getcpuclockid(process, &raw mut own) };
        assert_eq!((answer, own), (0, dynamic(process, 2)));
        assert!(ids.contains(&own));
    }

    #[test]
    fn what_wraps_to_a_served_id_is_among_them() {
        let ids = ids();
        for id in [i32::MIN, i32::MAX, -1, 12, 64, i32::MIN | 1, 1 << 16 | 5, 1 << 8, 1 << 30 | 11]
        {
            assert!(ids.contains(&id), "{id}");
        }
        let served: Vec<_> = served().collect();
        assert_eq!(served, [0, 1, 4, 5, 6, 7, 11]);
    }
}
