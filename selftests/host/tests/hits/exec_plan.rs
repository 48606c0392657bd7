// SPDX-License-Identifier: GPL-2.0

//! What a hit computes, in the form that it was brought into, against the definition of the columns:
//! H-KEY-01 to H-KEY-04, H-MOD-09, H-MOD-10, H-MOD-11, H-EXP-01, H-EXP-08.

use crate::{
    lang_common::*,
    records::records,
    run::*, //
};
use proptest::prelude::*;
use rust_hist::{
    bucket::{
        Buckets,
        Scale, //
    },
    limits::KEY_PARTS_MAX,
    program::{
        Field,
        Insn,
        Kind,
        Modifier,
        Op,
        Program,
        Reciprocal,
        Var, //
    },
    sync::Pair,
    tracing_map::{
        NumCell,
        TextCell, //
    }, //
};
use std::{
    collections::BTreeMap,
    num::NonZeroU64, //
};

/// Checks a width against the remainder of the machine.
fn cuts(width: u64, numbers: impl IntoIterator<Item = u64>) {
    let reciprocal = Reciprocal::new(NonZeroU64::new(width).expect("is a width"));

    for n in numbers {
        let cut = reciprocal.map_or(n, |reciprocal| reciprocal.quotient(n) * width);
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
fn load(record: &[u8], at: u32, size: u8, signed: bool) -> u64 {
    let size = size.into();
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
pub(super) fn number(program: &Program, field: &Field, record: &[u8], around: &Around) -> u64 {
    let value = match field.op {
        // It has no modifier that would be computed.
        Op::One => return 1,
        Op::Num {
            offset,
            size,
            signed,
        } => load(record, offset, size, signed),
        Op::Timestamp if program.usecs && around.in_ns => around.ts.wrapping_add(500) / 1000,
        Op::Timestamp => around.ts,
        Op::Cpu => around.cpu.into(),
        Op::Const(value) => value,
        Op::Own(n) => number(program, &program.vars[usize::from(n)].field, record, around),
        Op::Expr(code) => {
            let mut stack = Vec::new();
            for insn in code.of(&program.code) {
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

    match field.modifier {
        Modifier::Log2(Scale::POWERS) => (0..64).find(|&log| value <= 1 << log).unwrap_or(64),
        Modifier::Log2(scale) if field.signed && value >> 63 != 0 => {
            part(scale, value.wrapping_neg()).wrapping_neg()
        }
        Modifier::Log2(scale) => part(scale, value),
        Modifier::Buckets(width) => value - value % width,
        _ => value,
    }
}

/// The first bucket that does not end before `value`.
fn part(scale: Scale, value: u64) -> u64 {
    let end = |word| Buckets::Log2(scale).bounds(word).hi;

    (0..)
        .find(|&word| i128::from(value) <= end(word))
        .expect("the last one ends with u64::MAX")
}

/// The bytes that a location word of the record gives, as many as are inside.
fn located(record: &[u8], offset: u32, base: usize) -> &[u8] {
    let word = load(record, offset, 4, false) as usize;
    let from = record.get(base + (word & 0xffff)..).unwrap_or(&[]);

    &from[..from.len().min(word >> 16)]
}

/// Whether each word of the key is a number, or is at a fixed place of the record.
fn has_few_words(program: &Program) -> bool {
    let keys = program.keys.iter();
    let is_fixed = |op| {
        !matches!(
            op,
            Op::DynString { .. }
                | Op::RelDynString { .. }
                | Op::Comm
                | Op::Stacktrace
                | Op::StackField { .. }
        )
    };

    keys.clone().all(|key| is_fixed(key.field.op))
        && keys.map(|key| key.words()).sum::<usize>() <= KEY_PARTS_MAX
}

/// The words of a key.
pub(super) fn words(
    program: &Program,
    field: &Field,
    len: usize,
    record: &[u8],
    around: &Around,
) -> Vec<u64> {
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
    let bytes = match field.op {
        Op::StaticString { offset, len: size } => {
            let from = record.get(offset as usize..).unwrap_or(&[]);
            let inside = from.len().min(size as usize);
            // A key of a few words has none of a word of which a byte is missing.
            match has_few_words(program) && inside < (size as usize).min(8 * len - 1) {
                true => string(&from[..inside / 8 * 8]),
                false => string(&from[..inside]),
            }
        }
        Op::DynString { offset } => string(located(record, offset, 0)),
        Op::RelDynString { offset } => string(located(record, offset, offset as usize + 4)),
        Op::Comm => string(around.comm.as_bytes()),
        Op::Stacktrace => return frames(around.frames),
        Op::StackField { offset } => {
            let at = load(record, offset, 4, false) as u32 & 0xffff;
            let count = load(record, at, 8, false);
            let most = count.min(len as u64) as u32;
            let frame = |i: u32| bytes(record, at + 8 + 8 * i, 8);
            let all: Vec<u64> = (0..most)
                .map_while(|i| frame(i).try_into().ok().map(u64::from_ne_bytes))
                .collect();
            return frames(&all);
        }
        _ => return vec![number(program, field, record, around)],
    };

    words_of_bytes(&bytes, len)
}

/// Hits the only trigger of a world with these records, and checks each key, sum and variable.
fn check(world: &World, records: &[Vec<u8>], around: &Around) -> Result<(), TestCaseError> {
    let program = &*world.triggers[0].program;
    let mut rows = BTreeMap::<Vec<u64>, Vec<u64>>::new();

    for record in records {
        let columns = program.keys.iter();
        let key: Vec<u64> = columns
            .flat_map(|key| words(program, &key.field, key.words(), record, around))
            .collect();
        let vals = program
            .vals
            .iter()
            .map(|field| number(program, field, record, around));
        let added: Vec<u64> = [1].into_iter().chain(vals).collect();
        let sums = rows.entry(key.clone()).or_insert(vec![0; added.len()]);

        for (sum, added) in sums.iter_mut().zip(added) {
            *sum = sum.wrapping_add(added);
        }
        prop_assert_eq!(world.hit(0, record, around), HIT);

        let aux = &world.aux(0, &key);

        for var in program.vars.iter() {
            if let Some(wanted) = wanted(program, var, record, around) {
                prop_assert_eq!(kept(var, aux), Some(wanted));
            }
        }
    }
    prop_assert_eq!(world.sums(0), rows.into_iter().collect::<Vec<_>>());
    Ok(())
}

/// The words that a variable of an entry holds, if it is set; of a string those that a reader looks at.
fn kept(var: &Var, aux: &[Pair]) -> Option<Vec<u64>> {
    let cell = var.cell;
    let words = &Pair::words(aux)[cell.at.into()..][..cell.words.into()];
    let mut content = Vec::new();

    if cell.kind == Kind::Number {
        return NumCell::at(aux, cell.at)?.read().map(|n| vec![n]);
    }
    let len = TextCell::new(words)?.copy(words.len(), |at, word| {
        content.truncate(at);
        content.push(word);
    })?;

    content.truncate(len);
    if cell.kind == Kind::String {
        let bytes: Vec<u8> = content.iter().flat_map(|word| word.to_ne_bytes()).collect();

        return Some(before_nul(&bytes));
    }
    Some(content)
}

/// What a variable is to hold, if it is a number or a string of the record.
fn wanted(program: &Program, var: &Var, record: &[u8], around: &Around) -> Option<Vec<u64>> {
    let room = usize::from(var.cell.words) - 1;
    let bytes = match var.field.op {
        _ if var.cell.kind == Kind::Number => {
            return Some(vec![number(program, &var.field, record, around)])
        }
        Op::StaticString { offset, len } => {
            let from = record.get(offset as usize..).unwrap_or(&[]);
            &from[..from.len().min(len as usize)]
        }
        Op::DynString { offset } => located(record, offset, 0),
        Op::RelDynString { offset } => located(record, offset, offset as usize + 4),
        _ => return None,
    };

    Some(before_nul(&bytes[..bytes.len().min(8 * room - 1)]))
}

/// The words of the bytes before the first NUL.
fn before_nul(bytes: &[u8]) -> Vec<u64> {
    let before = bytes.split(|&byte| byte == 0).next().unwrap_or(&[]);

    words_of_bytes(before, before.len().div_ceil(8))
}

/// The fields of the record that are numbers of all sizes and signs.
pub(super) const FIELDS: [&str; 9] = [
    "u8",
    "s8",
    "u16",
    "s16",
    "u32",
    "s32",
    "u64",
    "s64",
    "common_pid",
];

pub(super) fn fields() -> impl Strategy<Value = &'static str> {
    let others = [
        "pointed",
        "cpu",
        "common_timestamp",
        "common_type",
        "common_preempt_count",
    ];

    prop::sample::select([&FIELDS[..], &others].concat())
}

pub(super) fn numbers() -> impl Strategy<Value = String> {
    (fields(), any::<u64>(), 0..8u32).prop_map(|(field, width, how)| match how {
        0 => format!("{field}.log2"),
        4 => format!("{field}.log2={}", width % 7),
        // Widths of all sizes.
        1 | 2 => format!("{field}.buckets={}", (width >> (width % 64)).max(1)),
        3 => format!("{field}.usecs"),
        _ => field.to_owned(),
    })
}

pub(super) fn keys() -> impl Strategy<Value = String> {
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

pub(super) fn vals() -> impl Strategy<Value = String> {
    let expressions = prop::sample::select(vec![
        "u8+s16",
        "u64*3-s8",
        "u32*s16-5",
        "-(u8+s16)",
        "u8*u16/3",
        "s8/u8/1",
        "common_timestamp.usecs-u8",
        "u64-u8.log2*s16",
        "u8-s64.log2=5",
        "u64.log2=3-s16.log2=1",
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

pub(super) fn surroundings() -> impl Strategy<Value = Around> {
    let names = prop::sample::select(vec![
        "",
        "sh",
        "a_task",
        "kworker/u8:1-ev",
        "sixteen_letters_",
    ]);
    let frames: &[&'static [u64]] = &[&[], &[1], &[1, 2, 3], &[u64::MAX; 31], &[7; 16], &[9; 40]];
    let frames = prop::sample::select(frames.to_vec());

    let task = any::<[u64; 4]>();

    (any::<u64>(), any::<bool>(), 0..CPUS, names, task, frames).prop_map(
        |(ts, in_ns, cpu, comm, task, frames)| Around {
            ts,
            in_ns,
            cpu,
            comm,
            task,
            frames,
            ..AROUND
        },
    )
}

pub(super) fn texts() -> impl Strategy<Value = String> {
    let texts = prop::sample::select(vec!["filename", "second", "label", "seven", "big"]);

    prop_oneof![3 => texts.prop_map(str::to_owned), 2 => vals(), 1 => Just("comm".to_owned())]
}

/// A world with a trigger of these columns, if there is one: with columns that are too long there is none.
fn world(keys: &[String], vals: &[String], vars: &[String], hash: Hash) -> Option<World> {
    let vals = match vals {
        [] => String::new(),
        vals => format!(":vals={}", vals.join(",")),
    };
    let vars: String = vars
        .iter()
        .enumerate()
        .map(|(i, v)| format!(":v{i}={v}"))
        .collect();
    let tables = Tables {
        bits: 4,
        hash,
        ..Tables::default()
    };
    let mut world = World {
        tables,
        ..World::default()
    };
    let text = format!("keys={}{vals}{vars}", keys.join(","));

    world.try_add(&ZOO, ALL, text.as_bytes()).ok()?;
    Some(world)
}

/// Some records, and each with another bit.
pub(super) fn alike() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let bit = (any::<prop::sample::Index>(), 0..8u32);

    prop::collection::vec((records(), bit), 5).prop_map(|all| {
        all.into_iter()
            .flat_map(|(record, (at, bit))| {
                let mut other = record.clone();

                if !other.is_empty() {
                    other[at.index(record.len())] ^= 1 << bit;
                }
                [record, other]
            })
            .collect()
    })
}

/// Strings that differ in words that are 0 in one of them, before a column that is the same; the longer ones come first
/// to the table, and so first to a lookup.
#[test]
fn long_keys_of_one_length_are_told_apart() {
    let strings = [24, 19, 16, 8, 5, 0].into_iter().flat_map(|len| {
        (0..27).map(move |n: u32| -> Vec<u8> {
            let word = |i| [0, 1, 255][(n / 3u32.pow(i) % 3) as usize..][..1].repeat(8);

            (0..3).flat_map(word).take(len).collect()
        })
    });
    let records: Vec<Vec<u8>> = strings
        .map(|string| {
            let mut record = vec![0; 100];

            record[8] = 200;
            record[40..44].copy_from_slice(&((string.len() as u32) << 16 | 100).to_ne_bytes());
            record.extend(string);
            record
        })
        .collect();

    for keys in ["filename,u8", "u8,filename", "filename,seven,u8"] {
        let mut world = World {
            tables: Tables {
                hash: Hash::Same,
                ..Tables::default()
            },
            ..World::default()
        };

        world.add(&ZOO, ALL, &format!("keys={keys}"));
        check(&world, &records, &AROUND).expect(keys);
    }
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
        hash in prop::sample::select(vec![Hash::Seeded, Hash::Same]),
        around in surroundings(),
        records in alike(),
    ) {
        if let Some(world) = world(&keys, &vals, &[], hash) {
            check(&world, &records, &around)?;
        }
    }

    #[test]
    fn numbers_alone_over_any_record(
        keys in prop::collection::vec(numbers(), 1..=3),
        vals in prop::collection::vec(fields().prop_map(str::to_owned), 0..=2),
        hash in prop::sample::select(vec![Hash::Seeded, Hash::Same]),
        around in surroundings(),
        records in alike(),
    ) {
        if let Some(world) = world(&keys, &vals, &[], hash) {
            check(&world, &records, &around)?;
        }
    }

    /// Strings of the record are kept up to their NUL, whatever the variable held before.
    #[test]
    fn any_variables_over_any_record(
        key in prop::sample::select(vec!["u8", "common_timestamp.log2", "s16,cpu", "seven,u8", "filename"]),
        vars in prop::collection::vec(texts(), 1..=4),
        around in surroundings(),
        records in alike(),
    ) {
        if let Some(world) = world(&[key.to_owned()], &[], &vars, Hash::Seeded) {
            check(&world, &records, &around)?;
        }
    }
}
