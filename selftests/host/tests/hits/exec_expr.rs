// SPDX-License-Identifier: GPL-2.0

//! Expressions against arithmetic of 128 bits: H-EXP-01, H-EXP-02, H-EXP-06, H-EXP-08 to H-EXP-10.

use crate::{
    lang_common::*,
    run::one_hit, //
};
use proptest::prelude::*;

/// An operand: as text, and what it comes to.
#[derive(Clone, Debug)]
struct Operand {
    text: String,
    /// As a number of more than 64 bits, to which no overflow happens.
    value: i128,
    constant: bool,
}

const FIELDS: &[(&str, usize, usize, bool)] = &[
    ("u8", 8, 1, false),
    ("s8", 9, 1, true),
    ("u16", 10, 2, false),
    ("s16", 12, 2, true),
    ("u32", 16, 4, false),
    ("s32", 20, 4, true),
    ("u64", 24, 8, false),
    ("s64", 32, 8, true),
    // Before the eighth byte of the record.
    ("common_type", 0, 2, false),
    ("common_flags", 2, 1, false),
];

/// A field of the record as a number, by its declared size and sign.
fn field(record: &[u8], n: usize) -> Operand {
    let (name, at, size, signed) = FIELDS[n];
    let mut bytes = [0; 16];
    bytes[..size].copy_from_slice(&record[at..at + size]);
    let raw = i128::from_le_bytes(bytes);
    let bits = 8 * size as u32;
    let negative = signed && raw >> (bits - 1) & 1 == 1;

    Operand {
        text: name.to_owned(),
        value: if negative { raw - (1 << bits) } else { raw },
        constant: false,
    }
}

/// What [`operands`] stands for.
fn operand(record: &[u8], operand: Result<usize, u64>) -> Operand {
    match operand {
        Ok(n) => field(record, n),
        Err(value) => constant(value),
    }
}

fn constant(value: u64) -> Operand {
    Operand {
        text: value.to_string(),
        value: i128::from(value),
        constant: true,
    }
}

/// The low 64 bits.
fn low(value: i128) -> u64 {
    value.rem_euclid(1 << 64) as u64
}

/// One operation of the reference: operands are cut to 64 bits, the result is exact and then cut.
fn apply(operator: char, left: i128, right: i128) -> i128 {
    let (l, r) = (i128::from(low(left)), i128::from(low(right)));
    let exact = match operator {
        '+' => l + r,
        '-' => l - r,
        // Of 64 by 64 bits, which has room in 128 without a sign.
        '*' => ((l as u128 * r as u128) % (1 << 64)) as i128,
        '/' if r == 0 => -1,
        '/' => l / r,
        _ => unreachable!(),
    };
    i128::from(low(exact))
}

/// Products and quotients first, from the left; then the rest, from the left.
fn reference(operands: &[Operand], operators: &[char]) -> u64 {
    let mut sums: Vec<(char, i128)> = vec![('+', operands[0].value)];

    for (operator, operand) in operators.iter().zip(&operands[1..]) {
        if matches!(operator, '*' | '/') {
            let last = sums.last_mut().expect("not empty");
            last.1 = apply(*operator, last.1, operand.value);
        } else {
            sums.push((*operator, operand.value));
        }
    }
    let mut sums = sums.into_iter();
    let first = sums.next().expect("not empty").1;

    low(sums.fold(first, |sum, (operator, v)| apply(operator, sum, v)))
}

fn text_of(operands: &[Operand], operators: &[char]) -> String {
    let mut text = operands[0].text.clone();
    for (operator, operand) in operators.iter().zip(&operands[1..]) {
        text.push(*operator);
        text.push_str(&operand.text);
    }
    text
}

/// What the program makes of it, as a value and as a key.
fn both(expression: &str, record: &[u8]) -> [u64; 2] {
    let hit = |text: String| one_hit(&text, record, &AROUND).expect(&text);
    let value = hit(format!("keys=common_type:vals={expression}")).1[0];
    let key = hit(format!("keys={expression}")).0[0];
    [value, key]
}

/// A record of [`ZOO`] whose numbers are often at the ends of their range.
fn records() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        Just(0u8),
        Just(1),
        Just(0x7f),
        Just(0x80),
        Just(0xff),
        any::<u8>()
    ];
    proptest::collection::vec(byte, 100)
}

fn numbers() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..20,
        Just(1 << 20),
        Just(u64::from(u32::MAX)),
        Just(i64::MAX as u64),
        Just(u64::MAX),
        any::<u64>()
    ]
}

/// A field by number, or a constant.
fn operands() -> impl Strategy<Value = Result<usize, u64>> {
    prop_oneof![
        3 => (0..FIELDS.len()).prop_map(Ok),
        1 => numbers().prop_map(Err),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn h_exp_09_an_expression_is_what_the_reference_says(
        record in records(),
        operands in proptest::collection::vec(operands(), 2..=4),
        operators in proptest::collection::vec(
            prop_oneof![Just('+'), Just('-'), Just('*'), Just('/')], 3),
    ) {
        let operands: Vec<Operand> = operands
            .into_iter()
            .map(|which| operand(&record, which))
            .collect();
        let operators = &operators[..operands.len() - 1];
        // Constants are folded, and there a zero is refused.
        let by_zero = operators
            .iter()
            .zip(&operands[1..])
            .any(|(operator, operand)| {
                *operator == '/' && operand.constant && operand.value == 0
            });
        // A product of constants may come to a zero that something is divided by.
        let all_constant = operands.iter().all(|operand| operand.constant);
        prop_assume!(!by_zero && !all_constant);

        let text = text_of(&operands, operators);
        let expected = reference(&operands, operators);
        prop_assert_eq!(both(&text, &record), [expected; 2], "{}", text);
    }

    #[test]
    fn h_exp_02_a_minus_in_front_of_all_of_it(
        record in records(),
        a in operands(),
        b in operands(),
        operator in prop_oneof![Just('+'), Just('*'), Just('/')],
    ) {
        // Constants are folded, and there a zero is refused.
        prop_assume!((a.is_ok() || b.is_ok()) && !(operator == '/' && b == Err(0)));

        let operands = [operand(&record, a), operand(&record, b)];
        let text = format!("-({})", text_of(&operands, &[operator]));
        let expected = reference(&operands, &[operator]).wrapping_neg();

        prop_assert_eq!(both(&text, &record), [expected; 2], "{}", text);
    }
}

#[test]
fn h_exp_01_precedence_and_order() {
    let record = [0; 100];
    for (text, value) in [
        ("64/8/4/2", 1),
        ("16-8-4-2", 2),
        ("4+3*2-2", 8),
        ("u8+64/8/4", 2),
        ("u8+16-8-4", 4),
        ("u8+4+3*2", 10),
        ("u8-1", u64::MAX),
        ("1/u8", u64::MAX),
        ("u8/u8", u64::MAX),
        ("u8+10/3", 3),
        ("s8+100/7*7", 98),
    ] {
        assert_eq!(both(text, &record), [value; 2], "{text}");
    }
}
