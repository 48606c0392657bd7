// SPDX-License-Identifier: GPL-2.0

//! Numbers that nobody can foresee.
//!
//! C header: [`include/linux/random.h`](srctree/include/linux/random.h)

use super::bindings;

/// A random number. May be called from any context; while the kernel has gathered no entropy yet, early at boot, it
/// can be foreseen.
pub(crate) fn number() -> u64 {
    // SAFETY: the function has no preconditions.
    unsafe { bindings::get_random_u64() }
}
