// SPDX-License-Identifier: GPL-2.0

//! How many CPUs there are.
//!
//! C header: [`include/linux/cpumask.h`](srctree/include/linux/cpumask.h)

use super::bindings;

/// Returns how many CPUs are online now. Context: any.
pub(crate) fn online() -> u32 {
    // SAFETY: reads one number.
    unsafe { bindings::hist_helper_num_online_cpus() }
}
