// SPDX-License-Identifier: GPL-2.0

//! NMIs that a CPU sends another one, of x86-64.

use core::ffi::{
    c_int,
    c_void, //
};
use kernel::prelude::*;

/// What an NMI handler returns for an NMI that is not its own, and for one that is.
const NMI_DONE: c_int = 0;
const NMI_HANDLED: c_int = 1;

extern "C" {
    fn rust_hist_test_on_nmi() -> c_int;
    fn rust_hist_test_off_nmi();
    fn rust_hist_test_send_nmi(cpu: c_int);
}

pub(super) fn cycles() -> u64 {
    // SAFETY: The counter may be read anywhere.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The handler of NMIs, called for each.
#[no_mangle]
extern "C" fn rust_hist_test_nmi(_kind: u32, _regs: *mut c_void) -> c_int {
    if super::in_nmi() {
        NMI_HANDLED
    } else {
        NMI_DONE
    }
}

/// The handler of NMIs, while this is there.
pub(super) struct OnNmi;

impl OnNmi {
    pub(super) fn new() -> Result<Self> {
        // SAFETY: `rust_hist_test_nmi` may be called for any NMI until `drop`.
        kernel::error::to_result(unsafe { rust_hist_test_on_nmi() })?;
        Ok(Self)
    }
}

impl Drop for OnNmi {
    fn drop(&mut self) {
        // SAFETY: `new` has registered it.
        unsafe { rust_hist_test_off_nmi() };
    }
}

/// What sends NMIs.
pub(super) struct Sender;

impl Sender {
    pub(super) fn new() -> Self {
        Self
    }

    /// Has `super::in_nmi` called in an NMI on `cpu`.
    pub(super) fn send(&mut self, cpu: c_int) -> Result {
        // SAFETY: Interrupts `cpu`, which is or was online; the handler stands.
        unsafe { rust_hist_test_send_nmi(cpu) };
        Ok(())
    }
}
