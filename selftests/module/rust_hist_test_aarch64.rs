// SPDX-License-Identifier: GPL-2.0

//! Pseudo-NMIs of arm64. No module can send one to another CPU, but the counter of cycles of that overflows in one, if the
//! kernel was started with `irqchip.gicv3_pseudo_nmi=1`.

use core::{
    ffi::{
        c_int,
        c_void, //
    },
    ptr::null_mut, //
};
use kernel::{
    bindings::perf_event,
    error::from_err_ptr,
    prelude::*, //
};

/// Cycles until the counter overflows: rarely enough for perf not to stop it, which it does till the next tick, if an idle CPU
/// has one.
const PERIOD: u64 = 100_000;

/// What begins `struct perf_event_attr` of `<uapi/linux/perf_event.h>`, and more zeros than it has.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read: u64,
    flags: u64,
    rest: [u64; 32],
}

/// `PERF_TYPE_HARDWARE` and `PERF_COUNT_HW_CPU_CYCLES`, counted on one CPU.
const CYCLES: Attributes = Attributes {
    kind: 0,
    size: size_of::<Attributes>() as u32,
    config: 0,
    period: PERIOD,
    sample: 0,
    read: 0,
    flags: PINNED,
    rest: [0; 32],
};
const PINNED: u64 = 1 << 2;

extern "C" {
    fn perf_event_create_kernel_counter(
        attributes: *const Attributes,
        cpu: c_int,
        task: *mut c_void,
        overflow: unsafe extern "C" fn(*mut perf_event, *mut c_void, *mut c_void),
        context: *mut c_void,
    ) -> *mut perf_event;
    fn perf_event_release_kernel(counter: *mut perf_event) -> c_int;
}

pub(super) fn cycles() -> u64 {
    let cycles: u64;
    // SAFETY: The counter may be read anywhere.
    unsafe { core::arch::asm!("mrs {cycles}, cntvct_el0", cycles = out(reg) cycles) };
    cycles
}

/// Called when the counter overflows.
unsafe extern "C" fn overflow(_counter: *mut perf_event, _data: *mut c_void, _regs: *mut c_void) {
    super::in_nmi();
}

/// There is nothing to be had for all CPUs.
pub(super) struct OnNmi;

impl OnNmi {
    pub(super) fn new() -> Result<Self> {
        Ok(Self)
    }
}

/// What sends NMIs: a counter of the CPU to which it has sent the last one, which goes on to overflow. It cannot be had for one
/// overflow at a time: the interrupt that ends it may come after the next one was asked for.
pub(super) struct Sender {
    counter: *mut perf_event,
    cpu: c_int,
}

impl Sender {
    pub(super) fn new() -> Self {
        Self {
            counter: null_mut(),
            cpu: 0,
        }
    }

    /// Has `super::in_nmi` called in an NMI on `cpu`. The caller sees to it that no CPU goes as long as this is there.
    pub(super) fn send(&mut self, cpu: c_int) -> Result {
        if self.counter.is_null() || self.cpu != cpu {
            *self = Self::new();
            // SAFETY: The attributes are no shorter than the kernel's; `overflow` takes any arguments, and stays as long as
            // the module, which `drop` precedes.
            let counter = unsafe {
                perf_event_create_kernel_counter(&CYCLES, cpu, null_mut(), overflow, null_mut())
            };
            self.counter = from_err_ptr(counter)?;
            self.cpu = cpu;
        }
        Ok(())
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if !self.counter.is_null() {
            // SAFETY: It is this one's own, and goes with it.
            unsafe { perf_event_release_kernel(self.counter) };
        }
    }
}
