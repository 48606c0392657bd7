// SPDX-License-Identifier: GPL-2.0

//! The kernel's answers to filters: when a filter is compiled, and about the task and the CPU of a hit.
//!
//! C counterpart: [`kernel/trace/trace_events_filter.c`](srctree/kernel/trace/trace_events_filter.c).

use super::{
    bindings,
    guard::PreemptOff,
    nofault,
    symbols,
    task,
    text::TextBuf, //
};
use crate::{
    alloc::{
        AllocError,
        Vec, //
    },
    field::TaskNumber,
    limits::COMM_LEN,
    program::filter::{
        Function,
        Surroundings, //
    },
    text::lex, //
};
use kernel::{
    cpu::nr_cpu_ids,
    prelude::*, //
};

impl Surroundings for PreemptOff<'_> {
    #[inline(always)]
    fn cpu(&self) -> u32 {
        PreemptOff::cpu(self)
    }

    #[inline(always)]
    fn task(&self, which: TaskNumber) -> u64 {
        task::number(which, self)
    }

    #[inline(always)]
    fn comm(&self, out: &mut [u8; COMM_LEN]) {
        task::comm(out, self);
    }

    #[inline(always)]
    fn test_string(
        &self,
        address: u64,
        is_of_user: bool,
        test: impl FnOnce(&[u8]) -> bool,
    ) -> bool {
        nofault::test_string(address, is_of_user, test)
    }
}

/// Returns the address and the size of a function of the kernel. Context: process, may sleep.
///
/// PARITY: C calls `kallsyms_lookup_name()`, which modules cannot. Here names are looked up like kprobes do, so data,
/// and code that cannot be probed, are not found.
pub(crate) fn function(of: Function<'_>) -> Option<(u64, u64)> {
    let address = match of {
        Function::Address(address) => address,
        Function::Name(name) => {
            let name = TextBuf::terminated(name).ok()?;
            // SAFETY: the name is a string, which the call does not keep.
            unsafe { bindings::hist_helper_function(name.as_c_str().as_char_ptr()) as u64 }
        }
    };
    symbols::with_symbol_offset(address, |text| {
        // The text is NAME+OFFSET/SIZE, with the module after a blank.
        let symbol = text.split(|&byte| lex::is_space(byte)).next()?;
        let mut numbers = symbol.rsplit(|&byte| matches!(byte, b'+' | b'/'));
        let size = lex::number(numbers.next()?).ok()?;
        let offset = lex::number(numbers.next()?).ok()?;
        Some((address.checked_sub(offset)?, size))
    })
}

/// Returns the set of CPUs for a list; `None` if the text is no list. Context: process, may sleep.
pub(crate) fn cpu_list(list: &[u8]) -> Result<Option<Vec<u64>>, AllocError> {
    let text = TextBuf::terminated(list).map_err(|_| AllocError)?;
    let mut set = Vec::new();
    for _ in 0..nr_cpu_ids().div_ceil(u64::BITS) {
        set.push(0)?;
    }
    // SAFETY: the text is a string, and the set has a bit for each possible CPU, in whole words.
    let ret =
        unsafe { bindings::hist_helper_cpu_list(text.as_c_str().as_char_ptr(), set.as_mut_ptr()) };
    Ok((ret == 0).then_some(set))
}
