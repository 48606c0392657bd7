// SPDX-License-Identifier: GPL-2.0

//! The parser of synthetic events of the C code once more, as straight as it can be said with the
//! library, and what holds for any line.

use rust_hist::schema::{
    self,
    SynthCommand,
    SynthErr, //
};

fn space(b: u8) -> bool {
    matches!(b, 9..=13 | 32 | 160)
}

fn words(text: &[u8]) -> Vec<&[u8]> {
    text.split(|&b| space(b))
        .filter(|w| !w.is_empty())
        .collect()
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|w| w == part)
}

fn alpha(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_' || (b >= 192 && b != 215 && b != 247)
}

fn good(name: &[u8]) -> bool {
    name.first().is_some_and(|&b| alpha(b)) && name.iter().all(|&b| alpha(b) || b.is_ascii_digit())
}

/// As `synth_field_size()`: negative means no.
fn size(ty: &[u8]) -> i32 {
    let numbers: &[(&str, i32)] = &[
        ("s64 u64 long", 8),
        ("s32 u32 int pid_t gfp_t", 4),
        ("s16 u16", 2),
        ("s8 u8 char bool", 1),
    ];
    let ty = String::from_utf8_lossy(ty).into_owned();
    let bare = match ty.strip_prefix("unsigned ") {
        Some(bare) if ["char", "int", "long"].contains(&bare) => bare,
        _ => &ty,
    };

    if let Some((_, size)) = numbers
        .iter()
        .find(|(n, _)| n.split(' ').any(|n| n == bare))
    {
        return *size;
    }
    if let Some(at) = ty.find("char[") {
        let rest = &ty[at + 5..];
        let Some(digits) = rest.strip_suffix(']') else {
            return -1;
        };
        if ty.find(']') != Some(ty.len() - 1) || digits.len() > 3 {
            return -1;
        }
        let digits = match digits.strip_prefix('+') {
            Some(more) if !more.is_empty() => more,
            Some(_) => return -1,
            None => digits,
        };
        let lower = digits.to_lowercase();
        let parsed = match lower.strip_prefix("0x") {
            _ if digits.is_empty() => Ok(0),
            Some(hex) => u32::from_str_radix(hex, 16),
            None if lower.starts_with('0') => u32::from_str_radix(&lower, 8),
            None => lower.parse(),
        };
        return match parsed {
            Ok(n @ 0..=256) if !lower.contains('+') => n as i32,
            _ => -1,
        };
    }
    0
}

/// Type and name of each field.
type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// What comes of a line: the fields' types and names, or the error and its column.
fn create(raw: &[u8]) -> Result<Fields, (SynthErr, usize)> {
    use SynthErr::*;
    let at = |part: &[u8]| find(raw, part).unwrap_or(0);
    let first = raw.split(|&b| b == b';').next().expect("one piece");

    if words(first).len() < 3 {
        return Err((InvalidCmd, 0));
    }
    let Some(end) = raw.iter().position(|&b| b == b' ' || b == b'\t') else {
        return Err((InvalidCmd, 0));
    };
    let (name, rest) = raw.split_at(end);
    if !good(name) {
        return Err((BadName, at(name)));
    }
    let mut fields = Vec::new();
    for part in rest.split(|&b| b == b';') {
        let argv = words(part);
        let mut used = 0;
        while used < argv.len() {
            let left = &argv[used..];
            let (ty, name) = if left[0] == b"unsigned" {
                if left.len() < 3 {
                    return Err((IncompleteType, at(left[0])));
                }
                used += 3;
                (left[1], Some(left[2]))
            } else {
                used += 2;
                (left[0], left.get(1).copied())
            };
            let prefix: &[u8] = if left[0] == b"unsigned" {
                b"unsigned "
            } else {
                b""
            };
            let Some(declared) = name else {
                return Err((InvalidField, at(ty)));
            };
            let bracket = declared.iter().position(|&b| b == b'[');
            let (name, array) = declared.split_at(bracket.unwrap_or(declared.len()));
            if !good(name) {
                return Err((BadName, at(declared)));
            }
            let whole = [prefix, ty, array].concat();
            let marked = |m: &[u8]| find(&whole, m).is_some();
            match size(&whole) {
                n if n < 0 && bracket.is_some() => {
                    return Err((InvalidArraySpec, at(declared)));
                }
                n if n < 0 => return Err((InvalidType, at(ty))),
                0 if !marked(b"char[") && !marked(b"long[") => {
                    return Err((InvalidType, at(ty)));
                }
                _ => {}
            }
            if fields.len() == 64 {
                return Err((TooManyFields, 0));
            }
            fields.push((whole, name.to_vec()));
        }
    }
    if fields.is_empty() {
        Err((InvalidCmd, 0))
    } else {
        Ok(fields)
    }
}

/// A line of `synthetic_events` ends as the model says, at the same column.
pub(crate) fn ends_as_in_c(text: &[u8]) {
    let logged = schema::logged(text).to_vec();
    let ours = schema::parse(text, |_| false);

    if logged.is_empty() {
        assert!(matches!(ours, Ok(SynthCommand::Nothing)));
    } else if logged[0] == b'!' {
        assert!(matches!(ours, Ok(SynthCommand::Delete(_))));
    } else {
        let ours = match ours {
            Ok(SynthCommand::Create(schema)) => Ok(schema
                .fields()
                .map(|f| (f.typed().to_vec(), f.name.to_bytes().to_vec()))
                .collect()),
            Err(refusal) => {
                let entry = refusal.entry().expect("a message");

                Err((entry.kind, usize::from(entry.at)))
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(ours, create(&logged));
    }
}

/// Whatever is written to `dynamic_events`, carets stay within the command.
pub(crate) fn dynamic_is_answered(text: &[u8]) {
    if let Err(refusal) = schema::parse_dynamic(text, b"s", b"synthetic", |_| false) {
        let entry = refusal.entry().expect("a message");

        assert!(usize::from(entry.at) < schema::logged(text).len().max(1));
    }
}
