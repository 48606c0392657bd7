// SPDX-License-Identifier: GPL-2.0

//! The internal state of a trigger for `hist_debug`.
//!
//! C counterpart: `hist_trigger_debug_show()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c). The output has C's format and names,
//! even for things that have another name in this module:
//!
//! - `hist_data` is the table, which named triggers share.
//! - `fields[]` are the raw hitcount, the values, the variables and the keys, in this order.
//! - `var_refs[]` are the variables of other triggers that expressions read, and then for each action the
//!   tracked variable and the parameters. Each variable is listed once.
//! - Variables are numbered in the order in which C creates them: those with a name, and then for each
//!   action the tracked value and the saved fields, or the fields that are parameters.
//! - `function` is the C function that computes a field.
//!
//! Context: any.

use core::fmt;

use crate::bucket::Scale;
use crate::text::{
    Out,
    Span, //
};

use super::{
    action::hidden_var,
    var::bit,
    Action,
    Arg,
    ArgSource,
    Code,
    Field,
    Handler,
    Insn,
    Modifier,
    Op,
    Program,
    Ref,
    Var, //
};

/// The identifiers of tables in the output, and the variables of other triggers.
pub trait DebugTables {
    /// Writes the identifier of the trigger's own table.
    fn write_own(&self, out: &mut dyn Out) -> fmt::Result;

    /// Writes the identifier of the table that `reference` reads.
    fn write_of(&self, reference: &Ref, out: &mut dyn Out) -> fmt::Result;

    /// Calls `found` with the variable that `reference` reads.
    fn variable<R>(&self, reference: &Ref, found: impl FnOnce(VarInfo<'_>) -> R) -> R;
}

/// A variable as `hist_debug` shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VarInfo<'t> {
    /// The name.
    pub name: &'t [u8],
    /// The index among the variables of its trigger.
    pub index: usize,
    /// The text of the type.
    pub type_name: &'t [u8],
    /// The size in bytes.
    pub size: u32,
    /// Whether it is a signed number.
    pub signed: bool,
}

/// An item of `var_refs[]` in the output.
enum Referred<'p> {
    /// A variable of another trigger.
    Foreign(&'p Ref),
    /// A variable of the trigger itself, and the event that precedes it in the text.
    Own(u8, Option<(Span, Span)>),
    /// A field that is a parameter of an action, and the index that its variable would have in C.
    Field(&'p Arg, &'p Field, usize),
}

/// Adds `n`, which is below 32, to a set; returns whether it was new.
fn is_first(set: &mut u32, n: u8) -> bool {
    let is_first = *set & bit(n) == 0;

    *set |= bit(n);
    is_first
}

/// The role of a field in `fields[]`.
#[derive(Clone, Copy)]
enum Role<'p> {
    Val,
    Var(usize, &'p Var),
    /// A key, and its size in bytes.
    Key(u32),
}

/// The title of the section with the tracked values.
const ACTIONS: &str = "\n  action tracking variables (for onmax()/onchange()/onmatch()):\n";

impl Program {
    /// Returns the variable `name`, for another trigger that refers to it; `text` is the text of this trigger.
    pub fn describe<'p>(&'p self, name: &'p [u8], text: &'p [u8]) -> VarInfo<'p> {
        self.own_var(name, text)
            .map_or_else(VarInfo::default, |n| self.describe_own(n, text))
    }

    /// Returns the variable `vars()[n]`.
    fn describe_own<'p>(&'p self, n: u8, text: &'p [u8]) -> VarInfo<'p> {
        let index = usize::from(n);

        self.vars
            .get(index)
            .map_or_else(VarInfo::default, |var| VarInfo {
                name: var.name.of(text),
                index,
                type_name: self.name_of(var.field.type_name, text),
                size: var.field.size,
                signed: var.field.may_be_negative(),
            })
    }

    /// Calls `found` with each item of `var_refs[]` and its index.
    ///
    /// PARITY: C creates a variable for a field that is a parameter, and a reference to it. Here such a field
    /// is only listed like a reference.
    fn each_ref<'p>(
        &'p self,
        mut found: impl FnMut(usize, Referred<'p>) -> fmt::Result,
    ) -> fmt::Result {
        let mut numbers = 0usize..;
        let mut next = |referred| numbers.next().map_or(Ok(()), |n| found(n, referred));
        let (mut foreign, mut own) = (0, 0);

        for (n, var) in (0..self.act_refs).zip(self.refs.iter()) {
            is_first(&mut foreign, n);
            next(Referred::Foreign(var))?;
        }
        for (i, action) in self.actions.iter().enumerate() {
            if let Some((_, n)) = action.handler.tracked() {
                if is_first(&mut own, n) {
                    next(Referred::Own(n, None))?;
                }
            }

            let tracked = usize::from(action.track.is_some());
            let mut index = self.vars_before(i).saturating_add(tracked);

            for arg in self.args_of(action) {
                match arg.source {
                    ArgSource::Ref(n) if is_first(&mut foreign, n) => {
                        if let Some(var) = self.refs.get(usize::from(n)) {
                            next(Referred::Foreign(var))?;
                        }
                    }
                    ArgSource::Own(n) if is_first(&mut own, n) => {
                        next(Referred::Own(n, arg.event))?;
                    }
                    ArgSource::Field(ref field) => {
                        next(Referred::Field(arg, field, index))?;
                        index = index.saturating_add(1);
                    }
                    ArgSource::Ref(_) | ArgSource::Own(_) => (),
                }
            }
        }
        Ok(())
    }

    /// Returns the number of variables that C numbers before those of action `i`.
    fn vars_before(&self, i: usize) -> usize {
        let is_field = |arg: &&Arg| matches!(arg.source, ArgSource::Field(_));

        self.actions
            .iter()
            .take(i)
            .map(|action| {
                usize::from(action.track.is_some())
                    .saturating_add(self.saves_of(action).len())
                    .saturating_add(self.args_of(action).iter().filter(is_field).count())
            })
            .fold(self.vars.len(), usize::saturating_add)
    }

    /// Writes the output of `hist_debug` that follows the header.
    pub fn write_debug(
        &self,
        text: &[u8],
        tables: &impl DebugTables,
        out: &mut dyn Out,
    ) -> fmt::Result {
        Writer {
            program: self,
            text,
            tables,
            out,
        }
        .all()
    }
}

struct Writer<'a, T> {
    program: &'a Program,
    text: &'a [u8],
    tables: &'a T,
    out: &'a mut dyn Out,
}

impl<T: DebugTables> Writer<'_, T> {
    fn all(&mut self) -> fmt::Result {
        let program = self.program;
        let keys = program.keys.len();
        let vals = program.vals.len().saturating_add(1);
        let vals = vals.saturating_add(program.vars.len());

        self.out.write_str("hist_data: ")?;
        self.tables.write_own(self.out)?;
        write!(
            self.out,
            "\n\n  n_vals: {vals}\n  n_keys: {keys}\n  n_fields: {}\n",
            vals.saturating_add(keys)
        )?;

        self.out.write_str("\n  val fields:\n")?;
        let mut index = 0usize;
        self.field(&mut index, &Field::default(), Role::Val)?;
        for field in program.vals.iter() {
            self.field(&mut index, field, Role::Val)?;
        }
        for (n, var) in program.vars.iter().enumerate() {
            self.field(&mut index, &var.field, Role::Var(n, var))?;
        }

        self.out.write_str("\n  key fields:\n")?;
        for key in program.keys.iter() {
            self.field(&mut index, &key.field, Role::Key(key.size))?;
        }
        for join in program.joins.iter() {
            // C's output has no such section.
            self.out.write_str("\n  join fields:\n")?;
            for (n, key) in join.keys.iter().enumerate() {
                write!(self.out, "\n    join[{n}]:\n")?;
                self.described(&key.field, Role::Key(key.size))?;
            }
        }
        self.references()?;
        self.field_vars()?;
        self.actions()?;
        self.saves()?;
        self.quantiles(keys.saturating_add(vals))
    }

    /// Writes the quantiles and the index of the field, among `n`, that they are computed from. C's output has none.
    fn quantiles(&mut self, n: usize) -> fmt::Result {
        let program = self.program;
        let Some(folded) = program.folded_key() else {
            return Ok(());
        };
        let keys = program.keys.iter();
        let behind = keys.skip_while(|key| *key != folded).count();

        write!(
            self.out,
            "\n  quantiles of hist_data->fields[{}]:\n",
            n.saturating_sub(behind)
        )?;
        for quantile in program.quantiles() {
            self.out.write_str("      ")?;
            quantile.write(self.out)?;
            self.out.write_str("\n")?;
        }
        Ok(())
    }

    /// Writes one item of `fields[]`.
    fn field(&mut self, index: &mut usize, field: &Field, role: Role<'_>) -> fmt::Result {
        write!(self.out, "\n    hist_data->fields[{index}]:\n")?;
        *index = index.saturating_add(1);

        if let (Role::Val, Op::Ref(n)) = (role, field.op) {
            return match self.program.refs.get(usize::from(n)) {
                Some(reference) => self.reference(usize::from(n), reference),
                None => Ok(()),
            };
        }
        self.described(field, role)
    }

    /// Writes the properties of a field.
    fn described(&mut self, field: &Field, role: Role<'_>) -> fmt::Result {
        self.flags(field, role)?;
        self.event_field(field)?;
        match role {
            Role::Var(n, var) if var.is_stored() => self.variable(var.name.of(self.text), n)?,
            Role::Var(_, var) => {
                self.line(b"      var.name: ", var.name.of(self.text))?;
                self.out.write_str("      not stored\n")?;
            }
            _ => (),
        }
        match (field.op, role) {
            // The field is the number that the hit gives to the variable.
            (Op::Own(n), _) => {
                let var = self.program.describe_own(n, self.text);

                self.line(b"      value of the hit: $", var.name)?;
            }
            (Op::Const(value), _) => writeln!(self.out, "      constant: {value}")?,
            (Op::Ref(n), Role::Var(..)) => self.ref_index(usize::from(n))?,
            _ => (),
        }
        let size = match role {
            Role::Key(bytes) => bytes,
            _ => field.size,
        };
        self.kind(
            self.program.name_of(field.type_name, self.text),
            size,
            field.may_be_negative(),
        )?;
        match field.modifier {
            Modifier::Log2(scale) if scale != Scale::POWERS => {
                writeln!(self.out, "      scale: {}", scale.get())?;
            }
            Modifier::Stat(stat) => writeln!(self.out, "      shown: {}", stat.name())?,
            _ => (),
        }
        writeln!(
            self.out,
            "      function: hist_field_{}()",
            self.function(field)
        )
    }

    fn flags(&mut self, field: &Field, role: Role<'_>) -> fmt::Result {
        let first = match (role, field.op) {
            (Role::Key(_), _) => "HIST_FIELD_FL_KEY",
            (_, Op::One) => "VAL: HIST_FIELD_FL_HITCOUNT",
            (Role::Var(..), _) => "HIST_FIELD_FL_VAR",
            (Role::Val, Op::Ref(_)) => "HIST_FIELD_FL_VAR_REF",
            (Role::Val, _) => "VAL: normal u64 value",
        };
        writeln!(self.out, "      flags:\n        {first}")?;
        match (field.op, role) {
            (Op::Ref(_), Role::Var(..)) => self.out.write_str("        HIST_FIELD_FL_ALIAS\n"),
            (Op::Const(_), _) => self.out.write_str("        HIST_FIELD_FL_CONST\n"),
            _ => Ok(()),
        }
    }

    /// Writes the name of a field of the event.
    fn event_field(&mut self, field: &Field) -> fmt::Result {
        let name = match field.op {
            Op::Num { .. }
            | Op::StaticString { .. }
            | Op::DynString { .. }
            | Op::RelDynString { .. }
            | Op::StackField { .. } => self.program.field_name(field, self.text),
            // The only field with this source is `common_pid.execname`.
            Op::EntryComm => b"common_pid",
            _ => return Ok(()),
        };
        self.line(b"      ftrace_event_field name: ", name)
    }

    fn line(&mut self, title: &[u8], value: &[u8]) -> fmt::Result {
        for part in [title, value, b"\n"] {
            self.out.write_bytes(part)?;
        }
        Ok(())
    }

    fn variable(&mut self, name: &[u8], index: usize) -> fmt::Result {
        self.line(b"      var.name: ", name)?;
        self.var_index(index)
    }

    fn var_index(&mut self, index: usize) -> fmt::Result {
        writeln!(
            self.out,
            "      var.idx (into tracing_map_elt.vars[]): {index}"
        )
    }

    fn ref_index(&mut self, index: usize) -> fmt::Result {
        writeln!(
            self.out,
            "      var_ref_idx (into hist_data->var_refs[]): {index}"
        )
    }

    fn kind(&mut self, type_name: &[u8], size: u32, signed: bool) -> fmt::Result {
        self.line(b"      type: ", type_name)?;
        writeln!(
            self.out,
            "      size: {size}\n      is_signed: {}",
            u8::from(signed)
        )
    }

    /// Writes the section `var_refs[]`.
    fn references(&mut self) -> fmt::Result {
        let program = self.program;
        let mut title = "\n  variable reference fields:\n";

        program.each_ref(|n, referred| {
            self.out.write_str(core::mem::take(&mut title))?;
            write!(self.out, "\n    hist_data->var_refs[{n}]:\n")?;
            self.referred(n, &referred)
        })
    }

    /// Writes one item of `var_refs[]`.
    fn referred(&mut self, n: usize, referred: &Referred<'_>) -> fmt::Result {
        match referred {
            Referred::Foreign(reference) => self.reference(n, reference),
            Referred::Own(own, event) => {
                let var = self.program.describe_own(*own, self.text);

                self.var_ref(n, None, *event, &var)
            }
            Referred::Field(arg, field, index) => {
                let var = VarInfo {
                    name: arg.name.of(self.text),
                    index: *index,
                    type_name: self.program.name_of(field.type_name, self.text),
                    size: field.size,
                    // C shows each variable that it creates for a field as unsigned.
                    signed: false,
                };

                self.var_ref(n, None, arg.event, &var)
            }
        }
    }

    /// Writes a reference to the variable of another trigger.
    fn reference(&mut self, n: usize, reference: &Ref) -> fmt::Result {
        let tables = self.tables;

        tables.variable(reference, |var| {
            self.var_ref(n, Some(reference), reference.event, &var)
        })
    }

    /// Writes a reference to `var`, of another trigger if there is a `reference`. `event` precedes it in the text.
    fn var_ref(
        &mut self,
        n: usize,
        reference: Option<&Ref>,
        event: Option<(Span, Span)>,
        var: &VarInfo<'_>,
    ) -> fmt::Result {
        self.out
            .write_str("      flags:\n        HIST_FIELD_FL_VAR_REF\n")?;
        self.line(b"      name: ", var.name)?;
        self.var_index(var.index)?;
        self.out.write_str("      var.hist_data: ")?;
        match reference {
            Some(reference) => self.tables.write_of(reference, self.out)?,
            None => self.tables.write_own(self.out)?,
        }
        self.out.write_str("\n")?;
        self.ref_index(n)?;
        if let Some((system, event)) = event {
            self.line(b"      system: ", system.of(self.text))?;
            self.line(b"      event_name: ", event.of(self.text))?;
        }
        self.kind(var.type_name, var.size, var.signed)?;
        self.out.write_str("      function: hist_field_var_ref()\n")
    }

    /// Writes the section `field_vars[]`: the fields that are parameters of actions.
    fn field_vars(&mut self) -> fmt::Result {
        let program = self.program;
        let mut title = "\n  field variables:\n";
        let mut n = 0usize;

        program.each_ref(|_, referred| {
            let Referred::Field(arg, field, index) = referred else {
                return Ok(());
            };

            self.out.write_str(core::mem::take(&mut title))?;
            self.kept("field_vars", n, (arg.name, index), field)?;
            n = n.saturating_add(1);
            Ok(())
        })
    }

    fn actions(&mut self) -> fmt::Result {
        let program = self.program;
        let actions = &program.actions;

        if !actions.is_empty() {
            self.out.write_str(ACTIONS)?;
        }
        for (i, action) in actions.iter().enumerate() {
            let name = match action.handler {
                Handler::Match { system, event } => {
                    self.out.write_str("\n")?;
                    self.matched(i, "event_system", system.of(self.text))?;
                    self.matched(i, "event", event.of(self.text))?;
                    continue;
                }
                Handler::Track { when, .. } => hidden_var(when),
            };
            write!(
                self.out,
                "\n    hist_data->actions[{i}].track_data.var_ref:\n"
            )?;
            self.tracked(action)?;
            write!(
                self.out,
                "\n    hist_data->actions[{i}].track_data.track_var:\n"
            )?;
            self.out
                .write_str("      flags:\n        HIST_FIELD_FL_VAR\n")?;
            self.variable(name, program.vars_before(i))?;
            self.kind(b"u64", 8, false)?;
            self.out.write_str("      function: hist_field_nop()\n")?;
        }
        Ok(())
    }

    /// Writes the reference to the variable that an action tracks.
    fn tracked(&mut self, action: &Action) -> fmt::Result {
        let tracked = action.handler.tracked().map(|(_, var)| var);

        self.program.each_ref(|n, referred| match referred {
            Referred::Own(own, _) if Some(own) == tracked => self.referred(n, &referred),
            _ => Ok(()),
        })
    }

    fn matched(&mut self, i: usize, what: &str, name: &[u8]) -> fmt::Result {
        write!(self.out, "    hist_data->actions[{i}].match_data.{what}: ")?;
        self.line(b"", name)
    }

    /// Writes the section `save_vars[]`.
    ///
    /// PARITY: C ends the output at a parameter that is not a field of the event. Here the other parameters follow.
    fn saves(&mut self) -> fmt::Result {
        let program = self.program;
        if !program.saves.is_empty() {
            self.out
                .write_str("\n  save action variables (save() params):\n")?;
        }
        let mut n = 0usize;

        for (i, action) in program.actions.iter().enumerate() {
            let first = program.vars_before(i).saturating_add(1);

            for (k, save) in program.saves_of(action).iter().enumerate() {
                let var = (save.name, first.saturating_add(k));

                self.kept("save_vars", n, var, &save.field)?;
                n = n.saturating_add(1);
            }
        }
        Ok(())
    }

    /// Writes a variable that C creates for a field, and the field.
    fn kept(
        &mut self,
        list: &str,
        n: usize,
        (name, index): (Span, usize),
        field: &Field,
    ) -> fmt::Result {
        write!(
            self.out,
            "\n    hist_data->{list}[{n}]:\n\n      {list}[{n}].var:\n"
        )?;
        self.out
            .write_str("      flags:\n        HIST_FIELD_FL_VAR\n")?;
        self.variable(name.of(self.text), index)?;
        write!(self.out, "\n      {list}[{n}].val:\n")?;
        self.event_field(field)?;

        let type_name = self.program.name_of(field.type_name, self.text);

        self.kind(type_name, field.size, field.may_be_negative())
    }

    /// Returns the name of the C function that computes a field.
    fn function(&self, field: &Field) -> &'static str {
        match field.modifier {
            Modifier::Log2(_) => return "log2",
            Modifier::Buckets(_) => return "bucket",
            _ => (),
        }
        match field.op {
            Op::One => "counter",
            Op::Num { size, signed, .. } => match (size, signed) {
                (1, false) => "u8",
                (1, true) => "s8",
                (2, false) => "u16",
                (2, true) => "s16",
                (4, false) => "u32",
                (4, true) => "s32",
                (_, false) => "u64",
                (_, true) => "s64",
            },
            Op::Timestamp => "timestamp",
            Op::Cpu => "cpu",
            Op::Comm => "comm",
            Op::StaticString { .. } => "string",
            Op::DynString { .. } => "dynstring",
            Op::RelDynString { .. } => "reldynstring",
            Op::Stacktrace => "nop",
            Op::StackField { .. } => "stack",
            Op::EntryComm => "execname",
            Op::Const(_) => "const",
            // C has none of these functions.
            Op::Task(_) => "task",
            Op::Ref(_) | Op::Own(_) => "var_ref",
            Op::Expr(code) => self.operator(&code),
        }
    }

    /// Returns the name of the C function of the root operator of an expression.
    fn operator(&self, code: &Code) -> &'static str {
        match code.of(&self.program.code) {
            [.., Insn::Push(divisor), Insn::Div] => match divisor.op {
                Op::Const(n) if n.is_power_of_two() => "div_power2",
                Op::Const(n) if n > DIV_SHIFT_MAX => "div_not_power2",
                Op::Const(_) => "div_mult_shift",
                _ => "div",
            },
            [.., Insn::Neg] => "uminus",
            [.., Insn::Add] => "plus",
            [.., Insn::Sub] => "minus",
            [.., Insn::Mul] => "mult",
            [.., Insn::Div] => "div",
            _ => "nop",
        }
    }
}

/// The largest divisor that C replaces by a multiplication and a shift.
const DIV_SHIFT_MAX: u64 = 1 << 20;
