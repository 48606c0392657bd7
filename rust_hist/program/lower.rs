// SPDX-License-Identifier: GPL-2.0

//! Lowering: turns the compiled trigger into the [`Plan`](super::plan::Plan) that its hits run.
//!
//! Context: process.

use crate::{
    alloc::{
        AllocError,
        Vec, //
    },
    bucket::Buckets,
    field::TaskNumber,
    limits::{
        List,
        KEY_PARTS_MAX,
        OPERATORS_MAX, //
    }, //
};
use core::mem::take;

use super::{
    exec::most_in,
    operand::{
        halves,
        Operand,
        Source,
        Step,
        StepOp, //
    },
    plan::{
        ArgFrom,
        ArgStep,
        KeyColumn,
        KeyPlan,
        Plan,
        TextAt,
        VarStep, //
    },
    var::bit,
    ArgSource,
    Code,
    Field,
    HitValue,
    Insn,
    Key,
    Kind,
    Modifier,
    Op,
    Program, //
};

/// Returns the operand for a bucket of `.log2=N` of a number of the record or the CPU, which a path can compute by
/// itself.
fn direct(field: &Field) -> Option<Operand> {
    let is_number = matches!(field.op, Op::Num { .. } | Op::Cpu);

    is_number
        .then(|| Operand::of_field(field))
        .filter(|operand| operand.has_parts() && operand.is_simple())
}

impl Program {
    /// Lowers the whole program. Numbers that a hit computes once have places after the variables of other triggers, so
    /// all of these must be known.
    ///
    /// Not inlined: its stack frame is gone before the compiler calls deeper functions.
    #[inline(never)]
    pub(super) fn lower(&mut self) -> Result<(), AllocError> {
        self.empty_plan();
        self.find_values()?;
        self.lower_values()?;
        self.lower_columns()?;
        self.lower_vars()?;
        self.lower_actions()
    }

    /// Not inlined: two plans are on its stack.
    #[inline(never)]
    fn empty_plan(&mut self) {
        self.plan = Plan::default();
        self.plan.has_creator = self.needs_comm();
    }

    /// Finds the numbers that a hit computes once: first the numbers of the task, then the variables that something
    /// names, each after those that it is computed from.
    fn find_values(&mut self) -> Result<(), AllocError> {
        let named = self.vars.iter().fold(self.named_in_columns(), |all, var| {
            all | self.named_by(&var.field)
        });

        self.values = Vec::new();
        for number in TaskNumber::ALL {
            if self.asks_for(number) {
                self.values.push(HitValue::Task(number))?;
            }
        }
        for n in (0..=u8::MAX).take(self.vars.len()) {
            if named & bit(n) != 0 {
                self.values.push(HitValue::Own(n))?;
            }
        }
        Ok(())
    }

    /// Returns whether any column, variable or parameter is computed from this number of the task.
    fn asks_for(&self, number: TaskNumber) -> bool {
        let joins = self.joins.iter().flat_map(|join| &*join.keys);
        let keys = joins.chain(self.keys.iter()).map(|key| &key.field);
        let saves = self.saves.iter().map(|save| &save.field);
        let args = self.args.iter().filter_map(|arg| match &arg.source {
            ArgSource::Field(field) => Some(field),
            _ => None,
        });
        let mut all = keys
            .chain(self.vals.iter())
            .chain(self.vars.iter().map(|var| &var.field))
            .chain(saves)
            .chain(args);

        all.any(|field| self.ops(field).any(|op| op == Op::Task(number)))
    }

    /// Lowers the numbers that a hit computes once.
    fn lower_values(&mut self) -> Result<(), AllocError> {
        for at in 0..self.values.len() {
            match self.values.get(at).copied() {
                Some(HitValue::Task(number)) => self.plan.tasks.push(number)?,
                Some(HitValue::Own(n)) => {
                    if let Some(field) = self.vars.get(usize::from(n)).map(|var| var.field) {
                        let number = self.lower_number(&field)?;

                        self.plan.values.push(number)?;
                    }
                }
                None => (),
            }
        }
        Ok(())
    }

    /// Returns the index of a number that the hit computes once: these follow the variables of other triggers in one
    /// list.
    fn place_of_value(&self, value: HitValue) -> u8 {
        let place = self.values.iter().position(|&other| other == value);

        // The list has less than 64 numbers.
        place
            .and_then(|place| u8::try_from(self.refs.len().saturating_add(place)).ok())
            .unwrap_or(u8::MAX)
    }

    /// Returns `field`, with a number that the hit computes once as a reference: a hit has these numbers and the
    /// variables of other triggers in one list.
    fn in_one_list(&self, field: &Field) -> Field {
        let value = match field.op {
            Op::Own(n) => HitValue::Own(n),
            Op::Task(number) => HitValue::Task(number),
            _ => return *field,
        };

        Field {
            op: Op::Ref(self.place_of_value(value)),
            ..*field
        }
    }

    /// Lowers a key with these fields to `plan`.
    ///
    /// Not inlined: parts of a plan are on its stack.
    #[inline(never)]
    fn lower_key(&mut self, keys: &[Key], plan: &mut KeyPlan) -> Result<(), AllocError> {
        for mut key in keys.iter().copied() {
            let number = self.lower_number(&key.field)?;

            // A shorter `len` leaves room for the NUL, so that no string of fixed size counts as cut.
            if let Op::StaticString { len, .. } = &mut key.field.op {
                *len = key.size.saturating_sub(1).min(*len);
            }
            plan.columns.push(KeyColumn { key, number })?;
        }

        let mut numbers = plan.columns.iter().map(|column| &column.number);

        // INVARIANT: the columns are the keys, in their order; `lower_words()` returns no words unless all can be
        // computed apart.
        plan.has_comm = keys.iter().any(|key| key.field.op == Op::Comm);
        plan.has_values = numbers.any(|number| self.plan.reads_list(number));
        plan.words = lower_words(&plan.columns);
        Ok(())
    }

    /// Lowers the keys of the rows and of the tables that are joined.
    ///
    /// Not inlined: the plan of a key is on its stack.
    #[inline(never)]
    fn lower_keys(&mut self) -> Result<(), AllocError> {
        let (keys, mut row) = (take(&mut self.keys), take(&mut self.plan.row));
        let mut lowered = self.lower_key(&keys, &mut row);

        (self.keys, self.plan.row) = (keys, row);

        let mut joins = take(&mut self.joins);

        for join in joins.iter_mut() {
            lowered = lowered.and_then(|()| self.lower_key(&join.keys, &mut join.plan));
        }
        self.joins = joins;
        lowered
    }

    /// Lowers keys and values.
    #[inline(never)]
    fn lower_columns(&mut self) -> Result<(), AllocError> {
        self.lower_keys()?;
        self.plan.has_key_stamp = take(&mut self.plan.has_stamp);
        for at in 0..self.numbers.len() {
            let val = self.numbers.get(at).map(|&val| usize::from(val));

            if let Some(&field) = val.and_then(|val| self.vals.get(val)) {
                let number = self.lower_number(&field)?;

                self.plan.vals.push(number).map_err(|_| AllocError)?;
            }
        }
        self.plan.has_tallies = !self.tallies.are_sums_of_c();
        Ok(())
    }

    /// Lowers a field; a string or a stack becomes the constant 0.
    pub(super) fn lower_number(&mut self, field: &Field) -> Result<Operand, AllocError> {
        let Op::Expr(code) = field.op else {
            self.plan.has_stamp |= field.op == Op::Timestamp;

            let operand = Operand::of_field(&self.in_one_list(field));

            let start = self.plan.steps.len();
            let first = Step {
                op: StepOp::Load,
                operand,
            };

            return match field.buckets() {
                Some(Buckets::SignedWidth(width)) => {
                    self.plan.steps.push(first)?;
                    self.push_step(StepOp::SignedMultiple, Operand::constant(width.get()))?;
                    self.lowered(start)
                }
                // Buckets of `.log2=N` outside of a key's words are computed by an expression.
                _ if operand.has_parts() => {
                    self.plan.steps.push(first)?;
                    self.lowered(start)
                }
                _ => Ok(operand),
            };
        };
        let mut code_in_one_list = Vec::new();

        for insn in code.of(&self.code) {
            code_in_one_list.push(match insn {
                Insn::Push(field) => Insn::Push(self.in_one_list(field)),
                insn => *insn,
            })?;
        }
        match Operand::of_leaf(&code_in_one_list) {
            Some(number) => {
                self.plan.has_stamp |= number.source == Source::Timestamp;
                Ok(number)
            }
            None => {
                let start = self.plan.steps.len();

                self.lower_code(&code_in_one_list, StepOp::Load)?;
                self.lowered(start)
            }
        }
    }

    /// Returns the operand for the steps from `start` on.
    fn lowered(&self, start: usize) -> Result<Operand, AllocError> {
        let place = |n: usize| u16::try_from(n).map_err(|_| AllocError);
        let code = Code {
            start: place(start)?,
            len: place(self.plan.steps.len().saturating_sub(start))?,
        };

        Ok(Operand::of_steps(code.of(&self.plan.steps), code))
    }

    /// Lowers an expression to steps, which are appended; the first of them has the operation `first`.
    ///
    /// The side of an operator that needs steps is lowered first; the other side is the operand of the last step. If
    /// both need steps, one result is saved; there are too few operators to need a second saved result.
    fn lower_code(&mut self, code: &[Insn], first: StepOp) -> Result<(), AllocError> {
        const { assert!(OPERATORS_MAX <= 4) };

        if let Some(operand) = Operand::of_leaf(code) {
            return self.push_step(first, operand);
        }
        let Some((insn, operands)) = code.split_last() else {
            return Ok(());
        };
        let Some(op) = StepOp::of(insn) else {
            // The step computes the negative: 0 minus the accumulator.
            self.lower_code(operands, first)?;
            return self.push_step(StepOp::SubFrom, Operand::default());
        };
        let (left, right) = halves(operands);

        match (Operand::of_leaf(left), Operand::of_leaf(right)) {
            (_, Some(right)) => {
                self.lower_code(left, first)?;
                self.push_step(op, right)
            }
            (Some(left), None) => {
                self.lower_code(right, first)?;
                self.push_step(op.swapped(), left)
            }
            (None, None) => {
                self.lower_code(left, first)?;
                self.lower_code(right, StepOp::Save)?;
                self.push_step(op.swapped(), Operand::saved())
            }
        }
    }

    fn push_step(&mut self, op: StepOp, operand: Operand) -> Result<(), AllocError> {
        self.plan.has_stamp |= operand.source == Source::Timestamp;
        self.plan.steps.push(Step { op, operand })
    }

    /// Lowers the variables, in their order.
    fn lower_vars(&mut self) -> Result<(), AllocError> {
        let mut vars = Vec::new();

        for at in 0..self.vars.len() {
            if let Some(var) = self.vars.get(at) {
                let (field, cell, is_stored) = (var.field, var.cell, var.is_stored());
                // The first word is not content, and the last byte of the others is a NUL.
                let room = cell.words.saturating_sub(1);
                let most = u32::try_from(most_in(room.into())).map_err(|_| AllocError)?;

                let n = u8::try_from(at).map_err(|_| AllocError)?;
                // The hit reads its own computed number instead of computing it again.
                let named = match self.values.contains(&HitValue::Own(n)) {
                    true => Field {
                        op: Op::Own(n),
                        modifier: Modifier::None,
                        ..field
                    },
                    false => field,
                };

                vars.push(VarStep {
                    number: match is_stored {
                        true => self.lower_number(&named)?,
                        false => Operand::constant(0),
                    },
                    n,
                    at: cell.at,
                    kind: cell.kind,
                    text: TextAt::new(Some(field.op), most),
                    room: u8::try_from(room).unwrap_or(u8::MAX),
                })?;
            }
        }
        self.plan.vars = vars;
        Ok(())
    }

    /// Lowers the parameters of all actions, in their order.
    fn lower_actions(&mut self) -> Result<(), AllocError> {
        let mut saves = Vec::new();
        let mut args = Vec::new();

        for at in 0..self.saves.len() {
            if let Some(save) = self.saves.get(at).copied() {
                // The last byte of the parameter's words is for a NUL.
                let most = u32::try_from(most_in(save.words())).map_err(|_| AllocError)?;

                saves.push(VarStep {
                    number: self.lower_number(&save.field)?,
                    n: u8::try_from(at).map_err(|_| AllocError)?,
                    at: save.at,
                    kind: save.field.kind,
                    text: TextAt::new(Some(save.field.op), most),
                    room: u8::try_from(save.words).unwrap_or(u8::MAX),
                })?;
            }
        }
        for at in 0..self.args.len() {
            if let Some(source) = self.args.get(at).map(|arg| arg.source) {
                let (from, number) = match source {
                    ArgSource::Field(field) => (ArgFrom::Record, self.lower_number(&field)?),
                    // Variables are in the hit's list of numbers already, so nothing is computed for them.
                    ArgSource::Ref(n) => (ArgFrom::Ref(n), Operand::default()),
                    ArgSource::Own(n) => (ArgFrom::Own(n), Operand::default()),
                };

                // A synthetic event's field ends with a NUL, and so does the longest variable.
                let text = match self.immediate_field(&source).map(|field| field.op) {
                    Some(Op::StaticString { offset, len }) => Some(Op::StaticString {
                        offset,
                        len: len.saturating_sub(1),
                    }),
                    op => op,
                };
                let text = TextAt::new(text, u8::MAX.into());

                args.push(ArgStep { from, number, text })?;
            }
        }
        self.plan.saves = saves;
        self.plan.args = args;
        Ok(())
    }

    /// Returns the field of a parameter that is a string or stack and is not read from an entry. A variable of the
    /// trigger itself is computed from this hit, as other hits may have changed the entry since.
    #[inline]
    pub(super) fn immediate_field<'p>(&'p self, source: &'p ArgSource) -> Option<&'p Field> {
        let field = match source {
            ArgSource::Field(field) => return Some(field),
            ArgSource::Own(n) => &self.vars.get(usize::from(*n))?.field,
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
}

/// Returns the words of a key if they are few and each can be computed by itself: as a number, or as a part of a string
/// at a fixed place.
fn lower_words(columns: &[KeyColumn]) -> List<Operand, KEY_PARTS_MAX> {
    let mut words = List::new();

    for KeyColumn { key, number } in columns {
        let is_kept = match (key.field.kind, key.field.op) {
            (Kind::Number, _) => words.push(direct(&key.field).unwrap_or(*number)).is_ok(),
            (_, Op::StaticString { offset, len }) => (0..key.words())
                .map(|i| Operand::of_text(offset, len, key.words(), i))
                .all(|word| words.push(word).is_ok()),
            _ => false,
        };

        if !is_kept {
            return List::new();
        }
    }
    words
}
