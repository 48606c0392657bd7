// SPDX-License-Identifier: GPL-2.0

//! The part of a row after the values: tracked and saved values; and the block of `snapshot()`.
//!
//! C counterpart: `print_actions()`, `track_data_print()` and `track_data_snapshot_print()`.

use super::{
    key::{
        frames,
        right,
        FRAME_INDENT, //
    },
    text::{
        decimal,
        left_with,
        spaces,
        string, //
    },
    Renderer,
    Symbols, //
};
use crate::bucket::integer;
use crate::program::{
    track_row,
    ActionKind,
    Handler,
    Kept,
    Kind,
    Save, //
};
use crate::text::Out;
use crate::tracing_map::{
    Order,
    Row,
    When, //
};
use core::fmt;

const NUMBER_WIDTH: usize = 10;
const STRING_WIDTH: usize = 32;

/// The text for a string that no hit has saved yet, as `%s` prints a null pointer.
const NO_STRING: &[u8] = b"(null)";

/// The separator between two saved values.
const SEPARATOR: &[u8] = b"  ";
/// The separator after a stack, whose last frame is on a line of its own.
const SEPARATOR_AFTER_STACK: &[u8] = b"\n\t";

/// Returns the words of a saved value within a saved row.
pub(super) fn kept_words<'r>(save: &Save, row: &'r [u64]) -> &'r [u64] {
    row.get(save.at()..)
        .and_then(|from| from.get(..save.words()))
        .unwrap_or(&[])
}

/// Returns the number that a handler tracks, with a sign if the condition compares signed numbers.
fn tracked(value: u64, when: When) -> i128 {
    integer(value, when.order() == Order::SIGNED)
}

impl<S: Symbols> Renderer<'_, S> {
    /// Writes the tracked value of each handler that has one, and the values saved with it.
    ///
    /// PARITY: with two such handlers `track_data_print()` writes the saved values after each of them.
    pub(super) fn actions<W: Out>(&self, row: &Row<'_>, out: &mut W) -> fmt::Result {
        for action in self.program.actions.iter() {
            let (Handler::Track { when, .. }, Some(track)) = (action.handler, action.track) else {
                continue;
            };
            let title: &[u8] = match when {
                _ if action.kind == ActionKind::Snapshot => continue,
                When::Larger => b"\n\tmax: ",
                When::Other | When::Apart { .. } => b"\n\tchanged: ",
                When::Above { .. } => b"\n\tover: ",
            };
            let kept = track_row(&track, row.aux);
            let mut separator = SEPARATOR;

            out.write_bytes(title)?;
            right(tracked(kept.value, when), NUMBER_WIDTH, out)?;
            for save in self.program.saves_of(action) {
                out.write_bytes(separator)?;
                self.saved(save, &kept, out)?;
                separator = match save.field.kind {
                    Kind::Stack => SEPARATOR_AFTER_STACK,
                    Kind::Number | Kind::String | Kind::Cpumask => SEPARATOR,
                };
            }
        }
        Ok(())
    }

    /// Writes one saved value of a row.
    ///
    /// PARITY: for a stack `track_data_print()` writes the address of its copy.
    fn saved<W: Out>(&self, save: &Save, kept: &Kept<'_>, out: &mut W) -> fmt::Result {
        let words = kept_words(save, kept.row);

        out.write_bytes(save.name.of(self.text))?;
        match save.field.kind {
            Kind::Number => {
                let v = words.first().copied().unwrap_or(0);
                out.write_parts(&[b": ", decimal(v).right(NUMBER_WIDTH)])
            }
            Kind::String | Kind::Cpumask => {
                out.write_bytes(b": ")?;
                left_with(STRING_WIDTH, out, |out| match kept.fired {
                    true => string(words, out),
                    false => out.write_bytes(NO_STRING),
                })
            }
            Kind::Stack => {
                out.write_bytes(b":")?;
                for frame in frames(words) {
                    out.write_bytes(b"\n")?;
                    spaces(FRAME_INDENT, out)?;
                    self.symbols.symbol_offset(frame, out)?;
                }
                Ok(())
            }
        }
    }

    /// Writes the block between rows and totals about the hit that took a snapshot: its value, the key of its entry,
    /// and the task name `comm` of the entry if the trigger shows it. Writes nothing if the trigger has no
    /// `snapshot()`.
    pub fn snapshot<W: Out>(
        &self,
        value: u64,
        key: &[u64],
        comm: &[u64],
        out: &mut W,
    ) -> fmt::Result {
        let mut actions = self.program.actions.iter();
        let Some(action) = actions.find(|action| action.kind == ActionKind::Snapshot) else {
            return Ok(());
        };
        let Handler::Track { arg, when, .. } = action.handler else {
            return Ok(());
        };

        out.write_bytes(b"\nSnapshot taken (see tracing/snapshot).  Details:\n")?;
        out.write_bytes(b"\ttriggering value { ")?;
        out.write_str(action.handler.word())?;
        out.write_parts(&[b"(", arg.of(self.text), b") }: "])?;
        right(tracked(value, when), NUMBER_WIDTH, out)?;
        out.write_bytes(b"\ttriggered by event with key: ")?;
        let (aux, sums) = (comm, &[][..]);
        self.key(&Row { key, aux, sums }, out)?;
        out.write_bytes(b"\n")
    }
}
