//! `getcpu` with any register: 12 bits of CPU, the node above them, each where it was asked for.

use std::cell::Cell;
use std::ptr::null_mut;

use datapage::{ClockMode, Features, Page};
use vdso::{Call, Platform, UserPtr};

/// A machine whose register holds this, or that has none; its kernel notes what it is asked.
struct Machine {
    page: Page,
    register: Option<u32>,
    asked: Cell<Option<[usize; 3]>>,
}

const KERNELS_ANSWER: isize = -14;

impl Platform for Machine {
    type Cells = datapage::protocol::Native;
    fn page(&self) -> &Page {
        &self.page
    }
    fn page_behind_namespace(&self) -> &Page {
        unreachable!("getcpu looks at no second page")
    }
    fn counter(&self, _: ClockMode) -> Option<u64> {
        unreachable!("getcpu reads no counter")
    }
    fn cpu_and_node(&self, _: Features) -> Option<u32> {
        self.register
    }
    fn syscall(&self, call: Call, arguments: [usize; 3]) -> isize {
        assert_eq!(call, Call::Getcpu);
        self.asked.set(Some(arguments));
        KERNELS_ANSWER
    }
}

fn machine(register: Option<u32>) -> Machine {
    Machine { page: Page::zeroed(), register, asked: Cell::new(None) }
}

fn getcpu(machine: &Machine, cpu: *mut u32, node: *mut u32) -> isize {
    // SAFETY: null, or a live word of the caller.
    let cpu = unsafe { UserPtr::new(cpu) };
    // SAFETY: as above.
    let node = unsafe { UserPtr::new(node) };
    vdso::getcpu(machine, cpu, node, 8)
}

#[test]
fn the_low_12_bits_are_the_cpu_and_the_rest_is_the_node() {
    for (register, expected) in [
        (0, (0, 0)),
        (0xfff, (0xfff, 0)),
        (0x1000, (0, 1)),
        (0xf_ffff, (0xfff, 0xff)),
        (u32::MAX, (0xfff, 0xf_ffff)),
    ] {
        let machine = machine(Some(register));
        let (mut cpu, mut node) = (7, 7);
        assert_eq!(getcpu(&machine, &raw mut cpu, &raw mut node), 0);
        assert_eq!((cpu, node), expected, "{register:#x}");
        let (mut cpu, mut node) = (7, 7);
        assert_eq!(getcpu(&machine, &raw mut cpu, null_mut()), 0);
        assert_eq!(getcpu(&machine, null_mut(), &raw mut node), 0);
        assert_eq!(getcpu(&machine, null_mut(), null_mut()), 0);
        assert_eq!((cpu, node), expected, "{register:#x}, one at a time");
        assert_eq!(machine.asked.get(), None, "nothing was left to the kernel");
    }
}

#[test]
fn without_a_register_the_kernel_gets_the_callers_own_arguments() {
    let machine = machine(None);
    let (mut cpu, mut node) = (7, 7);
    let (cpu_at, node_at) = (&raw mut cpu, &raw mut node);
    assert_eq!(getcpu(&machine, cpu_at, node_at), KERNELS_ANSWER);
    assert_eq!(machine.asked.get(), Some([cpu_at.addr(), node_at.addr(), 8]));
    assert_eq!((cpu, node), (7, 7));
}
