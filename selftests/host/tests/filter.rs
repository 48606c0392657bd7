// SPDX-License-Identifier: GPL-2.0

//! Filters: texts against what they say of records, and against C's errors.

#![cfg(not(loom))]

use proptest::prelude::*;
use rust_hist::alloc::{self, AllocError};
use rust_hist::error::{Errno, FilterErr};
use rust_hist::field::{FieldDesc, FieldKind, TaskNumber};
use rust_hist::program::filter::{Effort, Filter, FilterRefusal, Function, Subject, Surroundings};

/// The numbers of the event: name, offset, size, sign.
const NUMBERS: [(&str, usize, usize, bool); 8] = [
    ("u8", 0, 1, false),
    ("s8", 1, 1, true),
    ("u16", 2, 2, false),
    ("s16", 4, 2, true),
    ("u32", 8, 4, false),
    ("s32", 12, 4, true),
    ("u64", 16, 8, false),
    ("s64", 24, 8, true),
];
/// Its strings: name, offset, kind.
const STRINGS: [(&str, usize, FieldKind); 4] = [
    ("text", TEXT, FieldKind::StaticString),
    ("dyn", 40, FieldKind::DynString),
    ("rel", 44, FieldKind::RelDynString),
    ("ptr", 48, FieldKind::PtrString),
];
/// Some words and a part of one.
const TEXT: usize = 64;
const TEXT_LEN: usize = 20;
const MASK: usize = 56;
const ODD: usize = 60;
const FIXED: usize = TEXT + TEXT_LEN + 4;
/// More than a signed byte can have.
const CPUS: u32 = 200;
/// A set of CPUs.
type Set = [u64; 4];
const CPU: u32 = 3;
const TGID: u64 = 4711;
const COMM: &[u8; 16] = b"kworker/0:1\0xyz\0";

struct Event;

impl Subject for Event {
    fn field(&self, name: &[u8]) -> Option<FieldDesc<'_>> {
        let desc = |offset: usize, size: usize, signed, kind| FieldDesc {
            type_name: b"",
            offset: offset as u32,
            size: size as u32,
            signed,
            kind,
        };
        let name = std::str::from_utf8(name).ok()?;
        if let Some(&(_, at, size, signed)) = NUMBERS.iter().find(|field| field.0 == name) {
            return Some(desc(at, size, signed, FieldKind::Other));
        }
        if let Some(&(_, at, kind)) = STRINGS.iter().find(|field| field.0 == name) {
            return Some(desc(at, TEXT_LEN, false, kind));
        }
        match name {
            "mask" => Some(desc(MASK, 4, false, FieldKind::Cpumask)),
            "odd" => Some(desc(ODD, 3, false, FieldKind::Other)),
            "rest" => Some(desc(FIXED, 0, false, FieldKind::StaticString)),
            "CPU" => Some(desc(0, 4, true, FieldKind::Cpu)),
            "COMM" => Some(desc(0, 16, false, FieldKind::Comm)),
            // A field of the event comes before the number of the task.
            "common_node" => Some(desc(0, 1, false, FieldKind::Other)),
            _ => None,
        }
    }

    fn has(&self, number: TaskNumber) -> bool {
        number != TaskNumber::Cgroup
    }

    fn function(&self, of: Function<'_>) -> Option<(u64, u64)> {
        match of {
            Function::Name(b"schedule" | b"f(" | b"f)") => Some((0x1000, 0x80)),
            Function::Address(0x1000..0x1080) => Some((0x1000, 0x80)),
            _ => None,
        }
    }

    fn cpu_list(&self, list: &[u8]) -> Result<Option<alloc::Vec<u64>>, AllocError> {
        let mut set = alloc::Vec::new();
        let Some(cpus) = cpus_of(list) else {
            return Ok(None);
        };
        for word in cpus {
            set.push(word)?;
        }
        Ok(Some(set))
    }
}

fn cpus_of(list: &[u8]) -> Option<Set> {
    let mut set = Set::default();
    if list == b"all" {
        return cpus_of(format!("0-{}", CPUS - 1).as_bytes());
    }
    for range in std::str::from_utf8(list).ok()?.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        for cpu in first.parse::<u32>().ok()?..=last.parse().ok()? {
            *set.get_mut(cpu as usize / 64)? |= (cpu < CPUS).then(|| 1 << (cpu % 64))?;
        }
    }
    Some(set)
}

/// A hit of one record; what is at its addresses.
#[derive(Clone, Copy)]
struct Around<'a>(&'a [u8]);

impl Surroundings for Around<'_> {
    fn cpu(&self) -> u32 {
        CPU
    }

    fn task(&self, which: TaskNumber) -> u64 {
        match which {
            TaskNumber::Tgid => TGID,
            _ => 0,
        }
    }

    fn comm(&self, out: &mut [u8; 16]) {
        *out = *COMM;
    }

    fn test_string(
        &self,
        address: u64,
        is_of_user: bool,
        test: impl FnOnce(&[u8]) -> bool,
    ) -> bool {
        // Odd addresses fault; those of the task are below 100.
        address % 2 == 0 && is_of_user == (address < 100) && test(self.0)
    }
}

/// What a record and its hit have.
#[derive(Clone, Debug)]
struct Values {
    numbers: [u64; 8],
    text: [u8; TEXT_LEN],
    dynamic: Vec<u8>,
    relative: Vec<u8>,
    address: u64,
    remote: Vec<u8>,
    mask: Set,
}

impl Values {
    fn record(&self) -> Vec<u8> {
        let mut record = vec![0xee; FIXED];
        for ((_, at, size, _), number) in NUMBERS.iter().zip(self.numbers) {
            record[*at..at + size].copy_from_slice(&number.to_le_bytes()[..*size]);
        }
        record[TEXT..TEXT + TEXT_LEN].copy_from_slice(&self.text);
        record[48..56].copy_from_slice(&self.address.to_le_bytes());
        let mask = self.mask.map(u64::to_le_bytes).concat();
        for (at, data, behind) in [
            (40, &self.dynamic, 0),
            (44, &self.relative, 48),
            (MASK, &mask, 0),
        ] {
            let place = (data.len() << 16 | record.len() - behind) as u32;
            record[at..at + 4].copy_from_slice(&place.to_le_bytes());
            record.extend(data);
            record.resize(record.len().next_multiple_of(8), 0);
        }
        record
    }

    fn number(&self, n: usize) -> i128 {
        let (_, _, size, signed) = NUMBERS[n];
        let bits = u128::from(self.numbers[n]) & ((1u128 << (8 * size)) - 1);
        match signed && bits >> (8 * size - 1) != 0 {
            true => bits as i128 - (1i128 << (8 * size)),
            false => bits as i128,
        }
    }
}

/// A filter as a tree.
#[derive(Clone, Debug)]
enum Tree {
    /// A number of the event, an operator, and a number that fits.
    Number(usize, &'static str, i64),
    /// A string of the event, `==`, `!=` or `~`, and the operand.
    Text(usize, &'static str, String),
    Cpus(usize, &'static str, String),
    Mask(&'static str, String),
    Not(Box<Tree>),
    And(Box<Tree>, Box<Tree>),
    Or(Box<Tree>, Box<Tree>),
}

impl Tree {
    fn text(&self) -> String {
        match self {
            Tree::Number(n, op, value) => format!("{}{op}{value}", NUMBERS[*n].0),
            Tree::Text(n, op, value) => format!("{} {op} \"{value}\"", STRINGS[*n].0),
            Tree::Cpus(n, op, list) => format!("{} {op} CPUS{{{list}}}", NUMBERS[*n].0),
            Tree::Mask(op, list) => format!("mask {op} CPUS{{{list}}}"),
            Tree::Not(tree) => match **tree {
                Tree::And(..) | Tree::Or(..) => format!("!({})", tree.text()),
                _ => format!("! {}", tree.text()),
            },
            Tree::And(a, b) => {
                let part = |tree: &Tree| match tree {
                    Tree::Or(..) => format!("({})", tree.text()),
                    _ => tree.text(),
                };
                format!("{} && {}", part(a), part(b))
            }
            Tree::Or(a, b) => format!("{}||{}", a.text(), b.text()),
        }
    }

    /// What it says of a record.
    fn holds(&self, values: &Values) -> bool {
        match self {
            Tree::Number(n, op, value) => {
                let number = values.number(*n);
                // C cuts the operand to the size of the field.
                let cut = Values {
                    numbers: [*value as u64; 8],
                    ..values.clone()
                };
                let value = cut.number(*n);
                match *op {
                    "==" => number == value,
                    "!=" => number != value,
                    "<" => number < value,
                    "<=" => number <= value,
                    ">" => number > value,
                    ">=" => number >= value,
                    _ => number & value != 0,
                }
            }
            Tree::Text(n, op, operand) => {
                let (field, can_be_read) = match n {
                    0 => (values.text.to_vec(), true),
                    1 => (values.dynamic.clone(), true),
                    2 => (values.relative.clone(), true),
                    _ => (
                        values.remote.clone(),
                        values.address % 2 == 0 && values.address >= 100,
                    ),
                };
                can_be_read
                    && match *op {
                        "==" => full(&field) == operand.as_bytes(),
                        "!=" => full(&field) != operand.as_bytes(),
                        _ => match operand.strip_prefix('!') {
                            Some(pattern) => !like(&field, pattern),
                            None => like(&field, operand),
                        },
                    }
            }
            Tree::Cpus(n, op, list) => {
                let set = cpus_of(list.as_bytes()).expect("a list");
                let (_, _, size, _) = NUMBERS[*n];
                let cpu = values.numbers[*n] & (u64::MAX >> (64 - 8 * size));
                let count: u32 = set.iter().map(|word| word.count_ones()).sum();
                let has = |cpu: u64| cpu < 256 && set[cpu as usize / 64] >> (cpu % 64) & 1 != 0;
                match (count, *op) {
                    (1, "!=") => !has(cpu),
                    (1, _) => has(cpu),
                    (_, "==") => false,
                    (_, "!=") => (cpu as u32) < CPUS,
                    _ => has(u64::from(cpu as u32)),
                }
            }
            Tree::Mask(op, list) => {
                let set = cpus_of(list.as_bytes()).expect("a list");
                match *op {
                    "==" => set == values.mask,
                    "!=" => set != values.mask,
                    _ => set.iter().zip(values.mask).any(|(a, b)| a & b != 0),
                }
            }
            Tree::Not(tree) => !tree.holds(values),
            Tree::And(a, b) => a.holds(values) && b.holds(values),
            Tree::Or(a, b) => a.holds(values) || b.holds(values),
        }
    }
}

fn full(field: &[u8]) -> &[u8] {
    field.split(|&byte| byte == 0).next().unwrap_or(b"")
}

/// `~` without a `!`, by the words of C's comments.
fn like(field: &[u8], pattern: &str) -> bool {
    let bytes = pattern.as_bytes();
    let inner = pattern.trim_start_matches('*').trim_end_matches('*');
    let stars = bytes.len() - inner.len();
    if bytes.first().is_some_and(u8::is_ascii_digit) {
        return full(field) == bytes;
    }
    if inner.contains(['*', '?', '[', '\\'])
        || stars > 2
        || stars == 2
            && inner.len() + 2 == bytes.len()
            && (!pattern.starts_with('*') || !pattern.ends_with('*'))
    {
        return glob(bytes, full(field));
    }
    match (
        pattern.starts_with('*'),
        pattern.len() > 1 && pattern.ends_with('*'),
    ) {
        (false, false) => full(field) == bytes,
        (false, true) => full(field).starts_with(inner.as_bytes()),
        (true, false) => !field.is_empty() && field[..field.len() - 1].ends_with(inner.as_bytes()),
        (true, true) => (0..=field.len()).any(|at| field[at..].starts_with(inner.as_bytes())),
    }
}

/// A pattern by recursion; classes of the tests always have an end.
fn glob(pattern: &[u8], string: &[u8]) -> bool {
    match (pattern, string) {
        ([], string) => string.is_empty(),
        ([b'*', rest @ ..], _) => (0..=string.len()).any(|at| glob(rest, &string[at..])),
        ([b'?', rest @ ..], [_, more @ ..]) => glob(rest, more),
        ([b'[', class @ ..], [c, more @ ..]) => {
            let (not, class) = match class {
                [b'!', class @ ..] => (true, class),
                class => (false, class),
            };
            let end = 1 + class[1..].iter().position(|&b| b == b']').expect("an end");
            let mut inside = &class[..end];
            let mut found = false;
            while let [first, rest @ ..] = inside {
                let (last, rest) = match rest {
                    [b'-', last, rest @ ..] => (last, rest),
                    rest => (first, rest),
                };
                found |= (first..=last).contains(&c);
                inside = rest;
            }
            found != not && glob(&class[end + 1..], more)
        }
        ([b'\\', literal, rest @ ..], [c, more @ ..]) => c == literal && glob(rest, more),
        ([literal, rest @ ..], [c, more @ ..]) => c == literal && glob(rest, more),
        _ => false,
    }
}

fn small() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..4u64,
        (0..6u64).prop_map(|n| n.wrapping_neg()),
        Just(0x80),
        Just(0x7fff_ffff),
        Just(0x8000_0000),
        Just(1 << 63),
        60..72u64,
        CPUS as u64 - 10..CPUS as u64 + 2,
        any::<u64>(),
    ]
}

fn string(len: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(
        prop_oneof![3 => Just(b'a'), 2 => Just(b'b'), 1 => Just(0)],
        0..len,
    )
    .prop_map(|mut bytes| {
        bytes.push(0);
        bytes
    })
}

/// Some letters, of which few are not the same, and anything behind their NUL.
fn text() -> impl Strategy<Value = [u8; TEXT_LEN]> {
    let letter = prop_oneof![9 => Just(b'a'), 1 => Just(b'b')];

    (proptest::array::uniform20(letter), 0..=TEXT_LEN).prop_map(|(mut text, len)| {
        if let Some(nul) = text.get_mut(len) {
            *nul = 0;
        }
        text
    })
}

fn list() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..CPUS).prop_map(|cpu| cpu.to_string()),
        (0..CPUS, 0..CPUS).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        (0..3u32, 60..CPUS).prop_map(|(a, b)| format!("{a},{b}")),
    ]
}

fn values() -> impl Strategy<Value = Values> {
    let mask = prop_oneof![
        list().prop_map(|list| cpus_of(list.as_bytes()).expect("a list")),
        Just(Set::default()),
    ];
    (
        proptest::array::uniform8(small()),
        text(),
        string(12),
        string(12),
        98..104u64,
        string(20),
        mask,
    )
        .prop_map(
            |(numbers, text, dynamic, relative, address, remote, mask)| Values {
                numbers,
                text,
                dynamic,
                relative,
                address,
                remote: full(&remote).iter().copied().chain([0]).collect(),
                mask,
            },
        )
}

fn tree() -> impl Strategy<Value = Tree> {
    let number = (
        0..8usize,
        prop_oneof![
            Just("=="),
            Just("!="),
            Just("<"),
            Just("<="),
            Just(">"),
            Just(">="),
            Just("&")
        ],
        small(),
    )
        .prop_map(|(n, op, value)| {
            let value = value as i64;
            let value = if NUMBERS[n].3 {
                value
            } else {
                value & i64::MAX
            };
            Tree::Number(n, op, value)
        });
    let pattern = "!?\\*?(a|b|\\?|ab|\\[ab\\]|\\[!b\\]|\\[a-c\\]|\\\\\\\\a|\\*){0,3}\\*?";
    let text = prop_oneof![
        (
            0..4usize,
            prop_oneof![Just("=="), Just("!=")],
            "[ab]{0,9}|a{0,20}"
        ),
        (0..4usize, Just("~"), pattern),
        (0..4usize, Just("~"), "\\*?([ab]{0,4}|a{0,20})\\*?"),
    ]
    .prop_map(|(n, op, operand)| Tree::Text(n, op, operand));
    let op = || prop_oneof![Just("=="), Just("!="), Just("&")];
    let leaf = prop_oneof![
        4 => number,
        3 => text,
        1 => (0..8usize, op(), list()).prop_map(|(n, op, list)| Tree::Cpus(n, op, list)),
        1 => (op(), list()).prop_map(|(op, list)| Tree::Mask(op, list)),
    ];
    leaf.prop_recursive(5, 24, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|tree| Tree::Not(Box::new(tree))),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Tree::And(Box::new(a), Box::new(b))),
            (inner.clone(), inner).prop_map(|(a, b)| Tree::Or(Box::new(a), Box::new(b))),
        ]
    })
}

fn compile(text: &str) -> Result<Filter, FilterRefusal> {
    Filter::compile(text.as_bytes(), &Event)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    /// A filter says of a record what its tree says.
    #[test]
    fn says_what_its_text_says(tree in tree(), values in values()) {
        let filter = compile(&tree.text());
        let filter = filter.map_err(|e| TestCaseError::fail(format!("{}: {e:?}", tree.text())))?;
        let accepts = filter.accepts(Around(&values.remote), &values.record());
        prop_assert_eq!(accepts, tree.holds(&values), "{}", tree.text());
        let (around, record) = (Around(&values.remote), values.record());
        // Eight bytes are there behind the last string.
        let longer = [&record[..], &[0; 8]].concat();
        for (quick, effort) in [
            (filter.quick::<false, false>(around, &record), Effort::Bytes),
            (filter.quick::<true, false>(around, &longer), Effort::Places),
            (filter.quick::<false, true>(around, &record), Effort::Task),
        ] {
            prop_assert!(quick.is_none_or(|quick| quick == accepts), "{}", tree.text());
            prop_assert!(quick.is_some() || filter.effort() != effort, "{}", tree.text());
        }
    }

    /// Places and lengths that lead out of the record, and records that are too short, are read as far as they are there.
    #[test]
    fn stays_inside(tree in tree(), values in values(), places in any::<[u32; 3]>(), len in 0..100usize) {
        let filter = compile(&tree.text()).expect("a filter");
        let mut record = values.record();
        for (at, place) in [40, 44, MASK].into_iter().zip(places) {
            record[at..at + 4].copy_from_slice(&place.to_le_bytes());
        }
        record.truncate(len);
        filter.accepts(Around(&values.remote), &record);
    }

    /// Whatever is typed is taken or refused, and its caret is at most one byte behind the text.
    #[test]
    fn takes_or_refuses(text in "[ !()&|<>=~a'\"0-9u{}CPUS.x-]{0,40}") {
        if let Err(refusal) = compile(&text) {
            prop_assert!(refusal.at <= text.len() + 2);
        }
    }
}

#[track_caller]
fn refused(text: &str, errno: Errno, kind: FilterErr, at: usize) {
    let refusal = compile(text).map(|_| ()).expect_err(text);
    assert_eq!(refusal, FilterRefusal { errno, kind, at }, "{text}");
}

/// Each of C's errors that a trigger can have, with its errno and its caret.
#[test]
fn refuses_as_c_does() {
    use FilterErr as E;
    let invalid = |text: &str, kind, at| refused(text, Errno::Einval, kind, at);

    invalid("u8 + 1", E::InvalidOp, 4);
    invalid("u64.function < schedule", E::InvalidOp, 16);
    refused("((u8 == 1)", Errno::Enoent, E::TooManyOpen, 0);
    refused("(u8 == 1) && (u8 == 2", Errno::Enoent, E::TooManyOpen, 13);
    refused("u8 == 1)", Errno::Eperm, E::TooManyClose, 7);
    refused(
        "text == 'a' && text == 'b",
        Errno::Esrch,
        E::MissingQuote,
        23,
    );
    invalid("u8 == CPUS1", E::MissingBraceOpen, 12);
    invalid("u8 == CPUS{1", E::MissingBraceClose, 13);
    invalid("u8 == CPUS{}", E::InvalidCpulist, 12);
    invalid("u8 == CPUS{x}", E::InvalidCpulist, 13);
    invalid("u8 == CPUS{999}", E::InvalidCpulist, 15);
    invalid("u8 < CPUS{1}", E::IllegalFieldOp, 6);
    invalid("text == CPUS{1}", E::IllegalFieldOp, 9);
    invalid("u64 == 000000000000000000000001", E::OperandTooLong, 32);
    assert!(compile("u64 == 00000000000000000000001").is_ok());
    let long = "x".repeat(256);
    invalid(&format!("text == '{long}'"), E::OperandTooLong, 266);
    assert!(compile(&format!("text == '{}'", &long[1..])).is_ok());
    invalid("text == 1", E::ExpectString, 9);
    invalid("u8 == 'a'", E::ExpectDigit, 7);
    invalid("text < 'a'", E::IllegalFieldOp, 8);
    invalid("u8 ~ 1", E::IllegalFieldOp, 6);
    invalid("u8.function == schedule", E::IllegalFieldOp, 16);
    invalid("nosuch == 1", E::FieldNotFound, 7);
    invalid("u8 == 1 && nosuch == 1", E::FieldNotFound, 18);
    invalid("u64 == 18446744073709551616", E::IllegalIntval, 8);
    invalid("u64 == -1", E::IllegalIntval, 8);
    invalid("s64 == 0x8000000000000000", E::IllegalIntval, 8);
    invalid("s64 == 12ab", E::IllegalIntval, 8);
    invalid("s64 == -", E::IllegalIntval, 8);
    refused("u8 == 1 u8 == 2", Errno::Eperm, E::TooManyPreds, 8);
    refused("u8 == 1 & u8 == 2", Errno::Eperm, E::TooManyPreds, 8);
    invalid("u8 == a", E::InvalidValue, 7);
    invalid("u8 ==", E::InvalidValue, 6);
    invalid("u8 && u8 == 1", E::InvalidValue, 5);
    invalid("u64.function == nosuch", E::NoFunction, 23);
    invalid("u64.function == 1", E::NoFunction, 18);
    invalid("u64.function == 1x", E::InvalidValue, 19);
    invalid("!!", E::NoFilter, 2);
    // Parentheses that are counted before the names are known.
    refused("(u64.function == f) ", Errno::Eperm, E::TooManyOpen, 21);
    refused("u64.function == f( )", Errno::Eperm, E::TooManyClose, 20);
    invalid("(u64.function == f) && (u8 == 1)", E::Errno, 0);
    // C says "Error" to these.
    invalid("()", E::Errno, 0);
    refused("u8 == 1 && ()", Errno::Eperm, E::Errno, 0);
    refused("!= 1", Errno::Eperm, E::Errno, 0);
    refused("== 1", Errno::Eperm, E::Errno, 0);
    invalid("u8 == 1 || u8 == 2 &&", E::InvalidFilter, 21);
    invalid("u8 == 7 && ", E::InvalidFilter, 11);
    invalid("(u8 == 8) || !", E::InvalidFilter, 14);
    // A number that this kernel has not.
    invalid("common_cgroup == 1", E::FieldNotFound, 14);
}

/// The record of a few simple values.
fn simple() -> (Values, Vec<u8>) {
    let values = Values {
        numbers: [7, 0xff, 0, 0, 0, 0, 0x1010, 0],
        text: *b"abcdefghijklmnopqrst",
        dynamic: b"eth0\0".to_vec(),
        relative: b"lo\0".to_vec(),
        address: 100,
        remote: b"remote\0".to_vec(),
        mask: [6, 0, 0, 0],
    };
    let record = values.record();
    (values, record)
}

#[track_caller]
fn holds(text: &str) {
    let (values, record) = simple();
    let says = |text: &str| {
        compile(text)
            .expect(text)
            .accepts(Around(&values.remote), &record)
    };
    assert!(says(text), "{text}");
    // The name of a function ends with a blank.
    assert!(!says(&format!("!({text} )")), "not {text}");
}

#[test]
fn knows_the_task_and_the_cpu() {
    holds("common_tgid == 4711");
    holds("common_tgid > 4710 && common_tgid & 0x1000");
    holds("common_uid == 0");
    // The event's own field of the name, which is 7.
    holds("common_node == 7");
    holds("CPU == 3");
    holds("CPU > -1");
    holds("CPU & CPUS{3}");
    holds("CPU & CPUS{2-3}");
    holds("CPU != CPUS{2-3}");
    holds("!(CPU & 3)");
    holds("common_comm == 'kworker/0:1' && COMM == \"kworker/0:1\"");
    holds("common_comm ~ 'kwork*' && common_comm ~ '*:1' && common_comm ~ '*/*'");
    // C compares the last of its 15 bytes, and what is behind the NUL.
    holds("!(COMM ~ '*:1') && COMM ~ '*xyz' && COMM ~ '*xy*'");
}

#[test]
fn knows_functions() {
    holds("u64.function == schedule");
    holds("u64.function == 0x1001");
    holds("!(u64.function != schedule )");
    let refusal = compile("(u64.function == schedule)")
        .map(|_| ())
        .expect_err("a name with a parenthesis");
    assert_eq!(refusal.kind, FilterErr::NoFunction);
}

#[test]
fn knows_strings() {
    // As long as its field, and so without a NUL.
    holds("text == 'abcdefghijklmnopqrst'");
    holds("text != 'abcdefghijklmnopqrs' && text != 'abcdefghijklmnopqrstu'");
    holds("text ~ 'abcdefgh*' && text ~ 'abcdefghi*' && text ~ 'abcdefghijklmnopqr*'");
    holds("!(text ~ 'abcdefghx*') && !(text ~ 'abcdefghijklmnopqx*')");
    holds("dyn == 'eth0' && dyn ~ 'eth*' && dyn ~ '*h0' && dyn ~ '*th*' && dyn ~ 'e[t-u]?0'");
    holds("rel == 'lo' && rel != 'eth0'");
    holds("ptr == 'remote' && ptr ~ '*ote'");
    // An address of the task that is read as one of the kernel.
    let (values, record) = simple();
    for text in [
        "ptr.ustring == 'remote'",
        "ptr.ustring != 'remote'",
        "ptr.ustring ~ '*'",
    ] {
        assert!(
            !compile(text)
                .expect(text)
                .accepts(Around(&values.remote), &record),
            "{text}"
        );
    }
}

/// A string ends with its length, also if no NUL is there and another string follows.
#[test]
fn knows_where_a_string_ends() {
    let (values, mut record) = simple();
    let place = u32::from_le_bytes(record[40..44].try_into().expect("four bytes"));
    let shorter = (place & 0xffff) | 3 << 16;

    record[40..44].copy_from_slice(&shorter.to_le_bytes());
    record.extend([0; 8]);
    for text in [
        "dyn == 'eth'",
        "dyn ~ 'eth*'",
        "dyn != 'eth0'",
        "!(dyn ~ 'eth0*')",
    ] {
        let filter = compile(text).expect(text);
        assert!(filter.accepts(Around(&values.remote), &record), "{text}");
        let quick = filter.quick::<true, false>(Around(&values.remote), &record);
        assert_eq!(quick, Some(true), "{text}");
    }
}

/// A field of three bytes is neither equal nor unequal to anything, as in C.
#[test]
fn knows_no_odd_sizes() {
    let (values, record) = simple();
    for op in [
        "==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "&",
        "!= CPUS{1}||odd ==",
        "== CPUS{1-3}||odd ==",
    ] {
        let text = format!("odd {op} 1");
        assert!(
            !compile(&text)
                .expect(&text)
                .accepts(Around(&values.remote), &record),
            "{text}"
        );
    }
}

/// As many conditions and parentheses as a line can have.
#[test]
fn long_texts_have_no_deep_stack() {
    let many = vec!["u8==7"; 1000].join("&&");
    holds(&many);
    let deep = format!("{}u8==7{}", "(".repeat(2000), ")".repeat(2000));
    holds(&deep);
    let deep = format!("{}u8==7{}", "!(".repeat(2000), ")".repeat(2000));
    holds(&deep);
}

/// Memory that is missing anywhere is a refusal.
#[test]
fn every_allocation_may_fail() {
    let text = "(u8 == 1 || text ~ 'a*b') && u8 & CPUS{1-3}";
    for n in 0.. {
        alloc::fail_after(Some(n));
        let result = compile(text);
        alloc::fail_after(None);
        match result {
            Ok(_) => {
                assert!(n > 5, "{n} allocations");
                return;
            }
            Err(refusal) => assert_eq!(refusal.errno, Errno::Enomem),
        }
    }
}

/// The text of `ftrace:print` has no size; what is behind its NUL, and behind the record, is none of it.
#[test]
fn an_array_without_a_size_ends_with_its_nul() {
    let holds = |text: &[u8], filter: &str| {
        let record = [&[0; FIXED], text].concat();
        Filter::compile(filter.as_bytes(), &Event)
            .unwrap()
            .accepts(Around(&[]), &record)
    };
    for text in [
        &b"foo bar"[..],
        b"foo bar\0",
        b"foo bar\0stale",
        b"foo bar\0\0\0\0\0\0\0\0\0",
    ] {
        for filter in [
            "== 'foo bar'",
            "~ 'foo*'",
            "~ '*o b*'",
            "~ 'f?o*r'",
            "!= 'foo'",
            "~ '!*stale*'",
        ] {
            assert!(holds(text, &format!("rest {filter}")), "{filter}: {text:?}");
        }
        for filter in [
            "== 'foo'",
            "~ 'foo bars*'",
            "~ '*stale*'",
            "!= 'foo bar'",
            "~ '*fo'",
        ] {
            assert!(
                !holds(text, &format!("rest {filter}")),
                "{filter}: {text:?}"
            );
        }
    }
    assert!(holds(b"foo bar\0stale", "rest ~ '*bar'"));
}
