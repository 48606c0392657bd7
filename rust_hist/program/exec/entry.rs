// SPDX-License-Identifier: GPL-2.0

//! What a hit leaves in its entry besides key and sums: variables, tracked values, saved rows.
//!
//! C counterpart: `hist_trigger_elt_update()`, `ontrack_action()` and `update_field_vars()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! Context: [`Program::copy_aux`] process; the others any, NMI included.

use crate::{
    field::Env,
    limits::{
        COMM_LEN,
        STACK_DEPTH,
        STR_SLOT,
        VARS_MAX, //
    },
    schema::Values,
    sync::Atomic,
    tracing_map::{
        copy_words,
        NumCell,
        RowWriter,
        TextCell,
        TrackCell,
        Tracked,
        When, //
    },
};

use super::{
    super::{
        Action,
        Do,
        Field,
        Handler,
        Kind,
        Op,
        Program,
        Save,
        Track,
        Var, //
    },
    location,
    put_stack,
    put_string,
    string_at,
    trace::ArgVals,
    OwnVals,
    Refs,
    Tables, //
};

/// Words of an entry that hold the name of the task that made it.
const COMM_WORDS: usize = COMM_LEN / 8;

/// Most words of a string or of a stack.
pub(super) const TEXT_WORDS: usize = if STR_SLOT / 8 > STACK_DEPTH {
    STR_SLOT / 8
} else {
    STACK_DEPTH
};

/// One record, with all that surrounds its hit.
#[derive(Clone, Copy)]
pub(super) struct Hit<'h, E, T> {
    pub(super) program: &'h Program,
    pub(super) record: &'h [u8],
    pub(super) env: &'h E,
    refs: &'h Refs<'h, T>,
    /// The extra words of the entry.
    aux: &'h [Atomic<u64>],
}

impl Program {
    /// Stores the variables of the trigger in the extra words of the hit's entry, and returns the
    /// numbers among them.
    ///
    /// A string that cannot be had, because another context is writing it at this moment, leaves the
    /// variable unset.
    #[inline(never)]
    pub fn set_vars<E: Env, T: Tables>(
        &self,
        aux: &[Atomic<u64>],
        record: &[u8],
        env: &E,
        refs: &Refs<'_, T>,
    ) -> OwnVals {
        let mut own = OwnVals([0; VARS_MAX]);
        let hit = Hit {
            program: self,
            record,
            env,
            refs,
            aux,
        };

        for (var, place) in self.vars().iter().zip(own.0.iter_mut()) {
            match var.cell.kind {
                Kind::Number => {
                    *place = hit.number(&var.field);
                    if let Some(cell) = NumCell::new(var.cell.of(aux)) {
                        cell.set(*place);
                    }
                }
                Kind::String | Kind::Stack => hit.set_text(var),
            }
        }
        own
    }

    /// Runs the actions of the trigger and returns how many rows could not be saved.
    ///
    /// `own` is what [`Program::set_vars`] has returned. What an action does outside of the entry is
    /// left to `effects`.
    #[inline(never)]
    pub fn act<E: Env, T: Tables>(
        &self,
        aux: &[Atomic<u64>],
        own: &OwnVals,
        record: &[u8],
        env: &E,
        refs: &Refs<'_, T>,
        effects: &mut impl Effects,
    ) -> u64 {
        let mut lost: u64 = 0;
        let hit = Hit {
            program: self,
            record,
            env,
            refs,
            aux,
        };

        for action in self.actions() {
            let value = match action.handler {
                Handler::Match { .. } => {
                    hit.trace(action, own, effects);
                    continue;
                }
                Handler::Max { var, .. } | Handler::Change { var, .. } => own.get(var),
            };

            match hit.track(action, value) {
                Tracked::Same => (),
                Tracked::Stored if action.act == Do::Snapshot => effects.snapshot(action, value),
                Tracked::Stored => hit.trace(action, own, effects),
                Tracked::Lost => lost = lost.wrapping_add(1),
            }
        }
        lost
    }

    /// What an action saves.
    pub fn saves_of(&self, action: &Action) -> &[Save] {
        let Do::Save { first, len } = action.act else {
            return &[];
        };

        self.saves()
            .get(usize::from(first)..)
            .and_then(|from| from.get(..usize::from(len)))
            .unwrap_or(&[])
    }

    /// Copies what a reader wants to see of an entry's extra words to the same places of `to`, of
    /// the same length: the task's name, and for each tracked value what [`track_row`] finds there.
    pub fn copy_aux(&self, from: &[Atomic<u64>], to: &mut [u64]) {
        to.fill(0);
        if self.needs_comm() {
            let comm = to.get_mut(..COMM_WORDS).unwrap_or(&mut []);
            copy_words(from, comm);
        }
        for track in self.actions().iter().filter_map(|action| action.track) {
            let at = usize::from(track.at);
            let Some((fired, rest)) = to.get_mut(at..).and_then(|to| to.split_first_mut()) else {
                continue;
            };
            let Some((value, row)) = rest.split_first_mut() else {
                continue;
            };
            let row = row
                .get_mut(..usize::from(track.row_words))
                .unwrap_or(&mut []);

            if let Some(tracked) = track.cell(from).and_then(|cell| cell.read(row)) {
                *fired = 1;
                *value = tracked;
            }
        }
    }
}

/// A tracked value and its row, as [`Program::copy_aux`] leaves them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept<'r> {
    /// Whether a hit has stored it; else it is 0, and so is all of the row.
    pub fired: bool,
    /// The value.
    pub value: u64,
    /// What was saved with it.
    pub row: &'r [u64],
}

/// Returns the tracked value in the extra words of a copied row.
pub fn track_row<'r>(track: &Track, aux: &'r [u64]) -> Kept<'r> {
    let words = aux.get(usize::from(track.at)..).unwrap_or(&[]);
    let word = |i: usize| words.get(i).copied().unwrap_or(0);

    Kept {
        fired: word(0) != 0,
        value: word(1),
        row: words
            .get(2..)
            .and_then(|row| row.get(..usize::from(track.row_words)))
            .unwrap_or(&[]),
    }
}

impl Track {
    /// The tracked value in the extra words of an entry.
    #[inline]
    fn cell<'a>(&self, aux: &'a [Atomic<u64>]) -> Option<TrackCell<'a>> {
        TrackCell::new(
            aux.get(usize::from(self.at)..)?,
            usize::from(self.row_words),
        )
    }
}

/// What actions do outside of the entry.
///
/// Called from any context, NMI included.
pub trait Effects {
    /// The time of a `snapshot()` has come; `value` is the reason.
    fn snapshot(&mut self, action: &Action, value: u64);

    /// The time of a `trace()` has come: generates the event that the resolver called `synth`.
    fn trace(&mut self, synth: u16, values: &impl Values);
}

impl<E: Env, T: Tables> Hit<'_, E, T> {
    /// Compares `value` with what the handler keeps, and keeps it if its time has come, with what is
    /// saved.
    #[inline(never)]
    fn track(&self, action: &Action, value: u64) -> Tracked {
        let when = match action.handler {
            Handler::Max { .. } => When::Larger,
            Handler::Change { .. } | Handler::Match { .. } => When::Other,
        };
        let Some(cell) = action.track.and_then(|track| track.cell(self.aux)) else {
            return Tracked::Same;
        };

        cell.update(when, value, |row| {
            for save in self.program.saves_of(action) {
                self.save(save, row);
            }
        })
    }

    /// Generates the synthetic event, if that is what the action does.
    #[inline]
    fn trace(&self, action: &Action, own: &OwnVals, effects: &mut impl Effects) {
        if let Do::Trace { synth, .. } = action.act {
            let values = ArgVals {
                hit: self,
                own,
                args: self.program.args_of(action),
            };

            effects.trace(synth, &values);
        }
    }

    /// The number that a field comes to.
    #[inline]
    pub(super) fn number(&self, field: &Field) -> u64 {
        self.program
            .number(field, self.record, self.env, self.refs.numbers)
    }

    /// Stores a string or stack in its variable.
    #[inline(never)]
    fn set_text(&self, var: &Var) {
        let mut buf = [0; TEXT_WORDS];
        let words = var.cell.of(self.aux);
        // The first of them is not content.
        let len = words.len().saturating_sub(1);
        let (Some(cell), Some(buf)) = (TextCell::new(words), buf.get_mut(..len)) else {
            return;
        };

        // A writer that meets another one has nothing more to do; see `TextCell::write`.
        let _ = match self.text(&var.field, buf) {
            Some(()) => cell.write(buf.iter().copied()),
            None => cell.unset(),
        };
    }

    /// Writes what one parameter of `save()` comes to.
    fn save(&self, save: &Save, row: &RowWriter<'_>) {
        match save.field.kind {
            Kind::Number => row.put(save.at(), [self.number(&save.field)]),
            Kind::String | Kind::Stack => self.save_text(save, row),
        }
    }

    /// Writes the string or stack that one parameter of `save()` comes to.
    #[inline(never)]
    fn save_text(&self, save: &Save, row: &RowWriter<'_>) {
        let mut buf = [0; TEXT_WORDS];
        let Some(buf) = buf.get_mut(..save.words()) else {
            return;
        };

        // It is written also if there is nothing, since the row holds what was there before.
        if self.text(&save.field, buf).is_none() {
            buf.fill(0);
        }
        row.put(save.at(), buf.iter().copied());
    }

    /// Fills `buf` with the string or stack that a field comes to; `None` if it cannot be had, and
    /// then `buf` holds anything. A string ends in a NUL.
    #[inline(never)]
    pub(super) fn text(&self, field: &Field, buf: &mut [u64]) -> Option<()> {
        match field.op {
            Op::Comm | Op::StaticString { .. } | Op::DynString { .. } | Op::RelDynString { .. } => {
                let mut comm = [0; COMM_LEN];
                let bytes = string_at(field, self.record, self.env, &mut comm);

                put_string(buf, bytes.split(|&byte| byte == 0).next().unwrap_or(&[]));
            }
            Op::EntryComm => copy_words(self.aux.get(..COMM_WORDS)?, buf),
            Op::Stacktrace => self.env.stacktrace(buf),
            Op::StackField { offset } => {
                put_stack(buf, self.record, location(self.record, offset).0);
            }
            Op::Ref(n) => self.foreign_text(n, buf)?,
            Op::One | Op::Num { .. } | Op::Timestamp | Op::Cpu | Op::Const(_) | Op::Expr(_) => {
                return None
            }
        }
        if field.kind == Kind::String {
            end_string(buf);
        }
        Some(())
    }

    /// The number of another trigger's variable.
    pub(super) fn foreign_number(&self, n: u8) -> u64 {
        let numbers = self.refs.numbers;

        numbers.get(usize::from(n)).copied().unwrap_or(0)
    }

    /// Copies the string or stack of another trigger's variable to `buf`, or as much as fits.
    pub(super) fn foreign_text(&self, n: u8, buf: &mut [u64]) -> Option<()> {
        let reference = self.program.refs().get(usize::from(n))?;
        let aux = self.refs.tables.aux(reference.table, self.refs.key)?;

        TextCell::new(reference.cell.of(aux))?.read(buf)
    }

    /// Copies the string or stack of a variable of the trigger itself to `buf`, or as much as fits.
    pub(super) fn own_text(&self, n: u8, buf: &mut [u64]) -> Option<()> {
        let var = self.program.vars().get(usize::from(n))?;

        TextCell::new(var.cell.of(self.aux))?.read(buf)
    }
}

/// Makes the last byte a NUL: the buffer may be shorter than what was copied to it.
pub(super) fn end_string(words: &mut [u64]) {
    if let Some(last) = words.last_mut() {
        let [head @ .., _] = last.to_ne_bytes();
        let mut bytes = [0; size_of::<u64>()];

        for (to, from) in bytes.iter_mut().zip(head) {
            *to = from;
        }
        *last = u64::from_ne_bytes(bytes);
    }
}
