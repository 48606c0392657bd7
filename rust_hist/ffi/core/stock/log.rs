// SPDX-License-Identifier: GPL-2.0

//! The module's entries of `error_log`.
//!
//! C counterpart: `tracing_log_err()` in [`kernel/trace/trace.c`](srctree/kernel/trace/trace.c)

use super::{
    super::{
        event::c_str,
        text::TextBuf, //
    },
    bindings, //
};
use crate::text::Out;
use core::ffi::CStr;
use kernel::{
    prelude::*,
    sync::global_lock, //
};

global_lock! {
    // SAFETY: `init` is called before anybody else knows of the log.
    unsafe(uninit) static LOG: Mutex<KVec<LogText>> = KVec::new();
}

/// The largest number of entries; the core keeps as many of its own.
const ENTRIES: usize = 8;

/// The text of an entry, after the number of its instance.
struct LogText(usize, TextBuf);

/// Makes the log usable. Called once, before any other function of this file.
pub(super) fn init() {
    // SAFETY: called once, at the load of the module.
    unsafe { LOG.init() };
}

/// Adds an entry to the log; without memory the entry is lost.
///
/// # Safety
///
/// The instance must be live, or null, which stands for the top one; `texts` must have a string at `index`, and the others be
/// strings.
pub(in super::super) unsafe fn tracing_log_err(
    instance: *mut bindings::trace_array,
    location: *const c_char,
    command: *mut c_char,
    texts: *mut *const c_char,
    index: u8,
    column: u16,
) {
    // SAFETY: by the contract.
    let (location, command, text, instance) = unsafe {
        (
            c_str(location).unwrap_or_default(),
            c_str(command).unwrap_or_default(),
            c_str(texts.add(index.into()).read()).unwrap_or_default(),
            name_of(instance),
        )
    };
    let Ok(text) = entry(location, command, text, column) else {
        return;
    };
    let mut log = LOG.lock();
    if log.len() >= ENTRIES {
        let _ = log.remove(0);
    }
    let _ = log.push(LogText(instance, text), GFP_KERNEL);
}

/// Returns a number that identifies an instance: 0 for the top one, else its address.
///
/// # Safety
///
/// The instance must be live, or null.
unsafe fn name_of(instance: *mut bindings::trace_array) -> usize {
    // SAFETY: by the contract.
    match instance.is_null() || unsafe { (*instance).name }.is_null() {
        true => 0,
        false => instance.addr(),
    }
}

fn entry(location: &CStr, command: &CStr, text: &CStr, column: u16) -> Result<TextBuf> {
    let mut out = TextBuf::new();
    // SAFETY: it has no precondition.
    let now = unsafe { bindings::trace_clock_local() } / 1000;
    let (seconds, micros) = (now / 1_000_000, now % 1_000_000);
    let written = (|| {
        core::fmt::Write::write_fmt(&mut out, format_args!("[{seconds:5}.{micros:06}] "))?;
        for part in [
            location.to_bytes(),
            b": error: ",
            text.to_bytes(),
            b"\n  Command: ",
            command.to_bytes(),
            b"\n",
        ] {
            out.write_bytes(part)?;
        }
        for _ in 0..usize::from(column) + "  Command: ".len() {
            out.write_bytes(b" ")?;
        }
        out.write_bytes(b"^\n")
    })();
    written.map_err(|_: core::fmt::Error| ENOMEM)?;
    Ok(out)
}

/// Returns the text of an instance's entries, the oldest one first.
///
/// # Safety
///
/// The instance must be live, or null.
pub(super) unsafe fn read(instance: *mut bindings::trace_array) -> Result<TextBuf> {
    // SAFETY: by the contract.
    let instance = unsafe { name_of(instance) };
    let log = LOG.lock();
    let mut out = TextBuf::new();
    for entry in log.iter().filter(|entry| entry.0 == instance) {
        out.write_bytes(entry.1.as_bytes()).map_err(|_| ENOMEM)?;
    }
    Ok(out)
}

/// Removes the entries of an instance from the log.
///
/// # Safety
///
/// The instance must be live, or null.
pub(super) unsafe fn clear(instance: *mut bindings::trace_array) {
    // SAFETY: by the contract.
    let instance = unsafe { name_of(instance) };
    LOG.lock().retain(|entry| entry.0 != instance);
}
