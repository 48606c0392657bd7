// SPDX-License-Identifier: GPL-2.0

//! Text to filter.
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
//! The whole text is split into tokens first, so no nesting of parentheses makes a stack deeper.
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
    Function,
    Load,
    Op,
    Part,
    Step,
    Str,
    Subject,
    Test,
    Text,
    Word,
    ACCEPT,
    REFUSE, //
};

/// C's room for a number, with its NUL.
const NUMBER_ROOM: usize = 24;
/// C's room for a string, with its NUL.
const STRING_ROOM: usize = 256;

/// A part of a filter; true if an odd number of `!` is before it, or before what it closes.
#[derive(Clone, Copy)]
enum Token {
    Open,
    /// The end of what an `Open` began.
    Close(bool),
    And,
    Or,
    Test(Test, bool),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    Glob,
    Ne,
    Eq,
    Le,
    Lt,
    Ge,
    Gt,
    Bits,
}

/// The operators of a condition: `<=` before `<` and `>=` before `>`, as the first one that the text begins with counts.
const OPERATORS: [(&[u8], Operator); 8] = [
    (b"~", Operator::Glob),
    (b"!=", Operator::Ne),
    (b"==", Operator::Eq),
    (b"<=", Operator::Le),
    (b"<", Operator::Lt),
    (b">=", Operator::Ge),
    (b">", Operator::Gt),
    (b"&", Operator::Bits),
];

/// What a condition looks at.
struct Field {
    /// The word that has the number, and the bits that are the number.
    word: (Word, u64),
    at: u32,
    size: u32,
    signed: bool,
    kind: FieldKind,
    /// Whether it is `common_comm`.
    is_common: bool,
}

/// A test and whether it is to be false.
type Condition = (Test, bool);

type Result<T, E = FilterRefusal> = core::result::Result<T, E>;

struct Parser<'t, S> {
    text: &'t [u8],
    at: usize,
    subject: &'t S,
    tokens: Vec<Token>,
    /// The filter, without its steps.
    filter: Filter,
}

/// See [`Filter::compile`].
pub(super) fn compile(text: &[u8], subject: &impl Subject) -> Result<Filter> {
    let (most_open, most) = check_pairs(text)?;
    let mut parser = Parser {
        text,
        at: 0,
        subject,
        tokens: Vec::new(),
        filter: Filter {
            steps: Vec::new(),
            texts: Vec::new(),
            patterns: Vec::new(),
            cpus: Vec::new(),
        },
    };

    parser.split(most_open, most)?;
    parser.finish()
}

/// A refusal with a caret.
fn refuse<T>(errno: Errno, kind: FilterErr, at: usize) -> Result<T> {
    Err(FilterRefusal { errno, kind, at })
}

/// A refusal of which C says no more.
fn refuse_plainly<T>(errno: Errno) -> Result<T> {
    refuse(errno, FilterErr::Errno, 0)
}

/// Returns how deep the parentheses are, and how many conditions there may be at most. Refuses what has a quote or a parenthesis
/// without the other one, or no condition at all.
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

/// The place of the last parenthesis that nothing closes.
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

/// Whether a byte may be in the name of a field or in a number, to the kernel's `isalnum()`, which takes bytes for Latin-1.
fn is_alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0xc0 && !matches!(byte, 0xd7 | 0xf7)
}

impl<S: Subject> Parser<'_, S> {
    fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or(&[])
    }

    /// Takes `word` if it comes next.
    fn take(&mut self, word: &[u8]) -> bool {
        let is_next = self.rest().starts_with(word);

        if is_next {
            self.at = self.at.saturating_add(word.len());
        }
        is_next
    }

    /// Takes all that `is` says.
    fn take_while(&mut self, is: impl Fn(u8) -> bool) {
        let len = self.rest().iter().take_while(|&&byte| is(byte)).count();

        self.at = self.at.saturating_add(len);
    }

    /// The text from `from` to here.
    fn since(&self, from: usize) -> &[u8] {
        self.text.get(from..self.at).unwrap_or(&[])
    }

    /// Takes the digits of the number that begins at `start`, perhaps with its sign.
    fn take_number(&mut self, start: usize) -> Result<&[u8]> {
        let digits = self.at;

        self.take_while(is_alnum);
        match self.since(start).len() {
            0..NUMBER_ROOM => Ok(self.since(digits)),
            _ => self.refuse(FilterErr::OperandTooLong),
        }
    }

    /// A refusal of a condition: C counts from behind its first byte.
    fn refuse<T>(&self, kind: FilterErr) -> Result<T> {
        refuse(Errno::Einval, kind, self.at.saturating_add(1))
    }

    /// Splits the text into tokens. Of parentheses and conditions there are no more than was counted, which are fewer than there
    /// seem to be if some of the text is within a set of CPUs or the name of a function.
    fn split(&mut self, most_open: usize, mut most: usize) -> Result<()> {
        let mut is_not = false;
        let mut opened = Vec::new();

        loop {
            self.take_while(is_space);
            match self.rest() {
                [] if self.tokens.is_empty() => {
                    return refuse(Errno::Einval, FilterErr::NoFilter, self.at)
                }
                // PARITY: 7.2 accepts an operator at the end, and warns of some.
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

    /// Takes what closes behind a condition, and the operator behind that; returns whether there is one. Else the text ends.
    fn take_operator(&mut self, opened: &mut Vec<bool>) -> Result<bool> {
        loop {
            self.take_while(is_space);
            match **opened {
                [] if self.rest().is_empty() => return Ok(false),
                // C counts the NUL.
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

    /// Finds for each test where to go on.
    fn finish(mut self) -> Result<Filter> {
        // The number of the test that is the next one from each token on.
        let mut n = 0u16;

        for (at, token) in self.tokens.iter().enumerate() {
            let Token::Test(test, is_not) = *token else {
                continue;
            };
            let rest = self.tokens.get(at.saturating_add(1)..).unwrap_or(&[]);

            n = n.checked_add(1).filter(|&n| n < REFUSE).ok_or(AllocError)?;
            self.filter.steps.push(Step {
                test,
                next: [follower(rest, is_not, n), follower(rest, !is_not, n)],
            })?;
        }
        Ok(self.filter)
    }

    /// Parses a condition, which is to be false if `is_not`.
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
        let found = OPERATORS
            .iter()
            .find(|(text, _)| self.rest().starts_with(text));
        let Some(&(text, operator)) = found else {
            return self.refuse(FilterErr::InvalidOp);
        };
        self.at = self.at.saturating_add(text.len());
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

    /// The field `name` of the event, or what there is for every event.
    fn field(&self, name: &[u8]) -> Option<Field> {
        if let Some(field) = self.subject.field(name) {
            return Some(Field::of(&field));
        }
        let mut field = Field {
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

    /// Parses the operand of a field that is an address of code.
    fn function(&mut self, field: &Field, operator: Operator) -> Result<Condition> {
        let start = self.at;

        if field.size != 8 {
            return self.refuse(FilterErr::IllegalFieldOp);
        }
        if !matches!(operator, Operator::Eq | Operator::Ne) {
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

        Ok((test, operator == Operator::Ne))
    }

    /// Parses a list of CPUs.
    fn cpus(&mut self, field: &Field, operator: Operator) -> Result<Condition> {
        if !matches!(
            field.kind,
            FieldKind::Cpumask | FieldKind::Cpu | FieldKind::Other
        ) || !matches!(operator, Operator::Eq | Operator::Ne | Operator::Bits)
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

    /// The test of a field for a set of CPUs.
    fn cpus_of(
        &mut self,
        field: &Field,
        operator: Operator,
        set: &[u64],
    ) -> Result<Condition, AllocError> {
        let is_ne = operator == Operator::Ne;
        let is_one = set.iter().map(|word| word.count_ones()).sum::<u32>() == 1;

        Ok(match (field.kind, operator) {
            (FieldKind::Cpumask, Operator::Bits) => {
                (Test::AnyCpu(field.at, self.keep_cpus(set)?), false)
            }
            (FieldKind::Cpumask, _) => (Test::SameCpus(field.at, self.keep_cpus(set)?), is_ne),
            _ if !field.is_number() => (Test::Never, false),
            // One CPU is a number.
            _ if is_one => {
                let cpu = (0..).find(|&cpu| has_cpu(set, cpu)).unwrap_or(0);

                (field.compare(Operator::Eq, cpu), is_ne)
            }
            // A number never is a set of several.
            (_, Operator::Eq) => (Test::Never, false),
            (_, Operator::Ne) => {
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

    fn keep_cpus(&mut self, set: &[u64]) -> Result<Part, AllocError> {
        let start = self.filter.cpus.len();

        self.filter.cpus.extend_from_slice(set)?;
        part_of(start, set.len())
    }

    /// Parses a string in quotes, and keeps the condition, which is to be false if `is_not`.
    fn string(
        &mut self,
        field: &Field,
        operator: Operator,
        is_of_user: bool,
        is_not: bool,
    ) -> Result<()> {
        if !matches!(operator, Operator::Eq | Operator::Ne | Operator::Glob) {
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
            Operator::Glob => How::of_glob(operand),
            _ => (How::Full, operator == Operator::Ne, operand),
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

    /// Parses a number.
    fn number(&mut self, field: &Field, operator: Operator) -> Result<Condition> {
        let start = self.at;

        if field.string(false).is_some() {
            return self.refuse(FilterErr::ExpectString);
        }
        if operator == Operator::Glob {
            return self.refuse(FilterErr::IllegalFieldOp);
        }
        let is_negative = self.take(b"-");
        let digits = self.take_number(start)?;
        let value = number(digits).ok().and_then(|value| {
            // CAST: the bits of the signed number.
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

impl Field {
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

    /// The string that it is, if it is one; where it is an address, of the task if `is_of_user`.
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

    /// Whether C has a function that compares it as a number.
    fn is_number(&self) -> bool {
        self.kind == FieldKind::Cpu || Load::of(self.size, false).is_some()
    }

    /// The test for numbers from `first` on that are not above it by more than `span`. Both have bits above the size of the
    /// number only where `first` has a sign.
    fn range(&self, first: u64, span: u64) -> Test {
        let (word, mask) = self.word;
        let below = mask.trailing_zeros();

        Test::Range(word, (first << below) & mask, mask, (span << below) & mask)
    }

    /// The value as a number of this size and sign, and the least and the greatest one of those.
    fn limits(&self, value: u64) -> (u64, u64, u64) {
        // C has the number of a CPU as an `int`.
        let (size, signed) = match self.kind {
            FieldKind::Cpu => (4, true),
            _ => (self.size, self.signed),
        };
        // OVERFLOW: at most 56.
        let shift = 64 - 8 * size.clamp(1, 8);

        // CAST: the bits stay.
        match signed {
            true => {
                let cut = |value: i64| (value >> shift) as u64;

                (cut((value << shift) as i64), cut(i64::MIN), cut(i64::MAX))
            }
            false => ((value << shift) >> shift, 0, u64::MAX >> shift),
        }
    }

    /// The test for `operator`, which is one that [`Field::condition`] negates nothing for; that for bits is whether there is
    /// none of them.
    fn compare(&self, operator: Operator, value: u64) -> Test {
        let (value, least, most) = self.limits(value);

        match operator {
            _ if !self.is_number() => Test::Never,
            Operator::Le => self.range(least, value.wrapping_sub(least)),
            Operator::Ge => self.range(value, most.wrapping_sub(value)),
            Operator::Bits if self.kind == FieldKind::Cpu => Test::Never,
            Operator::Bits => {
                let (word, mask) = self.word;

                Test::Range(word, 0, (value << mask.trailing_zeros()) & mask, 0)
            }
            _ => self.range(value, 0),
        }
    }

    /// The comparison with a number. What C cannot compare is neither equal nor unequal.
    fn condition(&self, operator: Operator, value: u64) -> Condition {
        let (operator, is_not) = match operator {
            Operator::Ne => (Operator::Eq, true),
            Operator::Lt => (Operator::Ge, true),
            Operator::Gt => (Operator::Le, true),
            Operator::Bits => (Operator::Bits, self.kind != FieldKind::Cpu),
            other => (other, false),
        };

        (self.compare(operator, value), is_not && self.is_number())
    }
}

/// The most words of a string of fixed size that are compared one by one.
const WORDS_MAX: usize = 4;

/// The tests of words that this comparison comes to, of which all have to hold; none if it has to look at each byte.
fn word_tests(string: Str, how: How, pattern: &[u8]) -> Result<Vec<Test>, AllocError> {
    let mut tests = Vec::new();
    let (len, zeros) = match how {
        How::Front => (pattern.len(), [].as_slice()),
        // With the NUL that ends it.
        How::Full => (pattern.len().saturating_add(1), [0].as_slice()),
        _ => return Ok(tests),
    };
    // The first word, how many bytes of the string there are in any case, and how many words of them may be compared.
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

/// The eight bytes of a record with the `room` bytes at `offset`, as many of them as fit, and the number that they are if
/// `bytes` are the first of these and all else is 0. If possible they end where the `room` bytes do or before, so that the
/// record has them all.
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

fn part_of(start: usize, len: usize) -> Result<Part, AllocError> {
    match (u16::try_from(start), u16::try_from(len)) {
        (Ok(start), Ok(len)) => Ok((start, len)),
        _ => Err(AllocError),
    }
}

/// Where to go on from a condition that is `value`, before the tokens `rest`, of which the first test has the number `n`.
fn follower(rest: &[Token], value: bool, n: u16) -> u16 {
    let mut value = value;
    let mut n = n;
    // How deep in parentheses a token is that does not matter to this value.
    let mut depth = 0usize;
    // Whether the value decides about what follows: with `Some(true)` up to the next `||`, else about all in these parentheses.
    let mut skips = None;

    for token in rest {
        match *token {
            Token::Test(..) => n = n.saturating_add(1),
            Token::Open => depth = depth.saturating_add(1),
            Token::Close(_) if depth != 0 => depth = depth.saturating_sub(1),
            Token::Close(is_not) => (value, skips) = (value ^ is_not, None),
            // The next operand decides.
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
