// SPDX-License-Identifier: GPL-2.0

//! The door for libFuzzer. The environment says which target it is for.

#![no_main]

use std::{
    ffi::c_int,
    slice,
    sync::OnceLock, //
};

use rust_hist_fuzz::Target;

/// Called by libFuzzer with each input.
///
/// # Safety
///
/// `data` must be valid for reads of `len` bytes.
#[no_mangle]
pub unsafe extern "C" fn LLVMFuzzerTestOneInput(data: *const u8, len: usize) -> c_int {
    static TARGET: OnceLock<Target> = OnceLock::new();

    let target = TARGET.get_or_init(|| {
        let name = std::env::var("RUST_HIST_FUZZ").unwrap_or_default();
        Target::named(&name).unwrap_or_else(|| panic!("RUST_HIST_FUZZ names no target: {name}"))
    });
    let input = if len == 0 {
        &[]
    } else {
        // SAFETY: by the requirement of this function; libFuzzer changes nothing during the call.
        unsafe { slice::from_raw_parts(data, len) }
    };

    target.run(input);
    0
}
