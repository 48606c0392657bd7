// SPDX-License-Identifier: GPL-2.0

//! The parser of a command's text: the filter, the parameters, and the modifier of a field.
//!
//! C counterpart: `event_hist_trigger_parse()`, `parse_hist_trigger_attrs()` and `parse_field()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//! The checks are in the order of C, so a text with two mistakes is refused for the same mistake.
//!
//! Context: process.

use core::num::NonZeroU64;

use crate::{
    alloc::{
        AllocError,
        Vec, //
    },
    bucket::{
        ceil_log2,
        Scale, //
    },
    error::{
        ErrKind,
        Errno,
        Refusal, //
    },
    expiry::Expiry,
    limits::{
        BITS_MAX,
        BITS_MIN,
        GROWN_BITS_MAX, //
    },
    overhead::Budget,
    rate::Limit,
    stat::Stat,
    text::{
        lex::{
            find,
            is_blank,
            number,
            position,
            split_before,
            thousandths,
            trim,
            Nearest,
            Split, //
        },
        Span, //
    }, //
};

use super::{
    quantiles::{
        self,
        QUANTILES, //
    },
    spec::{
        CommandText,
        HistSpec,
        Modifier,
        Usage, //
    }, //
};

/// The prefixes by which a token is recognised as a handler.
pub(crate) const ON_MATCH: &[u8] = b"onmatch(";
pub(crate) const ON_MAX: &[u8] = b"onmax(";
pub(crate) const ON_CHANGE: &[u8] = b"onchange(";
pub(crate) const ON_OVER: &[u8] = b"onover(";
/// The prefix of `join()`, which lists the fields by which variables of other triggers are looked up.
const JOIN: &[u8] = b"join(";
const HANDLERS: [&[u8]; 4] = [ON_MATCH, ON_MAX, ON_CHANGE, ON_OVER];
/// The prefix of `limit()`, which bounds how often actions run.
const LIMIT: &[u8] = b"limit(";
/// The prefix of `expire()`, which says how long a start without an end is kept.
pub(crate) const EXPIRE: &[u8] = b"expire(";
/// The word that makes the cost of a trigger measured, and its prefix with a budget.
const OVERHEAD: &[u8] = b"overhead";
const OVERHEAD_UP_TO: &[u8] = b"overhead(";

/// The word between the parameters and the filter.
const IF: &[u8] = b"if";

/// The text between the two sizes of a table that may grow.
const RANGE: &[u8] = b"..";

/// The hint that follows a message about a word with a blank in it.
pub(crate) const BLANK: &[u8] = b"a blank is part of the word, a colon ends a parameter";

/// The end of a line that continues in the next one.
const LINE_END: &[u8] = b"\\\n";

/// The prefix of the modifier `.log2` with a scale.
const LOG2: &[u8] = b"log2=";

/// The states that end a trigger line.
const ACTIVE: &[u8] = b" [active]";
const PAUSED: &[u8] = b" [paused]";

/// Parses `text`, which follows the command's name and the colon.
///
/// `prefix` is the command's name; the columns of error messages count it and the colon. As in C, the
/// first NUL of `text`, if there is one, ends it.
///
/// # Errors
///
/// A [`Refusal`] with the errno for the writer and, as in C, the message and the column for `error_log`.
///
/// # Examples
///
/// ```
/// use rust_hist::{
///     error::{ErrKind, Refusal},
///     lang::{parse, Update},
/// };
///
/// let spec = parse(b"hist", b"keys=next_pid:size=256:pause")?;
/// assert_eq!(spec.update(), Some(Update::Pause));
///
/// let refusal = parse(b"hist", b"keys=next_pid:size=3").expect_err("too small");
/// let message = refusal.entry().map(|entry| (entry.kind, entry.at));
/// assert_eq!(message, Some((ErrKind::InvalidSize, 24)));
/// # Ok::<(), Refusal>(())
/// ```
// Not inlined: the state of the parser is on its stack.
#[inline(never)]
pub fn parse<'t>(prefix: &'t [u8], text: &'t [u8]) -> Result<HistSpec<'t>, Refusal> {
    let text = split_before(text, |b| b == 0).0;
    let whole = CommandText::new(prefix, text, Span::whole(text));

    if text.is_empty() {
        return Err(whole.refuse(ErrKind::NoKeys, Span::whole(text)));
    }

    let (params, filter) = split_filter(text).map_err(|at| whole.refuse(ErrKind::NoFilter, at))?;
    let (params, filter, paused) = without_state(text, params, filter);
    let mut spec = HistSpec::new(CommandText::new(prefix, text, params), filter);

    spec.paused = paused;

    for token in Split::new(text, params, b':') {
        parameter(&mut spec, token)?;
    }

    match spec.keys.is_empty() {
        true => Err(whole.refuse(ErrKind::NoKeys, params)),
        false => Ok(spec),
    }
}

/// Joins the lines of a text: a backslash at the end of a line continues it in the next one. Blanks after that, and
/// blanks next to a colon or a comma, are dropped. Returns `None` for a text of one line.
///
/// PARITY: in C, backslashes and newlines are part of a word, so only the definition of a variable with such a name is
/// accepted.
///
/// # Errors
///
/// [`AllocError`] if there is no memory.
///
/// # Examples
///
/// ```
/// use rust_hist::lang::in_one_line;
///
/// let line = in_one_line(b"keys=pid: \\\n   vals=prio \\\n   if prio > 1").expect("memory");
/// assert_eq!(line.as_deref(), Some(&b"keys=pid:vals=prio if prio > 1"[..]));
/// assert!(in_one_line(b"keys=pid: vals=prio").expect("memory").is_none());
/// ```
pub fn in_one_line(text: &[u8]) -> Result<Option<Vec<u8>>, AllocError> {
    let end = match split_filter(text) {
        Ok((_, Some(filter))) => filter.start,
        _ => text.len(),
    };
    let (mut rest, filter) = text.split_at_checked(end).unwrap_or((text, b""));
    let mut line = Vec::new();

    if find(rest, LINE_END).is_none() {
        return Ok(None);
    }
    while let Some(at) = find(rest, LINE_END) {
        let (before, behind) = rest.split_at_checked(at).unwrap_or((rest, b""));
        let behind = behind.get(LINE_END.len()..).unwrap_or(b"");

        line.extend_from_slice(before)?;
        let last = line.iter().rposition(|&byte| !is_blank(byte));

        if let Some(last) = last.filter(|&last| matches!(line.get(last), Some(b':' | b','))) {
            line.truncate(last.saturating_add(1));
        }
        rest = split_before(behind, |byte| !is_blank(byte)).1;
    }
    line.extend_from_slice(rest)?;
    line.extend_from_slice(filter)?;
    Ok(Some(line))
}

/// Splits the text at the first word `if` between blanks. The filter is the text after that word and a blank. If
/// nothing precedes or follows the word, the error is the word.
fn split_filter(text: &[u8]) -> Result<(Span, Option<Span>), Span> {
    let whole = Span::whole(text);

    for (at, window) in text.windows(IF.len()).enumerate() {
        if window != IF {
            continue;
        }

        let word = whole.skip(at);
        let Some(before) = at.checked_sub(1) else {
            return Err(word);
        };

        if !text.get(before).copied().is_some_and(is_blank) {
            continue;
        }

        let [blank, _, ..] = word.skip(IF.len()).of(text) else {
            return Err(word);
        };

        if !is_blank(*blank) {
            continue;
        }

        let condition = trim(text, word);
        let filter = condition.skip(IF.len()).skip(1);

        // The word is followed by nothing but blanks.
        if filter.is_empty() {
            return Err(word);
        }
        return Ok((trim(text, whole.first(before)), Some(filter)));
    }

    Ok((whole, None))
}

/// Removes the state from the end of a trigger line: returns the parameters, the filter, and whether
/// the state is `[paused]`.
///
/// Without a filter, the text before the state must end as a trigger line does. A line never ends in
/// its name, which may be any text, so a name that ends in ` [active]` is left alone.
///
/// PARITY: C refuses a line with its state unless it ends in an action, since `action_parse()` ignores the text after
/// the closing parenthesis. No filter that C accepts ends in a state: it ends in a closing parenthesis, a value in
/// quotes or braces, a number, or a function's name.
fn without_state(text: &[u8], params: Span, filter: Option<Span>) -> (Span, Option<Span>, bool) {
    let last = filter.unwrap_or(params);
    let cut = |state: &[u8]| {
        let rest = last.of(text).strip_suffix(state)?;
        let ends = match filter {
            Some(_) => !rest.is_empty(),
            None => ends_line(rest),
        };

        ends.then(|| last.first(rest.len()))
    };
    let (last, paused) = match (cut(ACTIVE), cut(PAUSED)) {
        (Some(last), _) => (last, false),
        (None, Some(last)) => (last, true),
        (None, None) => (last, false),
    };

    match filter {
        Some(_) => (params, Some(last), paused),
        None => (last, None, paused),
    }
}

/// Returns whether a trigger line without a filter can end as `params` ends.
fn ends_line(params: &[u8]) -> bool {
    let last = params.rsplit(|&byte| byte == b':').next().unwrap_or(params);

    last.starts_with(b"size=")
        || last.starts_with(b"clock=")
        || last == b"nohitcount"
        || last == OVERHEAD
        || last == b"others"
        || last.ends_with(b")")
}

/// Parses one parameter, `token`; colons separate the tokens.
fn parameter(spec: &mut HistSpec<'_>, token: Span) -> Result<(), Refusal> {
    let command = spec.command;
    let text = command.text();
    let Some(at) = position(token.of(text), b'=') else {
        return flag(spec, token);
    };
    let right = token.skip(at).skip(1);

    if right.is_empty() {
        return Err(command.refuse(ErrKind::EmptyAssignment, token));
    }
    match token.first(at).of(text) {
        b"key" | b"keys" => spec.keys = right,
        b"val" | b"vals" | b"values" => spec.vals = Some(right),
        b"sort" => spec.sort = Some(right),
        b"size" => {
            spec.size = right;
            (spec.bits, spec.grows_to) = sizes(&command, right)?;
        }
        b"name" => spec.name = Some(token),
        b"clock" => spec.clock = Some(trim(text, right)),
        _ => spec
            .vars
            .push(token)
            .map_err(|_| command.refuse(ErrKind::TooManyVars, token))?,
    }
    Ok(())
}

/// Parses a token without `=`.
fn flag(spec: &mut HistSpec<'_>, token: Span) -> Result<(), Refusal> {
    let command = spec.command;

    match token.of(command.text()) {
        b"nohitcount" | b"NOHC" => spec.nohitcount = true,
        b"pause" => spec.pause = true,
        b"cont" | b"continue" => spec.cont = true,
        b"clear" => spec.clear = true,
        b"others" => spec.others = Some(token),
        word if word.starts_with(QUANTILES) => {
            spec.quantiles = (
                token,
                quantiles::parse(&command, token.skip(QUANTILES.len()))?,
            );
        }
        word if HANDLERS.iter().any(|handler| word.starts_with(handler)) => spec
            .actions
            .push(token)
            .map_err(|_| command.refuse(ErrKind::TooManyActions, token))?,
        word if word.starts_with(LIMIT) => spec.limit = Some((token, limit(&command, token)?)),
        word if word.starts_with(EXPIRE) => spec.expiry = Some(expiry(&command, token)?),
        OVERHEAD => (spec.overhead, spec.budget) = (true, None),
        word if word.starts_with(OVERHEAD_UP_TO) => {
            (spec.overhead, spec.budget) = (true, Some(budget(&command, token)?));
        }
        word if word.starts_with(JOIN) => {
            let list = token.skip(JOIN.len());

            spec.join = match word.strip_suffix(b")") {
                Some(_) => Some(list.first(list.len().saturating_sub(1))),
                None => return Err(command.refuse(ErrKind::NoClosingParen, token)),
            };
        }
        _ => return Err(unknown(spec, token)),
    }
    Ok(())
}

/// Returns the refusal of a word that is no parameter, with the nearest parameter as a hint.
fn unknown(spec: &HistSpec<'_>, token: Span) -> Refusal {
    const WORDS: [&[u8]; 7] = [
        b"nohitcount",
        b"pause",
        b"cont",
        b"continue",
        b"clear",
        b"others",
        OVERHEAD,
    ];
    let command = &spec.command;
    let word = token.of(command.text());
    let refusal = command.refuse(ErrKind::UnknownWord, token);
    let mut nearest = Nearest::to(word);

    WORDS.into_iter().for_each(|word| nearest.offer(word));
    if word.iter().copied().any(is_blank) {
        refusal.detailed(&[BLANK])
    } else if let Some(word) = nearest.word() {
        refusal.detailed(&[b"did you mean ", word])
    } else if spec
        .params(b"key=")
        .chain(spec.params(b"keys="))
        .next()
        .is_none()
    {
        refusal.detailed(&[b"did you mean keys=", word])
    } else {
        refusal
    }
}

/// Parses `limit(N/UNIT)`.
fn limit(command: &CommandText<'_>, token: Span) -> Result<Limit, Refusal> {
    let list = token.skip(LIMIT.len());
    let limit = match list.of(command.text()) {
        [actions @ .., b'/', unit, b')'] => number(actions)
            .ok()
            .and_then(|actions| Limit::new(actions, *unit)),
        _ => None,
    };

    limit.ok_or(command.refuse(ErrKind::InvalidLimit, list))
}

/// Parses `expire(T)`.
fn expiry(command: &CommandText<'_>, token: Span) -> Result<Expiry, Refusal> {
    let list = token.skip(EXPIRE.len());
    let time = list.of(command.text()).strip_suffix(b")");
    let parsed = time.and_then(|time| {
        // The unit is the text after the last digit.
        let digit = time.iter().rposition(u8::is_ascii_digit)?;
        let (n, unit) = time.split_at_checked(digit.saturating_add(1))?;

        Expiry::new(number(n).ok()?, unit)
    });

    parsed.ok_or(command.refuse(ErrKind::InvalidExpiry, list))
}

/// Parses `overhead(P%)`.
fn budget(command: &CommandText<'_>, token: Span) -> Result<Budget, Refusal> {
    let list = token.skip(OVERHEAD_UP_TO.len());
    let percentage = list.of(command.text()).strip_suffix(b"%)");

    percentage
        .and_then(thousandths)
        .and_then(Budget::new)
        .ok_or(command.refuse(ErrKind::InvalidBudget, list))
}

/// Parses the text after `size=`: returns log2 of the number of entries and, for a range `A..B`, log2 of its end.
fn sizes(command: &CommandText<'_>, size: Span) -> Result<(u32, Option<u32>), Refusal> {
    let text = command.text();
    let bits = |kind, at: Span, most| {
        map_bits(at.of(text), most).map_err(|errno| command.explain(errno, kind, at))
    };
    let Some(at) = find(size.of(text), RANGE) else {
        return Ok((bits(ErrKind::InvalidSize, size, BITS_MAX)?, None));
    };
    let (first, last) = (size.first(at), size.skip(at).skip(RANGE.len()));
    let kind = ErrKind::InvalidSizes;
    let range = (
        bits(kind, first, GROWN_BITS_MAX)?,
        Some(bits(kind, last, GROWN_BITS_MAX)?),
    );

    // Both texts have been parsed as numbers already.
    match number(first.of(text)).ok() > number(last.of(text)).ok() {
        true => Err(command.refuse(kind, first)),
        false => Ok(range),
    }
}

/// Returns log2 of the number of entries given by `text`, rounded up; at most `most`.
fn map_bits(text: &[u8], most: u32) -> Result<u32, Errno> {
    // CAST: at most 64.
    let bits = ceil_log2(number(text)?) as u32;

    match (BITS_MIN..=most).contains(&bits) {
        true => Ok(bits),
        false => Err(Errno::Einval),
    }
}

impl HistSpec<'_> {
    /// Splits an atom at its first dot into the field's name and its modifier.
    pub(crate) fn name_and_modifier(&self, atom: Span) -> (Span, Option<Span>) {
        let mut parts = Split::new(self.command.text(), atom, b'.');
        let name = parts.next().unwrap_or(atom);

        (name, parts.rest())
    }

    /// Parses `modifier` of the field `name`.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] that points to the invalid part.
    pub(crate) fn modifier(
        &self,
        name: Span,
        modifier: Span,
        usage: Usage,
    ) -> Result<Modifier, Refusal> {
        const WORDS: [(&[u8], Modifier); 8] = [
            (b"hex", Modifier::Hex),
            (b"sym", Modifier::Sym),
            (b"symXoffset", Modifier::SymOffset),
            (b"execname", Modifier::Execname),
            (b"syscall", Modifier::Syscall),
            (b"stacktrace", Modifier::Stacktrace),
            (b"log2", Modifier::Log2(Scale::POWERS)),
            (b"usecs", Modifier::Usecs),
        ];
        let command = &self.command;

        for (word, meaning) in WORDS {
            if command.is(modifier, word)
                && (meaning != Modifier::Execname || command.is(name, b"common_pid"))
            {
                return Ok(meaning);
            }
        }

        let mut stats = Stat::ALL.into_iter().filter(|_| usage == Usage::Value);

        if let Some(stat) = stats.find(|stat| command.is(modifier, stat.name().as_bytes())) {
            return Ok(Modifier::Stat(stat));
        }
        if command.begins(modifier, LOG2) {
            return self.log2(modifier.skip(LOG2.len()));
        }
        if command.begins(modifier, b"bucket") {
            return self.buckets(modifier).map_err(|at| {
                let refusal = command.refuse(ErrKind::BadFieldModifier, at);

                refusal.detailed(&[b"buckets=N needs a number above 0"])
            });
        }
        // PARITY: `parse_field()` ignores the text after `percent` and `graph`.
        if usage.allows_shares() && command.begins(modifier, b"percent") {
            return Ok(Modifier::Percent);
        }
        if usage.allows_shares() && command.begins(modifier, b"graph") {
            return Ok(Modifier::Graph);
        }
        Err(command.refuse(ErrKind::BadFieldModifier, modifier))
    }

    /// Parses the `N` of `log2=N`.
    fn log2(&self, digit: Span) -> Result<Modifier, Refusal> {
        let scale = match digit.of(self.command.text()) {
            [digit @ b'0'..=b'9'] => Scale::new(digit.wrapping_sub(b'0')),
            _ => None,
        };

        scale
            .map(Modifier::Log2)
            .ok_or(self.command.refuse(ErrKind::InvalidScale, digit))
    }

    /// Parses `bucket=N` or `buckets=N`. The error is the span of the invalid part.
    fn buckets(&self, modifier: Span) -> Result<Modifier, Span> {
        let mut rest = modifier.skip(b"bucket".len());

        if self.command.begins(rest, b"s") {
            rest = rest.skip(1);
        }
        if !self.command.begins(rest, b"=") {
            return Err(rest);
        }
        rest = rest.skip(1);

        number(rest.of(self.command.text()))
            .ok()
            .and_then(NonZeroU64::new)
            .map(Modifier::Buckets)
            .ok_or(rest)
    }
}
