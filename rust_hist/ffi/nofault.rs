// SPDX-License-Identifier: GPL-2.0

//! Strings at addresses that others have named, which may be wrong.
//!
//! C counterpart: `fetch_store_string()` and `fetch_store_strlen()` of
//! [`kernel/trace/trace_probe_kernel.h`](srctree/kernel/trace/trace_probe_kernel.h).
//! C code: [`mm/maccess.c`](srctree/mm/maccess.c).
//! Context: any, NMI included. What is not in memory is not fetched but missing.

use super::trace_core;
use kernel::prelude::*;

/// As much of a string as filters look at, with its NUL: `USTRING_BUF_SIZE`.
const STRING_LEN: usize = 1024;

/// What `test` says of the string at an address of the kernel, or of the current task if `is_of_user`: of its bytes with the
/// NUL, which stands in place of the last one if the string is longer. False if it cannot be read.
///
/// C counterpart: `test_string()` and `test_ustring()` of
/// [`kernel/trace/trace_events_filter.c`](srctree/kernel/trace/trace_events_filter.c), whose buffer all hits of a CPU share.
#[cold]
#[inline(never)]
pub(super) fn test_string(
    address: u64,
    is_of_user: bool,
    test: impl FnOnce(&[u8]) -> bool,
) -> bool {
    let mut room = [0; STRING_LEN];

    match Remote(address).copy_from(is_of_user, &mut room) {
        // The function for tasks does not count the NUL of an empty string.
        Some(copied) => room.get(..copied.max(1)).is_some_and(test),
        None => false,
    }
}

/// An address in the kernel, or in the current task where that has addresses of its own.
#[derive(Clone, Copy)]
pub(super) struct Remote(u64);

/// The bytes of a string that are looked at together.
#[cfg(not(CONFIG_SYNTH_EVENTS))]
const PIECE: usize = 64;

#[cfg(not(CONFIG_SYNTH_EVENTS))]
impl Remote {
    /// The address `at`, whatever it is.
    pub(super) fn new(at: u64) -> Self {
        Self(at)
    }

    /// Copies the string without its NUL, as much of it as fits; returns how much. `None` if it cannot
    /// be read.
    pub(super) fn string(self, to: &mut [u8]) -> Option<usize> {
        let room = to.len();
        let copied = self.copy(to)?;

        // The function counts the NUL, which it puts in place of the last byte if there was none.
        if copied < room {
            return copied.checked_sub(1);
        }
        let Some(before) = room.checked_sub(1) else {
            return Some(0);
        };
        let (_, last) = to.split_at_mut_checked(before)?;
        let at = self.0.wrapping_add(before as u64);
        let mut piece = [0; 2];
        Self(at).copy(&mut piece)?;
        *last.first_mut()? = piece[0];
        Some(if piece[0] == 0 { before } else { room })
    }

    /// The length of the string without its NUL, or `max` if that is less. `None` if it cannot be read.
    pub(super) fn string_len(self, max: usize) -> Option<usize> {
        let mut len = 0usize;

        while len < max {
            let mut piece = [0; PIECE];
            let at = self.0.wrapping_add(len as u64);
            let copied = Self(at).copy(&mut piece)?.saturating_sub(1);

            len = len.saturating_add(copied);
            if copied < PIECE - 1 {
                return Some(len.min(max));
            }
        }
        Some(max)
    }

    /// As [`Remote::copy_from`], from where such an address is.
    fn copy(self, to: &mut [u8]) -> Option<usize> {
        self.copy_from(self.is_of_task(), to)
    }

    /// Whether the address is one of the current task, and none of the kernel.
    fn is_of_task(self) -> bool {
        // The kernel has the upper half wherever the two do not overlap.
        cfg!(CONFIG_ARCH_HAS_NON_OVERLAPPING_ADDRESS_SPACE) && self.0 >> 63 == 0
    }
}

impl Remote {
    /// Copies up to and including the NUL; returns how much, of which the last byte always is a NUL.
    fn copy_from(self, is_of_user: bool, to: &mut [u8]) -> Option<usize> {
        let (start, room) = (to.as_mut_ptr(), to.len());
        if room == 0 {
            return Some(0);
        }
        // CAST: a slice is never longer than `isize::MAX`.
        let room = room as isize;
        let copy = match is_of_user {
            true => trace_core::strncpy_from_user_nofault,
            false => trace_core::strncpy_from_kernel_nofault,
        };
        // SAFETY: `room` bytes can be written at `start`; both functions take any address.
        let copied = unsafe { copy(start.cast(), self.as_ptr(), room) };
        usize::try_from(copied).ok()
    }

    fn as_ptr<T>(self) -> *const T {
        // CAST: both have 64 bits. Nobody dereferences it but the functions that may fault.
        self.0 as *const T
    }
}

const _: () = assert!(size_of::<u64>() == size_of::<*const u8>());
