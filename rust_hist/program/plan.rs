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

#![cfg_attr(not(CONFIG_RUST), forbid(unsafe_code))]
#![cfg_attr(
    CONFIG_RUST,
    allow(
        unreachable_pub,
        reason = "the root of the module keeps its rooms private"
    )
)]

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
    Code,
    Field,
    Insn,
    Load,
    Modifier,
    Op,
    Program, //
};

/// What a hit computes first: the keys and the values of a program.
///
/// # Invariants
///
/// - `keys` and `vals` are those of the program, in the same order.
/// - `numbers` is the number of keys if all keys and all values are simple numbers and there is nothing
///   else to do, else 0.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) numbers: u8,
    /// All keys are simple numbers.
    pub(super) keys_are_numbers: bool,
    pub(super) keys: List<Number, KEYS_MAX>,
    pub(super) vals: List<Number, VALS_MAX>,
    /// Those of variables, of the parameters of `save()` and of `trace()`; see `program/plan_vars.rs`.
    pub(super) vars: Vec<Number>,
    pub(super) saves: Vec<Number>,
    pub(super) args: Vec<Number>,
    /// The steps of all expressions.
    steps: Vec<Step>,
}

impl Plan {
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

/// A number: where it comes from, and how it is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    source: Source,
    round: Round,
}

impl Default for Number {
    fn default() -> Self {
        Self {
            source: Source::Const(0),
            round: Round::None,
        }
    }
}

/// Where a number comes from. Those of the record have their place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    U64(u32),
    U32(u32),
    S32(u32),
    U16(u32),
    S16(u32),
    U8(u32),
    S8(u32),
    Const(u64),
    Cpu,
    Timestamp,
    Ref(u8),
    /// A piece of the steps.
    Expr(Code),
}

/// What becomes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    None,
    Log2,
    Buckets(Reciprocal),
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

/// A width that numbers are cut to multiples of, without a division.
///
/// # Invariants
///
/// With `l` the smallest number for which `2^l` is not below `width`, `magic` is
/// `2^64 * (2^l - width) / width + 1`, cut, and `shift` is `l - 1`. Then
/// `(magic * n / 2^64 + n) / 2^l`, of whole numbers, is `n / width` for each `n` of 64 bits (Granlund,
/// Montgomery: Division by Invariant Integers using Multiplication, 1994, fig. 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reciprocal {
    magic: u64,
    width: u64,
    shift: u32,
}

impl Reciprocal {
    /// That of a width; `None` if all numbers are multiples of it.
    pub fn new(width: NonZeroU64) -> Option<Self> {
        let width = width.get();
        let below = width.checked_sub(1).filter(|&below| below != 0)?;
        let log = u64::BITS.checked_sub(below.leading_zeros())?;
        // `2^l - width`, which is less than `width`; 2^64 is 0 here.
        let mut rest = 1u64.checked_shl(log).unwrap_or(0).wrapping_sub(width);
        let mut magic: u64 = 0;

        // Long division of `rest * 2^64` by `width`.
        for _ in 0..u64::BITS {
            let carry = rest >> 63 != 0;

            rest = rest.wrapping_shl(1);
            magic = magic.wrapping_shl(1);
            if carry || rest >= width {
                rest = rest.wrapping_sub(width);
                magic |= 1;
            }
        }
        // INVARIANT: the quotient is less than 2^64 - 1, as `rest` was less than `width`.
        Some(Self {
            magic: magic.wrapping_add(1),
            width,
            shift: log.checked_sub(1)?,
        })
    }

    /// The largest multiple of the width that is not above `n`.
    #[inline(always)]
    pub fn cut(&self, n: u64) -> u64 {
        // CAST: the upper half of a product of two factors of 64 bits.
        let high = ((u128::from(self.magic).wrapping_mul(u128::from(n))) >> 64) as u64;
        // OVERFLOW: `high` is not above `n`. The sum, which may have 65 bits, is halved before it is
        // made.
        let half = (n.wrapping_sub(high) >> 1).wrapping_add(high);

        // OVERFLOW: a multiple not above `n`.
        half.wrapping_shr(self.shift).wrapping_mul(self.width)
    }
}

impl Round {
    fn of(modifier: Modifier) -> Self {
        match modifier {
            Modifier::Log2 => Self::Log2,
            Modifier::Buckets(width) => Reciprocal::new(width).map_or(Self::None, Self::Buckets),
            _ => Self::None,
        }
    }

    #[inline(always)]
    fn apply(&self, value: u64) -> u64 {
        match self {
            Self::None => value,
            Self::Log2 => ceil_log2(value),
            Self::Buckets(reciprocal) => reciprocal.cut(value),
        }
    }
}

impl Number {
    /// The form of a field that is no expression; 0 for what is no number, of which there is none here.
    fn of_operand(field: &Field) -> Self {
        let source = match field.op {
            // PARITY: `create_hist_field()` ignores `.log2` and `.buckets` of a hitcount, and
            // `hist_field_name()` then finds no name for it.
            Op::One => Source::Const(1),
            Op::Num { offset, load } => match load {
                Load::U64 | Load::S64 => Source::U64(offset),
                Load::U32 => Source::U32(offset),
                Load::S32 => Source::S32(offset),
                Load::U16 => Source::U16(offset),
                Load::S16 => Source::S16(offset),
                Load::U8 => Source::U8(offset),
                Load::S8 => Source::S8(offset),
            },
            Op::Timestamp => Source::Timestamp,
            Op::Cpu => Source::Cpu,
            Op::Const(value) => Source::Const(value),
            Op::Ref(n) => Source::Ref(n),
            Op::Expr(_)
            | Op::Comm
            | Op::EntryComm
            | Op::StaticString { .. }
            | Op::DynString { .. }
            | Op::RelDynString { .. }
            | Op::Stacktrace
            | Op::StackField { .. } => Source::Const(0),
        };

        Self {
            source,
            round: Round::of(field.modifier),
        }
    }

    /// Whether it is in the record or known, so that a hit gets it without a call.
    fn is_simple(&self) -> bool {
        !matches!(
            self.source,
            Source::Timestamp | Source::Ref(_) | Source::Expr(_)
        )
    }

    /// Its value, if it [is simple](Number::is_simple). What is not in the record is 0.
    #[inline(always)]
    pub(super) fn simple(&self, record: &[u8], cpu: u32) -> Option<u64> {
        let value = match self.source {
            Source::U64(at) => u64::from_ne_bytes(bytes(record, at)),
            Source::U32(at) => u32::from_ne_bytes(bytes(record, at)).into(),
            Source::S32(at) => widen(i32::from_ne_bytes(bytes(record, at))),
            Source::U16(at) => u16::from_ne_bytes(bytes(record, at)).into(),
            Source::S16(at) => widen(i16::from_ne_bytes(bytes(record, at))),
            Source::U8(at) => u8::from_ne_bytes(bytes(record, at)).into(),
            Source::S8(at) => widen(i8::from_ne_bytes(bytes(record, at))),
            Source::Const(value) => value,
            Source::Cpu => cpu.into(),
            Source::Timestamp | Source::Ref(_) | Source::Expr(_) => return None,
        };

        Some(self.round.apply(value))
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

        let are_numbers = self.keys().iter().all(|key| {
            matches!(
                key.field.op,
                Op::Num { .. } | Op::Cpu | Op::Const(_) | Op::One
            )
        });
        let numbers = are_numbers && vals.as_slice().iter().all(Number::is_simple);

        // INVARIANT: all keys are numbers, each of them simple, so there are as many words as keys.
        self.plan.numbers = match u8::try_from(self.keys().len()) {
            Ok(keys) if numbers && self.is_plain() => keys,
            _ => 0,
        };
        self.plan.keys_are_numbers = are_numbers;
        self.plan.keys = keys;
        self.plan.vals = vals;
        Ok(())
    }

    /// Brings a field into the form that a hit wants; what is no number comes to 0.
    pub(super) fn lower_number(&mut self, field: &Field) -> Result<Number, AllocError> {
        match field.op {
            Op::Expr(code) => Ok(Number {
                source: Source::Expr(self.lower_code(code)?),
                round: Round::None,
            }),
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
        match number.simple(record, env.cpu()) {
            Some(value) => value,
            None => self.number_with_call(number, record, env, refs),
        }
    }

    #[inline(never)]
    fn number_with_call(
        &self,
        number: &Number,
        record: &[u8],
        env: &impl Env,
        refs: &[u64],
    ) -> u64 {
        match number.source {
            Source::Expr(code) => self.expression_at(code, record, env, refs),
            _ => self.operand_at(number, record, env, refs),
        }
    }

    /// The value of a number that is no expression.
    #[inline(always)]
    fn operand_at(&self, number: &Number, record: &[u8], env: &impl Env, refs: &[u64]) -> u64 {
        if let Some(value) = number.simple(record, env.cpu()) {
            return value;
        }

        let value = match number.source {
            Source::Timestamp if self.usecs && env.clock_in_ns() => to_usecs(env.timestamp()),
            Source::Timestamp => env.timestamp(),
            Source::Ref(n) => refs.get(usize::from(n)).copied().unwrap_or(0),
            _ => 0,
        };

        number.round.apply(value)
    }

    /// The number that an expression comes to.
    ///
    /// All arithmetic is that of 64 bits and wraps around.
    ///
    /// PARITY: `div_by_mult_and_shift()` rounds some quotients up; here all are cut.
    #[inline(always)]
    fn expression_at(&self, code: Code, record: &[u8], env: &impl Env, refs: &[u64]) -> u64 {
        let steps = self
            .plan
            .steps
            .get(usize::from(code.start)..)
            .and_then(|from| from.get(..usize::from(code.len)))
            .unwrap_or(&[]);
        let mut waiting = Waiting::default();
        let mut value: u64 = 0;

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

    /// How many words the key has, if [`Program::numbers_key`] and [`Program::number_vals`] are all that a
    /// hit needs; else 0.
    pub fn number_keys(&self) -> u8 {
        self.plan.numbers
    }

    /// The key of a program whose [`Program::number_keys`] are `N`.
    #[inline(always)]
    pub fn numbers_key<const N: usize>(&self, record: &[u8], cpu: u32) -> [u64; N] {
        let mut key = [0; N];

        for (word, number) in key.iter_mut().zip(self.plan.keys.places()) {
            *word = number.simple(record, cpu).unwrap_or(0);
        }
        key
    }

    /// The values of such a program, in order.
    #[inline(always)]
    pub fn number_vals<'h>(&'h self, record: &'h [u8], cpu: u32) -> impl Iterator<Item = u64> + 'h {
        self.plan
            .vals
            .as_slice()
            .iter()
            .map(move |number| number.simple(record, cpu).unwrap_or(0))
    }
}

impl Step {
    fn plain(act: Act) -> Self {
        Self {
            act,
            operand: Number::default(),
        }
    }
}

impl Act {
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

/// A signed number in 64 bits.
#[inline(always)]
fn widen(value: impl Into<i64>) -> u64 {
    // CAST: keeps the bits.
    value.into() as u64
}

/// `N` bytes at `at`; zeros unless all are inside.
#[inline(always)]
fn bytes<const N: usize>(record: &[u8], at: u32) -> [u8; N] {
    // CAST: tracing needs 32-bit pointers at least.
    let at = at as usize;
    // OVERFLOW: the sum is compared with a length, and no number there is beyond 2^32 + 8.
    record
        .get(at..at.wrapping_add(N))
        .and_then(|bytes| bytes.first_chunk::<N>())
        .copied()
        .unwrap_or([0; N])
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
