// SPDX-License-Identifier: GPL-2.0

//! Printing of the trigger line, for the file `trigger` and the header of `hist`.
//!
//! C counterpart: `event_hist_trigger_print()` and `hist_field_print()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c). The line is a valid command: it
//! creates the same trigger in the same state, and with `!` before it removes the trigger.
//!
//! Context: any. Printing never allocates; [`Program::difference`] does.

use core::fmt;

use crate::{
    alloc::{
        AllocError,
        Vec, //
    },
    bucket::Scale,
    lang::{
        Quantile,
        CLOCK, //
    },
    text::{
        lex::write_thousandths,
        Out, //
    },
    tracing_map::sort::Column, //
};

use super::{
    compare::Part,
    operand::halves,
    Action,
    Code,
    Field,
    Handler,
    Insn,
    Key,
    Modifier,
    Name,
    Op,
    Program, //
};

impl Program {
    /// Prints the whole line, newline included. `prefix` is the command's name, `text` the text of the trigger.
    pub fn write_line(
        &self,
        prefix: &[u8],
        text: &[u8],
        paused: bool,
        out: &mut dyn Out,
    ) -> fmt::Result {
        self.write_command(prefix, text, out)?;
        out.write_str(if paused { " [paused]\n" } else { " [active]\n" })
    }

    /// Prints the line without the state and the newline.
    pub fn write_command(&self, prefix: &[u8], text: &[u8], out: &mut dyn Out) -> fmt::Result {
        out.write_bytes(prefix)?;
        for part in Part::ALL {
            self.write_part(part, text, out)?;
        }
        Ok(())
    }

    /// Returns the index of the first byte, counted from the end of the command's name, at which the line of `other`,
    /// another trigger, differs from the line of `self`.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory for the lines.
    pub fn difference(
        &self,
        text: &[u8],
        other: &Program,
        other_text: &[u8],
    ) -> Result<usize, AllocError> {
        let mut line = Vec::new();
        let mut own = Vec::new();
        let mut at = 0;

        for part in Part::ALL {
            at = line.len();
            // Writing to the buffer fails only if there is no memory.
            other
                .write_part(part, other_text, &mut line)
                .map_err(|_| AllocError)?;
            if !self.same_part(part, text, other, other_text) {
                self.write_part(part, text, &mut own)
                    .map_err(|_| AllocError)?;
                break;
            }
        }

        let there = line.get(at..).unwrap_or(&[]);
        let same = there.iter().zip(own.iter()).take_while(|(a, b)| a == b);

        // Every part begins with a colon or a blank in both lines, so at least one byte is equal.
        Ok(at.saturating_add(same.count().max(1)))
    }

    fn write_part(&self, part: Part, text: &[u8], out: &mut dyn Out) -> fmt::Result {
        match part {
            Part::Name => {
                if let Some(name) = self.name(text) {
                    out.write_str(":name=")?;
                    out.write_bytes(name)?;
                }
            }
            Part::Keys => {
                out.write_str(":keys=")?;
                self.write_key_list(text, out)?;
            }
            Part::Vals => self.write_vals(text, out)?,
            Part::Vars => self.write_vars(text, out)?,
            Part::Sort => self.write_sort(text, out)?,
            Part::Table => self.write_table(text, out)?,
            Part::Actions => {
                for action in self.actions.iter() {
                    self.write_action(action, text, out)?;
                }
                if let Some(limit) = self.limit() {
                    write!(out, ":limit({}/{})", limit.actions, limit.unit)?;
                }
            }
            Part::Join => {
                for join in self.joins.iter() {
                    out.write_str(":join(")?;
                    self.write_keys(&join.keys, text, out)?;
                    out.write_str(")")?;
                }
            }
            Part::Quantiles => self.write_quantiles(out)?,
            Part::Others => {
                if self.others {
                    out.write_str(":others")?;
                }
            }
            Part::Expiry => {
                if let Some(expiry) = self.expiry() {
                    write!(out, ":expire({}{})", expiry.n, expiry.unit)?;
                }
            }
            Part::Overhead => self.write_overhead(out)?,
            Part::Filter => {
                if let Some(filter) = self.filter(text) {
                    out.write_str(" if ")?;
                    out.write_bytes(filter)?;
                }
            }
        }
        Ok(())
    }

    fn write_quantiles(&self, out: &mut dyn Out) -> fmt::Result {
        for (i, quantile) in self.quantiles().iter().enumerate() {
            out.write_str(if i == 0 { ":quantiles(" } else { "," })?;
            quantile.write(out)?;
        }
        match self.quantiles() {
            [] => Ok(()),
            _ => out.write_str(")"),
        }
    }

    fn write_overhead(&self, out: &mut dyn Out) -> fmt::Result {
        if !self.overhead {
            return Ok(());
        }

        out.write_str(":overhead")?;
        if let Some(budget) = self.budget {
            out.write_str("(")?;
            write_thousandths(budget.thousandths(), out)?;
            out.write_str("%)")?;
        }
        Ok(())
    }

    /// Prints the name of the column of a quantile; nothing if no key is folded.
    pub fn write_quantile(
        &self,
        quantile: Quantile,
        text: &[u8],
        out: &mut dyn Out,
    ) -> fmt::Result {
        let Some(key) = self.folded_key() else {
            return Ok(());
        };

        out.write_bytes(self.field_name(&key.field, text))?;
        out.write_str(".p")?;
        quantile.write(out)
    }

    fn write_table(&self, text: &[u8], out: &mut dyn Out) -> fmt::Result {
        let size = |bits| 1u64.checked_shl(bits).unwrap_or(0);

        write!(out, ":size={}", size(self.bits))?;
        if let Some(bits) = self.grows_to {
            write!(out, "..{}", size(bits))?;
        }
        if self.timestamps {
            out.write_str(":clock=")?;
            out.write_bytes(self.clock(text).unwrap_or(CLOCK))?;
        }
        if self.nohitcount {
            out.write_str(":nohitcount")?;
        }
        Ok(())
    }

    /// Prints the keys as they may be typed after `keys=`.
    pub fn write_key_list(&self, text: &[u8], out: &mut dyn Out) -> fmt::Result {
        self.write_keys(&self.keys, text, out)
    }

    fn write_keys(&self, keys: &[Key], text: &[u8], out: &mut dyn Out) -> fmt::Result {
        for (i, key) in keys.iter().enumerate() {
            if i > 0 {
                out.write_str(",")?;
            }
            self.write_field(&key.field, text, out)?;
        }
        Ok(())
    }

    fn write_vals(&self, text: &[u8], out: &mut dyn Out) -> fmt::Result {
        let mut comma = false;

        out.write_str(":vals=")?;
        // PARITY: C omits a hidden raw hitcount. A second plain hitcount would then be taken for the first one when the
        // line is parsed again.
        if !self.nohitcount || self.vals.iter().any(Field::is_plain_hitcount) {
            out.write_str("hitcount")?;
            comma = true;
        }
        for val in self.vals.iter() {
            if comma {
                out.write_str(",")?;
            }
            self.write_field(val, text, out)?;
            comma = true;
        }
        Ok(())
    }

    fn write_vars(&self, text: &[u8], out: &mut dyn Out) -> fmt::Result {
        for (i, var) in self.vars.iter().enumerate() {
            out.write_str(if i == 0 { ":" } else { "," })?;
            out.write_bytes(var.name.of(text))?;
            out.write_str("=")?;
            self.write_sorted(&var.field, text, out)?;
        }
        Ok(())
    }

    /// Prints a handler with its action.
    ///
    /// PARITY: `print_action_spec()` prints only the system of a qualified parameter of `save()`.
    fn write_action(&self, action: &Action, text: &[u8], out: &mut dyn Out) -> fmt::Result {
        write!(out, ":{}(", action.handler.word())?;
        match action.handler {
            Handler::Match { system, event } => {
                out.write_bytes(system.of(text))?;
                out.write_str(".")?;
                out.write_bytes(event.of(text))?;
            }
            Handler::Track { arg, .. } => out.write_bytes(arg.of(text))?,
        }
        out.write_str(").")?;
        out.write_bytes(action.word.of(text))?;
        out.write_str("(")?;
        for (i, param) in self.typed_of(action).enumerate() {
            if i > 0 {
                out.write_str(",")?;
            }
            out.write_bytes(param.of(text))?;
        }
        out.write_str(")")
    }

    fn write_sort(&self, text: &[u8], out: &mut dyn Out) -> fmt::Result {
        for (i, sort) in self.sort_keys().iter().enumerate() {
            out.write_str(if i == 0 { ":sort=" } else { "," })?;

            let (field, quantile) = match sort.column {
                Column::Sum(_) | Column::Made(_) => {
                    let mut columns = self.columns.iter();
                    let n = columns.position(|column| *column == sort.column);

                    (n.and_then(|n| self.vals.get(n)), None)
                }
                Column::Key { at, .. } => {
                    let mut keys = self.keys.iter();
                    let key = keys.find(|key| key.first_word() == at);
                    let n = at.checked_sub(self.key_words());

                    (
                        key.map(|key| &key.field),
                        n.and_then(|n| self.quantiles().get(n)),
                    )
                }
            };

            match (field, quantile) {
                (Some(field), _) => self.write_sorted(field, text, out)?,
                (None, Some(&quantile)) => self.write_quantile(quantile, text, out)?,
                (None, None) => out.write_str("hitcount")?,
            }
            if sort.descending {
                out.write_str(".descending")?;
            }
        }
        Ok(())
    }

    /// Prints the name of a value's column, with `.max` or the like.
    pub fn write_column(&self, field: &Field, text: &[u8], out: &mut dyn Out) -> fmt::Result {
        out.write_bytes(self.field_name(field, text))?;
        match field.modifier {
            Modifier::Stat(_) => field.modifier.write(out),
            _ => Ok(()),
        }
    }

    /// Prints the field in the form for `keys=` and `vals=`.
    ///
    /// PARITY: `hist_field_print()` prints the name of a CPU field twice, prints `common_comm` for the
    /// legacy `comm`, and omits the modifier of `common_stacktrace`.
    fn write_field(&self, field: &Field, text: &[u8], out: &mut dyn Out) -> fmt::Result {
        match field.op {
            Op::Const(value) => return write!(out, "{value}"),
            Op::Ref(index) if self.is_unqualified(index) => out.write_str("$")?,
            // A name that includes an event has its dollar sign already.
            Op::Own(n) if self.is_var_name(n, field.name, text) => out.write_str("$")?,
            _ => {}
        }
        out.write_bytes(self.field_name(field, text))?;
        field.modifier.write(out)
    }

    /// Prints the field in the form for `sort=` and for the definition of a variable.
    pub(super) fn write_sorted(
        &self,
        field: &Field,
        text: &[u8],
        out: &mut dyn Out,
    ) -> fmt::Result {
        match field.modifier {
            Modifier::Stacktrace => out.write_bytes(self.field_name(field, text)),
            _ => self.write_field(field, text, out),
        }
    }

    /// Returns whether a reference was typed without system and event.
    fn is_unqualified(&self, index: u8) -> bool {
        self.refs
            .get(usize::from(index))
            .is_some_and(|reference| reference.event.is_none())
    }

    /// Returns whether `name` is the bare name of variable `n`.
    fn is_var_name(&self, n: u8, name: Name, text: &[u8]) -> bool {
        self.vars
            .get(usize::from(n))
            .is_some_and(|var| var.name.of(text) == self.name_of(name, text))
    }

    /// Prints an expression in infix notation.
    ///
    /// PARITY: `expr_str()` prints the `.usecs` of an operand a second time after the expression, and
    /// nothing for the negation of a logarithm.
    pub(super) fn write_code(&self, code: Code, text: &[u8], out: &mut dyn Out) -> fmt::Result {
        self.write_insns(code.of(&self.code), text, out)
    }

    fn write_insns(&self, insns: &[Insn], text: &[u8], out: &mut dyn Out) -> fmt::Result {
        let Some((last, before)) = insns.split_last() else {
            return Ok(());
        };
        let operator = match last {
            Insn::Push(field) => return self.write_field(field, text, out),
            Insn::Neg => {
                out.write_str("-(")?;
                self.write_insns(before, text, out)?;
                return out.write_str(")");
            }
            Insn::Add => "+",
            Insn::Sub => "-",
            Insn::Mul => "*",
            Insn::Div => "/",
        };
        let (left, right) = halves(before);

        self.write_insns(left, text, out)?;
        out.write_str(operator)?;
        self.write_insns(right, text, out)
    }
}

impl Field {
    fn is_plain_hitcount(&self) -> bool {
        self.op == Op::One && self.modifier == Modifier::None
    }
}

impl Modifier {
    /// Prints the modifier with its dot.
    fn write(self, out: &mut dyn Out) -> fmt::Result {
        out.write_str(match self {
            Modifier::None => return Ok(()),
            Modifier::Hex => ".hex",
            Modifier::Sym => ".sym",
            Modifier::SymOffset => ".sym-offset",
            Modifier::Execname => ".execname",
            Modifier::Syscall => ".syscall",
            Modifier::Log2(Scale::POWERS) => ".log2",
            Modifier::Log2(scale) => return write!(out, ".log2={}", scale.get()),
            Modifier::Buckets(width) => return write!(out, ".buckets={width}"),
            Modifier::Usecs => ".usecs",
            Modifier::Percent => ".percent",
            Modifier::Graph => ".graph",
            Modifier::Stat(stat) => return write!(out, ".{}", stat.name()),
            Modifier::Stacktrace => ".stacktrace",
        })
    }
}
