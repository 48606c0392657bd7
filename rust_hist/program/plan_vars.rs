// SPDX-License-Identifier: GPL-2.0

//! The numbers of variables and actions as a hit wants them; see `program/plan.rs`.
//!
//! Context: lowering process; the rest any, NMI included.

use crate::{
    alloc::{
        AllocError,
        Vec, //
    },
    field::Env,
    limits::STR_SLOT,
    sync::Atomic,
    tracing_map::NumCell, //
};

use super::{
    plan::{
        Number,
        Plan, //
    },
    Action,
    ActionKind,
    ArgSource,
    Field,
    Kind,
    Op,
    Program,
    Refs, //
};

/// What a hit does for one variable of the trigger.
#[derive(Clone, Copy, Debug)]
pub(super) struct VarStep {
    /// What it is set to, if it is a number; else 0.
    pub(super) number: Number,
    /// Its index in [`Program::vars`].
    pub(super) n: u8,
    /// Where it begins in the extra words of the entry.
    at: u16,
    kind: Kind,
    /// What it is set to, if it is a string of the record.
    text: TextAt,
    /// The words of the variable in the entry behind the first one, if it is one.
    room: u8,
}

/// The words of a variable with room for the longest string, the one before its content included.
const SLOT: usize = 1 + STR_SLOT / size_of::<u64>();

/// A string of the record, in fewer bytes than as an [`Op`].
#[derive(Clone, Copy, Debug)]
pub(super) struct TextAt {
    /// Where it is, or the word that says so.
    at: u32,
    from: TextFrom,
    /// The most bytes of it for which there is room where it goes.
    most: u8,
}

/// Where a string comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextFrom {
    /// Not from the record.
    Elsewhere,
    Fixed,
    Dyn,
    Rel,
}

impl TextAt {
    /// That of an [`Op`] that is one, else none; `most` bytes of it are kept.
    fn new(op: Option<Op>, most: u32) -> Self {
        let (from, at, most) = match op {
            Some(Op::StaticString { offset, len }) => (TextFrom::Fixed, offset, most.min(len)),
            Some(Op::DynString { offset }) => (TextFrom::Dyn, offset, most),
            Some(Op::RelDynString { offset }) => (TextFrom::Rel, offset, most),
            _ => (TextFrom::Elsewhere, 0, 0),
        };
        // There is room for no more anywhere.
        let most = u8::try_from(most).unwrap_or(u8::MAX);

        Self { at, from, most }
    }

    /// The string; `None` if there is none.
    #[inline(always)]
    pub(super) fn op(self) -> Option<Op> {
        let offset = self.at;

        Some(match self.from {
            TextFrom::Fixed => Op::StaticString {
                offset,
                len: self.most.into(),
            },
            TextFrom::Dyn => Op::DynString { offset },
            TextFrom::Rel => Op::RelDynString { offset },
            TextFrom::Elsewhere => return None,
        })
    }

    /// The most bytes of it for which there is room where it goes.
    #[inline(always)]
    pub(super) fn most(self) -> usize {
        self.most.into()
    }
}

// To find one among others takes no multiplication.
const _: () = assert!(size_of::<VarStep>() == 64);

/// What a hit does for one parameter of a `trace()` that is a number, or a string of the record.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArgStep {
    pub(super) from: ArgFrom,
    /// The number of a variable.
    pub(super) n: u8,
    /// What the record has.
    pub(super) number: Number,
    /// The string of the record.
    pub(super) text: TextAt,
}

// As above.
const _: () = assert!(size_of::<ArgStep>() == 64);

/// Where the number of a parameter comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgFrom {
    /// A variable of the trigger itself.
    Own,
    /// A variable of another trigger.
    Ref,
    /// The record.
    Record,
}

impl VarStep {
    /// Whether the variable is a number.
    #[inline(always)]
    pub(super) fn is_number(&self) -> bool {
        self.kind == Kind::Number
    }

    /// The string of the record that the variable is set to.
    #[inline(always)]
    pub(super) fn text(&self) -> TextAt {
        self.text
    }

    /// The words of such a variable among those of an entry.
    #[inline(always)]
    pub(super) fn text_words<'a>(&self, aux: &'a [Atomic<u64>]) -> Option<&'a [Atomic<u64>]> {
        let at = usize::from(self.at);

        // So that the compiler sees that there is a first one. OVERFLOW: both were short numbers.
        aux.get(at..at.wrapping_add(usize::from(self.room).wrapping_add(1)))
    }

    /// As [`VarStep::text_words`], of a variable that is a string whose place is not fixed: there is room for the
    /// longest one.
    #[inline(always)]
    pub(super) fn slot_words<'a>(&self, aux: &'a [Atomic<u64>]) -> Option<&'a [Atomic<u64>; SLOT]> {
        let at = usize::from(self.at);

        // OVERFLOW: a short number and a small one.
        aux.get(at..at.wrapping_add(SLOT))?.first_chunk()
    }

    /// Stores the number of a variable that is one in the extra words of an entry.
    #[inline(always)]
    pub(super) fn set(&self, aux: &[Atomic<u64>], value: u64) {
        if let Some(cell) = NumCell::at(aux, self.at) {
            cell.set(value);
        }
    }
}

impl Program {
    /// Brings the variables into the form that a hit wants, in their order.
    pub(super) fn lower_vars(&mut self) -> Result<(), AllocError> {
        let mut vars = Vec::new();

        for at in 0..self.vars.len() {
            if let Some((field, cell)) = self.vars.get(at).map(|var| (var.field, var.cell)) {
                // So it always is where the place of the string is not fixed; see `VarStep::slot_words`.
                let is_slot = usize::from(cell.words) == SLOT;
                let text = match field.op {
                    Op::DynString { .. } | Op::RelDynString { .. } if !is_slot => None,
                    op => Some(op),
                };
                // The first word is not content, and the last byte of the others is a NUL.
                let room = cell.words.saturating_sub(1);
                let most = u32::from(room).saturating_mul(8).saturating_sub(1);

                vars.push(VarStep {
                    number: self.lower_number(&field)?,
                    n: u8::try_from(at).map_err(|_| AllocError)?,
                    at: cell.at,
                    kind: cell.kind,
                    text: TextAt::new(text, most),
                    room: u8::try_from(room).unwrap_or(u8::MAX),
                })?;
            }
        }
        self.plan.vars = vars;
        Ok(())
    }

    /// Brings the parameters of all actions into the form that a hit wants, in their order.
    pub(super) fn lower_actions(&mut self) -> Result<(), AllocError> {
        let mut saves = Vec::new();
        let mut args = Vec::new();

        for at in 0..self.saves.len() {
            if let Some(field) = self.saves.get(at).map(|save| save.field) {
                saves.push(self.lower_number(&field)?)?;
            }
        }
        for at in 0..self.args.len() {
            if let Some(source) = self.args.get(at).map(|arg| arg.source) {
                let (from, n, number) = match source {
                    ArgSource::Field(field) => (ArgFrom::Record, 0, self.lower_number(&field)?),
                    // What a hit has of variables is at hand.
                    ArgSource::Ref(n) => (ArgFrom::Ref, n, Number::default()),
                    ArgSource::Own(n) => (ArgFrom::Own, n, Number::default()),
                };

                // The last byte of its field is for a NUL, and so is that of the longest variable.
                let text = match self.at_hand(&source).map(|field| field.op) {
                    Some(Op::StaticString { offset, len }) => Some(Op::StaticString {
                        offset,
                        len: len.saturating_sub(1),
                    }),
                    op => op,
                };
                let text = TextAt::new(text, u8::MAX.into());

                args.push(ArgStep {
                    from,
                    n,
                    number,
                    text,
                })?;
            }
        }
        self.plan.saves = saves;
        self.plan.args = args;
        Ok(())
    }
}

impl Program {
    /// The field behind a parameter that is a string or stack and needs no look at an entry: a variable of the
    /// trigger holds what this very hit has stored, whoever has written it since.
    #[inline]
    pub(super) fn at_hand<'p>(&'p self, source: &'p ArgSource) -> Option<&'p Field> {
        let field = match source {
            ArgSource::Field(field) => return Some(field),
            ArgSource::Own(n) => self.vars.get(usize::from(*n))?.field(),
            ArgSource::Ref(_) => return None,
        };

        matches!(
            field.op,
            Op::Comm
                | Op::StaticString { .. }
                | Op::DynString { .. }
                | Op::RelDynString { .. }
                | Op::StackField { .. }
        )
        .then_some(field)
    }

    /// Computes the key of a hit into the first words of `buf`, and returns how many they are, if all keys
    /// are numbers or short strings of the record; else returns 0, and [`Program::key`] is what computes it.
    #[inline(always)]
    pub fn numbers_key_in(&self, record: &[u8], cpu: u32, buf: &mut [u64]) -> usize {
        let words = match self.plan.has_stamp {
            true => &[],
            false => self.plan.words.as_slice(),
        };

        for (word, number) in buf.iter_mut().zip(words) {
            *word = number.word(record, || cpu);
        }
        words.len()
    }
}

impl Program {
    /// How many words the key has, if all that a hit has to do are [`Program::all_numbers_key`],
    /// [`Program::number_val`] and [`Program::set_number_vars`]; else 0.
    pub fn all_numbers_keys(&self) -> usize {
        let are_all = self.refs().is_empty()
            && self.actions().is_empty()
            && !self.number_keys_have_text()
            && self.plan.has_simple_vals()
            && self.plan.vars.iter().all(VarStep::is_number);

        match self.plan.words.as_slice().len() {
            words @ 1..=2 if are_all => words,
            _ => 0,
        }
    }

    /// Whether [`Program::numbers_key`] and [`Program::set_vars_at_hand`] do for such a program, too.
    pub fn numbers_are_at_hand(&self) -> bool {
        let mut vars = self.plan.vars.iter();

        !self.plan.has_stamp && vars.all(|var| self.plan.is_at_hand(&var.number))
    }

    /// How many words its key has, if all that a hit has to do are [`Program::numbers_key`], values that are
    /// simple, [`Program::set_vars_at_hand`] and actions that keep a number; else 0.
    pub fn tracking_keys(&self) -> usize {
        let mut actions = self.actions().iter();
        let are_all = self.refs().is_empty()
            && actions.all(|action| action.track.is_some())
            && !self.number_keys_have_text()
            && self.plan.has_simple_vals()
            && self.plan.vars.iter().all(VarStep::is_number)
            && self.numbers_are_at_hand();

        match are_all {
            true => self.plan.words.as_slice().len(),
            false => 0,
        }
    }

    /// How many words its key has, if all that a hit has to do are [`Program::numbers_key`], one reference, values
    /// that are simple, and [`Program::set_since`]; else 0.
    pub fn since_keys(&self) -> usize {
        let is_since = match &*self.plan.vars {
            [var] => var.is_number() && var.number.is_since_first(),
            _ => false,
        };
        let is_all = is_since
            && self.refs().len() == 1
            && self.actions().is_empty()
            && !self.number_keys_have_text()
            && self.plan.has_simple_vals();

        match is_all {
            true => self.key_in_words(),
            false => 0,
        }
    }

    /// How many words its key has, if all that a hit has to do are [`Program::numbers_key`], values that are simple,
    /// and [`Program::set_stack`]; else 0.
    pub fn stack_keys(&self) -> usize {
        let is_stack = matches!(self.vars(), [var] if matches!(var.field.op, Op::Stacktrace));
        let is_all = is_stack
            && self.refs().is_empty()
            && self.actions().is_empty()
            && !self.number_keys_have_text()
            && self.plan.has_simple_vals();

        match is_all {
            true => self.key_in_words(),
            false => 0,
        }
    }

    /// Whether a hit stores at most `most` variables, and needs at most as many of other triggers, all of them numbers;
    /// and no action wants the key.
    pub fn has_few_numbers(&self, most: usize) -> bool {
        let mut refs = self.refs().iter();
        let mut actions = self.actions().iter();

        self.refs().len() <= most
            && self.vars.len() <= most
            && refs.all(|reference| reference.cell.kind == Kind::Number)
            && actions.all(|action| action.kind != ActionKind::Snapshot)
    }

    /// Whether the keys are nothing but numbers, and a hit needs one variable of another trigger, a number.
    pub fn awaits_number(&self) -> bool {
        match self.refs() {
            [only] => only.cell.kind == Kind::Number && !self.number_keys_have_text(),
            _ => false,
        }
    }

    /// Whether all that a hit has to do, besides the key, are values that are simple, and
    /// [`Program::set_vars_in_record`].
    pub fn has_record_vars(&self) -> bool {
        let mut vars = self.plan.vars.iter();

        self.refs().is_empty()
            && self.actions().is_empty()
            && self.plan.has_simple_vals()
            && vars.all(|var| match var.is_number() {
                true => var.number.is_simple(),
                false => var.text().op().is_some(),
            })
    }

    /// Stores the variable of a hit of such a program in the extra words of its entry: the time stamp less the
    /// number of the reference.
    #[inline(always)]
    pub fn set_since(&self, aux: &[Atomic<u64>], env: &impl Env, reference: u64) {
        if let [var] = &*self.plan.vars {
            var.set(aux, self.since(env, reference));
        }
    }

    /// The number that a hit stores in its variable `n`, if [`Program::tracking_keys`] are not 0; 0 if there is none.
    #[inline(always)]
    pub(super) fn var_at_hand(&self, n: u8, record: &[u8], cpu: impl Fn() -> u32 + Copy) -> u64 {
        match self.plan.vars.get(usize::from(n)) {
            Some(var) => self.number_at_hand(&var.number, record, cpu),
            None => 0,
        }
    }

    /// As [`Program::set_number_vars`], if [`Program::numbers_are_at_hand`].
    #[inline(always)]
    pub fn set_vars_at_hand(
        &self,
        aux: &[Atomic<u64>],
        record: &[u8],
        cpu: impl Fn() -> u32 + Copy,
    ) {
        for var in self.plan.vars.iter() {
            var.set(aux, self.number_at_hand(&var.number, record, cpu));
        }
    }

    /// As [`Program::set_vars`], if [`Program::has_record_vars`].
    #[inline(always)]
    pub fn set_vars_in_record(
        &self,
        aux: &[Atomic<u64>],
        record: &[u8],
        cpu: impl Fn() -> u32 + Copy,
    ) {
        for var in self.plan.vars.iter() {
            match var.text().op() {
                Some(text) => var.set_text_at_once(text, aux, record),
                None => var.set(aux, var.number.simple(record, cpu).unwrap_or(0)),
            }
        }
    }

    /// Stores the variables of a hit of such a program in the extra words of its entry.
    #[inline(always)]
    pub fn set_number_vars(&self, aux: &[Atomic<u64>], record: &[u8], env: &impl Env) {
        for var in self.plan.vars.iter() {
            var.set(aux, self.number_at(&var.number, record, env, &[]));
        }
    }

    /// How many words its key has, at most four, if [`Program::numbers_key`] computes it; else 0.
    pub fn key_in_words(&self) -> usize {
        match self.plan.has_stamp {
            true => 0,
            false => self.plan.words.as_slice().len(),
        }
    }

    /// Value `i` of a hit; 0 if there is none.
    #[inline(always)]
    pub fn value_at<T>(&self, i: usize, record: &[u8], env: &impl Env, refs: &Refs<'_, T>) -> u64 {
        match self.plan.vals.as_slice().get(i) {
            Some(number) => self.number_at(number, record, env, refs.numbers()),
            None => 0,
        }
    }
}

impl Plan {
    /// As [`Program::saves_of`].
    #[inline(always)]
    pub(super) fn saves_of(&self, action: &Action) -> &[Number] {
        match action.kind {
            ActionKind::Save { first, len } => part(&self.saves, first, len),
            ActionKind::Snapshot | ActionKind::Trace { .. } => &[],
        }
    }

    /// As [`Program::args_of`].
    #[inline(always)]
    pub(super) fn args_of(&self, action: &Action) -> &[ArgStep] {
        match action.kind {
            ActionKind::Trace { first, len, .. } => part(&self.args, first, len),
            ActionKind::Snapshot | ActionKind::Save { .. } => &[],
        }
    }
}

/// `len` of `all` from `first` on; none if there are not as many.
#[inline(always)]
fn part<T>(all: &[T], first: u16, len: u16) -> &[T] {
    all.get(usize::from(first)..)
        .and_then(|from| from.get(..usize::from(len)))
        .unwrap_or(&[])
}
