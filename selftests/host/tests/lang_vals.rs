// SPDX-License-Identifier: GPL-2.0

//! `.sum`, `.min`, `.max`, `.avg` and `.stddev` of values: what is accepted, how it prints, what rows are sorted by,
//! what is kept, and what is refused.

#![cfg(not(loom))]

mod lang_common;

use lang_common::*;
use rust_hist::{
    error::{
        ErrKind::*,
        Errno::Einval, //
    },
    tracing_map::sort::Column, //
};

const SIZE: &str = ":size=2048";

/// A trigger with these values prints them so, and the line is the same trigger again.
fn prints(vals: &str, printed: &str, sort: &str, sorted: &str) -> rust_hist::program::Program {
    let sort = match sort {
        "" => String::new(),
        sort => format!(":sort={sort}"),
    };
    let line = format!("keys=u8:vals={printed}:sort={sorted}{SIZE}");

    accepts(&ZOO, &line, &line);
    accepts(&ZOO, &format!("keys=u8:vals={vals}{sort}"), &line)
}

#[test]
fn x_22_each_word_prints_as_it_was_typed() {
    let all = "u16,u16.sum,u16.min,u16.max,u16.avg,u16.stddev";

    prints(all, &format!("hitcount,{all}"), "", "hitcount");
    prints("s64.max", "hitcount,s64.max", "", "hitcount");
    prints("common_cpu.max", "hitcount,common_cpu.max", "", "hitcount");
    prints("a.b.u32.avg", "hitcount,u32.avg", "", "hitcount");

    let p = accepts(
        &ZOO,
        "keys=u8:vals=common_timestamp.max",
        "keys=u8:vals=hitcount,common_timestamp.max:sort=hitcount:size=2048:clock=global",
    );

    assert!(p.timestamps);
}

#[test]
fn x_22_own_variables_have_them() {
    let line = "keys=u8:vals=hitcount,$a.max,$a.avg:a=u16*2:sort=$a.max.descending:size=2048";

    accepts(&ZOO, line, line);
    // By the name of its column, too.
    accepts(
        &ZOO,
        "keys=u8:a=u16*2:vals=$a.max,$a.avg:sort=a.max.descending",
        line,
    );
}

#[test]
fn x_22_rows_are_sorted_by_them() {
    let sorts = [
        ("u16.max", "u16.max"),
        ("u16.max.ascending", "u16.max"),
        ("u16.max.descending", "u16.max.descending"),
        ("u16.avg.descending,u16.max", "u16.avg.descending,u16.max"),
        // The sum, wherever it is.
        ("u16", "u16"),
        ("u16.descending,u8", "u16.descending,u8"),
    ];

    for (sort, sorted) in sorts {
        let p = prints(
            "u16.max,u16.avg,u16",
            "hitcount,u16.max,u16.avg,u16",
            sort,
            sorted,
        );
        let is_made = matches!(p.sort_keys()[0].column, Column::Made(_));

        assert_eq!(is_made, sort.contains("max"), "{sort}");
    }
    // The key of that name, not the maximum; and nothing of that name.
    accepts(
        &ZOO,
        "keys=u16:vals=u16.max:sort=u16",
        "keys=u16:vals=hitcount,u16.max:sort=u16:size=2048",
    );
    refuses(
        &ZOO,
        "hist:keys=u8:vals=u16.max:sort=^u16",
        Einval,
        InvalidSortField,
    );
    refuses(
        &ZOO,
        "hist:keys=u8:vals=u16.max:sort=^u16.min",
        Einval,
        InvalidSortField,
    );
}

#[test]
fn x_22_columns_of_one_number_share_what_is_kept() {
    let sums = |vals: &str| {
        let text = format!("keys=u8:vals={vals}:a=u16*3");
        compile(&ZOO, text.as_bytes()).expect("accepted").sums()
    };

    assert_eq!(sums("u16,u16,u16,u16"), 5);
    assert_eq!(sums("u16.sum,u16.avg,u16,u16.hex,u16.percent"), 2);
    assert_eq!(sums("u16.max,u16.max"), 3);
    assert_eq!(sums("u16.max,u32.max"), 5);
    assert_eq!(sums("u16.stddev,u16.max,u16.min,u32"), 12);
    assert_eq!(sums("$a.max,$a,u16"), 4);
}

#[test]
fn x_22_what_tells_triggers_apart() {
    let one = |text: &str| {
        (
            compile(&ZOO, text.as_bytes()).expect("accepted"),
            text.to_owned(),
        )
    };
    let texts = [
        "u16",
        "u16.sum",
        "u16.min",
        "u16.max",
        "u16.avg",
        "u16.stddev",
    ];

    for a in texts {
        for b in texts {
            let (p, q) = (
                one(&format!("keys=u8:vals={a}")),
                one(&format!("keys=u8:vals={b}")),
            );
            let same = p.0.same_trigger(p.1.as_bytes(), &q.0, q.1.as_bytes());
            let shape = p.0.same_shape(p.1.as_bytes(), &q.0, q.1.as_bytes());

            assert_eq!((same, shape), (a == b, a == b), "{a} {b}");
        }
    }
}

#[test]
fn x_22_what_is_refused() {
    for word in ["maximum", "Max", "mean", "min=3", "maxi", "stdev"] {
        refuses(
            &ZOO,
            &format!("hist:keys=u8:vals=u16.^{word}"),
            Einval,
            BadFieldModifier,
        );
    }
    for text in [
        // Keys, variables and operands have none.
        "hist:keys=u8.^max",
        "hist:keys=u8:a=u16.^max",
        "hist:keys=u8:vals=u16.^max+1",
        "hist:keys=u8:vals=u32-u16.^avg",
        "hist:keys=u8:v=u16:onmax($v).save(u32.^min)",
    ] {
        let refused = compile(
            &ZOO,
            text.replace('^', "").trim_start_matches("hist:").as_bytes(),
        );
        let refusal = refused.expect_err(text);
        let entry = refusal.entry().expect(text);

        assert_eq!(
            (entry.kind, usize::from(entry.at)),
            (BadFieldModifier, text.find('^').expect("a caret")),
            "{text}"
        );
    }
    explains(&ZOO, "hist:keys=u8:vals=^filename.max", Einval, StringValue);
}
