// SPDX-License-Identifier: GPL-2.0
//
// An event with two fields. The examples in the documentation of the pure layers include this file.

use rust_hist::{
    field::{
        FieldDesc,
        FieldKind, //
    },
    program::Resolver,
};

/// The event `sched_switch`, without most of its fields.
pub struct SchedSwitch;

impl Resolver for SchedSwitch {
    fn field(&self, name: &[u8]) -> Option<FieldDesc<'_>> {
        let (type_name, offset, size): (&[u8], u32, u32) = match name {
            b"prev_state" => (b"long", 32, 8),
            b"next_pid" => (b"pid_t", 56, 4),
            _ => return None,
        };

        Some(FieldDesc {
            type_name,
            offset,
            size,
            signed: true,
            kind: FieldKind::Other,
        })
    }
}
