// SPDX-License-Identifier: GPL-2.0

//! Explains a trigger in words, from the program that the module's compiler makes of it.

use std::fmt::{
    self,
    Write as _, //
};

use rust_hist::{
    error::Refusal,
    lang::{
        EnableSpec,
        Modifier,
        Update, //
    },
    program::{
        Action,
        ActionKind,
        ArgSource,
        Field,
        Handler,
        Kind,
        Op,
        Program, //
    },
    text::Out,
    tracing_map::sort::Column, //
};

use crate::any;

/// Says in words what a trigger does; the error has a caret under the mistake.
pub(crate) fn explain(trigger: &str) -> Result<String, String> {
    let line = trigger.trim_end();
    let (removes, command) = match line.strip_prefix('!') {
        Some(command) => (true, command),
        None => (false, line),
    };
    let Some((prefix, text)) = command.split_once(':') else {
        return Err(caret(trigger, 0, "a trigger begins with 'hist:'"));
    };
    let said = match prefix {
        "hist" | "rhist" => match any::compile(prefix.as_bytes(), text.as_bytes()) {
            Ok(program) => Words {
                program: &program,
                text: text.as_bytes(),
            }
            .all(),
            Err(refusal) => return Err(refused(trigger, usize::from(removes), &refusal)),
        },
        "enable_hist" | "disable_hist" | "enable_rhist" | "disable_rhist" => {
            match switch(prefix.starts_with("enable"), text) {
                Some(said) => said,
                None => {
                    let what = format!("it is '{prefix}:SYSTEM:EVENT[:COUNT] [if FILTER]'");
                    return Err(caret(trigger, prefix.len() + 1, &what));
                }
            }
        }
        _ => {
            let what = format!("a histogram begins with 'hist:', not with '{prefix}:'");
            return Err(caret(trigger, usize::from(removes), &what));
        }
    };

    Ok(match removes {
        true => format!("Removes the trigger that does this:\n{said}"),
        false => said,
    })
}

/// A message with the trigger and a caret under this byte of it.
fn caret(trigger: &str, at: usize, what: &str) -> String {
    let before = trigger.get(..at).unwrap_or(trigger).chars().count();

    format!("{what}\n  {trigger}\n  {}^", " ".repeat(before))
}

/// Returns the message that the module would log for a refusal.
fn refused(trigger: &str, first: usize, refusal: &Refusal) -> String {
    let Some(entry) = refusal.entry() else {
        return caret(trigger, first, "it cannot be compiled");
    };
    let mut what = entry.kind.text().to_string_lossy().into_owned();

    if !refusal.detail().is_empty() {
        let _ = write!(what, ": {}", String::from_utf8_lossy(refusal.detail()));
    }
    caret(trigger, first + usize::from(entry.at), &what)
}

/// What `enable_hist` and `disable_hist` do.
fn switch(enables: bool, text: &str) -> Option<String> {
    let spec = EnableSpec::parse(text.as_bytes()).ok()?;
    let (limit, filter) = (spec.limit().ok()?, spec.filter().ok()?);
    let word = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut said = format!(
        "Each hit has the histograms of {}:{} {}.\n",
        word(spec.system),
        word(spec.event),
        if enables { "go on" } else { "stop" }
    );

    if limit != rust_hist::lang::ENABLE_UNLIMITED {
        let _ = writeln!(said, "It does so {limit} times.");
    }
    if let Some(filter) = filter {
        let _ = writeln!(
            said,
            "Only records count for which this is true: {}.",
            word(filter)
        );
    }
    Some(said)
}

/// Collects the module's output.
#[derive(Default)]
struct Printed(Vec<u8>);

impl fmt::Write for Printed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.write_bytes(text.as_bytes())
    }
}

impl Out for Printed {
    fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// A compiled trigger, and its text.
struct Words<'p> {
    program: &'p Program,
    text: &'p [u8],
}

impl Words<'_> {
    fn all(&self) -> String {
        let program = self.program;
        let keys = and(program.keys.iter().map(|key| self.key(&key.field)));
        let mut said = format!("Counts the hits of the event, a row for each {keys}.\n");
        let mut line = |text: String| {
            said.push_str(&text);
            said.push('\n');
        };

        if !program.vals.is_empty() {
            let vals = and(program.vals.iter().map(|val| self.value(val)));
            line(format!("Columns: {vals}."));
        }
        if program.nohitcount {
            line("The number of hits has no column.".to_owned());
        }
        for var in program.vars.iter() {
            let name = self.of(var.name.of(self.text));
            line(format!("Keeps {} as ${name}.", self.expression(&var.field)));
        }
        if let Some(join) = self.join() {
            line(format!("Variables of other triggers are found by {join}."));
        }
        for action in program.actions.iter() {
            line(self.action(action));
        }
        if let Some(limit) = program.limit() {
            let unit = match limit.unit {
                's' => "second",
                'm' => "minute",
                _ => "hour",
            };
            line(format!(
                "Actions run at most {} times a {unit}.",
                limit.actions
            ));
        }
        if let Some(folded) = program.folded_key() {
            let percentiles = and(program.quantiles().iter().map(|quantile| {
                let mut text = Printed::default();
                let _ = quantile.write(&mut text);
                self.of(&text.0)
            }));
            let name = self.name(&folded.field);
            line(format!(
                "Of {name} it shows the percentiles {percentiles}, in place of rows."
            ));
        }
        if let Some(sorted) = self.sort() {
            line(format!("Rows are in the order of {sorted}."));
        }
        line(self.size());
        if let Some(expiry) = program.expiry() {
            line(format!(
                "A row is forgotten after {}{}, or after twice as long, if nobody has taken its variables.",
                expiry.n, expiry.unit
            ));
        }
        if let Some(name) = program.name(self.text) {
            let name = self.of(name);
            line(format!(
                "It shares the table '{name}' with all triggers of this name."
            ));
        }
        if let Some(clock) = program.clock(self.text).filter(|_| program.timestamps) {
            line(format!("Times are by the clock '{}'.", self.of(clock)));
        }
        match (program.overhead, program.budget) {
            (_, Some(budget)) => {
                let thousandths = budget.thousandths();
                let share = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
                let share = share.trim_end_matches('0').trim_end_matches('.');
                line(format!(
                    "It measures what it costs, and pauses above {share} % of all CPUs."
                ));
            }
            (true, None) => line("It measures what it costs.".to_owned()),
            _ => {}
        }
        match program.update {
            Some(Update::Continue) => line("It goes on.".to_owned()),
            Some(Update::Clear) => line("Its table is emptied.".to_owned()),
            None if !program.starts_paused => {}
            Some(Update::Pause) | None => line("It is stopped.".to_owned()),
        }
        if let Some(filter) = program.filter(self.text) {
            line(format!(
                "Only records count for which this is true: {}.",
                self.of(filter).trim()
            ));
        }
        said
    }

    fn of(&self, bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// The name of a column, without its modifier.
    fn name(&self, field: &Field) -> String {
        let name = self.of(self.program.field_name(field, self.text));

        match field.op {
            Op::Own(_) if !name.starts_with('$') => format!("${name}"),
            _ => name,
        }
    }

    fn key(&self, field: &Field) -> String {
        let name = self.name(field);

        match field.modifier {
            _ if name.ends_with("stacktrace") => "kernel stack".to_owned(),
            Modifier::Stacktrace => format!("stack in {name}"),
            Modifier::Hex => format!("{name} (hexadecimal)"),
            Modifier::Sym | Modifier::SymOffset => format!("{name} (as a symbol)"),
            Modifier::Syscall => format!("{name} (as the name of a system call)"),
            Modifier::Execname => format!("{name} (with the name of the task)"),
            Modifier::Usecs => format!("{name} (in microseconds)"),
            Modifier::Log2(scale) if scale.get() == 0 => format!("power of two of {name}"),
            Modifier::Log2(scale) => {
                format!("power of two of {name}, in {} parts", 1u32 << scale.get())
            }
            Modifier::Buckets(width) => format!("{width} numbers of {name}"),
            _ => name,
        }
    }

    fn value(&self, field: &Field) -> String {
        let name = self.name(field);
        let sum = match name.as_str() {
            "hitcount" => "the number of hits".to_owned(),
            _ => format!("the sum of {name}"),
        };

        match field.modifier {
            Modifier::Hex => format!("{sum} (hexadecimal)"),
            Modifier::Usecs => format!("{sum} (in microseconds)"),
            Modifier::Percent => format!("{sum} as a share"),
            Modifier::Graph => format!("{sum} as a bar"),
            Modifier::Stat(stat) => match stat.name() {
                "sum" => sum,
                "min" => format!("the smallest {name}"),
                "max" => format!("the largest {name}"),
                "avg" => format!("the mean of {name}"),
                _ => format!("the standard deviation of {name}"),
            },
            _ => sum,
        }
    }

    /// Describes the value of a variable.
    fn expression(&self, field: &Field) -> String {
        let name = self.name(field);
        let plain = name.strip_suffix(".usecs").unwrap_or(&name);

        match plain.strip_prefix("common_timestamp") {
            _ if field.kind == Kind::Stack => "the stack".to_owned(),
            Some("") => "the time".to_owned(),
            Some(since) if plain.contains("-$") => {
                let since = since.split_once('-').map_or("", |(_, since)| since);

                format!("the time since {since}")
            }
            _ => self.key(field),
        }
    }

    /// The fields of `join()`.
    fn join(&self) -> Option<String> {
        let own = self.program.keys.iter().map(|key| &key.field);
        let looked = self.program.lookup_keys().iter().map(|key| &key.field);

        if own.clone().eq(looked.clone()) || self.program.refs.is_empty() {
            return None;
        }
        Some(and(looked.map(|field| self.name(field))))
    }

    fn action(&self, action: &Action) -> String {
        let when = match action.handler {
            Handler::Match { system, event } => format!(
                "When a start by {}:{} was found",
                self.of(system.of(self.text)),
                self.of(event.of(self.text))
            ),
            Handler::Track { arg, .. } => {
                let arg = self.of(arg.of(self.text));
                let mut parts = arg.split(',');
                let name = parts.next().unwrap_or_default();

                match (action.handler.word(), parts.next(), parts.next()) {
                    ("onmax", ..) => format!("When {name} is larger than ever in this row"),
                    ("onover", limit, back) => {
                        let limit = limit.unwrap_or_default();
                        let back = back.map_or(String::new(), |back| {
                            format!(", by {back} at least before it can do so again")
                        });

                        format!("When {name} rises above {limit}, having been below{back}")
                    }
                    (_, Some(delta), _) => format!(
                        "When {name} differs by {delta} or more from the last one of this row"
                    ),
                    _ => format!("When {name} is another one than before in this row"),
                }
            }
        };
        let does = match action.kind {
            ActionKind::Save => {
                let saves = self.program.saves.iter();
                let saved = and(saves.map(|save| self.of(save.name.of(self.text))));

                format!("keeps {saved} with the row")
            }
            ActionKind::Snapshot => "takes a snapshot of the trace buffer".to_owned(),
            ActionKind::Trace { event, .. } => {
                let event = self.of(event.of(self.text));
                let args = and(self.program.args_of(action).iter().map(|arg| {
                    let name = self.of(arg.name.of(self.text));

                    match arg.source {
                        ArgSource::Field(_) => name,
                        _ if name.starts_with('$') => name,
                        _ => format!("${name}"),
                    }
                }));

                format!("generates the event {event} of {args}")
            }
        };

        format!("{when}, it {does}.")
    }

    /// The columns by which rows are sorted, unless it is the one that nobody has to name.
    fn sort(&self) -> Option<String> {
        let program = self.program;
        let keys = program.sort_keys();
        let named = and(keys.iter().map(|sort| {
            let (field, other) = match sort.column {
                Column::Sum(_) | Column::Made(_) => {
                    let mut columns = program.columns.iter().zip(program.vals.iter());
                    let found = columns.find(|(column, _)| **column == sort.column);

                    (found.map(|(_, val)| val), "hitcount")
                }
                Column::Key { at, .. } => {
                    let found = program.keys.iter().find(|key| key.first_word() == at);

                    (found.map(|key| &key.field), "a percentile")
                }
            };
            let name = field.map_or_else(|| other.to_owned(), |field| self.name(field));

            match sort.descending {
                true => format!("{name}, largest first"),
                false => name,
            }
        }));

        (named != "hitcount").then_some(named)
    }

    fn size(&self) -> String {
        let rows = |bits: u32| 1u64 << bits;
        let first = rows(self.program.bits);
        let others = match self.program.others {
            true => "hits of new keys are summed in a row of their own",
            false => "hits of new keys are dropped",
        };

        match self.program.grows_to {
            Some(bits) => format!(
                "The table has room for {first} rows and grows up to {}; {others} when it is full.",
                rows(bits)
            ),
            None => format!("The table has room for {first} rows; {others} when it is full."),
        }
    }
}

/// A list in words.
fn and(words: impl Iterator<Item = String>) -> String {
    let mut words: Vec<String> = words.collect();

    match (words.pop(), words.is_empty()) {
        (Some(last), false) => format!("{} and {last}", words.join(", ")),
        (one, _) => one.unwrap_or_default(),
    }
}
