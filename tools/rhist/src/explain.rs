// SPDX-License-Identifier: MIT OR Apache-2.0

//! A trigger in words, and where it is wrong.

use std::fmt::Write as _;

use crate::error::{Error, Result};

/// Says in words what a trigger does; the error has a caret under what is wrong.
pub fn explain(trigger: &str) -> Result<String> {
    Parser { whole: trigger }.explain().map_err(|wrong| {
        let before = trigger.get(..wrong.at).unwrap_or(trigger).chars().count();
        Error::new(format!(
            "{}\n  {trigger}\n  {}^",
            wrong.what,
            " ".repeat(before)
        ))
    })
}

/// What is wrong, and at which byte.
struct Wrong {
    at: usize,
    what: String,
}

fn wrong<T>(at: usize, what: impl Into<String>) -> std::result::Result<T, Wrong> {
    Err(Wrong {
        at,
        what: what.into(),
    })
}

/// A part of the trigger with its place.
#[derive(Clone, Copy)]
struct Part<'a> {
    at: usize,
    text: &'a str,
}

impl<'a> Part<'a> {
    /// The parts between separators that are not in parentheses.
    fn split(self, separator: char) -> Vec<Part<'a>> {
        let mut parts = Vec::new();
        let (mut depth, mut start) = (0u32, 0);
        for (i, c) in self.text.char_indices() {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ if c == separator && depth == 0 => {
                    parts.push(self.range(start, i));
                    start = i + c.len_utf8();
                }
                _ => {}
            }
        }
        parts.push(self.range(start, self.text.len()));
        parts
    }

    fn range(self, start: usize, end: usize) -> Part<'a> {
        Part {
            at: self.at + start,
            text: &self.text[start..end],
        }
    }

    fn from(self, start: usize) -> Part<'a> {
        self.range(start, self.text.len())
    }
}

struct Parser<'a> {
    whole: &'a str,
}

type Explained = std::result::Result<String, Wrong>;

impl Parser<'_> {
    fn explain(&self) -> Explained {
        let mut start = 0;
        let mut said = String::new();
        if self.whole.starts_with('!') {
            start = 1;
            said.push_str("Removes the trigger that does this:\n");
        }
        let all = Part {
            at: 0,
            text: self.whole.trim_end(),
        };
        let mut body = all.from(start);
        for end in [" [active]", " [paused]"] {
            body.text = body.text.strip_suffix(end).unwrap_or(body.text);
        }
        let (body, filter) = match body.text.find(" if ") {
            Some(at) => (body.range(0, at), Some(body.from(at + 4))),
            None => (body, None),
        };
        let parts = body.split(':');
        match parts[0].text {
            "hist" | "rhist" => {}
            other => {
                return wrong(
                    parts[0].at,
                    format!("a histogram begins with 'hist:', not with '{other}'"),
                )
            }
        }
        let (mut keys, mut lines) = (None, Vec::new());
        for &part in &parts[1..] {
            let line = self.part(part)?;
            match ["keys=", "key="]
                .iter()
                .any(|word| part.text.starts_with(word))
            {
                true => keys = Some(line),
                false => lines.push(line),
            }
        }
        let Some(keys) = keys else {
            return wrong(
                body.at + body.text.len(),
                "there are no keys: 'keys=FIELD' says by what hits are counted",
            );
        };
        let _ = writeln!(said, "{keys}");
        for line in lines {
            let _ = writeln!(said, "{line}");
        }
        match filter {
            Some(filter) if filter.text.trim().is_empty() => {
                return wrong(filter.at, "there is nothing behind 'if'")
            }
            Some(filter) => {
                let _ = writeln!(
                    said,
                    "Only records count for which this is true: {}.",
                    filter.text.trim()
                );
            }
            None => {}
        }
        Ok(said)
    }

    fn part(&self, part: Part<'_>) -> Explained {
        let text = part.text;
        if let Some((name, _)) = text.split_once('=').filter(|(name, _)| !name.contains('(')) {
            return self.assignment(part, name);
        }
        if let Some((name, rest)) = text.split_once('(') {
            if !rest.contains(')') {
                return wrong(
                    part.at + text.len(),
                    format!("the parenthesis of '{name}(' is not closed"),
                );
            }
            return self.call(part, name);
        }
        Ok(match text {
            "nohitcount" | "NOHC" => "The number of hits has no column.".into(),
            "pause" => "It is stopped.".into(),
            "cont" | "continue" => "It goes on.".into(),
            "clear" => "Its table is emptied.".into(),
            "" => return wrong(part.at, "there is nothing between two colons"),
            _ => return wrong(part.at, format!("'{text}' is no word of a histogram")),
        })
    }

    fn assignment(&self, part: Part<'_>, name: &str) -> Explained {
        let value = part.from(name.len() + 1);
        if value.text.is_empty() {
            return wrong(value.at, format!("there is nothing behind '{name}='"));
        }
        Ok(match name {
            "keys" | "key" => {
                let keys = value.split(',');
                if keys.len() > 3 {
                    return wrong(keys[3].at, "a table has at most three keys");
                }
                let keys = keys
                    .into_iter()
                    .map(key)
                    .collect::<std::result::Result<Vec<_>, _>>()?;
                format!(
                    "Counts the hits of the event, a row for each {}.",
                    and(&keys)
                )
            }
            "vals" | "val" | "values" => {
                let values = value.split(',');
                let values = values
                    .into_iter()
                    .map(sum)
                    .collect::<std::result::Result<Vec<_>, _>>()?;
                format!("Columns: {}.", and(&values))
            }
            "sort" => {
                let columns: Vec<String> = value
                    .split(',')
                    .iter()
                    .map(|column| match column.text.strip_suffix(".descending") {
                        Some(column) => format!("{column}, largest first"),
                        None => column.text.trim_end_matches(".ascending").to_owned(),
                    })
                    .collect();
                format!("Rows are in the order of {}.", and(&columns))
            }
            "size" => match value.text.parse::<u32>() {
                Ok(rows @ 128..=131_072) => format!(
                    "The table has room for {} rows; hits of new keys are dropped when it is full.",
                    rows.next_power_of_two()
                ),
                _ => return wrong(value.at, "the size is a number of rows from 128 to 131072"),
            },
            "name" => format!(
                "It shares the table '{}' with all triggers of this name.",
                value.text
            ),
            "clock" => format!("Times are by the clock '{}'.", value.text),
            _ if !name
                .chars()
                .all(|c| c.is_alphanumeric() || "_.$".contains(c))
                || name.is_empty() =>
            {
                return wrong(part.at, format!("'{name}' is no name for a variable"))
            }
            _ => {
                // Several variables may be defined behind one colon.
                let mut said = Vec::new();
                for one in part.split(',') {
                    let Some((name, expression)) = one.text.split_once('=') else {
                        return wrong(
                            one.at,
                            format!("'{}' is no definition of a variable", one.text),
                        );
                    };
                    said.push(format!(
                        "Keeps {} as ${name}.",
                        expression_in_words(expression)
                    ));
                }
                said.join(" ")
            }
        })
    }

    fn call(&self, part: Part<'_>, name: &str) -> Explained {
        let (inside, after) = part.text[name.len() + 1..]
            .split_once(')')
            .unwrap_or_default();
        Ok(match name {
            "join" => format!(
                "Variables of other triggers are found by {}.",
                inside.replace(',', " and ")
            ),
            "quantiles" => {
                for percent in part
                    .range(name.len() + 1, name.len() + 1 + inside.len())
                    .split(',')
                {
                    if let Err(what) = percent.text.parse::<crate::quantile::Percent>() {
                        return wrong(percent.at, what);
                    }
                }
                format!(
                    "Of the key with intervals it shows the percentiles {}.",
                    inside.replace(',', ", ")
                )
            }
            "onmatch" | "onmax" | "onchange" => {
                let when = match name {
                    "onmatch" => {
                        format!("When a start by {} was found", inside.replacen('.', ":", 1))
                    }
                    "onmax" => format!("When {inside} is larger than ever in this row"),
                    _ => format!("When {inside} is another one than before in this row"),
                };
                let Some(action) = after.strip_prefix('.') else {
                    return wrong(
                        part.at + part.text.len(),
                        format!("there is no action behind '{name}(..)'"),
                    );
                };
                format!("{when}, it {}.", action_in_words(action))
            }
            _ => return wrong(part.at, format!("'{name}(..)' is no word of a histogram")),
        })
    }
}

fn key(part: Part<'_>) -> Explained {
    let (field, modifier) = match part.text.rsplit_once('.') {
        Some((field, modifier)) if !field.is_empty() => (field, modifier),
        _ => (part.text, ""),
    };
    let at = part.at + field.len() + 1;
    Ok(match modifier.split_once('=').unwrap_or((modifier, "")) {
        ("", _) if field.is_empty() => return wrong(part.at, "there is a key without a name"),
        ("", _) if field == "common_stacktrace" || field == "stacktrace" => "kernel stack".into(),
        ("", _) => field.into(),
        ("hex", _) => format!("{field} (hexadecimal)"),
        ("sym" | "sym-offset", _) => format!("{field} (as a symbol)"),
        ("syscall", _) => format!("{field} (as the name of a system call)"),
        ("execname", _) => format!("{field} (with the name of the task)"),
        ("usecs", _) => format!("{field} (in microseconds)"),
        ("stacktrace", _) => format!("stack in {field}"),
        ("log2", "") => format!("power of two of {field}"),
        ("log2", parts) => match parts.parse::<u32>() {
            Ok(parts @ 0..=6) => format!("power of two of {field}, in {} parts", 1 << parts),
            _ => return wrong(at, "a power of two is in 2^N parts, N from 0 to 6"),
        },
        ("buckets" | "bucket", width) => match width.parse::<u64>() {
            Ok(1..) => format!("{width} numbers of {field}"),
            _ => return wrong(at, "'.buckets=' wants a width above 0"),
        },
        _ if field.chars().any(|c| "+-*/$".contains(c)) || part.text.contains('$') => {
            part.text.into()
        }
        _ => return wrong(at, format!("'.{modifier}' is no modifier of a key")),
    })
}

fn sum(part: Part<'_>) -> Explained {
    let (field, modifier) = part.text.rsplit_once('.').unwrap_or((part.text, ""));
    let what = match field {
        "hitcount" => "the number of hits".to_owned(),
        _ => format!("the sum of {field}"),
    };
    Ok(match modifier {
        "" if field.is_empty() => return wrong(part.at, "there is a value without a name"),
        "" => what,
        "hex" => format!("{what} (hexadecimal)"),
        "usecs" => format!("{what} (in microseconds)"),
        "percent" => format!("{what} as a share"),
        "graph" => format!("{what} as a bar"),
        _ if part.text.contains(['+', '-', '*', '/', '$']) => format!("the sum of {}", part.text),
        _ => {
            return wrong(
                part.at + field.len() + 1,
                format!("'.{modifier}' is no modifier of a value"),
            )
        }
    })
}

fn expression_in_words(expression: &str) -> String {
    match expression.strip_suffix(".usecs").unwrap_or(expression) {
        "common_timestamp" => "the time".into(),
        "common_stacktrace" => "the stack".into(),
        time if time.starts_with("common_timestamp") && time.contains("-$") => {
            let since = time.split_once('-').map_or("", |(_, since)| since);
            format!("the time since {since}")
        }
        other => other.to_owned(),
    }
}

fn action_in_words(action: &str) -> String {
    let (name, inside) = action.split_once('(').unwrap_or((action, ""));
    let inside = inside.trim_end_matches(')');
    match name {
        "save" => format!("keeps {} with the row", inside.replace(',', ", ")),
        "snapshot" => "takes a snapshot of the trace buffer".into(),
        "trace" => {
            let (event, fields) = inside.split_once(',').unwrap_or((inside, ""));
            format!(
                "generates the event {event} of {}",
                fields.replace(',', ", ")
            )
        }
        event => format!(
            "generates the event {event} of {}",
            inside.replace(',', ", ")
        ),
    }
}

/// A list in words.
fn and(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_are_explained() {
        let said = explain("hist:keys=call_site.sym,common_pid.execname:vals=bytes_req:sort=bytes_req.descending:size=4096 if bytes_req > 8").unwrap();
        assert_eq!(
            said,
            "Counts the hits of the event, a row for each call_site (as a symbol) and common_pid (with the name of the task).\n\
             Columns: the sum of bytes_req.\n\
             Rows are in the order of bytes_req, largest first.\n\
             The table has room for 4096 rows; hits of new keys are dropped when it is full.\n\
             Only records count for which this is true: bytes_req > 8.\n"
        );
        let said = explain("hist:join(next_pid):lat=common_timestamp.usecs-$ts0:keys=next_comm,$lat.log2=3:quantiles(50,99)").unwrap();
        assert!(said.contains("power of two of $lat, in 8 parts"), "{said}");
        assert!(
            said.contains("Keeps the time since $ts0 as $lat."),
            "{said}"
        );
        assert!(said.contains("percentiles 50, 99"), "{said}");
        let said = explain("!hist:keys=next_pid:lat=common_timestamp-$ts0:onmatch(sched.sched_waking).trace(wakeup,$lat,next_pid) [active]").unwrap();
        assert!(said.starts_with("Removes the trigger"), "{said}");
        assert!(
            said.contains("it generates the event wakeup of $lat, next_pid."),
            "{said}"
        );
        assert!(
            explain("hist:keys=x:ts0=common_timestamp,st=common_stacktrace")
                .unwrap()
                .contains("Keeps the stack as $st.")
        );
    }

    #[test]
    fn a_caret_shows_what_is_wrong() {
        let caret = |trigger: &str, under: &str| {
            let said = explain(trigger).unwrap_err().to_string();
            let caret = said.lines().last().unwrap().find('^').unwrap() - 2;
            assert_eq!(
                &trigger[caret..(caret + under.len()).min(trigger.len())],
                under,
                "{said}"
            );
        };
        caret("histo:keys=x", "histo");
        caret("hist:vals=x", "");
        caret("hist:keys=a,b,c,d", "d");
        caret("hist:keys=a.log3", "log3");
        caret("hist:keys=a.log2=7", "log2=7");
        caret("hist:keys=a:size=5", "5");
        caret("hist:keys=a:quantiles(50,0)", "0)");
        caret("hist:keys=a:frobnicate", "frobnicate");
        caret("hist:keys=a:onmax($x)", "");
        caret("hist:keys=a:join(x", "");
        caret("hist:keys=a::pause", ":pause");
        caret("hist:keys=a:vals=b.bar", "bar");
    }
}
