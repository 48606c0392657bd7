// SPDX-License-Identifier: GPL-2.0

//! The part of a row behind the values, what handlers have kept, and the block of `snapshot()`.
//!
//! C counterpart: `print_actions()`, `track_data_print()` and `track_data_snapshot_print()`.

use super::{
    key::FRAME_INDENT,
    text::{
        decimal,
        left_with,
        spaces,
        string, //
    },
    Symbols,
    Table, //
};
use crate::program::{
    track_row,
    Do,
    Handler,
    Kept,
    Kind,
    Save, //
};
use crate::text::Out;
use crate::tracing_map::Row;
use core::fmt;

const NUMBER_WIDTH: usize = 10;
const STRING_WIDTH: usize = 32;

/// A string where nothing was saved yet: what `%s` makes of a null pointer.
const NO_STRING: &[u8] = b"(null)";

/// What comes between two saved values.
const SEPARATOR: &[u8] = b"  ";
/// The same behind a stack, whose last frame has a line of its own.
const SEPARATOR_BEHIND_STACK: &[u8] = b"\n\t";

impl<S: Symbols> Table<'_, S> {
    /// Writes for each handler that tracks a value that value, and what was saved with it.
    ///
    /// PARITY: with two such handlers C writes what is saved behind each of them,
    /// `track_data_print()`.
    pub(super) fn actions<W: Out>(&self, row: &Row<'_>, out: &mut W) -> fmt::Result {
        for action in self.program.actions() {
            let title: &[u8] = match (action.act(), action.handler()) {
                (Do::Snapshot, _) | (_, Handler::Match { .. }) => continue,
                (_, Handler::Max { .. }) => b"\n\tmax: ",
                (_, Handler::Change { .. }) => b"\n\tchanged: ",
            };
            let Some(track) = action.track() else {
                continue;
            };
            let kept = track_row(&track, row.aux);
            let mut separator = SEPARATOR;

            out.write_bytes(title)?;
            out.write_bytes(decimal(kept.value).right(NUMBER_WIDTH))?;
            for save in self.program.saves_of(action) {
                out.write_bytes(separator)?;
                self.saved(save, &kept, out)?;
                separator = match save.field().kind() {
                    Kind::Stack => SEPARATOR_BEHIND_STACK,
                    Kind::Number | Kind::String => SEPARATOR,
                };
            }
        }
        Ok(())
    }

    /// Writes one saved value of a row.
    ///
    /// PARITY: of a stack C writes the address that it is kept at, `track_data_print()`.
    fn saved<W: Out>(&self, save: &Save, kept: &Kept<'_>, out: &mut W) -> fmt::Result {
        let words = kept
            .row
            .get(save.at()..)
            .and_then(|from| from.get(..save.words()))
            .unwrap_or(&[]);

        out.write_bytes(save.name().of(self.text))?;
        match save.field().kind() {
            Kind::Number => {
                let v = words.first().copied().unwrap_or(0);
                out.write_bytes(b": ")?;
                out.write_bytes(decimal(v).right(NUMBER_WIDTH))
            }
            Kind::String => {
                out.write_bytes(b": ")?;
                left_with(STRING_WIDTH, out, |out| match kept.fired {
                    true => string(words, out),
                    false => out.write_bytes(NO_STRING),
                })
            }
            Kind::Stack => {
                out.write_bytes(b":")?;
                for &frame in words.iter().take_while(|&&frame| frame != 0) {
                    out.write_bytes(b"\n")?;
                    spaces(FRAME_INDENT, out)?;
                    self.symbols.symbol_offset(frame, out)?;
                }
                Ok(())
            }
        }
    }

    /// Writes what is known of the hit that took a snapshot: its value, the key of its entry, and the
    /// name of the task that made the entry, where the trigger shows it. Comes between rows and
    /// totals; nothing is written where the trigger has no such action.
    pub fn snapshot<W: Out>(
        &self,
        value: u64,
        key: &[u64],
        comm: &[u64],
        out: &mut W,
    ) -> fmt::Result {
        let mut actions = self.program.actions().iter();
        let Some(action) = actions.find(|action| action.act() == Do::Snapshot) else {
            return Ok(());
        };
        let (name, arg): (&[u8], _) = match action.handler() {
            Handler::Max { arg, .. } => (b"onmax", arg),
            Handler::Change { arg, .. } => (b"onchange", arg),
            Handler::Match { .. } => return Ok(()),
        };

        out.write_bytes(b"\nSnapshot taken (see tracing/snapshot).  Details:\n")?;
        out.write_bytes(b"\ttriggering value { ")?;
        out.write_bytes(name)?;
        out.write_bytes(b"(")?;
        out.write_bytes(arg.of(self.text))?;
        out.write_bytes(b") }: ")?;
        out.write_bytes(decimal(value).right(NUMBER_WIDTH))?;
        out.write_bytes(b"\ttriggered by event with key: ")?;
        self.key(
            &Row {
                key,
                aux: comm,
                sums: &[],
            },
            out,
        )?;
        out.write_bytes(b"\n")
    }
}
