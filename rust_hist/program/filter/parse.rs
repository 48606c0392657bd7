// SPDX-License-Identifier: GPL-2.0

//! The parser of filters, which makes the list of tests from the text.
//!
//! C counterpart: `calc_stack()`, `predicate_parse()` and `parse_pred()` of
//! [`kernel/trace/trace_events_filter.c`](srctree/kernel/trace/trace_events_filter.c). The grammar:
//!
//! ```text
//! filter    := and { "||" and }        and := not { "&&" not }        not := { "!" } ( "(" filter ")" | condition )
//! condition := field [ ".ustring" ] [ ".function" ] operator operand
//! operator  := "~" | "!=" | "==" | "<=" | "<" | ">=" | ">" | "&"
//! operand   := number | "'" string "'" | '"' string '"' | "CPUS{" list "}" | function
//! ```
//!
//! The text is first split into tokens, so that nested parentheses take no stack.
//!
//! Context: process, may sleep.

use crate::{
    alloc::{
        AllocError,
        Vec, //
    },
    error::{
        Errno,
        FilterErr, //
    },
    field::{
        FieldDesc,
        FieldKind,
        TaskNumber, //
    },
    text::lex::{
        is_space,
        number, //
    }, //
};

use super::{
    has_cpu,
    text::How,
    Filter,
    FilterRefusal,
    FilterStep,
    Function,
    ItemRange,
    Op,
    Str,
    Subject,
    Test,
    Text,
    Word,
    ACCEPT,
    REFUSE, //
};

/// The size of C's buffer for a number, with its NUL.
const NUMBER_ROOM: usize = 24;
/// The size of C's buffer for a string, with its NUL.
const STRING_ROOM: usize = 256;

/// A token of a filter; the flag is true if an odd number of `!` precedes the condition, or the parenthesis that this
/// one closes.
#[derive(Clone, Copy)]
enum Token {
    Open,
    /// A closing parenthesis.
    Close(bool),
    And,
    Or,
    Test(Test, bool),
}

/// The operator of a condition, as it is typed.
type FilterOperator = &'static [u8];

/// The operators of a condition. The first one that the text begins with is taken, so `<=` is before `<` and `>=`
/// before `>`.
const OPERATORS: [FilterOperator; 8] = [b"~", b"!=", b"==", b"<=", b"<", b">=", b">", b"&"];

/// The field that a condition compares.
struct ComparedField {
    /// The word with the number, and a mask of the number's bits.
    word: (Word, u64),
    at: u32,
    size: u32,
    signed: bool,
    kind: FieldKind,
    /// Whether the field is `common_comm`.
    is_common: bool,
}

/// A test, and whether the condition is true if the test is false.
type Tested = (Test, bool);

type Result<T, E = FilterRefusal> = core::result::Result<T, E>;

struct Parser<'t, S> {
    text: &'t [u8],
    at: usize,
    subject: &'t S,
    tokens: Vec<Token>,
    /// The filter so far, without its steps.
    filter: Filter,
}

/// Compiles the text of a filter; see [`Filter::compile`].
pub(super) fn compile(text: &[u8], subject: &impl Subject) -> Result<Filter> {
    let (most_open, most) = check_pairs(text)?;
    let mut parser = Parser {
        text,
        at: 0,
        subject,
        tokens: Vec::new(),
        filter: Filter::default(),
    };

    parser.split(most_open, most)?;
    parser.finish()
}

/// Returns a refusal with a caret at column `at`.
fn refuse<T>(errno: Errno, kind: FilterErr, at: usize) -> Result<T> {
    Err(FilterRefusal { errno, kind, at })
}

/// Returns a refusal for which C logs the errno alone.
fn refuse_plainly<T>(errno: Errno) -> Result<T> {
    refuse(errno, FilterErr::Errno, 0)
}

/// Returns the depth of the parentheses, and the greatest possible number of conditions. Refuses unmatched quotes and
/// parentheses, and a text without a condition.
fn check_pairs(text: &[u8]) -> Result<(usize, usize)> {
    let mut quote = None;
    let mut last_quote = 0;
    let (mut depth, mut most) = (0usize, 0usize);
    let (mut conditions, mut is_in_one) = (0usize, false);

    for (at, &byte) in text.iter().enumerate() {
        match (quote, byte) {
            (Some(end), byte) if end == byte => quote = None,
            (Some(_), _) => (),
            (None, b'(') => {
                depth = depth.saturating_add(1);
                most = most.max(depth);
                is_in_one = false;
            }
            (None, b')') => match depth.checked_sub(1) {
                Some(less) => (depth, is_in_one) = (less, false),
                None => return refuse(Errno::Eperm, FilterErr::TooManyClose, at),
            },
            (None, b'|' | b'&') if text.get(at.saturating_add(1)) == Some(&byte) => {
                is_in_one = false;
            }
            (None, byte) if is_space(byte) => (),
            (None, byte) => {
                if matches!(byte, b'\'' | b'"') {
                    (quote, last_quote) = (Some(byte), at);
                }
                conditions = conditions.saturating_add((!is_in_one).into());
                is_in_one = true;
            }
        }
    }
    if quote.is_some() {
        return refuse(Errno::Esrch, FilterErr::MissingQuote, last_quote);
    }
    if depth != 0 {
        return refuse(Errno::Enoent, FilterErr::TooManyOpen, last_open(text));
    }
    match conditions {
        0 => refuse_plainly(Errno::Einval),
        conditions => Ok((most, conditions)),
    }
}

/// Returns the index of the last parenthesis that is never closed.
fn last_open(text: &[u8]) -> usize {
    let mut quote = None;
    let mut closed = 0usize;

    for (at, &byte) in text.iter().enumerate().rev() {
        match (quote, byte) {
            (Some(end), byte) if end == byte => quote = None,
            (Some(_), _) => (),
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b')') => closed = closed.saturating_add(1),
            (None, b'(') => match closed.checked_sub(1) {
                Some(less) => closed = less,
                None => return at,
            },
            (None, _) => (),
        }
    }
    0
}

/// Returns whether a byte may be in a field's name or a number, as the kernel's `isalnum()` says, which takes bytes as
/// Latin-1.
fn is_alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0xc0 && !matches!(byte, 0xd7 | 0xf7)
}

impl<S: Subject> Parser<'_, S> {
    fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or(&[])
    }

    /// Consumes `word` if the rest of the text begins with it; returns whether it does.
    fn take(&mut self, word: &[u8]) -> bool {
        let is_next = self.rest().starts_with(word);

        if is_next {
            self.at = self.at.saturating_add(word.len());
        }
        is_next
    }

    /// Consumes bytes as long as `is` holds for them.
    fn take_while(&mut self, is: impl Fn(u8) -> bool) {
        let len = self.rest().iter().take_while(|&&byte| is(byte)).count();

        self.at = self.at.saturating_add(len);
    }

    /// Returns the text from `from` to the current position.
    fn since(&self, from: usize) -> &[u8] {
        self.text.get(from..self.at).unwrap_or(&[])
    }

    /// Consumes the digits of the number that begins at `start`, perhaps with its sign; returns the whole number.
    fn take_number(&mut self, start: usize) -> Result<&[u8]> {
        let digits = self.at;

        self.take_while(is_alnum);
        match self.since(start).len() {
            0..NUMBER_ROOM => Ok(self.since(digits)),
            _ => self.refuse(FilterErr::OperandTooLong),
        }
    }

    /// Returns a refusal of a condition at the current position, which C counts from 1 there.
    fn refuse<T>(&self, kind: FilterErr) -> Result<T> {
        refuse(Errno::Einval, kind, self.at.saturating_add(1))
    }

    /// Splits the text into tokens. The limits `most_open` and `most` come from [`check_pairs`], which may count too
    /// many if a part of the text is a set of CPUs or the name of a function.
    fn split(&mut self, most_open: usize, mut most: usize) -> Result<()> {
        let mut is_not = false;
        let mut opened = Vec::new();

        loop {
            self.take_while(is_space);
            match self.rest() {
                [] if self.tokens.is_empty() => {
                    return refuse(Errno::Einval, FilterErr::NoFilter, self.at)
                }
                // PARITY: Linux 7.2 accepts an operator at the end, and only warns of some.
                [] => return refuse(Errno::Einval, FilterErr::InvalidFilter, self.at),
                [b'!', b'=' | b'~', ..] => return refuse_plainly(Errno::Eperm),
                [b'!', ..] => {
                    self.take(b"!");
                    is_not = !is_not;
                    continue;
                }
                [b'(', ..] if opened.len() == most_open => {
                    return refuse_plainly(Errno::Einval);
                }
                [b'(', ..] => {
                    self.take(b"(");
                    opened.push(is_not)?;
                    self.tokens.push(Token::Open)?;
                }
                _ if most == 0 => return refuse(Errno::Eperm, FilterErr::TooManyPreds, self.at),
                _ => {
                    self.condition(is_not)?;
                    most = most.saturating_sub(1);
                    if !self.take_operator(&mut opened)? {
                        return Ok(());
                    }
                }
            }
            is_not = false;
        }
    }

    /// Consumes the closing parentheses after a condition and the next operator; returns false if the text ends
    /// instead.
    fn take_operator(&mut self, opened: &mut Vec<bool>) -> Result<bool> {
        loop {
            self.take_while(is_space);
            match **opened {
                [] if self.rest().is_empty() => return Ok(false),
                // C's column includes the NUL.
                _ if self.rest().is_empty() => {
                    let end = self.at.saturating_add(1);

                    return refuse(Errno::Eperm, FilterErr::TooManyOpen, end);
                }
                _ if self.take(b"&&") => {
                    self.tokens.push(Token::And)?;
                    return Ok(true);
                }
                _ if self.take(b"||") => {
                    self.tokens.push(Token::Or)?;
                    return Ok(true);
                }
                [] if self.take(b")") => {
                    return refuse(Errno::Eperm, FilterErr::TooManyClose, self.at)
                }
                [ref outer @ .., is_not] if self.take(b")") => {
                    let outer = outer.len();

                    opened.truncate(outer);
                    self.tokens.push(Token::Close(is_not))?;
                }
                _ => return refuse(Errno::Eperm, FilterErr::TooManyPreds, self.at),
            }
        }
    }

    /// Sets for each test the steps that follow it.
    fn finish(mut self) -> Result<Filter> {
        // `n` is the number of the first test after each token.
        let mut n = 0u16;

        for (at, token) in self.tokens.iter().enumerate() {
            let Token::Test(test, is_not) = *token else {
                continue;
            };
            let rest = self.tokens.get(at.saturating_add(1)..).unwrap_or(&[]);

            n = n.checked_add(1).filter(|&n| n < REFUSE).ok_or(AllocError)?;
            self.filter.steps.push(FilterStep {
                test,
                next: [follower(rest, is_not, n), follower(rest, !is_not, n)],
            })?;
        }
        Ok(self.filter)
    }

    /// Parses a condition; `is_not` negates it.
    fn condition(&mut self, is_not: bool) -> Result<()> {
        let start = self.at;

        self.take_while(|byte| is_alnum(byte) || byte == b'_');
        if self.at == start {
            return refuse_plainly(Errno::Eperm);
        }
        let Some(field) = self.field(self.since(start)) else {
            return self.refuse(FilterErr::FieldNotFound);
        };
        let is_of_user = self.take(b".ustring");
        let is_function = self.take(b".function");

        self.take_while(is_space);
        let Some(operator) = OPERATORS.into_iter().find(|&operator| self.take(operator)) else {
            return self.refuse(FilterErr::InvalidOp);
        };
        self.take_while(is_space);
        let (test, is_other) = match self.rest() {
            _ if is_function => self.function(&field, operator)?,
            [b'C', b'P', b'U', b'S', ..] => self.cpus(&field, operator)?,
            [b'\'' | b'"', ..] => return self.string(&field, operator, is_of_user, is_not),
            [b'-' | b'0'..=b'9', ..] => self.number(&field, operator)?,
            _ => return self.refuse(FilterErr::InvalidValue),
        };

        Ok(self.tokens.push(Token::Test(test, is_not != is_other))?)
    }

    /// Returns the field `name` of the event, or a field that every event has.
    fn field(&self, name: &[u8]) -> Option<ComparedField> {
        if let Some(field) = self.subject.field(name) {
            return Some(ComparedField::of(&field));
        }
        let mut field = ComparedField {
            word: (Word::Comm, u64::MAX),
            at: 0,
            size: 8,
            signed: false,
            kind: FieldKind::Other,
            is_common: true,
        };
        let is_named = |number: &TaskNumber| number.name().as_bytes() == name;

        match TaskNumber::ALL.into_iter().find(is_named) {
            Some(number) if self.subject.has(number) => field.word.0 = Word::Task(number),
            None if name == b"common_comm" => field.kind = FieldKind::Comm,
            _ => return None,
        }
        Some(field)
    }

    /// Parses the operand of a field that is an address of code (`.function`).
    fn function(&mut self, field: &ComparedField, operator: FilterOperator) -> Result<Tested> {
        let start = self.at;

        if field.size != 8 {
            return self.refuse(FilterErr::IllegalFieldOp);
        }
        if !matches!(operator, b"==" | b"!=") {
            return self.refuse(FilterErr::InvalidOp);
        }
        let function = if self.rest().first().is_some_and(u8::is_ascii_digit) {
            let Ok(address) = number(self.take_number(start)?) else {
                return self.refuse(FilterErr::InvalidValue);
            };
            Function::Address(address)
        } else {
            self.take_while(|byte| !is_space(byte));
            Function::Name(self.since(start))
        };
        let Some((first, size)) = self.subject.function(function) else {
            return self.refuse(FilterErr::NoFunction);
        };
        let test = match size.checked_sub(1) {
            Some(span) => field.range(first, span),
            None => Test::Never,
        };

        Ok((test, operator == b"!="))
    }

    /// Parses a list of CPUs in `CPUS{..}`.
    fn cpus(&mut self, field: &ComparedField, operator: FilterOperator) -> Result<Tested> {
        if !matches!(
            field.kind,
            FieldKind::Cpumask | FieldKind::Cpu | FieldKind::Other
        ) || !matches!(operator, b"==" | b"!=" | b"&")
        {
            return self.refuse(FilterErr::IllegalFieldOp);
        }
        self.at = self.at.saturating_add(b"CPUS".len());
        let is_open = self.rest().first() == Some(&b'{');

        self.at = self.at.saturating_add(1);
        if !is_open {
            return self.refuse(FilterErr::MissingBraceOpen);
        }
        let start = self.at;

        self.take_while(|byte| byte != b'}');
        if self.rest().is_empty() {
            return self.refuse(FilterErr::MissingBraceClose);
        }
        let list = self.since(start);
        let set = match list {
            [] => None,
            list => self.subject.cpu_list(list)?,
        };
        let Some(set) = set else {
            return self.refuse(FilterErr::InvalidCpulist);
        };

        self.at = self.at.saturating_add(1);
        Ok(self.cpus_of(field, operator, &set)?)
    }

    /// Returns the test of a field for a set of CPUs.
    fn cpus_of(
        &mut self,
        field: &ComparedField,
        operator: FilterOperator,
        set: &[u64],
    ) -> Result<Tested, AllocError> {
        let is_ne = operator == b"!=";
        let is_one = set.iter().map(|word| word.count_ones()).sum::<u32>() == 1;

        Ok(match (field.kind, operator) {
            (FieldKind::Cpumask, b"&") => (Test::AnyCpu(field.at, self.keep_cpus(set)?), false),
            (FieldKind::Cpumask, _) => (Test::SameCpus(field.at, self.keep_cpus(set)?), is_ne),
            _ if !field.is_number() => (Test::Never, false),
            // A set of one CPU is compared as a number.
            _ if is_one => {
                let cpu = (0..).find(|&cpu| has_cpu(set, cpu)).unwrap_or(0);

                (field.compare(b"==", cpu), is_ne)
            }
            // A number never equals a set of several CPUs.
            (_, b"==") => (Test::Never, false),
            (_, b"!=") => {
                let all = self.subject.cpu_list(b"all")?.unwrap_or_default();

                (
                    Test::Cpu(field.word.0, field.word.1, self.keep_cpus(&all)?),
                    false,
                )
            }
            _ => (
                Test::Cpu(field.word.0, field.word.1, self.keep_cpus(set)?),
                false,
            ),
        })
    }

    fn keep_cpus(&mut self, set: &[u64]) -> Result<ItemRange, AllocError> {
        let start = self.filter.cpus.len();

        self.filter.cpus.extend_from_slice(set)?;
        part_of(start, set.len())
    }

    /// Parses a string in quotes, and adds the condition; `is_not` negates it.
    fn string(
        &mut self,
        field: &ComparedField,
        operator: FilterOperator,
        is_of_user: bool,
        is_not: bool,
    ) -> Result<()> {
        if !matches!(operator, b"==" | b"!=" | b"~") {
            return self.refuse(FilterErr::IllegalFieldOp);
        }
        let Some(string) = field.string(is_of_user) else {
            return self.refuse(FilterErr::ExpectDigit);
        };
        let quote = self.rest().first().copied().unwrap_or(0);
        let start = self.at.saturating_add(1);

        self.at = start;
        self.take_while(|byte| byte != quote);
        if self.rest().is_empty() {
            return self.refuse(FilterErr::MissingQuote);
        }
        let operand = self.text.get(start..self.at).unwrap_or(&[]);
        if operand.len() >= STRING_ROOM {
            return self.refuse(FilterErr::OperandTooLong);
        }
        self.at = self.at.saturating_add(1);
        let (how, is_other, pattern) = match operator {
            b"~" => How::of_glob(operand),
            _ => (How::Full, operator == b"!=", operand),
        };

        if let [ref more @ .., last] = *word_tests(string, how, pattern)? {
            self.tokens.push(Token::Open)?;
            for &test in more {
                self.tokens.push(Token::Test(test, false))?;
                self.tokens.push(Token::And)?;
            }
            self.tokens.push(Token::Test(last, false))?;
            return Ok(self.tokens.push(Token::Close(is_not != is_other))?);
        }
        let first = self.filter.patterns.len();
        let n = u16::try_from(self.filter.texts.len()).map_err(|_| AllocError)?;

        self.filter.patterns.extend_from_slice(pattern)?;
        self.filter.texts.push(Text {
            string,
            how,
            pattern: part_of(first, pattern.len())?,
            is_not: is_other,
        })?;
        Ok(self.tokens.push(Token::Test(Test::Text(n), is_not))?)
    }

    /// Parses the number that a field is compared with.
    fn number(&mut self, field: &ComparedField, operator: FilterOperator) -> Result<Tested> {
        let start = self.at;

        if field.string(false).is_some() {
            return self.refuse(FilterErr::ExpectString);
        }
        if operator == b"~" {
            return self.refuse(FilterErr::IllegalFieldOp);
        }
        let is_negative = self.take(b"-");
        let digits = self.take_number(start)?;
        let value = number(digits).ok().and_then(|value| {
            // CAST: keeps the bits of the signed number.
            match (field.signed, is_negative) {
                (false, is_negative) => (!is_negative).then_some(value),
                (true, false) => i64::try_from(value).ok().map(|value| value as u64),
                (true, true) => 0i64.checked_sub_unsigned(value).map(|value| value as u64),
            }
        });
        let Some(value) = value else {
            self.at = start;
            return self.refuse(FilterErr::IllegalIntval);
        };

        Ok(field.condition(operator, value))
    }
}

impl ComparedField {
    fn of(field: &FieldDesc<'_>) -> Self {
        Self {
            word: match (field.kind, field.size) {
                (FieldKind::Cpu, _) => (Word::Cpu, u32::MAX.into()),
                (_, size @ (1 | 2 | 4 | 8)) => bytes_at(field.offset, size, &[u8::MAX; 8]),
                _ => (Word::At(field.offset), u64::MAX),
            },
            at: field.offset,
            size: field.size,
            signed: field.signed,
            kind: field.kind,
            is_common: false,
        }
    }

    /// Returns the place of the field's string, if it is a string. An address is of the task's memory if `is_of_user`.
    fn string(&self, is_of_user: bool) -> Option<Str> {
        let offset = self.at;

        Some(match self.kind {
            FieldKind::StaticString if self.size == 0 => Str::Rest { offset },
            FieldKind::StaticString => Str::In(Op::StaticString {
                offset,
                len: self.size,
            }),
            FieldKind::DynString => Str::In(Op::DynString { offset }),
            FieldKind::RelDynString => Str::In(Op::RelDynString { offset }),
            FieldKind::PtrString => Str::At { offset, is_of_user },
            FieldKind::Comm if self.is_common => Str::CommonComm,
            FieldKind::Comm => Str::Comm,
            _ => return None,
        })
    }

    /// Returns whether C has a function that compares the field as a number.
    fn is_number(&self) -> bool {
        self.kind == FieldKind::Cpu || Op::num(0, self.size, false).is_some()
    }

    /// Returns the test for numbers from `first` to `first + span`. Bits above the size of the number, which a sign may
    /// set, are cut.
    fn range(&self, first: u64, span: u64) -> Test {
        let (word, mask) = self.word;
        let below = mask.trailing_zeros();

        Test::Range(word, (first << below) & mask, mask, (span << below) & mask)
    }

    /// Returns `value` converted to the field's size and sign, and the least and the greatest number of that type.
    fn limits(&self, value: u64) -> (u64, u64, u64) {
        // C compares the number of a CPU as an `int`.
        let (size, signed) = match self.kind {
            FieldKind::Cpu => (4, true),
            _ => (self.size, self.signed),
        };
        // OVERFLOW: the product is at least 8, at most 64.
        let shift = 64 - 8 * size.clamp(1, 8);

        // CAST: keeps the bits.
        match signed {
            true => {
                let cut = |value: i64| (value >> shift) as u64;

                (cut((value << shift) as i64), cut(i64::MIN), cut(i64::MAX))
            }
            false => ((value << shift) >> shift, 0, u64::MAX >> shift),
        }
    }

    /// Returns the test for an operator that remains after [`ComparedField::condition`] has negated the others; for `&` it
    /// tests that none of the bits is set.
    fn compare(&self, operator: FilterOperator, value: u64) -> Test {
        let (value, least, most) = self.limits(value);

        match operator {
            _ if !self.is_number() => Test::Never,
            b"<=" => self.range(least, value.wrapping_sub(least)),
            b">=" => self.range(value, most.wrapping_sub(value)),
            b"&" if self.kind == FieldKind::Cpu => Test::Never,
            b"&" => {
                let (word, mask) = self.word;

                Test::Range(word, 0, (value << mask.trailing_zeros()) & mask, 0)
            }
            _ => self.range(value, 0),
        }
    }

    /// Returns the comparison with a number. A field that C cannot compare is neither equal nor unequal to any number.
    fn condition(&self, operator: FilterOperator, value: u64) -> Tested {
        let (operator, is_not): (FilterOperator, bool) = match operator {
            b"!=" => (b"==", true),
            b"<" => (b">=", true),
            b">" => (b"<=", true),
            b"&" => (b"&", self.kind != FieldKind::Cpu),
            other => (other, false),
        };

        (self.compare(operator, value), is_not && self.is_number())
    }
}

/// The most words of a string of fixed size that are compared one by one.
const WORDS_MAX: usize = 4;

/// Returns tests of words that together equal this comparison of a string; none if only a comparison of bytes can
/// decide.
fn word_tests(string: Str, how: How, pattern: &[u8]) -> Result<Vec<Test>, AllocError> {
    let mut tests = Vec::new();
    let (len, zeros) = match how {
        How::Front => (pattern.len(), [].as_slice()),
        // A full match includes the NUL that ends the string.
        How::Full => (pattern.len().saturating_add(1), [0].as_slice()),
        _ => return Ok(tests),
    };
    // The first word, the number of bytes that the string's place has in any case, and how many words may be compared.
    let (start, room, most) = match string {
        Str::In(Op::StaticString { offset, len }) => (Word::At(offset), len, WORDS_MAX),
        Str::In(Op::DynString { offset }) => (Word::Located(false, offset), 8, 1),
        Str::In(Op::RelDynString { offset }) => (Word::Located(true, offset), 8, 1),
        Str::Rest { offset } => (Word::At(offset), 8, 1),
        Str::Comm | Str::CommonComm => (Word::Comm, 8, 1),
        Str::At { .. } | Str::In(_) => return Ok(tests),
    };
    let offset = match start {
        Word::At(offset) => offset,
        _ => 0,
    };
    let mut bytes = Vec::new();

    bytes.extend_from_slice(pattern)?;
    bytes.extend_from_slice(zeros)?;
    // CAST: a number of 32 bits.
    if len > (room as usize).min(most.saturating_mul(8)) {
        return Ok(tests);
    }
    for (i, bytes) in (0..).step_by(8).zip(bytes.chunks(8)) {
        let (offset, room) = (offset.saturating_add(i), room.saturating_sub(i));
        let (at, first) = bytes_at(offset, room, bytes);
        let (_, mask) = bytes_at(offset, room, [u8::MAX; 8].get(..bytes.len()).unwrap_or(&[]));
        let word = match start {
            Word::At(_) => at,
            elsewhere => elsewhere,
        };

        tests.push(Test::Range(word, first, mask, 0))?;
    }
    Ok(tests)
}

/// Returns a place of eight bytes in a record that covers the bytes from `offset` on, of which there are `room`, and
/// the word for `bytes` there with zeros elsewhere. If possible the place ends within these `room` bytes, so that the
/// record has it all.
fn bytes_at(offset: u32, room: u32, bytes: &[u8]) -> (Word, u64) {
    let at = offset.saturating_add(room).saturating_sub(8).min(offset);
    let mut word = [0; size_of::<u64>()];
    // CAST: tracing needs 32-bit pointers at least.
    let places = word.iter_mut().skip(offset.saturating_sub(at) as usize);

    // CAST: tracing needs 32-bit pointers at least.
    for (to, &from) in places.zip(bytes.iter().take(room as usize)) {
        *to = from;
    }
    (Word::At(at), u64::from_ne_bytes(word))
}

fn part_of(start: usize, len: usize) -> Result<ItemRange, AllocError> {
    match (u16::try_from(start), u16::try_from(len)) {
        (Ok(start), Ok(len)) => Ok((start, len)),
        _ => Err(AllocError),
    }
}

/// Returns the step that follows a condition with result `value`; `rest` are the tokens after it, `n` the number of
/// their first test.
fn follower(rest: &[Token], value: bool, n: u16) -> u16 {
    let mut value = value;
    let mut n = n;
    // The depth of parentheses that were opened after the condition, whose contents are skipped.
    let mut depth = 0usize;
    // Whether operands are skipped: `Some(true)` up to the next `||`, `Some(false)` up to the closing parenthesis.
    let mut skips = None;

    for token in rest {
        match *token {
            Token::Test(..) => n = n.saturating_add(1),
            Token::Open => depth = depth.saturating_add(1),
            Token::Close(_) if depth != 0 => depth = depth.saturating_sub(1),
            Token::Close(is_not) => (value, skips) = (value ^ is_not, None),
            // The next operand must be evaluated.
            Token::And if skips.is_none() && value => return n,
            Token::Or if skips.is_none() && !value => return n,
            Token::Or if skips == Some(true) && depth == 0 => return n,
            Token::And | Token::Or => skips = skips.or(Some(!value)),
        }
    }
    match value {
        true => ACCEPT,
        false => REFUSE,
    }
}
