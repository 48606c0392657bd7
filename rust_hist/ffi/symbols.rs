// SPDX-License-Identifier: GPL-2.0

//! Names that the kernel has for addresses, system calls and flags.
//!
//! C counterparts: `%ps` and `%pS` of [`lib/vsprintf.c`](srctree/lib/vsprintf.c), and
//! [`kernel/trace/trace_syscalls.c`](srctree/kernel/trace/trace_syscalls.c).

use super::bindings;
use core::ffi::CStr;
use kernel::{
    bindings as base,
    prelude::*, //
};

/// More bytes than any symbol takes with its offset, size, module and build id, or all flags.
const SYMBOL_LEN: usize = 768;

/// How much of an address is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// The name alone.
    Name,
    /// The name, the offset in it, and its size.
    Offset,
}

/// Calls `f` with the symbol at `address`, or with the number if there is none.
pub(crate) fn with_symbol<R>(address: u64, style: Style, f: impl FnOnce(&[u8]) -> R) -> R {
    let mut buf = [0u8; SYMBOL_LEN];
    let format = match style {
        Style::Name => c"%ps",
        Style::Offset => c"%pS",
    };
    // CAST: an address; on a 32-bit machine the upper half of a sum means nothing, as in C.
    let address = core::ptr::without_provenance::<c_void>(address as usize);
    // SAFETY: the buffer has the size given; the format takes one pointer, which is not followed.
    let len = unsafe {
        base::scnprintf(
            buf.as_mut_ptr().cast(),
            buf.len(),
            format.as_char_ptr(),
            address,
        )
    };
    f(usize::try_from(len)
        .ok()
        .and_then(|len| buf.get(..len))
        .unwrap_or(b""))
}

/// Calls `f` with the names of allocation flags, with `|` between them.
pub(crate) fn with_gfp_flags<R>(flags: u32, f: impl FnOnce(&[u8]) -> R) -> R {
    let mut buf = [0u8; SYMBOL_LEN];
    let flags: base::gfp_t = flags;
    // SAFETY: the buffer has the size given; the format takes a pointer to flags.
    let len = unsafe {
        base::scnprintf(
            buf.as_mut_ptr().cast(),
            buf.len(),
            c"%pGg".as_char_ptr(),
            &raw const flags,
        )
    };
    f(usize::try_from(len)
        .ok()
        .and_then(|len| buf.get(..len))
        .unwrap_or(b""))
}

/// Calls `f` with what the kernel shows of an address to those who must not know it: a number that
/// stands for it until the next boot.
#[cfg(rust_hist_debug)]
pub(crate) fn with_hashed<T, R>(address: *const T, f: impl FnOnce(&[u8]) -> R) -> R {
    let mut buf = [0u8; HASHED_LEN];
    // SAFETY: the buffer has the size given; the format takes one pointer, which is not followed.
    let len = unsafe {
        base::scnprintf(
            buf.as_mut_ptr().cast(),
            buf.len(),
            c"%p".as_char_ptr(),
            address.cast::<c_void>(),
        )
    };
    f(usize::try_from(len)
        .ok()
        .and_then(|len| buf.get(..len))
        .unwrap_or(b""))
}

/// More bytes than a hashed address takes, or what is said when it cannot be hashed yet.
#[cfg(rust_hist_debug)]
const HASHED_LEN: usize = 32;

/// The name of a system call; `None` if there is none of this number.
pub(crate) fn syscall(nr: u64) -> Option<&'static [u8]> {
    // CAST: cut to an `int`, as C does.
    // SAFETY: the function only looks the number up.
    let name = unsafe { bindings::hist_helper_syscall_name(nr as c_int) };
    // SAFETY: the names of system calls are part of the kernel image.
    (!name.is_null()).then(|| unsafe { CStr::from_char_ptr(name) }.to_bytes())
}
