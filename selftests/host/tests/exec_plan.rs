// SPDX-License-Identifier: GPL-2.0

//! What a hit computes, in the form that it was brought into, against the definition of the columns:
//! H-KEY-01 to H-KEY-04, H-MOD-09, H-MOD-10, H-MOD-11, H-EXP-01, H-EXP-08.

#![cfg(not(loom))]

mod common;
mod lang_common;
#[path = "lang_common/records.rs"]
mod records;

use common::{
    map,
    shape, //
};
use lang_common::*;
use proptest::prelude::*;
use records::records;
use rust_hist::{
    limits::{
        KEY_WORDS_MAX,
        VALS_MAX,
        VARS_MAX, //
    },
    program::{
        Action,
        Cell,
        Effects,
        Field,
        Insn,
        Kind,
        Load,
        Modifier,
        Op,
        Program,
        Reciprocal,
        Refs, //
    },
    schema::FieldValues,
    sync::Atomic,
    tracing_map::{
        track_value,
        Glance,
        KeyHash,
        NumCell,
        Pieces,
        SeededHash,
        TextCell,
        SHORT_KEY_WORDS, //
    }, //
};
use std::num::NonZeroU64;

/// Checks a width against the remainder of the machine.
fn cuts(width: u64, numbers: impl IntoIterator<Item = u64>) {
    let reciprocal = Reciprocal::new(NonZeroU64::new(width).expect("is a width"));

    for n in numbers {
        let cut = reciprocal.map_or(n, |reciprocal| reciprocal.cut(n));
        assert_eq!(cut, n - n % width, "{n} by {width}");
    }
}

/// Numbers about which a quotient of rounded factors is most likely wrong.
fn edges() -> impl Iterator<Item = u64> + Clone {
    let powers = (0..64).map(|i| 1u64 << i);

    powers
        .flat_map(|power| {
            [
                power - 1,
                power,
                power.wrapping_add(1),
                0u64.wrapping_sub(power),
            ]
        })
        .chain([u64::MAX / 3, u64::MAX / 5, u64::MAX / 7, u64::MAX - 1])
}

#[test]
fn h_mod_10_small_widths_and_numbers() {
    for width in 1..=600 {
        cuts(width, 0..2000);
    }
}

#[test]
fn h_mod_10_edges_of_widths_and_numbers() {
    for width in edges().filter(|&width| width != 0) {
        cuts(width, edges());
        // The multiples of the width and their neighbours, the largest ones among them.
        let most = u64::MAX / width;
        for times in [1, 2, 3, most / 2, most - 1, most].map(|times| times.min(most)) {
            let multiple = width * times;
            cuts(
                width,
                [multiple.wrapping_sub(1), multiple, multiple.wrapping_add(1)],
            );
        }
    }
}

/// The bytes of a field, none if they are not all in the record.
fn bytes(record: &[u8], at: u32, len: usize) -> &[u8] {
    record.get(at as usize..at as usize + len).unwrap_or(&[])
}

/// A number of the record by its bytes, the lowest one first.
fn load(record: &[u8], at: u32, load: Load) -> u64 {
    let (size, signed) = match load {
        Load::U8 => (1, false),
        Load::S8 => (1, true),
        Load::U16 => (2, false),
        Load::S16 => (2, true),
        Load::U32 => (4, false),
        Load::S32 => (4, true),
        Load::U64 => (8, false),
        Load::S64 => (8, true),
    };
    let bytes = bytes(record, at, size);
    let mut value = (0..)
        .zip(bytes)
        .map(|(i, &byte)| u64::from(byte) << (8 * i))
        .sum();

    if signed && bytes.last().is_some_and(|&byte| byte >= 0x80) && size < 8 {
        value |= u64::MAX << (8 * size);
    }
    value
}

/// What a column comes to that is a number, by what its field says.
fn number(program: &Program, field: &Field, record: &[u8], around: &Around) -> u64 {
    let value = match field.op() {
        // It has no modifier that would be computed.
        Op::One => return 1,
        Op::Num { offset, load: how } => load(record, offset, how),
        Op::Timestamp if program.usecs() && around.in_ns => around.ts.wrapping_add(500) / 1000,
        Op::Timestamp => around.ts,
        Op::Cpu => around.cpu.into(),
        Op::Const(value) => value,
        Op::Expr(code) => {
            let mut stack = Vec::new();
            for insn in code.of(program.code()) {
                let value = if let Insn::Push(field) = insn {
                    number(program, field, record, around)
                } else {
                    let right: u64 = stack.pop().expect("an operand");
                    let mut left = || -> u64 { stack.pop().expect("an operand") };
                    match insn {
                        Insn::Push(_) | Insn::Neg => right.wrapping_neg(),
                        Insn::Add => left().wrapping_add(right),
                        Insn::Sub => left().wrapping_sub(right),
                        Insn::Mul => left().wrapping_mul(right),
                        Insn::Div => left().checked_div(right).unwrap_or(u64::MAX),
                    }
                };
                stack.push(value);
            }
            assert_eq!(stack.len(), 1);
            stack[0]
        }
        other => panic!("{other:?} is no number"),
    };

    match field.modifier() {
        Modifier::Log2 => (0..64).find(|&log| value <= 1 << log).unwrap_or(64),
        Modifier::Buckets(width) => value - value % width,
        _ => value,
    }
}

/// The bytes that a location word of the record gives, as many as are inside.
fn located(record: &[u8], offset: u32, base: usize) -> &[u8] {
    let word = load(record, offset, Load::U32) as usize;
    let from = record.get(base + (word & 0xffff)..).unwrap_or(&[]);

    &from[..from.len().min(word >> 16)]
}

/// The words of a key.
fn words(program: &Program, field: &Field, len: usize, record: &[u8], around: &Around) -> Vec<u64> {
    let string = |bytes: &[u8]| -> Vec<u8> {
        let mut bytes = bytes[..bytes.len().min(8 * len - 1)].to_vec();
        bytes.resize(8 * len, 0);
        bytes
    };
    let frames = |frames: &[u64]| -> Vec<u64> {
        let mut frames = frames[..frames.len().min(len)].to_vec();
        frames.resize(len, 0);
        frames
    };
    let bytes = match field.op() {
        Op::StaticString { offset, len } => {
            let from = record.get(offset as usize..).unwrap_or(&[]);
            string(&from[..from.len().min(len as usize)])
        }
        Op::DynString { offset } => string(located(record, offset, 0)),
        Op::RelDynString { offset } => string(located(record, offset, offset as usize + 4)),
        Op::Comm => string(around.comm.as_bytes()),
        Op::Stacktrace => return frames(around.frames),
        Op::StackField { offset } => {
            let at = load(record, offset, Load::U32) as u32 & 0xffff;
            let count = load(record, at, Load::U64);
            let most = count.min(len as u64) as u32;
            let frame = |i: u32| bytes(record, at + 8 + 8 * i, 8);
            let all: Vec<u64> = (0..most)
                .map_while(|i| frame(i).try_into().ok().map(u64::from_ne_bytes))
                .collect();
            return frames(&all);
        }
        _ => return vec![number(program, field, record, around)],
    };

    bytes
        .chunks_exact(8)
        .map(|chunk| u64::from_ne_bytes(chunk.try_into().expect("eight")))
        .collect()
}

/// A long key is the same one to a map in pieces and as a whole.
fn check_long(keys: &[u64], pieces: &impl Pieces) {
    if keys.len() <= SHORT_KEY_WORDS {
        return;
    }
    let map = map::<SeededHash>(shape(7, keys.len(), 0, 1, 1));
    let hashed = map.hashed(pieces);
    assert_eq!(map.glance_at(pieces), Glance::Unclear);
    assert_eq!(map.look_hashed(&hashed), None);

    // Keys that differ from it in a word, the last one or one that it does not have.
    for at in [0, keys.len() / 2, keys.len() - 1] {
        let mut other = keys.to_vec();
        other[at] ^= 1;
        map.insert(&other, |_| ()).expect("room for all");
        assert_eq!(map.glance_at(pieces), Glance::Unclear);
        assert_eq!(map.look_hashed(&hashed), None);
    }
    let elt = map.insert(keys, |_| ()).expect("room for all");
    assert_eq!(map.glance_at(pieces), Glance::Found(elt));
    assert_eq!(map.glance_hashed(&hashed), Glance::Found(elt));
    assert_eq!(map.look_hashed(&hashed), Some(elt));
}

/// A key of strings and numbers of the record is the same one as in pieces, and as a whole.
fn check_text_key(program: &Program, record: &[u8], around: &Around, keys: &[u64]) {
    if !program.has_text_key() {
        return;
    }
    let factors = SeededHash::default().factors();
    program.with_text_key(
        record,
        || around.cpu,
        factors,
        |key| {
            let mut found = vec![0; keys.len()];
            let mut next = 0;

            key.each(|at, word| {
                assert!(at >= next, "not in ascending order");
                next = at + 1;
                found[at] = word;
            });
            assert_eq!(found, keys);

            let end = keys
                .iter()
                .rposition(|&word| word != 0)
                .map_or(0, |at| at + 1);
            let sum = Pieces::sum(&&keys[..end], factors);
            assert_eq!(key.sum(factors), sum);
            program.key_in_pieces(record, around, |pieces| {
                assert_eq!(pieces.sum(factors), sum)
            });
            check_in(keys, end, key);
            check_long(keys, key);
        },
    );
}

/// A key is in words that begin with it, and in no others.
fn check_in(keys: &[u64], end: usize, key: &impl Pieces) {
    let held: Vec<_> = keys.iter().map(|&word| Atomic::<u64>::new(word)).collect();

    assert!(key.is_in(&held));
    for at in 0..end {
        for bit in [0, 7, 31, 56, 63] {
            let held: Vec<_> = (0..)
                .zip(keys)
                .map(|(i, &word)| Atomic::<u64>::new(word ^ u64::from(i == at) << bit))
                .collect();
            assert!(!key.is_in(&held), "word {at}, bit {bit}");
        }
    }
}

/// The key of a program that is a stack of the record is the same one as that in pieces.
fn check_stack(program: &Program, keys: &[u64], record: &[u8]) {
    if !program.key_is_stack_field() {
        return;
    }
    let key = program.stack_key(record);
    let mut found = vec![0; keys.len()];

    key.each(|at, word| found[at] = word);
    assert_eq!(found, keys);
    check_long(keys, &key);

    let len = keys
        .iter()
        .rposition(|&word| word != 0)
        .map_or(0, |at| at + 1);
    let factors = SeededHash::default().factors();
    assert_eq!(key.sum(factors), (&keys[..len]).sum(factors));
}

/// Checks all that a program computes of a record before it knows the entry.
fn check(program: &Program, record: &[u8], around: &Around) -> Result<(), TestCaseError> {
    let keys: Vec<u64> = program
        .keys()
        .iter()
        .flat_map(|key| words(program, key.field(), key.words(), record, around))
        .collect();
    let vals: Vec<u64> = program
        .vals()
        .iter()
        .map(|field| number(program, field, record, around))
        .collect();

    // What was in the room before must not show. A key may go without the zeros at its end.
    let mut room = [0xdead_beef_dead_beef; KEY_WORDS_MAX];
    let mut key = program.key(record, around, &mut room).to_vec();
    prop_assert!(key.len() <= keys.len());
    key.resize(keys.len(), 0);
    prop_assert_eq!(&key, &keys);

    let mut found = vec![0; keys.len()];
    let mut next = 0;
    program.key_in_pieces(record, around, |pieces| {
        pieces.each(|at, word| {
            assert!(at >= next, "not in ascending order");
            next = at + 1;
            found[at] = word;
        });
        check_long(&keys, pieces);
    });
    prop_assert_eq!(&found, &keys);
    check_text_key(program, record, around, &keys);
    check_stack(program, &keys, record);

    let mut room = [0xdead_beef_dead_beef; VALS_MAX];
    let values = program.values(record, around, &Refs::none(), &mut room);
    prop_assert_eq!(values, &vals[..]);

    let cpu = || around.cpu;
    let short = match program.number_keys() {
        0 => return Ok(()),
        1 => program.numbers_key::<1, true>(record, cpu).to_vec(),
        2 => program.numbers_key::<2, true>(record, cpu).to_vec(),
        3 => program.numbers_key::<3, true>(record, cpu).to_vec(),
        4 => program.numbers_key::<4, true>(record, cpu).to_vec(),
        n => panic!("{n} words"),
    };
    prop_assert_eq!(short, keys);
    for (i, &val) in vals.iter().enumerate() {
        prop_assert_eq!(program.number_val(i, record, cpu), val);
    }
    Ok(())
}

fn fields() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "u8",
        "s8",
        "u16",
        "s16",
        "u32",
        "s32",
        "u64",
        "s64",
        "pointed",
        "common_pid",
        "cpu",
        "common_timestamp",
    ])
}

fn numbers() -> impl Strategy<Value = String> {
    (fields(), any::<u64>(), 0..8u32).prop_map(|(field, width, how)| match how {
        0 => format!("{field}.log2"),
        // Widths of all sizes.
        1 | 2 => format!("{field}.buckets={}", (width >> (width % 64)).max(1)),
        3 => format!("{field}.usecs"),
        _ => field.to_owned(),
    })
}

fn keys() -> impl Strategy<Value = String> {
    let others = prop::sample::select(vec![
        "filename",
        "second",
        "label",
        "seven",
        "big",
        "comm",
        "stacktrace",
        "stack",
        "hitcount",
        "func.sym",
        "common_pid.execname",
    ]);

    prop_oneof![3 => numbers(), 1 => others.prop_map(str::to_owned)]
}

fn vals() -> impl Strategy<Value = String> {
    let expressions = prop::sample::select(vec![
        "u8+s16",
        "u64*3-s8",
        "u32*s16-5",
        "-(u8+s16)",
        "u8*u16/3",
        "s8/u8/1",
        "common_timestamp.usecs-u8",
        "u64-u8.log2*s16",
        "u32/7",
        "s64/s8",
        "u16*u16+u8",
        "-s32",
        "u8-u64.log2",
        "cpu*100+u8",
        "u8+3",
        "3+s16",
        "s64-9",
        "9-s64",
        "7-s8",
        "3*u64",
        "s8*5",
        "u64/8",
        "u64/1",
        "s64/3",
        "u64/641",
        "s32/18446744073709551615",
        "s64/9223372036854775809",
        "common_timestamp-5",
        "5-common_timestamp",
        "common_timestamp.usecs/7",
        "-common_timestamp",
        "cpu-1",
        "1-cpu",
        "-u8",
        "100/u8",
        "u64.log2+1",
        "u64.buckets=10*3",
        "s16-s16-4",
    ]);

    prop_oneof![3 => fields(), 1 => expressions].prop_map(str::to_owned)
}

fn surroundings() -> impl Strategy<Value = Around> {
    let names = prop::sample::select(vec![
        "",
        "sh",
        "a_task",
        "kworker/u8:1-ev",
        "sixteen_letters_",
    ]);
    let frames: &[&'static [u64]] = &[&[], &[1], &[1, 0, 3], &[0; 31], &[u64::MAX; 31], &[7; 16]];
    let frames = prop::sample::select(frames.to_vec());

    (any::<u64>(), any::<bool>(), any::<u32>(), names, frames).prop_map(
        |(ts, in_ns, cpu, comm, frames)| Around {
            ts,
            in_ns,
            cpu,
            comm,
            frames,
        },
    )
}

/// The trigger that these columns make, if there is one: with columns that are too long there is none.
fn program(keys: &[String], vals: &[String]) -> Option<Program> {
    let vals = match vals {
        [] => String::new(),
        vals => format!(":vals={}", vals.join(",")),
    };
    compile(&ZOO, format!("keys={}{vals}", keys.join(",")).as_bytes()).ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn h_mod_10_any_width_and_number(width in 1..=u64::MAX, n in any::<u64>(), shift in 0..64u32) {
        cuts(width, [n, n >> shift]);
        cuts((width >> shift).max(1), [n, n >> shift, n - n % width]);
    }

    #[test]
    fn any_columns_over_any_record(
        keys in prop::collection::vec(keys(), 1..=3),
        vals in prop::collection::vec(vals(), 0..=2),
        around in surroundings(),
        records in prop::collection::vec(records(), 4),
    ) {
        if let Some(program) = program(&keys, &vals) {
            for record in records {
                check(&program, &record, &around)?;
            }
        }
    }

    #[test]
    fn numbers_alone_over_any_record(
        keys in prop::collection::vec(numbers(), 1..=3),
        vals in prop::collection::vec(fields().prop_map(str::to_owned), 0..=2),
        around in surroundings(),
        records in prop::collection::vec(records(), 4),
    ) {
        if let Some(program) = program(&keys, &vals) {
            for record in records {
                check(&program, &record, &around)?;
            }
        }
    }
}

/// The two forms of a program do not get mixed up: which one a hit takes is what the columns say.
#[test]
fn only_numbers_of_the_record_are_taken_without_a_call() {
    let taken = |text: &str| compile(&ZOO, text.as_bytes()).expect(text).number_keys();

    assert_eq!(taken("keys=u8"), 1);
    assert_eq!(taken("keys=u8.buckets=10,s16.log2:vals=u64"), 2);
    assert_eq!(taken("keys=u8,cpu,hitcount:vals=s8"), 3);
    assert_eq!(taken("keys=seven,u8"), 2);
    assert_eq!(taken("keys=filename"), 0);
    assert_eq!(taken("keys=u8,stacktrace"), 0);
    assert_eq!(taken("keys=common_timestamp"), 0);
    assert_eq!(taken("keys=u8:vals=common_timestamp"), 0);
    assert_eq!(taken("keys=u8:x=s8"), 0);
}

#[test]
fn keys_that_have_a_form_of_their_own() {
    let of = |text: &str| compile(&ZOO, format!("keys={text}").as_bytes()).expect(text);

    for text in ["filename", "label,u8.log2", "filename,cpu", "filename,s16"] {
        assert!(of(text).has_text_key(), "{text}");
    }
    for text in [
        "seven,common_comm",
        "seven,common_stacktrace",
        "filename,common_timestamp",
        "stack.stacktrace",
    ] {
        assert!(!of(text).has_text_key(), "{text}");
    }
    assert!(of("stack.stacktrace").key_is_stack_field());
    for text in ["stack.stacktrace,u8", "common_stacktrace", "filename"] {
        assert!(!of(text).key_is_stack_field(), "{text}");
    }
}

/// Words of an entry, as they are for a number.
#[repr(C, align(16))]
struct Entry([Atomic<u64>; 128]);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// The form of a hit that has nothing but numbers has the key and stores the variables of the long one.
    #[test]
    fn a_hit_with_all_numbers_does_what_any_hit_does(
        keys in prop::sample::select(vec!["u8", "common_timestamp.log2", "s16,common_timestamp.usecs"]),
        vars in prop::collection::vec(vals(), 0..=4),
        around in surroundings(),
        records in prop::collection::vec(records(), 4),
    ) {
        let vars: String = vars.iter().enumerate().map(|(i, v)| format!(":v{i}={v}")).collect();
        let Ok(program) = compile(&ZOO, format!("keys={keys}{vars}").as_bytes()) else {
            return Ok(());
        };
        let words = program.all_numbers_keys();
        let are_numbers = program.vars().iter().all(|var| var.cell().kind == Kind::Number);
        prop_assert_eq!(words, if are_numbers { program.key_words() } else { 0 });
        if words == 0 {
            return Ok(());
        }
        for record in records {
            let [long, short] = [(); 2].map(|()| Entry([(); 128].map(|()| Atomic::<u64>::new(0))));
            let mut own = [0; VARS_MAX];
            let mut key = [0; KEY_WORDS_MAX];
            let key = program.key(&record, &around, &mut key);

            match words {
                1 => prop_assert_eq!(&program.all_numbers_key::<1>(&record, &around)[..], key),
                _ => prop_assert_eq!(&program.all_numbers_key::<2>(&record, &around)[..], key),
            }
            program.set_vars(&long.0, &record, &around, &Refs::none(), &mut own);
            program.set_number_vars(&short.0, &record, &around);
            let at_hand = Entry([(); 128].map(|()| Atomic::<u64>::new(0)));
            let entries = match program.numbers_are_at_hand() {
                true => {
                    program.set_vars_at_hand(&at_hand.0, &record, || around.cpu);
                    vec![&long, &short, &at_hand]
                }
                false => vec![&long, &short],
            };
            for (var, own) in program.vars().iter().zip(own) {
                let at = usize::from(var.cell().at);
                for entry in &entries {
                    let cell = NumCell::new(&entry.0[at..]).expect("aligned");
                    prop_assert_eq!(cell.read(), Some(own));
                }
            }
        }
    }
}

/// The variables of a program in an entry.
fn kept(program: &Program, entry: &Entry) -> Vec<Option<Vec<u64>>> {
    let cell = |at: usize, words: usize| entry.0[at..].get(..words).expect("inside");
    let of = |cell_of: Cell| {
        let words = cell(cell_of.at.into(), cell_of.words.into());

        match cell_of.kind {
            Kind::Number => NumCell::new(words)
                .expect("aligned")
                .read()
                .map(|n| vec![n]),
            Kind::String | Kind::Stack => {
                let mut content = Vec::new();

                TextCell::new(words)
                    .expect("words")
                    .copy(words.len(), |at, word| {
                        content.truncate(at);
                        content.push(word);
                    })
                    .map(|len| content[..len].to_vec())
            }
        }
    };

    program.vars().iter().map(|var| of(var.cell())).collect()
}

/// The words of a variable that is a string of these bytes: up to the first NUL, and no more than there is room for.
fn kept_string(bytes: &[u8], room: usize) -> Vec<u64> {
    let bytes = &bytes[..bytes.len().min(8 * room - 1)];
    // The word with the NUL belongs to it, if that is one of its bytes.
    let len = bytes
        .iter()
        .position(|&byte| byte == 0)
        .map_or(bytes.len(), |at| at + 1);
    let mut bytes = bytes[..len].to_vec();

    bytes.resize(len.next_multiple_of(8), 0);
    bytes
        .chunks_exact(8)
        .map(|chunk| u64::from_ne_bytes(chunk.try_into().expect("eight")))
        .collect()
}

/// What a variable is to be set to that is a string of the record.
fn wanted_string(field: &Field, room: usize, record: &[u8]) -> Option<Vec<u64>> {
    let bytes = match field.op() {
        Op::StaticString { offset, len } => {
            let from = record.get(offset as usize..).unwrap_or(&[]);
            &from[..from.len().min(len as usize)]
        }
        Op::DynString { offset } => located(record, offset, 0),
        Op::RelDynString { offset } => located(record, offset, offset as usize + 4),
        _ => return None,
    };

    Some(kept_string(bytes, room))
}

fn texts() -> impl Strategy<Value = String> {
    let texts = prop::sample::select(vec!["filename", "second", "label", "seven", "big"]);

    prop_oneof![3 => texts.prop_map(str::to_owned), 1 => vals(), 1 => Just("comm".to_owned())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Strings of the record are kept up to their NUL, whatever the variable held before; the form of a hit that
    /// has nothing but them and numbers does what the long one does.
    #[test]
    fn a_hit_with_texts_does_what_any_hit_does(
        vars in prop::collection::vec(texts(), 1..=3),
        around in surroundings(),
        records in prop::collection::vec(records(), 8),
    ) {
        let vars: String = vars.iter().enumerate().map(|(i, v)| format!(":v{i}={v}")).collect();
        let Ok(program) = compile(&ZOO, format!("keys=u8{vars}").as_bytes()) else {
            return Ok(());
        };
        let [long, short] = [(); 2].map(|()| Entry([(); 128].map(|()| Atomic::<u64>::new(0))));
        let cpu = || around.cpu;

        for record in records {
            let mut own = [0; VARS_MAX];

            program.set_vars(&long.0, &record, &around, &Refs::none(), &mut own);
            let found = kept(&program, &long);
            for (var, found) in program.vars().iter().zip(&found) {
                let room = usize::from(var.cell().words) - 1;

                if let Some(wanted) = wanted_string(var.field(), room, &record) {
                    prop_assert_eq!(found.as_ref(), Some(&wanted));
                }
            }
            if program.has_record_vars() {
                program.set_vars_in_record(&short.0, &record, cpu);
                prop_assert_eq!(kept(&program, &short), found);
            }
        }
    }
}

/// Which of the two forms a hit takes is what the columns say.
#[test]
fn only_strings_and_numbers_of_the_record_are_set_without_a_call() {
    let is_taken = |text: &str| {
        compile(&ZOO, text.as_bytes())
            .expect(text)
            .has_record_vars()
    };

    assert!(is_taken("keys=u8:s=filename"));
    assert!(is_taken("keys=u8,s16:x=u64,s=label,t=seven"));
    assert!(is_taken("keys=u8:s=filename,x=u64*3"));
    assert!(!is_taken("keys=u8:s=filename,x=u64*3+u32"));
    assert!(!is_taken("keys=u8:s=comm"));
    assert!(!is_taken("keys=u8:s=stacktrace"));
    assert!(!is_taken("keys=u8:s=filename,ts=common_timestamp"));
    assert!(!is_taken("keys=u8:s=filename,m=u64:onmax($m).save(u8)"));
}

/// Does nothing.
#[derive(Clone, Copy)]
struct Nothing;

impl Effects for Nothing {
    fn snapshot(self, _: &Action, _: u64) {}

    fn is_wanted(self, _: u16) -> bool {
        false
    }

    fn trace(self, _: u16, _: &impl FieldValues) {}
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// The form of a hit whose actions keep numbers of the record says when there is anything to do, with the
    /// numbers that the long form has stored.
    #[test]
    fn a_hit_with_tracked_numbers_does_what_any_hit_does(
        handler in prop::sample::select(vec!["onmax", "onchange"]),
        var in prop::sample::select(vec!["u8", "s8", "u64-1", "u16+u8"]),
        around in surroundings(),
        records in prop::collection::vec(records(), 8),
    ) {
        let text = format!("keys=u8:x=s16,v={var}:{handler}($v).save(u64)");
        let program = compile(&ZOO, text.as_bytes()).expect("a trigger");
        let entry = Entry([(); 128].map(|()| Atomic::<u64>::new(0)));
        let track = program.actions()[0].track().expect("one");
        let cpu = || around.cpu;

        prop_assert_eq!(program.tracking_keys(), 1);
        for record in records {
            let (mut own, mut again) = ([0; VARS_MAX], [0; VARS_MAX]);
            let refs = Refs::none();
            let own = program.set_vars(&entry.0, &record, &around, &refs, &mut own);
            let before = track_value(&entry.0, usize::from(track.at));
            let is_due = program.is_due(&entry.0, &record, cpu);
            let at_hand = program.own_at_hand(&record, cpu, &mut again);

            prop_assert_eq!(format!("{own:?}"), format!("{at_hand:?}"));
            let value = again[1];
            prop_assert_eq!(is_due, if handler == "onmax" { value > before } else { value != before });
            program.act(&entry.0, &own, &record, &around, &refs, Nothing);
            let after = track_value(&entry.0, usize::from(track.at));
            prop_assert_eq!(after, if is_due { value } else { before });
        }
    }
}
