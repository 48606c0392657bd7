// SPDX-License-Identifier: GPL-2.0

//! The evaluation of numbers in a hit.
//!
//! C counterpart: `hist_fn_call()` of [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! Context: any, NMI included. Never panics.

use crate::{
    bucket::signed_multiple,
    field::Env, //
};

use super::{
    exec::Context,
    operand::{
        Operand,
        Source,
        StepOp, //
    },
    plan::Plan,
    Program, //
};

// Sets of kinds of numbers, for the constant parameter `OF`.

/// Simple numbers, and expressions of [`Source::Steps`].
pub(super) const IMMEDIATE: u32 = 1 << 0;
/// The time stamp, perhaps with an operation such as the subtraction of a reference.
pub(super) const STAMPS: u32 = 1 << 1;
/// Expressions of any simple numbers. With these, all expressions are evaluated by a call.
pub(super) const EXPRS: u32 = 1 << 2;
/// Numbers that are none of the kinds `IMMEDIATE`, `STAMPS` and `EXPRS`.
pub(super) const OTHERS: u32 = 1 << 3;
/// Numbers that are computed from the record and the CPU alone.
pub(super) const OF_RECORD: u32 = IMMEDIATE | EXPRS;
/// Numbers of all kinds.
pub(super) const NUMBERS: u32 = OF_RECORD | STAMPS | OTHERS;

/// The inputs of all numbers of one hit. A number depends on nothing else, so that computing it twice in a hit gives
/// the same value.
#[derive(Clone, Copy)]
pub(super) struct Inputs<'h, E> {
    pub(super) record: &'h [u8],
    pub(super) env: E,
    /// The time stamp in the trigger's units, if any of its numbers needs it.
    pub(super) stamp: u64,
    /// The variables of other triggers, in the order of [`Program::refs`], followed by the numbers computed once so
    /// far.
    pub(super) refs: &'h [u64],
}

impl<'h, E> Inputs<'h, E> {
    /// Returns the inputs of the numbers of the hit `cx`.
    #[inline]
    pub(super) fn new<'c: 'h>(cx: E, stamp: u64, refs: &'h [u64]) -> Self
    where
        E: Context<'c>,
    {
        Self {
            record: cx.record(),
            env: cx,
            stamp,
            refs,
        }
    }
}

impl Program {
    /// Computes the numbers of a hit that are computed once, and stores them in `numbers` after the variables of other
    /// triggers, which are there already.
    #[inline(always)]
    pub(super) fn compute_values<'c>(&self, cx: impl Context<'c>, stamp: u64, numbers: &mut [u64]) {
        let mut at = self.refs.len();

        if !self.plan.tasks.is_empty() {
            at = self.ask_task(cx, numbers, at);
        }
        for value in self.plan.values.iter() {
            let Some((refs, rest)) = numbers.split_at_mut_checked(at) else {
                break;
            };

            if let Some(place) = rest.first_mut() {
                *place = self
                    .plan
                    .number::<NUMBERS>(value, Inputs::new(cx, stamp, refs));
            }
            // OVERFLOW: `at` is the index of a list with few items.
            at = at.wrapping_add(1);
        }
    }

    /// Stores the numbers of the task in `numbers` from `at` on; returns the index after them.
    #[inline(never)]
    fn ask_task<'c>(&self, cx: impl Context<'c>, numbers: &mut [u64], at: usize) -> usize {
        let places = numbers.get_mut(at..).unwrap_or(&mut []);

        for (place, which) in places.iter_mut().zip(self.plan.tasks.iter()) {
            *place = cx.task(*which);
        }
        // OVERFLOW: both numbers are small.
        at.wrapping_add(self.plan.tasks.len())
    }

    /// Returns the time stamp of the record, in the units that the trigger wants. It takes a call; 0 if it is not
    /// `needed`.
    #[inline]
    pub(super) fn stamp(&self, env: &impl Env, needed: bool) -> u64 {
        if !needed {
            return 0;
        }
        match env.timestamp() {
            stamp if self.usecs && env.clock_in_ns() => to_usecs(stamp),
            stamp => stamp,
        }
    }
}

impl Plan {
    /// Evaluates a number. `OF` is the set of kinds that the number may be of; code for other kinds is left out.
    #[inline(always)]
    pub(super) fn number<const OF: u32>(
        &self,
        number: &Operand,
        inputs: Inputs<'_, impl Env>,
    ) -> u64 {
        let Inputs {
            record,
            env,
            stamp,
            refs,
        } = inputs;

        debug_assert!(self.kind_of(number) & !OF == 0);
        if const { OF == STAMPS } {
            return number.finish::<false>(stamp, refs);
        }
        // The record and the CPU alone need no references.
        let refs = if const { OF & !OF_RECORD == 0 } {
            &[]
        } else {
            refs
        };
        match number.simple::<false>(record, || env.cpu(), refs) {
            Some(value) => value,
            None => self.computed::<OF>(number, inputs),
        }
    }

    /// Returns the value of a number that is not simple. With [`EXPRS`] an expression is evaluated by a call.
    #[inline(always)]
    pub(super) fn computed<const OF: u32>(
        &self,
        number: &Operand,
        inputs: Inputs<'_, impl Env>,
    ) -> u64 {
        let Inputs {
            record,
            env,
            stamp,
            refs,
        } = inputs;
        let value = match number.source {
            Source::Timestamp if const { OF & STAMPS != 0 } => stamp,
            Source::Ref if const { OF & OTHERS != 0 } => number.reference(refs),
            _ if const { OF & OTHERS != 0 } => {
                return self.expression(number, record, env.cpu(), stamp, refs)
            }
            _ if const { OF & EXPRS != 0 } => {
                return self.expression_of_record(number, record, env.cpu())
            }
            _ => self.evaluate::<OF>(number, record, || env.cpu(), 0, &[]),
        };

        number.finish::<false>(value, refs)
    }

    /// Returns the kind of a number.
    pub(super) fn kind_of(&self, number: &Operand) -> u32 {
        match number.source {
            Source::Timestamp => STAMPS,
            Source::Steps => IMMEDIATE,
            Source::AnySteps if self.is_of_record(number) => EXPRS,
            Source::AnySteps => OTHERS,
            _ if number.is_simple() => IMMEDIATE,
            _ => OTHERS,
        }
    }

    /// Returns whether an expression is computed from the record and the CPU alone.
    fn is_of_record(&self, number: &Operand) -> bool {
        let mut steps = number.code.of(&self.steps).iter();
        let is_other = |source| matches!(source, Source::Early | Source::Timestamp);

        !self.reads_list(number)
            && !is_other(number.first)
            && steps.all(|step| !is_other(step.operand.source))
    }

    /// Returns the value of an expression that is computed from the record and the CPU alone.
    #[inline(never)]
    fn expression_of_record(&self, number: &Operand, record: &[u8], cpu: u32) -> u64 {
        let value = self.evaluate::<OF_RECORD>(number, record, || cpu, 0, &[]);

        number.finish::<false>(value, &[])
    }

    /// Returns the value of any expression, or of a number of [`Source::Early`].
    #[inline(never)]
    fn expression(
        &self,
        number: &Operand,
        record: &[u8],
        cpu: u32,
        stamp: u64,
        refs: &[u64],
    ) -> u64 {
        let value = match number.source {
            Source::Early => number.load_other(Source::Early, record, stamp, refs, 0),
            _ => self.evaluate::<NUMBERS>(number, record, || cpu, stamp, refs),
        };

        number.finish::<false>(value, refs)
    }

    /// Evaluates the first number of an expression and then its steps.
    ///
    /// All arithmetic is on 64 bits and wraps around.
    ///
    /// PARITY: `div_by_mult_and_shift()` rounds some quotients up; here all are truncated.
    #[inline(always)]
    fn evaluate<const OF: u32>(
        &self,
        number: &Operand,
        record: &[u8],
        cpu: impl Fn() -> u32,
        stamp: u64,
        refs: &[u64],
    ) -> u64 {
        let mut saved = 0;
        let mut value: u64 = match number.load_from(number.first, record, &cpu) {
            Some(first) => first,
            None if const { OF & OTHERS == 0 } => 0,
            // If the operand has no first number, the first step loads it.
            None => number.load_other(number.first, record, stamp, refs, 0),
        };

        // An empty slice in place of `None` would make each expression choose between two slices, in four instructions.
        let Some(steps) = self.steps.get(number.code.range()) else {
            return value;
        };

        for step in steps {
            let operand = &step.operand;
            let simple = match const { OF & EXPRS } {
                0 => operand.simple::<false>(record, &cpu, refs),
                _ => operand.simple::<true>(record, &cpu, refs),
            };
            let operand = match simple {
                Some(operand) => operand,
                // A set of kinds without `EXPRS` has no expressions that save a number.
                None if const { OF & EXPRS == 0 } => 0,
                None if const { OF & OTHERS == 0 } => saved,
                // An operand is never an expression, so only the saved number is left.
                None => operand.finish::<true>(
                    operand.load_other(operand.source, record, stamp, refs, saved),
                    refs,
                ),
            };

            value = match step.op {
                StepOp::Load => operand,
                StepOp::Save => {
                    saved = value;
                    operand
                }
                StepOp::Add => value.wrapping_add(operand),
                StepOp::Sub => value.wrapping_sub(operand),
                StepOp::Mul => value.wrapping_mul(operand),
                StepOp::Div => divide(value, operand),
                // The negated difference needs no additional register.
                StepOp::SubFrom => value.wrapping_sub(operand).wrapping_neg(),
                // `Source::Steps` has neither of the following steps.
                _ if const { OF & EXPRS == 0 } => operand,
                StepOp::DivInto => divide(operand, value),
                StepOp::SignedMultiple => signed_multiple(value, operand),
            };
        }
        value
    }
}

/// Divides users' numbers: a division by zero gives all ones.
#[inline]
fn divide(left: u64, right: u64) -> u64 {
    left.checked_div(right).unwrap_or(u64::MAX)
}

/// Converts nanoseconds to microseconds, to the nearest one (`ns2usecs()`).
#[inline]
fn to_usecs(ns: u64) -> u64 {
    ns.wrapping_add(500) / 1000
}
