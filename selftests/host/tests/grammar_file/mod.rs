// SPDX-License-Identifier: GPL-2.0

//! `selftests/grammar`, whose head says how it is written: texts derived from it.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::collections::BTreeMap;

/// A part of an alternative.
enum Part {
    Word(String),
    Rule(String),
    Group(Choice),
    Optional(Choice),
    Repeated(Choice),
}

/// Alternatives, each with its weight.
type Choice = Vec<(u32, Vec<Part>)>;

/// The rules of the file.
pub(crate) struct Grammar(BTreeMap<String, Choice>);

/// Where the numbers come from that choose among alternatives: one below its argument.
pub(crate) type Dice<'d> = dyn FnMut(u32) -> u32 + 'd;

impl Grammar {
    /// Reads the file as it was when the test was built.
    pub(crate) fn read() -> Self {
        let mut texts: Vec<(String, String)> = Vec::new();

        for line in include_str!("../../../grammar").lines() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(more) = line.strip_prefix('\t') {
                let (_, text) = texts.last_mut().expect("a rule before the tab");
                text.push_str(more);
                continue;
            }
            let (name, text) = line.split_once(" = ").expect("a rule");
            texts.push((name.to_owned(), text.to_owned() + " "));
        }
        Self(
            texts
                .into_iter()
                .map(|(name, text)| {
                    let mut rest = text.as_str();
                    let choice = choice(&mut rest);

                    assert!(rest.is_empty(), "{name}: {rest} is too much");
                    (name, choice)
                })
                .collect(),
        )
    }

    /// The names of the rules.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The words that alternatives of a rule consist of.
    pub(crate) fn words(&self, rule: &str) -> Vec<&str> {
        self.rule(rule)
            .iter()
            .filter_map(|(_, parts)| match parts.as_slice() {
                [Part::Word(word)] => Some(word.as_str()),
                _ => None,
            })
            .collect()
    }

    /// A text that the rule derives.
    pub(crate) fn derive(&self, rule: &str, dice: &mut Dice<'_>) -> String {
        let mut text = String::new();

        self.choose(self.rule(rule), dice, &mut text);
        text
    }

    /// A trigger on the event `ZOO` of the tests, with its fields in the place of the grammar's.
    pub(crate) fn trigger_of_the_zoo(&self, dice: &mut Dice<'_>) -> String {
        let text = self
            .derive("trigger", dice)
            .replace("rust_hist_test.", "zoo.")
            .replace("ftrace.", "sched.")
            .replace(".sample", ".all");

        fields_of_the_zoo(&text)
    }

    fn rule(&self, name: &str) -> &Choice {
        self.0
            .get(name)
            .unwrap_or_else(|| panic!("there is no rule {name}"))
    }

    fn choose(&self, choice: &Choice, dice: &mut Dice<'_>, text: &mut String) {
        let mut left = dice(choice.iter().map(|(weight, _)| weight).sum());
        let (_, parts) = choice
            .iter()
            .find(|(weight, _)| {
                let found = left < *weight;
                left = left.wrapping_sub(*weight);
                found
            })
            .expect("less than the sum");

        for part in parts {
            match part {
                Part::Word(word) => text.push_str(word),
                Part::Rule(name) => self.choose(self.rule(name), dice, text),
                Part::Group(choice) => self.choose(choice, dice, text),
                Part::Optional(choice) if dice(2) == 0 => self.choose(choice, dice, text),
                Part::Optional(_) => {}
                Part::Repeated(choice) => {
                    while dice(3) == 0 {
                        self.choose(choice, dice, text);
                    }
                }
            }
        }
    }
}

/// Reads alternatives up to the end or to a closing bracket, which is read, too.
fn choice(rest: &mut &str) -> Choice {
    let mut choice: Choice = vec![(1, Vec::new())];

    loop {
        *rest = rest.trim_start();
        let Some(first) = rest.chars().next() else {
            return choice;
        };
        let (weight, parts) = choice.last_mut().expect("there is always one");

        if first.is_ascii_lowercase() {
            let end = rest
                .find(|c: char| c != '-' && !c.is_ascii_alphanumeric())
                .unwrap_or(rest.len());
            parts.push(Part::Rule(rest[..end].to_owned()));
            *rest = &rest[end..];
            continue;
        }
        *rest = &rest[1..];
        match first {
            ')' | ']' | '}' => return choice,
            '|' => choice.push((1, Vec::new())),
            '(' => parts.push(Part::Group(self::choice(rest))),
            '[' => parts.push(Part::Optional(self::choice(rest))),
            '{' => parts.push(Part::Repeated(self::choice(rest))),
            '"' => parts.push(Part::Word(word(rest))),
            '*' => {
                let (number, behind) = rest.trim_start().split_once(' ').expect("a blank");
                *weight = number.parse().expect("a weight");
                *rest = behind;
            }
            other => panic!("{other} is not understood"),
        }
    }
}

/// Reads a word up to its closing quote.
fn word(rest: &mut &str) -> String {
    let mut word = String::new();
    let mut chars = rest.chars();

    loop {
        match chars.next().expect("a closing quote") {
            '"' => break,
            '\\' => word.push(match chars.next().expect("what is escaped") {
                'n' => '\n',
                't' => '\t',
                other => other,
            }),
            other => word.push(other),
        }
    }
    *rest = chars.as_str();
    word
}

/// Numbers that look random and are the same everywhere.
pub(crate) fn dice(seed: u64) -> impl FnMut(u32) -> u32 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;

    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        u32::try_from((state >> 11) % u64::from(below)).expect("below a u32")
    }
}

/// Puts fields of the event `ZOO` in the place of the grammar's.
fn fields_of_the_zoo(text: &str) -> String {
    let fields = [
        ("un", "u"),
        ("sn", "s"),
        ("fixed", "seven"),
        ("longer", "big"),
        ("dyn", "filename"),
        ("rel", "label"),
        ("when", "u64"),
        ("minus", "s64"),
        ("small", "u8"),
    ];
    let mut out = String::new();
    let mut rest = text;

    while !rest.is_empty() {
        let end = rest
            .find(|c: char| c != '_' && !c.is_ascii_alphanumeric())
            .unwrap_or(rest.len());
        let word = match &rest[..end] {
            "key" if !rest[end..].starts_with('=') => "u64".to_owned(),
            "val" if !rest[end..].starts_with('=') => "s64".to_owned(),
            "id" => "u32".to_owned(),
            word => fields
                .iter()
                .find_map(|(from, to)| {
                    let behind = word.strip_prefix(from)?;
                    behind
                        .chars()
                        .all(|c| c.is_ascii_digit())
                        .then(|| format!("{to}{behind}"))
                })
                .unwrap_or_else(|| word.to_owned()),
        };

        out.push_str(&word);
        out.extend(rest[end..].chars().next());
        rest = rest.get(end + 1..).unwrap_or("");
    }
    out
}
