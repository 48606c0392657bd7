// SPDX-License-Identifier: GPL-2.0

//! The program as a hit runs it: numbers and strings without their names, in few cache lines.
//!
//! C counterpart: `hist_fn_call()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! A [`Field`] says all that is to be known of a column; a hit needs little of it. So each is brought
//! into a form, when the trigger is created, in which all that can be known is decided: a [`Number`] has
//! its place, its size and sign, and how it is rounded, with the reciprocal of the width by which it is
//! divided; an expression is a row of [`Step`]s that each have their operand with them.
//!
//! Context: lowering process; the rest any, NMI included. Never panics, and calls nothing for a number
//! that is in the record.

use core::num::NonZeroU64;

use crate::{
    alloc::{
        AllocError,
        Vec, //
    },
    field::Env,
    limits::{
        List,
        KEYS_MAX,
        STACK_MAX,
        VALS_MAX, //
    },
};

use super::{
    bytes::{
        bytes,
        text_word,
        widen, //
    },
    plan_vars::{
        ArgStep,
        VarStep, //
    },
    reciprocal::Reciprocal,
    Code,
    Field,
    Insn,
    Load,
    Modifier,
    Op,
    Program, //
};

/// Most words of a key that is computed and looked for word by word.
const WORDS_MAX: usize = 4;

/// What a hit computes first: the keys and the values of a program.
///
/// # Invariants
///
/// - `keys` and `vals` are those of the program, in the same order.
/// - `words` are the words of the key, if all keys are simple numbers, time stamps, or short strings of the
///   record; else there are none.
/// - `numbers` is the number of `words` if none is a time stamp, all values are simple numbers, none is rounded,
///   and there is nothing else to do, else 0.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) numbers: u8,
    /// Some of the words are of strings.
    has_text: bool,
    /// Some of them are time stamps.
    pub(super) has_stamp: bool,
    /// As [`Program::has_text_key`].
    pub(super) has_text_key: bool,
    pub(super) words: List<Number, WORDS_MAX>,
    pub(super) keys: List<Number, KEYS_MAX>,
    pub(super) vals: List<Number, VALS_MAX>,
    /// The variables, and the parameters of `save()` and of `trace()`; see `program/plan_vars.rs`.
    pub(super) vars: Vec<VarStep>,
    pub(super) saves: Vec<Number>,
    pub(super) args: Vec<ArgStep>,
    /// The steps of all expressions.
    steps: Vec<Step>,
}

impl Plan {
    /// Whether all values are simple, and none is rounded.
    pub(super) fn has_simple_vals(&self) -> bool {
        self.vals
            .as_slice()
            .iter()
            .all(|val| val.is_simple() && val.round == Round::None)
    }

    /// Whether a number is simple, or an expression in which none waits of such ones.
    pub(super) fn is_at_hand(&self, number: &Number) -> bool {
        let steps = match number.source {
            Source::Chain => self.steps_of(number.code),
            _ if number.is_simple() => &[],
            _ => return false,
        };

        steps.iter().all(|step| step.operand.is_simple())
    }

    /// The steps of an expression.
    #[inline(always)]
    fn steps_of(&self, code: Code) -> &[Step] {
        let start = usize::from(code.start);

        // OVERFLOW: both were short numbers.
        self.steps
            .get(start..start.wrapping_add(usize::from(code.len)))
            .unwrap_or(&[])
    }

    /// The bytes that it takes besides itself.
    pub(super) fn bytes(&self) -> usize {
        [
            self.vars.bytes(),
            self.saves.bytes(),
            self.args.bytes(),
            self.steps.bytes(),
        ]
        .iter()
        .sum()
    }
}

/// A number: where it comes from, and how it is rounded. What does not matter there is 0.
///
/// # Invariants
///
/// - `is_word` says whether it is a number of the record with 8 bytes that is not rounded: these are by far the
///   most frequent ones, and one look tells them from all others.
/// - What comes from the steps of an expression in which numbers wait is not rounded.
/// - `width` is short where it is rounded to a `Multiple`.
/// - What a reference is taken from is a number of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    is_word: bool,
    source: Source,
    round: Round,
    /// The place in the record; the number of a reference.
    at: u32,
    /// A constant; the bits of a [`Source::Text`]; the number of the reference of [`Round::Less`].
    value: u64,
    width: Reciprocal,
    /// The steps of the expression.
    code: Code,
}

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    // Numbers of the record.
    U64,
    U32,
    S32,
    U16,
    S16,
    U8,
    S8,
    /// A word of a string of the record, which may lack bytes of it.
    Text,
    Const,
    Cpu,
    Timestamp,
    Ref,
    /// The time stamp less a reference, which most chains of triggers are made for.
    Since,
    /// An expression in which no number waits: each step but the first is done with the number at hand and an
    /// operand.
    Chain,
    Expr,
}

/// What becomes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    None,
    /// The exponent of the smallest power of two that is not below it.
    Log2,
    /// The largest multiple of a width that is not above it.
    Multiple,
    /// The same.
    MultipleLong,
    /// An expression of the number and a reference, of which `value` is the index: `number - $reference`, as most that
    /// are made of references are.
    Less,
    // An expression of the number and a constant: `number + value`, `number - value`, `value - number`,
    // `number * value`, `number / width`.
    Plus,
    Minus,
    From,
    Times,
    By,
}

impl Default for Number {
    fn default() -> Self {
        // INVARIANT: a constant, which is not rounded.
        Self {
            is_word: false,
            source: Source::Const,
            round: Round::None,
            at: 0,
            value: 0,
            width: Reciprocal::NONE,
            code: Code::default(),
        }
    }
}

/// One step of an expression, on a number at hand and those that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    act: Act,
    operand: Number,
}

/// What a step does. Where it has an operand that is the right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// The operand becomes the number at hand, and what was at hand waits.
    Push,
    Neg,
    Add,
    Sub,
    Mul,
    Div,
    /// As [`Act::Add`] and so on, where the left one waits and the right one is at hand.
    AddWaiting,
    SubWaiting,
    MulWaiting,
    DivWaiting,
}

impl Number {
    /// The form of a field that is no expression; 0 for what is no number, of which there is none here.
    fn of_operand(field: &Field) -> Self {
        let mut number = Self::default();

        number.source = match field.op {
            // PARITY: `create_hist_field()` ignores `.log2` and `.buckets` of a hitcount, and
            // `hist_field_name()` then finds no name for it.
            Op::One => {
                number.value = 1;
                Source::Const
            }
            Op::Num { offset, load } => {
                number.at = offset;
                Source::of(load)
            }
            Op::Timestamp => Source::Timestamp,
            Op::Cpu => Source::Cpu,
            Op::Const(value) => {
                number.value = value;
                Source::Const
            }
            Op::Ref(n) => {
                number.at = n.into();
                Source::Ref
            }
            Op::Expr(_)
            | Op::Comm
            | Op::EntryComm
            | Op::StaticString { .. }
            | Op::DynString { .. }
            | Op::RelDynString { .. }
            | Op::Stacktrace
            | Op::StackField { .. } => Source::Const,
        };

        // INVARIANT: see above, and the source is not `Expr`.
        number.round = match field.modifier {
            Modifier::Log2 => Round::Log2,
            Modifier::Buckets(width) => match Reciprocal::new(width) {
                Some(width) => {
                    number.width = width;
                    if width.is_short() {
                        Round::Multiple
                    } else {
                        Round::MultipleLong
                    }
                }
                None => Round::None,
            },
            _ => Round::None,
        };
        number.is_word = number.source == Source::U64 && number.round == Round::None;
        number
    }

    /// The form of an expression of a number and a constant, or of the negative of a number.
    fn of_two(code: &[Insn]) -> Option<Self> {
        let (left, right, insn) = match code {
            [Insn::Push(left), Insn::Push(right), insn] => (*left, *right, insn),
            // As 0 less the number.
            [Insn::Push(right), Insn::Neg] => {
                let zero = Field {
                    op: Op::Const(0),
                    ..Field::default()
                };
                (zero, *right, &Insn::Sub)
            }
            _ => return None,
        };
        let (number, value, round) = match (left.op, right.op, insn) {
            (_, Op::Const(value), Insn::Add) => (left, value, Round::Plus),
            (Op::Const(value), _, Insn::Add) => (right, value, Round::Plus),
            (_, Op::Const(value), Insn::Sub) => (left, value, Round::Minus),
            (Op::Const(value), _, Insn::Sub) => (right, value, Round::From),
            (_, Op::Const(value), Insn::Mul) => (left, value, Round::Times),
            (Op::Const(value), _, Insn::Mul) => (right, value, Round::Times),
            (_, Op::Const(value), Insn::Div) => (left, value, Round::By),
            _ => return None,
        };
        let number = Self::of_operand(&number);

        // What is known needs no place for another value.
        if number.source == Source::Const {
            return None;
        }
        number.with(round, value)
    }

    /// This number, with which something is done besides; `None` if there is no place for that.
    fn with(self, round: Round, value: u64) -> Option<Self> {
        let number = self;

        if number.round != Round::None {
            return None;
        }
        Some(match round {
            // A division by zero is not known to be one when the trigger is made, and gives all ones.
            Round::By => match Reciprocal::new(NonZeroU64::new(value)?) {
                // INVARIANT: it is rounded, here and below.
                Some(width) => Self {
                    is_word: false,
                    round,
                    width,
                    ..number
                },
                None => number,
            },
            _ => Self {
                is_word: false,
                round,
                value,
                ..number
            },
        })
    }

    /// This number less a reference, if it is one of the record.
    fn less(self, reference: &Self) -> Option<Self> {
        match self.source {
            Source::U64
            | Source::U32
            | Source::S32
            | Source::U16
            | Source::S16
            | Source::U8
            | Source::S8 => self.with(Round::Less, reference.at.into()),
            _ => None,
        }
    }

    /// What the steps of an expression come to, which are at `code`.
    fn of_steps(steps: &[Step], code: Code) -> Self {
        let chain = |len| Self {
            source: Source::Chain,
            code: Code { len, ..code },
            ..Self::default()
        };
        let is_chain = |steps: &[Step]| steps.iter().skip(1).all(|step| step.act.has_operand());

        if let [first, last] = steps {
            let are_plain = [first, last]
                .iter()
                .all(|step| step.operand.round == Round::None);
            let sources = (first.operand.source, last.operand.source);

            if are_plain && last.act == Act::Sub && sources == (Source::Timestamp, Source::Ref) {
                // INVARIANT: it is not rounded.
                return Self {
                    source: Source::Since,
                    at: last.operand.at,
                    ..Self::default()
                };
            }
            if are_plain && last.act == Act::Sub && last.operand.source == Source::Ref {
                if let Some(number) = first.operand.less(&last.operand) {
                    return number;
                }
            }
        }
        // A constant with which the last step is done needs no place among them.
        if let [steps @ .., last] = steps {
            let number = last
                .as_round()
                .filter(|_| is_chain(steps))
                .and_then(|(round, value)| chain(code.len.saturating_sub(1)).with(round, value));

            if let Some(number) = number {
                return number;
            }
        }
        if is_chain(steps) {
            return chain(code.len);
        }
        // INVARIANT: it is not rounded.
        Self {
            source: Source::Expr,
            code,
            ..Self::default()
        }
    }

    /// Word `i` of a string of `len` bytes at `offset`, in a slot of `words` words, which ends with a NUL.
    fn of_text(offset: u32, len: u32, words: usize, i: usize) -> Self {
        let word = size_of::<u64>();
        let first = i.saturating_mul(word);
        // CAST: as in `bytes`.
        let end = words
            .saturating_mul(word)
            .saturating_sub(1)
            .min(len as usize);
        let mut mask = [0; size_of::<u64>()];

        for byte in mask.iter_mut().take(end.saturating_sub(first)) {
            *byte = 0xff;
        }
        // INVARIANT: it is not rounded, and is no number of 8 bytes.
        Self {
            source: Source::Text,
            at: u32::try_from(first).map_or(u32::MAX, |first| offset.saturating_add(first)),
            value: u64::from_ne_bytes(mask),
            ..Self::default()
        }
    }

    /// Whether it is in the record or known, so that a hit gets it without a call.
    pub(super) fn is_simple(&self) -> bool {
        let is_elsewhere = matches!(
            self.source,
            Source::Text
                | Source::Timestamp
                | Source::Ref
                | Source::Since
                | Source::Chain
                | Source::Expr
        );

        !is_elsewhere && self.round != Round::Less
    }

    /// Whether it is the time stamp less the first reference.
    pub(super) fn is_since_first(&self) -> bool {
        self.source == Source::Since && self.at == 0
    }

    /// Its value, if it [is simple](Number::is_simple). What is not in the record is 0.
    #[inline(always)]
    pub(super) fn simple(&self, record: &[u8], cpu: impl Fn() -> u32) -> Option<u64> {
        self.simple_or_less(record, cpu, &[])
    }

    /// As [`Number::simple`], or such a value less one of `refs`.
    #[inline(always)]
    fn simple_or_less(&self, record: &[u8], cpu: impl Fn() -> u32, refs: &[u64]) -> Option<u64> {
        if self.is_word {
            return self.read(record, cpu);
        }
        Some(self.rounded(self.read(record, cpu)?, refs))
    }

    /// Its value before it is rounded, if it is simple.
    #[inline(always)]
    fn read(&self, record: &[u8], cpu: impl Fn() -> u32) -> Option<u64> {
        if self.is_word {
            return Some(u64::from_ne_bytes(bytes(record, self.at)));
        }
        Some(match self.source {
            Source::U64 => u64::from_ne_bytes(bytes(record, self.at)),
            Source::U32 => u32::from_ne_bytes(bytes(record, self.at)).into(),
            Source::S32 => widen(i32::from_ne_bytes(bytes(record, self.at))),
            Source::U16 => u16::from_ne_bytes(bytes(record, self.at)).into(),
            Source::S16 => widen(i16::from_ne_bytes(bytes(record, self.at))),
            Source::U8 => u8::from_ne_bytes(bytes(record, self.at)).into(),
            Source::S8 => widen(i8::from_ne_bytes(bytes(record, self.at))),
            Source::Const => self.value,
            Source::Cpu => cpu().into(),
            Source::Text
            | Source::Timestamp
            | Source::Ref
            | Source::Since
            | Source::Chain
            | Source::Expr => return None,
        })
    }

    /// Its value, if it is simple or a word of a string; else 0.
    #[inline(always)]
    pub(super) fn word(&self, record: &[u8], cpu: impl Fn() -> u32) -> u64 {
        match self.simple(record, cpu) {
            Some(value) => value,
            None if self.source == Source::Text => text_word(record, self.at) & self.value,
            None => 0,
        }
    }

    /// What becomes of a value; `refs` are those of other triggers' variables.
    #[inline(always)]
    fn rounded(&self, value: u64, refs: &[u64]) -> u64 {
        if self.round == Round::None {
            return value;
        }
        match self.round {
            Round::Multiple => self.width.cut_shortly(value),
            Round::Log2 => ceil_log2(value),
            Round::None | Round::MultipleLong => self.width.cut(value),
            // CAST: a small number.
            Round::Less => value.wrapping_sub(reference(refs, self.value as usize)),
            Round::Plus => value.wrapping_add(self.value),
            Round::Minus => value.wrapping_sub(self.value),
            Round::From => self.value.wrapping_sub(value),
            Round::Times => value.wrapping_mul(self.value),
            Round::By => self.width.quotient(value),
        }
    }
}

impl Source {
    fn of(load: Load) -> Self {
        match load {
            Load::U64 | Load::S64 => Self::U64,
            Load::U32 => Self::U32,
            Load::S32 => Self::S32,
            Load::U16 => Self::U16,
            Load::S16 => Self::S16,
            Load::U8 => Self::U8,
            Load::S8 => Self::S8,
        }
    }
}

impl Program {
    /// Brings keys and values into the form that a hit wants.
    pub(super) fn lower(&mut self) -> Result<(), AllocError> {
        let mut keys = List::new();
        let mut vals = List::new();

        for key in 0..self.keys().len() {
            if let Some(field) = self.keys().get(key).map(|key| key.field) {
                // There are as many places as keys.
                let _ = keys.push(self.lower_number(&field)?);
            }
        }
        for val in 0..self.vals().len() {
            if let Some(&field) = self.vals().get(val) {
                // As above.
                let _ = vals.push(self.lower_number(&field)?);
            }
        }

        let words = self.lower_words(keys.as_slice()).unwrap_or_default();
        let has = |source| words.as_slice().iter().any(|word| word.source == source);
        self.plan.has_text = has(Source::Text);
        self.plan.has_stamp = has(Source::Timestamp);
        self.plan.vals = vals;
        let plain = self.is_plain() && self.plan.has_simple_vals() && !self.plan.has_stamp;

        // INVARIANT: see above; without words there is no short way.
        self.plan.numbers = match u8::try_from(words.as_slice().len()) {
            Ok(words) if plain => words,
            _ => 0,
        };
        self.plan.words = words;
        self.plan.keys = keys;
        self.plan.has_text_key = self.text_key_does();
        Ok(())
    }

    /// The words of the key, if there are few and each is a simple number, a time stamp, or a part of a string
    /// that is always in one place.
    fn lower_words(&self, numbers: &[Number]) -> Option<List<Number, WORDS_MAX>> {
        let mut words = List::new();

        for (key, number) in self.keys().iter().zip(numbers) {
            match key.field.op {
                Op::Num { .. } | Op::Cpu | Op::Const(_) | Op::One | Op::Expr(_)
                    if number.is_simple() =>
                {
                    words.push(*number).ok()?;
                }
                Op::Timestamp => words.push(*number).ok()?,
                Op::StaticString { offset, len } => {
                    for i in 0..key.words() {
                        words
                            .push(Number::of_text(offset, len, key.words(), i))
                            .ok()?;
                    }
                }
                _ => return None,
            }
        }
        Some(words)
    }

    /// Brings a field into the form that a hit wants; what is no number comes to 0.
    pub(super) fn lower_number(&mut self, field: &Field) -> Result<Number, AllocError> {
        match field.op {
            Op::Expr(code) => match Number::of_two(code.of(&self.code)) {
                Some(number) => Ok(number),
                None => {
                    let code = self.lower_code(code)?;

                    Ok(Number::of_steps(self.plan.steps_of(code), code))
                }
            },
            _ => Ok(Number::of_operand(field)),
        }
    }

    /// Brings an expression into the form that a hit wants; where its steps are.
    fn lower_code(&mut self, code: Code) -> Result<Code, AllocError> {
        let start = self.plan.steps.len();
        let mut insns = code.of(&self.code).iter().peekable();

        while let Some(insn) = insns.next() {
            let step = match insn {
                Insn::Push(field) => {
                    let operand = Number::of_operand(field);
                    let fused = insns.peek().and_then(|next| Act::with_operand(next));

                    if fused.is_some() {
                        insns.next();
                    }
                    Step {
                        act: fused.unwrap_or(Act::Push),
                        operand,
                    }
                }
                Insn::Neg => Step::plain(Act::Neg),
                Insn::Add => Step::plain(Act::AddWaiting),
                Insn::Sub => Step::plain(Act::SubWaiting),
                Insn::Mul => Step::plain(Act::MulWaiting),
                Insn::Div => Step::plain(Act::DivWaiting),
            };

            self.plan.steps.push(step)?;
        }

        let place = |n: usize| u16::try_from(n).map_err(|_| AllocError);

        Ok(Code {
            start: place(start)?,
            len: place(self.plan.steps.len().saturating_sub(start))?,
        })
    }

    /// The value of a number; `refs` are those of other triggers' variables.
    #[inline(always)]
    pub(super) fn number_at(
        &self,
        number: &Number,
        record: &[u8],
        env: &impl Env,
        refs: &[u64],
    ) -> u64 {
        match number.simple_or_less(record, || env.cpu(), refs) {
            Some(value) => value,
            None => self.number_with_call(number, record, env, refs),
        }
    }

    /// The value of a number that is not simple.
    #[inline(always)]
    fn number_with_call(
        &self,
        number: &Number,
        record: &[u8],
        env: &impl Env,
        refs: &[u64],
    ) -> u64 {
        if number.source == Source::Expr {
            // A copy, so that what a hit has needs no place in memory where nothing is called.
            return self.expression_at(number.code, record, &{ *env }, refs);
        }
        let value = match number.source {
            // CAST: a small number.
            Source::Ref => reference(refs, number.at as usize),
            Source::Chain => {
                let env = *env;
                self.chain(number.code, |operand| {
                    self.operand_at(operand, record, &env, refs)
                })
            }
            _ => self.elsewhere(number, env, refs),
        };
        number.rounded(value, refs)
    }

    /// The value of a number that is neither simple nor an expression, before it is rounded.
    #[inline(always)]
    fn elsewhere(&self, number: &Number, env: &impl Env, refs: &[u64]) -> u64 {
        // CAST: a small number.
        let reference = || reference(refs, number.at as usize);

        match number.source {
            Source::Timestamp => self.stamp(env),
            Source::Since => self.since(env, reference()),
            Source::Ref => reference(),
            _ => 0,
        }
    }

    #[inline(always)]
    fn stamp(&self, env: &impl Env) -> u64 {
        match env.timestamp() {
            stamp if self.usecs && env.clock_in_ns() => to_usecs(stamp),
            stamp => stamp,
        }
    }

    /// The time stamp less `reference`, as of a [`Source::Since`].
    #[inline(always)]
    pub(super) fn since(&self, env: &impl Env, reference: u64) -> u64 {
        self.stamp(env).wrapping_sub(reference)
    }

    /// The value of a number that is no expression.
    #[inline(always)]
    fn operand_at(&self, number: &Number, record: &[u8], env: &impl Env, refs: &[u64]) -> u64 {
        if let Some(value) = number.simple(record, || env.cpu()) {
            return value;
        }

        number.rounded(self.elsewhere(number, env, refs), refs)
    }

    /// The value of a number for which [`Plan::is_at_hand`]; else 0.
    #[inline(always)]
    pub(super) fn number_at_hand(
        &self,
        number: &Number,
        record: &[u8],
        cpu: impl Fn() -> u32 + Copy,
    ) -> u64 {
        match number.simple(record, cpu) {
            Some(value) => value,
            None if number.source == Source::Chain => {
                let value = self.chain(number.code, |operand| {
                    operand.simple(record, cpu).unwrap_or(0)
                });

                number.rounded(value, &[])
            }
            None => 0,
        }
    }

    /// The number that an expression comes to in which none waits; `value_of` says what an operand is.
    ///
    /// PARITY: as in [`Program::expression_at`].
    #[inline(always)]
    fn chain(&self, code: Code, value_of: impl Fn(&Number) -> u64) -> u64 {
        let mut value: u64 = 0;

        for step in self.plan.steps_of(code) {
            let operand = value_of(&step.operand);

            value = match step.act {
                Act::Add => value.wrapping_add(operand),
                Act::Sub => value.wrapping_sub(operand),
                Act::Mul => value.wrapping_mul(operand),
                Act::Div => divide(value, operand),
                // The first one.
                _ => operand,
            };
        }
        value
    }

    /// The number that an expression comes to.
    ///
    /// All arithmetic is that of 64 bits and wraps around.
    ///
    /// PARITY: `div_by_mult_and_shift()` rounds some quotients up; here all are cut.
    #[inline(never)]
    fn expression_at(&self, code: Code, record: &[u8], env: &impl Env, refs: &[u64]) -> u64 {
        let steps = self.plan.steps_of(code);
        let mut waiting = Waiting::default();
        // The first step always is to put a number down.
        let Some((first, steps)) = steps.split_first() else {
            return 0;
        };
        let mut value = self.operand_at(&first.operand, record, env, refs);

        for step in steps {
            let operand = self.operand_at(&step.operand, record, env, refs);

            value = match step.act {
                Act::Push => {
                    waiting.push(value);
                    operand
                }
                Act::Neg => value.wrapping_neg(),
                Act::Add => value.wrapping_add(operand),
                Act::Sub => value.wrapping_sub(operand),
                Act::Mul => value.wrapping_mul(operand),
                Act::Div => divide(value, operand),
                Act::AddWaiting => waiting.pop().wrapping_add(value),
                Act::SubWaiting => waiting.pop().wrapping_sub(value),
                Act::MulWaiting => waiting.pop().wrapping_mul(value),
                Act::DivWaiting => divide(waiting.pop(), value),
            };
        }
        value
    }

    /// How many words the key has, at most four, if [`Program::numbers_key`] and [`Program::number_vals`] are all that a
    /// hit needs; else 0.
    pub fn number_keys(&self) -> u8 {
        self.plan.numbers
    }

    /// Whether any of these words is of a string.
    pub fn number_keys_have_text(&self) -> bool {
        self.plan.has_text
    }

    /// The key of a program whose [`Program::number_keys`] are `N`; `TEXT` says whether any may be of a string.
    #[inline(always)]
    pub fn numbers_key<const N: usize, const TEXT: bool>(
        &self,
        record: &[u8],
        cpu: impl Fn() -> u32 + Copy,
    ) -> [u64; N] {
        let mut key = [0; N];

        // No loop, so that the words stay in registers.
        if let Some(word) = key.get_mut(0) {
            *word = self.number_key::<TEXT>(0, record, cpu);
        }
        if let Some(word) = key.get_mut(1) {
            *word = self.number_key::<TEXT>(1, record, cpu);
        }
        if let Some(word) = key.get_mut(2) {
            *word = self.number_key::<TEXT>(2, record, cpu);
        }
        if let Some(word) = key.get_mut(3) {
            *word = self.number_key::<TEXT>(3, record, cpu);
        }
        key
    }

    #[inline(always)]
    fn number_key<const TEXT: bool>(&self, i: usize, record: &[u8], cpu: impl Fn() -> u32) -> u64 {
        match self.plan.words.places().get(i) {
            Some(word) if TEXT => word.word(record, cpu),
            Some(word) => word.simple(record, cpu).unwrap_or(0),
            None => 0,
        }
    }

    /// The key of a program whose [`Program::all_numbers_keys`] are `N`.
    #[inline(always)]
    pub fn all_numbers_key<const N: usize>(&self, record: &[u8], env: &impl Env) -> [u64; N] {
        let mut key = [0; N];

        // As in `numbers_key`.
        if let (Some(to), Some(word)) = (key.get_mut(0), self.plan.words.places().first()) {
            *to = self.operand_at(word, record, env, &[]);
        }
        if let (Some(to), Some(word)) = (key.get_mut(1), self.plan.words.places().get(1)) {
            *to = self.operand_at(word, record, env, &[]);
        }
        key
    }

    /// Value `i` of such a program.
    #[inline(always)]
    pub fn number_val(&self, i: usize, record: &[u8], cpu: impl Fn() -> u32) -> u64 {
        self.plan
            .vals
            .places()
            .get(i)
            .and_then(|number| number.read(record, cpu))
            .unwrap_or(0)
    }
}

impl Step {
    fn plain(act: Act) -> Self {
        Self {
            act,
            operand: Number::default(),
        }
    }

    /// What it does to the number at hand, with which constant, if that is all.
    fn as_round(&self) -> Option<(Round, u64)> {
        let constant = self.operand;
        let is_constant = constant.source == Source::Const && constant.round == Round::None;
        let round = match self.act {
            // As 0 less the number.
            Act::Neg => return Some((Round::From, 0)),
            Act::Add => Round::Plus,
            Act::Sub => Round::Minus,
            Act::Mul => Round::Times,
            Act::Div => Round::By,
            _ => return None,
        };

        is_constant.then_some((round, constant.value))
    }
}

impl Act {
    /// Whether it is done with the number at hand and its operand.
    fn has_operand(self) -> bool {
        matches!(self, Self::Add | Self::Sub | Self::Mul | Self::Div)
    }

    /// What an instruction is that comes right behind the one that puts its operand down.
    fn with_operand(insn: &Insn) -> Option<Self> {
        match insn {
            Insn::Add => Some(Self::Add),
            Insn::Sub => Some(Self::Sub),
            Insn::Mul => Some(Self::Mul),
            Insn::Div => Some(Self::Div),
            Insn::Push(_) | Insn::Neg => None,
        }
    }
}

/// The reference of this number; 0 if there is none.
#[inline(always)]
fn reference(refs: &[u64], n: usize) -> u64 {
    refs.get(n).copied().unwrap_or(0)
}

/// A division of users' numbers: one by zero gives all ones.
#[inline(always)]
fn divide(left: u64, right: u64) -> u64 {
    left.checked_div(right).unwrap_or(u64::MAX)
}

/// The values of an expression that wait for their operator.
#[derive(Default)]
struct Waiting {
    values: [u64; STACK_MAX],
    len: usize,
}

impl Waiting {
    /// Puts a value down; the compiler sees to it that there is room.
    #[inline(always)]
    fn push(&mut self, value: u64) {
        if let Some(place) = self.values.get_mut(self.len) {
            *place = value;
            // OVERFLOW: it was the index of a place.
            self.len = self.len.wrapping_add(1);
        }
    }

    /// Takes the last value; 0 if there is none.
    #[inline(always)]
    fn pop(&mut self) -> u64 {
        self.len = self.len.saturating_sub(1);
        self.values.get(self.len).copied().unwrap_or(0)
    }
}

/// Nanoseconds to microseconds, to the nearest (`ns2usecs()`).
#[inline]
fn to_usecs(ns: u64) -> u64 {
    ns.wrapping_add(500) / 1000
}

/// The smallest power of two that is not below `value`, as its exponent (`order_base_2()`).
#[inline(always)]
fn ceil_log2(value: u64) -> u64 {
    // OVERFLOW: nothing is taken of 0.
    match NonZeroU64::new(value.wrapping_sub(u64::from(value != 0))) {
        // OVERFLOW: at most 64.
        Some(below) => below.ilog2().wrapping_add(1).into(),
        None => 0,
    }
}
