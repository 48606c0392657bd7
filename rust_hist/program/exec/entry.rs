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
        bytes::word_in,
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
        types::part,
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
        Split,
        WORD, //
    },
    trace::ArgVals,
    Context,
    Hit, //
};

impl Program {
    /// Keeps what `creator` writes, the name of the task that makes an entry, in its extra words, where the trigger shows it.
    #[inline(always)]
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

    /// What an action saves.
    pub fn saves_of(&self, action: &Action) -> &[Save] {
        match action.kind {
            ActionKind::Save { first, len } => part(self.saves(), first, len),
            ActionKind::Trace { .. } | ActionKind::Snapshot => &[],
        }
    }

    /// Returns what has become of the `begun` starts of an entry with these extra words, each of which has set all
    /// variables. One has ended when one of those that are numbers was taken; some may never be, since nothing is computed
    /// of them. Where some ends take one of them and some another one, those count that are taken most often.
    pub fn starts(&self, aux: &[Pair], begun: u64) -> Starts {
        let numbers = self.plan.vars.iter().filter(|var| var.is_number());
        // Those that are stored nowhere say nothing.
        let mut cells = numbers.filter_map(|var| NumCell::at(aux, var.at));
        let taken = cells.clone().map(|cell| cell.taken(begun)).max();
        let is_left = cells.all(|cell| cell.is_set());
        let unended = begun.saturating_sub(taken.unwrap_or(0));

        Starts {
            is_left,
            overwritten: unended.saturating_sub(u64::from(is_left)),
        }
    }

    /// Carries the variables and tracked values of an entry over to one of a larger map, by their extra words: for the
    /// thread that grows the table, when no hit uses the old map as the only one. It waits for hits that are writing all
    /// rows of a tracked value: they are on other CPUs, or over.
    pub fn carry(&self, new: &[Pair], old: &[Pair]) {
        for var in self.plan.vars.iter().filter(|var| var.is_number()) {
            Moving::new(NumCell::at(new, var.at), NumCell::at(old, var.at)).carry();
        }
        for action in self.actions() {
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

    /// Copies what a reader wants to see of an entry's extra words to the same places of `to`, of
    /// the same length: the task's name, and for each tracked value what [`track_row`] finds there.
    pub fn copy_aux(&self, from: &[Pair], to: &mut [u64]) {
        to.fill(0);
        if self.needs_comm() {
            let comm = to.get_mut(..COMM_WORDS).unwrap_or(&mut []);
            copy_words(Pair::words(from), comm);
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
    /// Stores the name of a task in its variable.
    #[inline(always)]
    fn set_name(&self, aux: &[Atomic<u64>], name: [u64; COMM_WORDS]) {
        let words = self.words::<NAME>(aux);

        if let Some(cell) = words.and_then(|words| TextCell::new(words)) {
            // A writer that meets another one has nothing more to do; see `TextCell::fill`.
            cell.fill(|to| Some(to.put_all(name.into_iter())));
        }
    }

    /// The string of the record, if it is one whose bytes behind a NUL may be copied, too, and all are there; else its place
    /// and its length.
    #[inline(always)]
    fn short_text<'r>(&self, record: &'r [u8]) -> Result<Split<'r>, (usize, usize)> {
        let (at, len) = self.text.place(record).unwrap_or((0, 0));

        match self.text.from {
            TextFrom::LongFixed => None,
            _ => Split::inside(record, at, len),
        }
        .ok_or((at, len))
    }

    /// Stores a string of the record in its variable.
    #[inline(always)]
    fn set_text(&self, aux: &[Atomic<u64>], record: &[u8]) {
        let Some(words) = self.text_words(aux) else {
            return;
        };

        match self.short_text(record) {
            // A writer that meets another one has nothing more to do; see `TextCell::fill`.
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

    /// Writes a string of the record to its words of the row that an action saves, and returns how many words.
    #[inline(never)]
    fn save_string(&self, record: &[u8], to: WordWriter<'_>) -> usize {
        match self.short_text(record) {
            Ok(from) => from.copy(to),
            Err((at, len)) => copy_string(record, at, len, |at, word| to.put(at, word)),
        }
    }
}

impl Track {
    /// The tracked value in the extra words of an entry.
    #[inline(always)]
    fn cell<'a>(&self, aux: &'a [Pair]) -> Option<TrackCell<'a>> {
        TrackCell::new(aux, self.at, self.row_words)
    }
}

impl Action {
    /// The value that the handler keeps at this moment.
    #[inline(always)]
    fn tracked_in(&self, aux: &[Pair]) -> u64 {
        match self.track {
            Some(track) => track_value(aux, track.at),
            None => 0,
        }
    }

    /// Whether it generates an event that anybody wants.
    #[inline(always)]
    fn traces<'c>(&self, cx: impl Context<'c>) -> bool {
        match self.kind {
            ActionKind::Trace { synth, .. } => cx.is_wanted(synth),
            ActionKind::Save { .. } | ActionKind::Snapshot => false,
        }
    }
}

/// The number that a variable is set to.
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

/// Variables that are no numbers.
const NOT_NUMBERS: u32 = VARS_TEXT | VARS_NAME | VARS_STACK | VARS_OTHER;

/// Variables that are numbers of the record and the CPU.
const VARS_OF_RECORD: u32 = VARS | VARS_EXPRS;

/// Variables that are immediate or made of the time stamp.
const VARS_AND_STAMP: u32 = VARS | VARS_STAMP;

impl<'h, 'c: 'h, C: Context<'c>> Hit<'h, 'c, C> {
    /// Stores the variables of the trigger in the extra words of the entry.
    ///
    /// A string that cannot be had, because another context is writing it at this moment, leaves the variable unset.
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

                            // No words are a variable that is not set.
                            set_copy(to, var.kind, from.unwrap_or(&[]));
                        }
                    }
                    // A copy, so that what a hit has needs no place in memory where there is no such variable.
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

    /// The name of the task; or of that which made the entry, which has it in its first extra words.
    #[inline(always)]
    fn task_name(&self, from: TextFrom) -> [u64; COMM_WORDS] {
        let mut name = [0; COMM_WORDS];

        if from == TextFrom::Creator {
            copy_words(self.words().get(..COMM_WORDS).unwrap_or(&[]), &mut name);
        } else {
            let mut comm = [0; COMM_LEN];

            self.cx.comm(&mut comm);
            for (to, from) in name.iter_mut().zip(comm.chunks_exact(size_of::<u64>())) {
                *to = word_in(from);
            }
        }
        name
    }

    /// Sets a variable to the kernel stack.
    ///
    /// Inlined: each further stack frame makes unwinding longer.
    #[inline(always)]
    fn set_stack(&self, words: &[Atomic<u64>]) {
        let mut room = C::Stack::default();
        // To take one takes so long that the variable is not to be busy meanwhile.
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
        for action in self.cx.program().actions() {
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
                // A copy, as below.
                Handler::Track { var, .. } => { *self }.due_by_state(action, var),
            };

            if let Some(value) = due {
                // A copy, so that what a hit has needs no place in memory where nothing is to be done.
                let hit = *self;

                match action.kind {
                    ActionKind::Save { .. } => {
                        hit.keep(action, value);
                    }
                    ActionKind::Trace { .. } | ActionKind::Snapshot => hit.run(action, value),
                }
            }
        }
    }

    /// Sees to it that what an action tracks is in this entry, if the table is getting a larger map; returns whether it is.
    #[inline(always)]
    fn has_tracked(&self, action: &Action) -> bool {
        // Mostly it is. A copy, so that what a hit has needs no place in memory then.
        action.track.is_none_or(|track| {
            is_tracked(self.aux, track.at) || { *self }.take_over(action, &track).is_none()
        })
    }

    /// Looks for the entry of the key in the map whose place that of the table is taking, and takes over what is tracked
    /// there. If hits are writing all spare rows of this entry it can't, and the action is lost.
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

    /// The number that this hit stores in variable `var` if a condition that looks at more than the tracked value lets
    /// anything be done for it.
    #[inline(never)]
    fn due_by_state(&self, action: &Action, var: u8) -> Option<u64> {
        let value = self.own_number::<EVERYTHING>(var);
        let cell = action.track?.cell(self.aux)?;
        let Handler::Track { when, .. } = &action.handler else {
            return None;
        };

        cell.is_due(when, value).then_some(value)
    }

    /// The number that this hit stores in variable `n` of the trigger, whoever has written to the entry since. It is
    /// computed again: that takes less than to keep it for the few hits that want it.
    #[inline(always)]
    pub(super) fn own_number<const STEPS: u32>(&self, n: u8) -> u64 {
        let plan = &self.cx.program().plan;

        match plan.vars.get(usize::from(n)) {
            Some(var) => number_of::<STEPS>(plan, &var.number, self.inputs()),
            None => 0,
        }
    }

    /// Runs an action that is no `save()`, whose condition held when [`Hit::act`] tested it.
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
        // Here, where what it took to keep the number is off the stack: the event may have triggers.
        if action.kind == ActionKind::Snapshot {
            self.snapshot(*when, value);
        } else if action.traces(self.cx) {
            self.trace(action);
        }
    }

    /// Whether there is room for an action within the `limit()` of the trigger, if it has one; counts the action as lost
    /// if not.
    #[inline(always)]
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

    /// Takes a snapshot.
    #[cold]
    #[inline(never)]
    fn snapshot(&self, when: When, value: u64) {
        let mut room = [0; KEY_WORDS_MAX];

        self.cx
            .snapshot(when, value, self.copy_key(&mut room), self.words());
    }

    /// Copies the key of the entry to `room`.
    #[inline(always)]
    fn copy_key<'r>(&self, room: &'r mut [u64; KEY_WORDS_MAX]) -> &'r [u64] {
        let key = room.get_mut(..self.map.shape().key_words());
        let key = key.unwrap_or(&mut []);

        copy_words(self.map.key(self.elt), key);
        key
    }

    /// Keeps `value` with what is saved if the condition of its handler still holds and the `limit()` has room; returns
    /// whether it did.
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

    /// Writes what an action saves.
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
                from @ (TextFrom::Task | TextFrom::Creator) => {
                    to.put_all(self.task_name(from).into_iter())
                }
                _ => self.save_text(step, to),
            };

            // Readers look no further than the end, which is a NUL or an address that is 0; the row holds what was there
            // before.
            to.put(len, 0);
        }
    }

    /// Generates the synthetic event that the action names.
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

    /// Counts what the hit has lost where it was counted itself.
    fn lose(&self, loss: Loss, n: u64) {
        self.map.shard(self.cx.cpu()).lose(loss, n);
    }

    /// Stores a stack, of the kernel or of the record, in its variable.
    #[inline(never)]
    fn set_any_stack(&self, var: &VarStep) {
        let field = self.cx.program().vars().get(usize::from(var.n));
        let (Some(words), Some(var)) = (var.text_words(self.words()), field) else {
            return;
        };

        match (var.field.op, TextCell::new(words)) {
            (Op::Stacktrace, _) => self.set_stack(words),
            (op, Some(cell)) => {
                // A writer that meets another one has nothing more to do; see `TextCell::fill`.
                cell.fill(|to| self.stack_to(op, to));
            }
            _ => (),
        }
    }

    /// Writes the string or stack that one parameter of `save()` comes to, and that is none of the record or the task;
    /// returns how many words.
    #[inline(never)]
    fn save_text(&self, step: &VarStep, to: WordWriter<'_>) -> usize {
        let len = match step.text.from {
            TextFrom::Variable => self
                .foreign_words(step.text.reference())
                .and_then(|from| copy_cell(from, step.kind, to)),
            _ => {
                let save = self.cx.program().saves().get(usize::from(step.n));

                save.and_then(|save| self.stack_to(save.field.op, to))
            }
        };

        len.unwrap_or(0)
    }

    /// Writes a stack, of the kernel or of the record, and returns how many frames; `None` if it is no stack.
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

    /// The words of another trigger's variable, in the entry where it was found. `None` if no map of its table has the entry
    /// any more: the table has been cleared since.
    #[inline]
    pub(super) fn foreign_words(&self, n: u8) -> Option<&'c [Atomic<u64>]> {
        let of = self.cx.program().refs().get(usize::from(n))?;
        let (cx, address) = (self.cx, reference(self.refs, n.into()));
        let source = cx.source(of.table)?;
        let in_older = || older_than(cx, source).find_map(|older| cx.view(older).aux_from(address));

        Some(of.cell.of(Pair::words(
            cx.view(source).aux_from(address).or_else(in_older)?,
        )))
    }

    /// The words of a variable of the trigger itself.
    pub(super) fn own_words(&self, n: u8) -> Option<&'h [Atomic<u64>]> {
        let var = self.cx.program().vars().get(usize::from(n))?;

        Some(var.cell.of(self.words()))
    }
}
