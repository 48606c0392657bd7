// SPDX-License-Identifier: GPL-2.0

//! What filters ask of the kernel: when they are made, and of the task and the CPU of a hit.
//!
//! C counterpart: [`kernel/trace/trace_events_filter.c`](srctree/kernel/trace/trace_events_filter.c).

use super::{
    bindings,
    guard::PreemptOff,
    nofault,
    symbols::{
        self,
        Style, //
    },
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

/// The address and the size of a function of the kernel. Context: process, may sleep.
///
/// PARITY: C asks `kallsyms_lookup_name()`, which no module can. A name is what kprobes take as a place for a probe, so data
/// and code that cannot be probed are not found.
pub(crate) fn function(of: Function<'_>) -> Option<(u64, u64)> {
    let address = match of {
        Function::Address(address) => address,
        Function::Name(name) => {
            let name = TextBuf::terminated(name).ok()?;
            // SAFETY: a string, which the call does not keep.
            unsafe { bindings::hist_helper_function(name.as_c_str().as_char_ptr()) as u64 }
        }
    };
    symbols::with_symbol(address, Style::Offset, |text| {
        // NAME+OFFSET/SIZE, and the module behind a blank.
        let symbol = text.split(|&byte| lex::is_space(byte)).next()?;
        let mut numbers = symbol.rsplit(|&byte| matches!(byte, b'+' | b'/'));
        let size = lex::number(numbers.next()?).ok()?;
        let offset = lex::number(numbers.next()?).ok()?;
        Some((address.checked_sub(offset)?, size))
    })
}

/// The set of CPUs that a list names; `None` if it is no list. Context: process, may sleep.
pub(crate) fn cpu_list(list: &[u8]) -> Result<Option<Vec<u64>>, AllocError> {
    let text = TextBuf::terminated(list).map_err(|_| AllocError)?;
    let mut set = Vec::new();
    for _ in 0..nr_cpu_ids().div_ceil(u64::BITS) {
        set.push(0)?;
    }
    // SAFETY: a string, and a set of as many bits as there can be CPUs, in whole words.
    let ret =
        unsafe { bindings::hist_helper_cpu_list(text.as_c_str().as_char_ptr(), set.as_mut_ptr()) };
    Ok((ret == 0).then_some(set))
}
