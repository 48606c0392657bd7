// SPDX-License-Identifier: GPL-2.0

//! Whether two programs are one trigger.
//!
//! C counterpart: `hist_trigger_match()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! Context: process.

#![cfg_attr(not(CONFIG_RUST), forbid(unsafe_code))]
#![cfg_attr(
    CONFIG_RUST,
    allow(
        unreachable_pub,
        reason = "the root of the module keeps its rooms private"
    )
)]

use super::{
    Field,
    Program, //
};

impl Program {
    /// Whether `self`, made from `text`, and `other`, made from `other_text`, are one trigger of one
    /// event: a second one is refused, and a command with `!`, `pause`, `cont` or `clear` finds the
    /// first.
    ///
    /// The filter counts by its text. Size, clock and `nohitcount` do not count, so that a removal
    /// need not repeat them.
    ///
    /// PARITY: `hist_trigger_match()` does not look at the width of buckets.
    pub fn same_trigger(&self, text: &[u8], other: &Program, other_text: &[u8]) -> bool {
        self.filter(text) == other.filter(other_text) && self.same_shape(text, other, other_text)
    }

    /// As [`Program::same_trigger`], whatever the filters.
    pub fn same_shape(&self, text: &[u8], other: &Program, other_text: &[u8]) -> bool {
        let same = |a: &Field, b: &Field| self.same_field(a, text, other, b, other_text);
        let (keys, other_keys) = (self.keys(), other.keys());
        let (vals, other_vals) = (self.vals(), other.vals());

        keys.len() == other_keys.len()
            && vals.len() == other_vals.len()
            && vals.iter().zip(other_vals).all(|(a, b)| same(a, b))
            && keys
                .iter()
                .zip(other_keys)
                .all(|(a, b)| a.offset == b.offset && a.size == b.size && same(&a.field, &b.field))
            && self.sort_keys() == other.sort_keys()
    }

    /// Whether two fields are one; the place in the record does not count.
    fn same_field(
        &self,
        a: &Field,
        text: &[u8],
        other: &Program,
        b: &Field,
        other_text: &[u8],
    ) -> bool {
        core::mem::discriminant(&a.op) == core::mem::discriminant(&b.op)
            && a.modifier == b.modifier
            && a.size == b.size
            && a.signed == b.signed
            && self.name_of(a.type_name, text) == other.name_of(b.type_name, other_text)
            && self.field_name(a, text) == other.field_name(b, other_text)
    }
}
