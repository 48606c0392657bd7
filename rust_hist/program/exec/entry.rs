// SPDX-License-Identifier: GPL-2.0

//! Stores the variables, tracked values and saved rows of a hit in its entry.
//!
//! C counterpart: `hist_trigger_elt_update()`, `ontrack_action()` and `update_field_vars()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! Context: [`Program::copy_aux`] process; the others any, NMI included.

use crate::{
    field::Env,
    limits::{
        COMM_LEN,
        COMM_WORDS,
        KEY_WORDS_MAX,
        STACK_DEPTH, //
    },
    sync::{
        Atomic,
        Pair,
        Relaxed, //
    },
    tracing_map::{
        copy_words,
        is_tracked,
        track_value,
        Loss,
        Moving,
        NumCell,
        Starts,
        TextCell,
        TrackCell,
        Tracked,
        When,
        WordWriter, //
    }, //
};

use super::{
    super::{
        bytes::{
            u64_at,
            word_in, //
        },
        eval::{
            Inputs,
            IMMEDIATE,
            NUMBERS,
            OF_RECORD,
            STAMPS, //
        },
        needs::{
            EVERYTHING,
            MOVED,
            VARS,
            VARS_ANY,
            VARS_EXPRS,
            VARS_NAME,
            VARS_OTHER,
            VARS_STACK,
            VARS_STAMP,
            VARS_TEXT, //
        },
        operand::{
            reference,
            Operand, //
        },
        plan::{
            Plan,
            TextFrom,
            VarStep,
            NAME, //
        },
        Action,
        ActionKind,
        Handler,
        Op,
        Program,
        Save,
        Track, //
    },
    refs::older_than,
    stack_at,
    text::{
        copy_cell,
        copy_string,
        set_copy,
        set_string,
        TextWords,
        WORD, //
    },
    trace::ArgVals,
    Context,
    EntryHit, //
};

impl Program {
    /// Keeps the name of the task that makes an entry, written by `creator`, in the extra words, if the trigger shows
    /// it.
    #[inline]
    pub fn keep_creator(&self, aux: &[Atomic<u64>], creator: impl FnOnce(&mut [u8; COMM_LEN])) {
        if !self.plan.has_creator {
            return;
        }
        let mut comm = [0; COMM_LEN];

        creator(&mut comm);
        for (to, from) in aux.iter().zip(comm.chunks_exact(size_of::<u64>())) {
            // ORDERING: the slot that names the element is published with `Release` after this.
            to.store(word_in(from), Relaxed);
        }
    }

    /// Returns the values that an action saves.
    pub fn saves_of(&self, action: &Action) -> &[Save] {
        match action.kind {
            ActionKind::Save => &self.saves,
            ActionKind::Trace { .. } | ActionKind::Snapshot => &[],
        }
    }

    /// Returns how many of the `begun` starts of an entry a later start has overwritten, and whether one is left. Each
    /// start set all variables. It has ended when one of its number variables was consumed; if some ends consume one
    /// variable and some another, the variable that was consumed most often counts.
    pub fn starts(&self, aux: &[Pair], begun: u64) -> Starts {
        let numbers = self.plan.vars.iter().filter(|var| var.is_number());
        // Variables that are stored nowhere say nothing about starts.
        let mut cells = numbers.filter_map(|var| NumCell::at(aux, var.at));
        let taken = cells.clone().map(|cell| cell.taken(begun)).max();
        let is_left = cells.all(|cell| cell.is_set());
        let unended = begun.saturating_sub(taken.unwrap_or(0));

        Starts {
            is_left,
            overwritten: unended.saturating_sub(u64::from(is_left)),
        }
    }

    /// Carries the variables and tracked values of an entry over to its entry in a larger map: for the thread that
    /// grows the table, when no hit uses the old map alone. Waits while hits are writing all rows of a tracked value;
    /// these hits run on other CPUs or are already over.
    pub fn carry(&self, new: &[Pair], old: &[Pair]) {
        for var in self.plan.vars.iter().filter(|var| var.is_number()) {
            Moving::new(NumCell::at(new, var.at), NumCell::at(old, var.at)).carry();
        }
        for action in self.actions.iter() {
            let Handler::Track { when, .. } = &action.handler else {
                continue;
            };
            let cells = action
                .track
                .and_then(|track| track.cell(new).zip(track.cell(old)));

            if let Some((new, old)) = cells {
                while new.take_over(&old, when) == Tracked::Lost {}
            }
        }
    }

    /// Copies the extra words of an entry that readers want to the same places of `to`, of the same length: the task's
    /// name, and each tracked value with its row, for [`track_row`].
    pub fn copy_aux(&self, from: &[Pair], to: &mut [u64]) {
        to.fill(0);
        if self.needs_comm() {
            let comm = to.get_mut(..COMM_WORDS).unwrap_or(&mut []);
            copy_words(Pair::words(from), comm);
        }
        for track in self.actions.iter().filter_map(|action| action.track) {
            let at = usize::from(track.at);
            let Some([fired, value, row @ ..]) = to.get_mut(at..) else {
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

/// A tracked value and its row, as copied by [`Program::copy_aux`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept<'r> {
    /// Whether a hit has stored a value; if not, the value and all of the row are 0.
    pub fired: bool,
    /// The tracked value.
    pub value: u64,
    /// The words saved together with the value.
    pub row: &'r [u64],
}

/// Returns the tracked value in the extra words of a copied row.
pub fn track_row<'r>(track: &Track, aux: &'r [u64]) -> Kept<'r> {
    match aux.get(usize::from(track.at)..) {
        Some([fired, value, row @ ..]) => Kept {
            fired: *fired != 0,
            value: *value,
            row: row.get(..usize::from(track.row_words)).unwrap_or(&[]),
        },
        _ => Kept::default(),
    }
}

// The words of a task's name are handled without a loop: a crate that is compiled for size does not unroll it.
const _: () = assert!(COMM_WORDS == 2);

/// Writes a task's name, as far as it fits; returns the number of words.
#[inline]
fn put_name(to: WordWriter<'_>, [first, second]: [u64; COMM_WORDS]) -> usize {
    to.put(0, first);
    to.put(1, second);
    COMM_WORDS.min(to.room())
}

/// Returns a word of the task's name that begins `words`.
#[inline]
fn name_word(words: &[Atomic<u64>], at: usize) -> u64 {
    // ORDERING: the name is written before the slot of its entry is published with `Release`, and a hit loads that slot
    // with `Acquire`.
    words.get(at).map_or(0, |word| word.load(Relaxed))
}

impl VarStep {
    /// Stores the name of a task in this variable.
    #[inline]
    fn set_name(&self, aux: &[Atomic<u64>], name: [u64; COMM_WORDS]) {
        let words = self.words::<NAME>(aux);

        if let Some(cell) = words.and_then(|words| TextCell::new(words)) {
            // If another context is writing the variable, this one leaves it alone; see `TextCell::fill`.
            cell.fill(
                #[inline(always)]
                |to| Some(put_name(to, name)),
            );
        }
    }

    /// Returns the string of the record in words, if bytes after its NUL may be copied too and it is wholly inside the
    /// record; else its place and length.
    #[inline]
    fn short_text<'r>(&self, record: &'r [u8]) -> Result<TextWords<'r>, (usize, usize)> {
        let (at, len) = self.text.place(record).unwrap_or((0, 0));

        match self.text.from {
            TextFrom::LongFixed => None,
            _ => TextWords::inside(record, at, len),
        }
        .ok_or((at, len))
    }

    /// Stores a string of the record in this variable.
    #[inline(always)]
    fn set_text(&self, aux: &[Atomic<u64>], record: &[u8]) {
        let Some(words) = self.text_words(aux) else {
            return;
        };

        match self.short_text(record) {
            // If another context is writing the variable, this one leaves it alone; see `TextCell::fill`.
            Ok(from) => {
                if let Some(cell) = TextCell::new(words) {
                    cell.fill(
                        #[inline(always)]
                        |to| Some(from.copy(to)),
                    );
                }
            }
            Err((at, len)) => set_string(words, record, at, len),
        }
    }

    /// Writes a string of the record to its words of a saved row. Returns the number of words.
    #[inline(never)]
    fn save_string(&self, record: &[u8], to: WordWriter<'_>) -> usize {
        match self.short_text(record) {
            Ok(from) => from.copy(to),
            Err((at, len)) => copy_string(
                record,
                at,
                len,
                #[inline(always)]
                |at, word| to.put(at, word),
            ),
        }
    }
}

impl Track {
    /// The tracked value in the extra words of an entry.
    #[inline]
    fn cell<'a>(&self, aux: &'a [Pair]) -> Option<TrackCell<'a>> {
        TrackCell::new(aux, self.at, self.row_words)
    }
}

impl Action {
    /// Returns the value tracked by the action's handler at this moment, 0 if there is none.
    #[inline]
    fn tracked_in(&self, aux: &[Pair]) -> u64 {
        match self.track {
            Some(track) => track_value(aux, track.at),
            None => 0,
        }
    }

    /// Whether the action generates a synthetic event that is enabled for anything.
    #[inline]
    fn traces<'c>(&self, cx: impl Context<'c>) -> bool {
        matches!(self.kind, ActionKind::Trace { synth, .. } if cx.is_wanted(synth))
    }
}

/// Computes the number that a variable is set to.
#[inline(always)]
fn number_of<const STEPS: u32>(plan: &Plan, number: &Operand, inputs: Inputs<'_, impl Env>) -> u64 {
    match const { STEPS & (VARS | VARS_STAMP | VARS_EXPRS | VARS_ANY) } {
        VARS => plan.number::<IMMEDIATE>(number, inputs),
        VARS_OF_RECORD => plan.number::<OF_RECORD>(number, inputs),
        VARS_STAMP => plan.number::<STAMPS>(number, inputs),
        VARS_AND_STAMP => plan.number::<{ IMMEDIATE | STAMPS }>(number, inputs),
        _ => plan.number::<NUMBERS>(number, inputs),
    }
}

/// The steps of variables that are no numbers.
const NOT_NUMBERS: u32 = VARS_TEXT | VARS_NAME | VARS_STACK | VARS_OTHER;

/// The steps of number variables of the record and the CPU.
const VARS_OF_RECORD: u32 = VARS | VARS_EXPRS;

/// The steps of variables that are immediate or made of the time stamp.
const VARS_AND_STAMP: u32 = VARS | VARS_STAMP;

impl<'h, 'c: 'h, C: Context<'c>> EntryHit<'h, 'c, C> {
    /// Stores the variables of the trigger in the extra words of the entry.
    ///
    /// A string variable stays unset if its value cannot be read because another context is writing it.
    #[inline(always)]
    pub(in super::super) fn set_vars<const STEPS: u32>(&self) {
        let (record, inputs, aux) = (self.cx.record(), self.inputs(), self.aux);
        let plan = &self.cx.program().plan;

        for var in plan.vars.iter() {
            if const { STEPS & NOT_NUMBERS == 0 } || var.is_number() {
                debug_assert!(var.is_number());
                var.set(aux, number_of::<STEPS>(plan, &var.number, inputs));
            } else {
                match var.text.from {
                    from if const { STEPS & VARS_TEXT != 0 } && from.is_record() => {
                        var.set_text(self.words(), record);
                    }
                    from @ (TextFrom::Task | TextFrom::Creator) if const { STEPS & VARS_NAME != 0 } =>
                    {
                        var.set_name(self.words(), self.task_name(from));
                    }
                    TextFrom::Variable if const { STEPS & VARS_OTHER != 0 } => {
                        if let Some(to) = var.text_words(self.words()) {
                            let from = self.foreign_words(var.text.reference());

                            // A source variable without words counts as unset.
                            set_copy(to, var.kind, from.unwrap_or(&[]));
                        }
                    }
                    // A copy, so that `self` need not be in memory for programs without such variables.
                    _ if const { STEPS & VARS_OTHER != 0 } => { *self }.set_any_stack(var),
                    _ if const { STEPS & VARS_STACK != 0 } => {
                        if let Some(to) = var.text_words(self.words()) {
                            self.set_stack(to);
                        }
                    }
                    _ => (),
                }
            }
        }
    }

    /// Returns the name of the current task, or of the task that made the entry, kept in its first extra words.
    #[inline]
    fn task_name(&self, from: TextFrom) -> [u64; COMM_WORDS] {
        if from == TextFrom::Creator {
            [name_word(self.words(), 0), name_word(self.words(), 1)]
        } else {
            let mut comm = [0; COMM_LEN];

            self.cx.comm(&mut comm);
            [u64_at(&comm, 0), u64_at(&comm, size_of::<u64>())]
        }
    }

    /// Sets a variable to the kernel stack.
    ///
    /// Inlined: each further stack frame makes unwinding longer.
    #[inline]
    fn set_stack(&self, words: &[Atomic<u64>]) {
        let mut room = C::Stack::default();
        // Before the variable is marked busy: unwinding takes long.
        let frames = self.cx.stack(&mut room);

        if let Some(cell) = TextCell::new(words) {
            cell.fill(
                #[inline(always)]
                |to| Some(to.put_all(frames.iter().copied())),
            );
        }
    }

    /// Runs the actions of the trigger.
    #[inline(always)]
    pub(in super::super) fn act<const STEPS: u32>(&self) {
        for action in self.cx.program().actions.iter() {
            if const { STEPS & MOVED != 0 } && !self.has_tracked(action) {
                continue;
            }
            let due = match action.handler {
                Handler::Match { .. } => action.traces(self.cx).then_some(0),
                Handler::Track {
                    var,
                    when: When::Larger,
                    ..
                } => {
                    let value = self.own_number::<STEPS>(var);

                    (value > action.tracked_in(self.aux)).then_some(value)
                }
                Handler::Track {
                    var,
                    when: When::Other,
                    ..
                } => {
                    let value = self.own_number::<STEPS>(var);

                    (value != action.tracked_in(self.aux)).then_some(value)
                }
                // A copy, so that `self` need not be in memory for other handlers.
                Handler::Track { var, .. } => { *self }.due_by_state(action, var),
            };

            if let Some(value) = due {
                // A copy, so that `self` need not be in memory for hits without an action to run.
                let hit = *self;

                match action.kind {
                    ActionKind::Save => {
                        hit.keep(action, value);
                    }
                    ActionKind::Trace { .. } | ActionKind::Snapshot => hit.run(action, value),
                }
            }
        }
    }

    /// Whether this entry has the tracked value of an action, after taking it over from an older map if the table is
    /// growing.
    #[inline]
    fn has_tracked(&self, action: &Action) -> bool {
        // Mostly true at once. A copy, so that `self` need not be in memory then.
        action.track.is_none_or(|track| {
            is_tracked(self.aux, track.at) || { *self }.take_over(action, &track).is_none()
        })
    }

    /// Looks up the entry in the map that is being replaced and takes over its tracked value. If hits are writing all
    /// spare rows there, this is impossible: the action is counted as lost.
    #[cold]
    #[inline(never)]
    fn take_over(&self, action: &Action, track: &Track) -> Option<()> {
        let old = self.cx.view(self.cx.replaced(self.cx.own())?);
        let mut room = [0; KEY_WORDS_MAX];
        let key = self.copy_key(&mut room);
        let from = track.cell(old.aux(old.map().lookup(key)?))?;
        let Handler::Track { when, .. } = &action.handler else {
            return None;
        };

        (track.cell(self.aux)?.take_over(&from, when) == Tracked::Lost)
            .then(|| self.lose(Loss::Save, 1))
    }

    /// Returns the number that this hit stores in variable `var` if the handler's condition, one that depends on more
    /// than the tracked value, allows an action.
    #[inline(never)]
    fn due_by_state(&self, action: &Action, var: u8) -> Option<u64> {
        let value = self.own_number::<EVERYTHING>(var);
        let cell = action.track?.cell(self.aux)?;
        let Handler::Track { when, .. } = &action.handler else {
            return None;
        };

        cell.is_due(when, value).then_some(value)
    }

    /// Returns the number that this hit stores in variable `n` of the trigger, even if other hits have set it since.
    /// Computed again, which takes less than keeping it for the few hits that want it.
    #[inline(always)]
    pub(super) fn own_number<const STEPS: u32>(&self, n: u8) -> u64 {
        let plan = &self.cx.program().plan;

        match plan.vars.get(usize::from(n)) {
            Some(var) => number_of::<STEPS>(plan, &var.number, self.inputs()),
            None => 0,
        }
    }

    /// Runs a `trace()` or `snapshot()` whose condition held when [`EntryHit::act`] tested it.
    #[inline(never)]
    fn run(&self, action: &Action, value: u64) {
        let Handler::Track { when, .. } = &action.handler else {
            if self.is_within_limit() {
                self.trace(action);
            }
            return;
        };
        if !self.keep(action, value) {
            return;
        }
        // Only here, when `keep()` has left the stack: the generated event may have triggers.
        if action.kind == ActionKind::Snapshot {
            self.snapshot(*when, value);
        } else if action.traces(self.cx) {
            self.trace(action);
        }
    }

    /// Whether the `limit()` of the trigger, if any, allows an action now; if not, the action is counted as lost.
    #[inline]
    fn is_within_limit(&self) -> bool {
        match self.cx.program().limit() {
            None => true,
            Some(limit) if self.cx.is_within(limit) => true,
            Some(_) => {
                self.lose(Loss::Limit, 1);
                false
            }
        }
    }

    /// Takes the snapshot of an action whose handler has just stored `value`.
    #[cold]
    #[inline(never)]
    fn snapshot(&self, when: When, value: u64) {
        let mut room = [0; KEY_WORDS_MAX];

        self.cx
            .snapshot(when, value, self.copy_key(&mut room), self.words());
    }

    /// Copies the key of the entry to `room`.
    #[inline]
    fn copy_key<'r>(&self, room: &'r mut [u64; KEY_WORDS_MAX]) -> &'r [u64] {
        let key = room.get_mut(..self.map.shape().key_words);
        let key = key.unwrap_or(&mut []);

        copy_words(self.map.key(self.elt), key);
        key
    }

    /// Stores `value` and the saved row if the handler's condition still holds and the `limit()` allows it. Returns
    /// whether the value was stored.
    #[inline(never)]
    fn keep(&self, action: &Action, value: u64) -> bool {
        let cell = action.track.and_then(|track| track.cell(self.aux));
        let (Handler::Track { when, .. }, Some(cell)) = (&action.handler, cell) else {
            return false;
        };

        if cell.end(when, value) || !self.is_within_limit() {
            return false;
        }

        match cell.update(
            when,
            value,
            #[inline(always)]
            |row| self.save(action, row),
        ) {
            Tracked::Stored => true,
            Tracked::Same => false,
            Tracked::Lost => {
                self.lose(Loss::Save, 1);
                false
            }
        }
    }

    /// Writes the values that an action saves to its row.
    #[inline(always)]
    fn save(&self, action: &Action, row: WordWriter<'_>) {
        let (plan, record) = (&self.cx.program().plan, self.cx.record());

        for step in plan.saves_of(action) {
            if step.is_number() {
                row.put(
                    step.at.into(),
                    plan.number::<NUMBERS>(&step.number, self.inputs()),
                );
                continue;
            }
            let Some(to) = row.part(step.at, step.room) else {
                continue;
            };
            let len = match step.text.from {
                from if from.is_record() => step.save_string(record, to),
                from @ (TextFrom::Task | TextFrom::Creator) => put_name(to, self.task_name(from)),
                _ => self.save_text(step, to),
            };

            // Marks the end for readers, a NUL or a frame of 0: the row still has words of an earlier hit.
            to.put(len, 0);
        }
    }

    /// Generates the synthetic event of the action.
    #[inline(always)]
    fn trace(&self, action: &Action) {
        if let ActionKind::Trace { synth, .. } = action.kind {
            let values = ArgVals {
                hit: self,
                action,
                steps: self.cx.program().plan.args_of(action),
                frames: None,
            };

            match self.cx.trace(synth, &values) {
                0 => (),
                n => self.lose(Loss::Trace, n.into()),
            }
        }
    }

    /// Adds to the losses in the counters of the CPU that the hit runs on.
    fn lose(&self, loss: Loss, n: u64) {
        self.map.shard(self.cx.cpu()).lose(loss, n);
    }

    /// Stores a stack, of the kernel or of the record, in a variable.
    #[inline(never)]
    fn set_any_stack(&self, var: &VarStep) {
        let field = self.cx.program().vars.get(usize::from(var.n));
        let (Some(words), Some(var)) = (var.text_words(self.words()), field) else {
            return;
        };

        match (var.field.op, TextCell::new(words)) {
            (Op::Stacktrace, _) => self.set_stack(words),
            (op, Some(cell)) => {
                // If another context is writing the variable, this one leaves it alone; see `TextCell::fill`.
                cell.fill(
                    #[inline(always)]
                    |to| self.stack_to(op, to),
                );
            }
            _ => (),
        }
    }

    /// Writes a saved string or stack that is neither a string of the record nor a task's name. Returns the number of
    /// words.
    #[inline(never)]
    fn save_text(&self, step: &VarStep, to: WordWriter<'_>) -> usize {
        let len = match step.text.from {
            TextFrom::Variable => self
                .foreign_words(step.text.reference())
                .and_then(|from| copy_cell(from, step.kind, to)),
            _ => {
                let save = self.cx.program().saves.get(usize::from(step.n));

                save.and_then(|save| self.stack_to(save.field.op, to))
            }
        };

        len.unwrap_or(0)
    }

    /// Writes a stack, of the kernel or of the record. Returns the number of frames, `None` if `op` is no stack.
    fn stack_to(&self, op: Op, to: WordWriter<'_>) -> Option<usize> {
        match op {
            Op::Stacktrace => {
                let mut room = C::Stack::default();

                Some(to.put_all(self.cx.stack(&mut room).iter().copied()))
            }
            Op::StackField { offset } => {
                let frames = stack_at(self.cx.record(), offset, STACK_DEPTH);

                Some(to.put_all(frames.chunks_exact(WORD).map(word_in)))
            }
            _ => None,
        }
    }

    /// The words of another trigger's variable, in the entry where it was found; `None` if no map of its table has the
    /// entry any more, because the table has been cleared.
    #[inline]
    pub(super) fn foreign_words(&self, n: u8) -> Option<&'c [Atomic<u64>]> {
        let of = self.cx.program().refs.get(usize::from(n))?;
        let (cx, address) = (self.cx, reference(self.refs, n.into()));
        let source = cx.source(of.table)?;
        let in_older = || older_than(cx, source).find_map(|older| cx.view(older).aux_from(address));

        Some(of.cell.of(Pair::words(
            cx.view(source).aux_from(address).or_else(in_older)?,
        )))
    }

    /// The words of one of the trigger's own variables in the entry.
    #[inline]
    pub(super) fn own_words(&self, n: u8) -> Option<&'h [Atomic<u64>]> {
        let var = self.cx.program().vars.get(usize::from(n))?;

        Some(var.cell.of(self.words()))
    }
}
