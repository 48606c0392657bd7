// SPDX-License-Identifier: GPL-2.0

//! The kernel's names for addresses, system calls and flags.
//!
//! C counterparts: `%ps` and `%pS` of [`lib/vsprintf.c`](srctree/lib/vsprintf.c), and
//! [`kernel/trace/trace_syscalls.c`](srctree/kernel/trace/trace_syscalls.c).

use super::trace_core;
use core::{
    ffi::CStr,
    ptr::without_provenance, //
};
use kernel::{
    bindings as base,
    prelude::*, //
};

/// More bytes than any symbol needs with its offset, size, module and build id, or all flags.
const SYMBOL_LEN: usize = 768;

/// Calls `f` with the name of the symbol at `address`, or with the address as a number if there is none.
pub(crate) fn with_symbol<R>(address: u64, f: impl FnOnce(&[u8]) -> R) -> R {
    // CAST: an address; on a 32-bit machine the upper half of the number has no meaning, as in C.
    // SAFETY: the pointer is not dereferenced.
    unsafe { with_formatted(c"%ps", without_provenance(address as usize), f) }
}

/// Like [`with_symbol`], with the offset in the symbol and its size after the name.
pub(crate) fn with_symbol_offset<R>(address: u64, f: impl FnOnce(&[u8]) -> R) -> R {
    // CAST: an address; on a 32-bit machine the upper half of the number has no meaning, as in C.
    // SAFETY: the pointer is not dereferenced.
    unsafe { with_formatted(c"%pS", without_provenance(address as usize), f) }
}

/// Calls `f` with the names of allocation flags, with `|` between them.
pub(crate) fn with_gfp_flags<R>(flags: u32, f: impl FnOnce(&[u8]) -> R) -> R {
    let flags: base::gfp_t = flags;
    // SAFETY: the format takes a pointer to flags.
    unsafe { with_formatted(c"%pGg", (&raw const flags).cast(), f) }
}

/// Calls `f` with the hash that the kernel prints instead of an address: a number that is valid until the next boot.
#[cfg(rust_hist_debug)]
pub(crate) fn with_hashed<T, R>(address: *const T, f: impl FnOnce(&[u8]) -> R) -> R {
    // SAFETY: the pointer is not dereferenced.
    unsafe { with_formatted(c"%p", address.cast(), f) }
}

/// Calls `f` with a pointer as `format` prints it.
///
/// # Safety
///
/// `format` must take one pointer, which must be valid if the format dereferences it.
unsafe fn with_formatted<R>(
    format: &CStr,
    pointer: *const c_void,
    f: impl FnOnce(&[u8]) -> R,
) -> R {
    let mut buf = [0u8; SYMBOL_LEN];
    let (to, size) = (buf.as_mut_ptr().cast(), buf.len());
    // SAFETY: the buffer has the given size; everything else is in the contract.
    let len = unsafe { base::scnprintf(to, size, format.as_char_ptr(), pointer) };
    let text = usize::try_from(len).ok().and_then(|len| buf.get(..len));
    f(text.unwrap_or(b""))
}

/// Returns the name of a system call; `None` if there is none with this number.
pub(crate) fn syscall(nr: u64) -> Option<&'static [u8]> {
    // CAST: truncates to an `int`, as C does.
    // SAFETY: the function only looks the number up.
    let name = unsafe { trace_core::syscall_name(nr as c_int) };
    // SAFETY: the names of system calls are part of the kernel image.
    (!name.is_null()).then(|| unsafe { CStr::from_char_ptr(name) }.to_bytes())
}
