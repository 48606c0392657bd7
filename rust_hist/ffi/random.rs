// SPDX-License-Identifier: GPL-2.0

//! Random numbers from the kernel.
//!
//! C header: [`include/linux/random.h`](srctree/include/linux/random.h)

use super::bindings;

/// Returns a random number. May be called from any context; early at boot, before the kernel has gathered entropy, the
/// number may be predictable.
pub(crate) fn number() -> u64 {
    // SAFETY: the function has no preconditions.
    unsafe { bindings::get_random_u64() }
}
