// SPDX-License-Identifier: GPL-2.0

//! The inputs that were kept, of fuzzing and of what it found, as a test that needs no fuzzer.
//!
//! `corpus/TARGET`, and `found/TARGET` for what once failed, have one input a line; bytes that are no
//! plain character are written `\xNN`.

use rust_hist_fuzz::Target;
use std::{
    fs,
    panic::{
        self,
        AssertUnwindSafe, //
    },
    path::Path, //
};

/// The bytes of a line.
fn input(line: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = line.as_bytes();

    while let [first, behind @ ..] = rest {
        if let [b'\\', b'x', digits @ ..] = rest {
            let hex = std::str::from_utf8(&digits[..2]).expect("two digits");
            out.push(u8::from_str_radix(hex, 16).expect("two digits"));
            rest = &digits[2..];
        } else {
            out.push(*first);
            rest = behind;
        }
    }
    out
}

fn replay(name: &str) {
    let target = Target::named(name).expect("a target");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = fs::read_to_string(root.join("corpus").join(name)).expect("the corpus");
    // What once failed.
    let found = fs::read_to_string(root.join("found").join(name)).unwrap_or_default();

    for line in corpus.lines().chain(found.lines()) {
        let input = input(line);
        let run = AssertUnwindSafe(|| target.run(&input));

        assert!(panic::catch_unwind(run).is_ok(), "{name}: {line}");
    }
    assert!(corpus.lines().count() > 30, "a corpus that was lost");
}

macro_rules! replays {
    ($($name:ident),*) => {
        $(
            #[test]
            fn $name() {
                replay(stringify!($name));
            }
        )*

        #[test]
        fn every_target_has_a_corpus() {
            let names = [$(stringify!($name)),*];
            assert!(Target::ALL.iter().all(|target| names.contains(&target.name)));
            assert_eq!(Target::ALL.len(), names.len());
        }
    };
}

replays!(trigger, scenario, synth, record, map, cells, filter);
