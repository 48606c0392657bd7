// SPDX-License-Identifier: GPL-2.0

//! A filter and a record, with a NUL between them: the text is taken or refused, and of what is taken the opposite is false.

use crate::lang_common::ZOO;
use rust_hist::{
    alloc::{
        AllocError,
        Vec as KVec, //
    },
    field::{
        FieldDesc,
        TaskNumber, //
    },
    limits::COMM_LEN,
    program::{
        filter::{
            Filter,
            Function,
            Subject,
            Surroundings, //
        },
        Resolver, //
    },
};

struct Zoo;

impl Subject for Zoo {
    fn field(&self, name: &[u8]) -> Option<FieldDesc<'_>> {
        ZOO.field(name)
    }

    fn has(&self, _number: TaskNumber) -> bool {
        true
    }

    fn function(&self, of: Function<'_>) -> Option<(u64, u64)> {
        match of {
            Function::Name(name) => (name.len() == 1).then_some((0x1000, 16)),
            Function::Address(address) => Some((address & !0xff, address & 0xff)),
        }
    }

    fn cpu_list(&self, list: &[u8]) -> Result<Option<KVec<u64>>, AllocError> {
        let mut set = KVec::new();
        for byte in list.iter().take(2) {
            set.push(u64::from(*byte))?;
        }
        Ok((!list.contains(&b'x')).then_some(set))
    }
}

/// Addresses are places in the record.
#[derive(Clone, Copy)]
struct Around<'a>(&'a [u8]);

impl Surroundings for Around<'_> {
    fn cpu(&self) -> u32 {
        1
    }

    fn task(&self, which: TaskNumber) -> u64 {
        which as u64
    }

    fn comm(&self, out: &mut [u8; COMM_LEN]) {
        for (to, from) in out.iter_mut().zip(self.0) {
            *to = *from;
        }
    }

    fn test_string(
        &self,
        address: u64,
        is_of_user: bool,
        test: impl FnOnce(&[u8]) -> bool,
    ) -> bool {
        !is_of_user && self.0.get(address as usize..).is_some_and(test)
    }
}

pub(crate) fn run(input: &[u8]) {
    let (text, record) = match input.iter().position(|&byte| byte == 0) {
        Some(at) => (&input[..at], &input[at + 1..]),
        None => (input, &[][..]),
    };
    let filter = match Filter::compile(text, &Zoo) {
        Ok(filter) => filter,
        Err(refusal) => {
            assert!(refusal.at <= text.len() + 2);
            return;
        }
    };
    // The name of a function ends with a blank.
    let opposite = [b"!(", text, b" )"].concat();

    if let Ok(opposite) = Filter::compile(&opposite, &Zoo) {
        let around = Around(record);
        assert_ne!(
            filter.accepts(around, record),
            opposite.accepts(around, record)
        );
    }
}
