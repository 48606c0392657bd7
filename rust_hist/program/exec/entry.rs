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
        COMM_WORDS,
        STR_SLOT, //
    },
    schema::FieldValues,
    sync::Atomic,
    tracing_map::{
        copy_words,
        track_value,
        RowWriter,
        TextCell,
        TrackCell,
        Tracked,
        When, //
    }, //
};

use super::{
    super::{
        plan::Number,
        plan_vars::VarStep,
        Action,
        ActionKind,
        Handler,
        Kind,
        Op,
        Program,
        Save,
        Track, //
    },
    place_of,
    refs::{
        OwnVals,
        Refs,
        Tables, //
    },
    text::{
        copy,
        set_string,
        set_string_at_once, //
    },
    trace::ArgVals,
    Hit, //
};

impl Program {
    /// Stores the variables of the trigger in the extra words of the hit's entry, and returns the
    /// numbers among them, which go to `own`. That has room for all variables, as an [`super::OwnBuf`]
    /// always has.
    ///
    /// A string that cannot be had, because another context is writing it at this moment, leaves the
    /// variable unset.
    #[inline(always)]
    pub fn set_vars<'o, E: Env, T: Tables>(
        &self,
        aux: &[Atomic<u64>],
        record: &[u8],
        env: &E,
        refs: &Refs<'_, T>,
        own: &'o mut [u64],
    ) -> OwnVals<'o> {
        let mut places = own.iter_mut();

        for var in self.plan.vars.iter() {
            let Some(place) = places.next() else {
                break;
            };

            *place = if var.is_number() {
                let value = self.number_at(&var.number, record, env, refs.numbers);

                var.set(aux, value);
                value
            } else if let Some(text) = var.text().op() {
                var.set_text(text, aux, record);
                // The room may be that of an earlier hit, here and below.
                0
            } else {
                // Copies, as in `act`.
                let (refs, env) = (*refs, *env);
                let hit = Hit {
                    program: self,
                    record,
                    env: &env,
                    refs: &refs,
                    aux,
                };

                hit.set_text(var);
                0
            };
        }
        OwnVals(own)
    }

    /// Runs the actions of the trigger and returns how many rows could not be saved.
    ///
    /// `own` is what [`Program::set_vars`] has returned. What an action does outside of the entry is
    /// left to `effects`.
    #[inline(always)]
    pub fn act<E: Env, T: Tables>(
        &self,
        aux: &[Atomic<u64>],
        own: &OwnVals<'_>,
        record: &[u8],
        env: &E,
        refs: &Refs<'_, T>,
        effects: impl Effects,
    ) -> u64 {
        let mut lost: u64 = 0;

        for action in self.actions() {
            let (when, value) = match action.handler {
                Handler::Match { .. } if !action.traces(effects) => continue,
                Handler::Match { .. } => (None, 0),
                Handler::Max { var, .. } => {
                    let value = own.get(var);

                    if value <= action.tracked_in(aux) {
                        continue;
                    }
                    (Some(When::Larger), value)
                }
                Handler::Change { var, .. } => {
                    let value = own.get(var);

                    if value == action.tracked_in(aux) {
                        continue;
                    }
                    (Some(When::Other), value)
                }
            };
            // Copies, so that what a hit has needs no place in memory where nothing is to be done.
            let (refs, env, own) = (*refs, *env, *own);
            let hit = Hit {
                program: self,
                record,
                env: &env,
                refs: &refs,
                aux,
            };

            let has_come = match when {
                None => true,
                Some(when) => match hit.track(action, when, value) {
                    Tracked::Same => false,
                    Tracked::Stored => true,
                    Tracked::Lost => {
                        lost = lost.wrapping_add(1);
                        false
                    }
                },
            };

            // Here, where what it took to keep the number is off the stack: the event may have triggers.
            if has_come && action.kind == ActionKind::Snapshot {
                effects.snapshot(action, value);
            } else if has_come && action.traces(effects) {
                hit.trace(action, &own, effects);
            }
        }
        lost
    }

    /// Stores the stack that is the only variable of a program whose [`Program::stack_keys`] are not 0.
    #[inline(always)]
    pub fn set_stack(&self, aux: &[Atomic<u64>], env: &impl Env) {
        let Some(cell) = self
            .vars()
            .first()
            .and_then(|var| TextCell::new(var.cell.of(aux)))
        else {
            return;
        };

        // As in `set_text`.
        env.stacktrace(|frames| cell.fill(|content| Some(content.put_all(frames))));
    }

    /// Whether [`Program::act`] may have anything to do, of a program whose [`Program::tracking_keys`] are not 0.
    ///
    /// Numbers of the record are read again: that takes less than to keep them for the few hits that want them.
    #[inline(always)]
    pub fn is_due(&self, aux: &[Atomic<u64>], record: &[u8], cpu: impl Fn() -> u32 + Copy) -> bool {
        self.actions().iter().any(|action| match action.handler {
            Handler::Match { .. } => true,
            Handler::Max { var, .. } => self.var_at_hand(var, record, cpu) > action.tracked_in(aux),
            Handler::Change { var, .. } => {
                self.var_at_hand(var, record, cpu) != action.tracked_in(aux)
            }
        })
    }

    /// The numbers that a hit of such a program has stored in its variables, as [`Program::set_vars`] returns
    /// them.
    pub fn own_at_hand<'o>(
        &self,
        record: &[u8],
        cpu: impl Fn() -> u32 + Copy,
        own: &'o mut [u64],
    ) -> OwnVals<'o> {
        for (place, var) in own.iter_mut().zip(self.plan.vars.iter()) {
            *place = self.number_at_hand(&var.number, record, cpu);
        }
        OwnVals(own)
    }

    /// What an action saves.
    pub fn saves_of(&self, action: &Action) -> &[Save] {
        let ActionKind::Save { first, len } = action.kind else {
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

impl VarStep {
    /// Stores a string of the record in its variable; `text` is that of [`VarStep::text`].
    #[inline(always)]
    fn set_text(&self, text: Op, aux: &[Atomic<u64>], record: &[u8]) {
        if let (Some((at, len)), Some(words)) = (place_of(text, record), self.text_words(aux)) {
            let from = record.get(at..).unwrap_or(&[]);

            set_string(words, from, len.min(self.text().most()));
        }
    }

    /// As [`VarStep::set_text`], without a call if there is room for the longest string, as there is where its place
    /// is not fixed: so the compiler knows that each word of it has its place.
    #[inline(always)]
    pub(in super::super) fn set_text_at_once(&self, text: Op, aux: &[Atomic<u64>], record: &[u8]) {
        if let Op::StaticString { .. } = text {
            return self.set_text(text, aux, record);
        }
        if let (Some((at, len)), Some(words)) = (place_of(text, record), self.slot_words(aux)) {
            match record.get(at..) {
                Some(from) => set_string_at_once(words, from, len.min(STR_SLOT - 1)),
                // It is beyond the end.
                None => set_string(words, &[], 0),
            }
        }
    }
}

impl Track {
    /// The tracked value in the extra words of an entry.
    #[inline(always)]
    fn cell<'a>(&self, aux: &'a [Atomic<u64>]) -> Option<TrackCell<'a>> {
        TrackCell::new(
            aux.get(usize::from(self.at)..)?,
            usize::from(self.row_words),
        )
    }
}

/// What actions do outside of the entry. Small, and handed on by value.
///
/// Called from any context, NMI included.
pub trait Effects: Copy {
    /// The time of a `snapshot()` has come; `value` is the reason.
    fn snapshot(self, action: &Action, value: u64);

    /// Whether anybody wants the event that the resolver called `synth`.
    fn is_wanted(self, synth: u16) -> bool;

    /// The time of a `trace()` has come: generates the event that the resolver called `synth`.
    fn trace(self, synth: u16, values: &impl FieldValues);
}

impl Action {
    /// The value that the handler keeps at this moment.
    #[inline(always)]
    fn tracked_in(&self, aux: &[Atomic<u64>]) -> u64 {
        match self.track {
            Some(track) => track_value(aux, usize::from(track.at)),
            None => 0,
        }
    }

    /// Whether it generates an event that anybody wants.
    #[inline(always)]
    fn traces(&self, effects: impl Effects) -> bool {
        match self.kind {
            ActionKind::Trace { synth, .. } => effects.is_wanted(synth),
            ActionKind::Save { .. } | ActionKind::Snapshot => false,
        }
    }
}

impl<E: Env, T: Tables> Hit<'_, E, T> {
    /// Keeps `value` if its time has come, with what is saved.
    #[inline(never)]
    fn track(&self, action: &Action, when: When, value: u64) -> Tracked {
        match action.track.and_then(|track| track.cell(self.aux)) {
            Some(cell) => cell.update(when, value, |row| self.save(action, row)),
            None => Tracked::Same,
        }
    }

    /// Writes what an action saves.
    #[inline(always)]
    fn save(&self, action: &Action, row: &RowWriter<'_>) {
        let saves = self.program.saves_of(action).iter();

        for (save, number) in saves.zip(self.program.plan.saves_of(action)) {
            match save.field.kind {
                Kind::Number => row.put(save.at(), self.number(number)),
                Kind::String | Kind::Stack => self.save_text(save, row),
            }
        }
    }

    /// Generates the synthetic event, if that is what the action does.
    #[inline(always)]
    fn trace(&self, action: &Action, own: &OwnVals<'_>, effects: impl Effects) {
        if let ActionKind::Trace { synth, .. } = action.kind {
            let values = ArgVals {
                hit: self,
                own: *own,
                action,
                steps: self.program.plan.args_of(action),
                frames: None,
            };

            effects.trace(synth, &values);
        }
    }

    /// The value of a number.
    #[inline]
    pub(super) fn number(&self, number: &Number) -> u64 {
        self.program
            .number_at(number, self.record, self.env, self.refs.numbers)
    }

    /// Stores a string or stack in its variable.
    #[inline(never)]
    fn set_text(&self, var: &VarStep) {
        let Some(var) = self.program.vars().get(usize::from(var.n)) else {
            return;
        };
        let words = var.cell.of(self.aux);
        let Some(cell) = TextCell::new(words) else {
            return;
        };
        // The first of them is not content.
        let room = words.len().saturating_sub(1);

        // A writer that meets another one has nothing more to do; see `TextCell::fill`.
        if var.field.op == Op::Stacktrace {
            // To take one takes so long that the variable is not to be busy meanwhile.
            self.env.stacktrace(|frames| {
                cell.fill(|content| Some(copy(frames, room, |at, frame| content.put(at, frame))))
            });
        } else {
            cell.fill(|content| self.text(&var.field, room, |at, word| content.put(at, word)));
        }
    }

    /// Writes the string or stack that one parameter of `save()` comes to.
    #[inline(never)]
    fn save_text(&self, save: &Save, row: &RowWriter<'_>) {
        let first = save.at();
        let room = save.words();
        let put = |at: usize, word| row.put(first.saturating_add(at), word);
        // It is written also if there is nothing, since the row holds what was there before.
        let len = self.text(&save.field, room, put).unwrap_or(0);

        // Readers look no further than the end, which is a NUL or an address that is 0.
        if len < room {
            put(len, 0);
        }
    }

    /// The words of another trigger's variable, in the entry of this key.
    pub(super) fn foreign_words(&self, n: u8) -> Option<&[Atomic<u64>]> {
        let reference = self.program.refs().get(usize::from(n))?;
        let aux = self.refs.tables.aux(reference.table, self.refs.key)?;

        Some(reference.cell.of(aux))
    }

    /// The words of a variable of the trigger itself.
    pub(super) fn own_words(&self, n: u8) -> Option<&[Atomic<u64>]> {
        let var = self.program.vars().get(usize::from(n))?;

        Some(var.cell.of(self.aux))
    }

    /// The number of another trigger's variable.
    #[inline(always)]
    pub(super) fn foreign_number(&self, n: u8) -> u64 {
        let numbers = self.refs.numbers;

        numbers.get(usize::from(n)).copied().unwrap_or(0)
    }
}
