// SPDX-License-Identifier: GPL-2.0

//! Strings at addresses that other code has passed, which may be invalid.
//!
//! C counterpart: `fetch_store_string()` and `fetch_store_strlen()` of
//! [`kernel/trace/trace_probe_kernel.h`](srctree/kernel/trace/trace_probe_kernel.h).
//! C code: [`mm/maccess.c`](srctree/mm/maccess.c).
//! Context: any, NMI included. Memory that is not resident is not fetched, but counts as unreadable.

use super::trace_core;
use kernel::prelude::*;

/// The longest string that filters test, with its NUL: `USTRING_BUF_SIZE`.
const STRING_LEN: usize = 1024;

/// Returns the result of `test` for the string at a kernel address, or at an address of the current task if
/// `is_of_user`. `test` gets the bytes with the NUL, which replaces the last byte of a longer string. False if the
/// string cannot be read.
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

    match copy(address, is_of_user, &mut room) {
        // For an empty string of a task, the function does not count the NUL.
        Some(copied) => room.get(..copied.max(1)).is_some_and(test),
        None => false,
    }
}

/// The number of bytes of a string that are copied at once.
#[cfg(rust_hist_synth_api)]
const PIECE: usize = 64;

/// A value that a C module passes: a number, or the address of a string in the kernel, or in the current task if the two
/// address spaces are distinct.
///
/// The type of the field decides which one it is. A number is never dereferenced by mistake: only the API of synthetic
/// events reads strings, and an unreadable address is harmless.
#[cfg(rust_hist_synth_api)]
#[derive(Clone, Copy)]
pub(crate) struct Raw(pub(super) u64);

#[cfg(rust_hist_synth_api)]
impl Raw {
    /// Returns the value as a number.
    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// Returns whether the value is a null pointer.
    pub(crate) fn is_null(self) -> bool {
        self.0 == 0
    }

    /// Copies the string without its NUL to `to`, as far as it fits; returns the number of bytes. `None` if the string
    /// cannot be read.
    pub(crate) fn string(self, to: &mut [u8]) -> Option<usize> {
        let room = to.len();
        let copied = self.copy_from(0, to)?;

        // The function counts the NUL, which replaces the last byte of a string that does not fit.
        if copied < room {
            return copied.checked_sub(1);
        }
        let Some(before) = room.checked_sub(1) else {
            return Some(0);
        };
        let (_, last) = to.split_at_mut_checked(before)?;
        let mut piece = [0; 2];
        self.copy_from(before, &mut piece)?;
        *last.first_mut()? = piece[0];
        Some(if piece[0] == 0 { before } else { room })
    }

    /// Returns the length of the string without its NUL, at most `max`. `None` if the string cannot be read.
    pub(crate) fn string_len(self, max: usize) -> Option<usize> {
        let mut len = 0usize;

        while len < max {
            let mut piece = [0; PIECE];
            let copied = self.copy_from(len, &mut piece)?.saturating_sub(1);

            len = len.saturating_add(copied);
            if copied < PIECE - 1 {
                return Some(len.min(max));
            }
        }
        Some(max)
    }

    /// Like [`copy`], from byte `at` of the string on; its address decides from which address space.
    fn copy_from(self, at: usize, to: &mut [u8]) -> Option<usize> {
        let address = self.0.wrapping_add(at as u64);
        // Where the two do not overlap, the kernel has the upper half.
        let is_of_task = cfg!(CONFIG_ARCH_HAS_NON_OVERLAPPING_ADDRESS_SPACE) && address >> 63 == 0;
        copy(address, is_of_task, to)
    }
}

/// Copies the string at an address of the kernel, or of the current task if `is_of_user`, up to and including the NUL;
/// returns the number of bytes, the last of which is always a NUL. `None` if the string cannot be read.
fn copy(address: u64, is_of_user: bool, to: &mut [u8]) -> Option<usize> {
    let (start, room) = (to.as_mut_ptr(), to.len());
    if room == 0 {
        return Some(0);
    }
    // CAST: a slice is never longer than `isize::MAX`.
    let room = room as isize;
    // CAST: both have 64 bits. Only functions that handle faults dereference the pointer.
    let from = address as *const c_void;
    let copy = match is_of_user {
        true => trace_core::strncpy_from_user_nofault,
        false => trace_core::strncpy_from_kernel_nofault,
    };
    // SAFETY: `room` bytes can be written at `start`; both functions accept any source address.
    let copied = unsafe { copy(start.cast(), from, room) };
    usize::try_from(copied).ok()
}

const _: () = assert!(size_of::<u64>() == size_of::<*const u8>());
