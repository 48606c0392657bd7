// SPDX-License-Identifier: GPL-2.0

//! Definitions of synthetic events: what is accepted, what is refused and where the caret stands.

#![cfg(not(loom))]

mod schema_common;

use rust_hist::{
    alloc::{
        fail_after,
        AllocError, //
    },
    error::Errno,
    field::SynthClass,
    schema::{
        self,
        is_type,
        SynthCommand,
        SynthErr,
        SynthRefusal,
        FIELDS_MAX, //
    },
};
use schema_common::*;

/// What the refusal says of a command in which `^` stands before the place of the caret.
fn refusal(marked: &str) -> (SynthRefusal, u16) {
    let at = marked.find('^').expect("a caret");
    let text = marked.replacen('^', "", 1);

    match schema::parse(text.as_bytes(), |name| name == b"taken") {
        Err(refusal) => (refusal, at.try_into().expect("a column")),
        Ok(command) => panic!("{text}: {command:?}"),
    }
}

fn refused(marked: &str, kind: SynthErr) {
    let (refusal, at) = refusal(marked);

    assert_eq!(
        refusal,
        SynthRefusal::new(Errno::Einval, kind, at),
        "{marked}"
    );
}

/// Those of upstream's trigger-synthetic_event_syntax_errors.tc.
///
/// E-51, E-52, E-56, E-57, E-58, E-59, S-SYN-02, S-SYN-05, S-SYN-06, S-SYN-07, S-TYP-03, U-26.
#[test]
fn carets_of_upstreams_test() {
    use SynthErr::*;

    for (marked, kind) in [
        ("myevent ^chr arg", InvalidType),
        ("myevent ^unsigned arg", IncompleteType),
        ("myevent char ^str]; int v", BadName),
        ("^mye-vent char str[]", BadName),
        ("myevent char ^st-r[]", BadName),
        ("myevent char str;^[]", InvalidField),
        ("myevent char str; ^int", InvalidField),
        ("myevent char ^str[; int v", InvalidArraySpec),
        ("myevent char ^str[kdjdk]", InvalidArraySpec),
        ("myevent char ^str[257]", InvalidArraySpec),
        ("^mye;vent char str[]", InvalidCmd),
        ("^myevent ; char str[]", InvalidCmd),
        ("^myevent; char str[]", InvalidCmd),
        ("^myevent ;char str[]", InvalidCmd),
        ("^; char str[]", InvalidCmd),
        ("^;myevent char str[]", InvalidCmd),
        ("^myevent", InvalidCmd),
    ] {
        refused(marked, kind);
    }
}

/// S-SYN-04, S-SYN-05, S-TYP-03, S-TYP-04.
#[test]
fn more_carets() {
    use SynthErr::*;

    for (marked, kind) in [
        ("^ev int", InvalidCmd),
        ("ev ^unsigned int", IncompleteType),
        ("ev int a; ^unsigned int", IncompleteType),
        ("ev int a ^unsigned", IncompleteType),
        ("ev unsigned ^s64 a", InvalidType),
        ("ev ^unsigned unsigned a", InvalidType),
        // Brackets after the type, so it is the type that is wrong.
        ("ev ^char[257] a", InvalidType),
        ("ev ^char[x] a", InvalidType),
        ("ev int ^1a", BadName),
        ("ev int ^[4]", BadName),
        ("^1ev int a", BadName),
        ("ev char ^a[1000]", InvalidArraySpec),
        ("ev char ^a[16]x", InvalidArraySpec),
        ("ev char ^a]", BadName),
        ("ev char ^a[]]", InvalidArraySpec),
        ("ev char[4] ^a[4]", InvalidArraySpec),
        ("ev char ^a[-1]", InvalidArraySpec),
        ("ev char ^a[0x]", InvalidArraySpec),
        // Arrays of other types.
        ("ev ^int a[4]", InvalidType),
        ("ev ^u8[4] a", InvalidType),
    ] {
        refused(marked, kind);
    }
    // The caret stands where the text occurs first.
    refused("^s int a; s b", InvalidType);
    refused("my^foo int a; foo b", InvalidType);
}

/// E-54, S-SYN-09.
#[test]
fn the_name_is_judged_before_the_fields() {
    let (refusal, at) = refusal("^taken chr x");

    assert_eq!(
        refusal,
        SynthRefusal::new(Errno::Eexist, SynthErr::EventExists, at)
    );
    refused("^ta-ken chr x", SynthErr::BadName);
}

#[test]
fn carets_count_from_the_first_character() {
    let text = b" \t  ev chr arg";
    let refusal = schema::parse(text, |_| false)
        .map(|_| ())
        .expect_err("no such type");

    assert_eq!(schema::logged(text), b"ev chr arg");
    assert_eq!(refusal.entry().map(|entry| entry.at), Some(3));
}

#[test]
fn a_line_of_blanks_is_nothing() {
    for text in ["", " ", "\t \r"] {
        let command = schema::parse(text.as_bytes(), |_| panic!("asked for a name"));

        assert!(matches!(command, Ok(SynthCommand::Nothing)));
        let command = schema::parse_dynamic(text.as_bytes(), b"s", b"synthetic", |_| true);
        assert!(matches!(command, Ok(Some(SynthCommand::Nothing))));
    }
}

/// S-IF-01.
#[test]
fn deletion_takes_the_name_and_ignores_the_rest() {
    for (text, name) in [
        ("!ev", "ev"),
        ("!ev int a", "ev"),
        ("  !ev\tnonsense;;; ^", "ev"),
        ("! ev", ""),
        ("!", ""),
        ("!ev;int a", "ev;int"),
    ] {
        match schema::parse(text.as_bytes(), |_| panic!("asked for a name")) {
            Ok(SynthCommand::Delete(found)) => assert_eq!(found, name.as_bytes(), "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

/// S-IF-01, S-SYN-01, S-SYN-03.
#[test]
fn both_syntaxes_define_the_same() {
    let listed = "ev\tu64 lat; pid_t pid; char[16] comm; unsigned int n\n";

    for text in [
        "ev u64 lat; pid_t pid; char comm[16]; unsigned int n",
        "ev u64 lat pid_t pid char comm[16] unsigned int n",
        "ev u64 lat pid_t pid; char[16] comm unsigned int n",
        "  ev\t  u64 lat ;; pid_t\tpid;char comm[16]\t;unsigned  int n ; ",
        "ev u64\u{b}lat;pid_t pid;char comm[16];unsigned int n;",
    ] {
        assert_eq!(listing(&defined(text)), listed, "{text}");
    }
}

/// Only blank and tab end the name, though the words of a field are ended by any white space.
#[test]
fn the_name_ends_at_a_blank_or_tab() {
    refused("^ev\u{b}int\u{b}a", SynthErr::InvalidCmd);
    refused("^ev\u{b}x int a b", SynthErr::BadName);
    assert_eq!(listing(&defined("ev int\u{b}a")), "ev\tint a\n");
}

type Known = (
    &'static str,
    &'static str,
    u16,
    bool,
    SynthClass,
    &'static str,
);

/// S-TYP-01, S-TYP-02, S-TYP-05, S-TYP-06, S-SYN-03, S-REC-04.
#[test]
fn types() {
    use SynthClass::*;
    let types: &[Known] = &[
        ("s64", "s64", 8, true, Number, "%lld"),
        ("u64", "u64", 8, false, Number, "%llu"),
        ("s32", "s32", 4, true, Number, "%d"),
        ("u32", "u32", 4, false, Number, "%u"),
        ("s16", "s16", 2, true, Number, "%d"),
        ("u16", "u16", 2, false, Number, "%u"),
        ("s8", "s8", 1, true, Number, "%d"),
        ("u8", "u8", 1, false, Number, "%u"),
        ("char", "char", 1, true, Number, "%d"),
        ("unsigned char", "unsigned char", 1, false, Number, "%u"),
        ("int", "int", 4, true, Number, "%d"),
        ("unsigned int", "unsigned int", 4, false, Number, "%u"),
        ("long", "long", 8, true, Number, "%ld"),
        ("unsigned long", "unsigned long", 8, false, Number, "%lu"),
        ("bool", "bool", 1, true, Number, "%d"),
        ("pid_t", "pid_t", 4, true, Number, "%d"),
        ("gfp_t", "gfp_t", 4, false, Number, "%x"),
        ("char[1]", "char[1]", 1, true, StaticString, "%s"),
        ("char[256]", "char[256]", 256, true, StaticString, "%s"),
        ("char[010]", "char[010]", 8, true, StaticString, "%s"),
        ("char[0xf]", "char[0xf]", 15, true, StaticString, "%s"),
        ("char[+7]", "char[+7]", 7, true, StaticString, "%s"),
        (
            "unsigned char[9]",
            "unsigned char[9]",
            9,
            false,
            StaticString,
            "%s",
        ),
        ("char[]", "__data_loc char[]", 8, true, DynString, "%s"),
        ("char[0]", "__data_loc char[0]", 8, true, DynString, "%s"),
        (
            "unsigned char[]",
            "__data_loc unsigned char[]",
            8,
            true,
            DynString,
            "%s",
        ),
        ("long[]", "__data_loc long[]", 8, true, Stack, "%s"),
        ("long[7]", "__data_loc long[7]", 8, true, Stack, "%s"),
        (
            "unsigned long[]",
            "__data_loc unsigned long[]",
            8,
            true,
            Stack,
            "%s",
        ),
        // Whatever holds the mark of a string or a stack is one, as in the C code.
        ("mychar[16]", "mychar[16]", 16, true, StaticString, "%s"),
        ("long[x", "__data_loc long[x", 8, true, Stack, "%s"),
    ];

    for &(typed, shown, size, signed, class, format) in types {
        let (base, brackets) = typed.split_at(typed.find('[').unwrap_or(typed.len()));

        for text in [format!("ev {typed} f"), format!("ev {base} f{brackets}")] {
            let schema = defined(&text);
            let field = schema.field(0).expect("one field");

            assert_eq!(field.name, c"f");
            assert_eq!(field.type_name.to_str(), Ok(shown), "{text}");
            assert_eq!(field.typed(), typed.as_bytes());
            assert_eq!(
                (field.size, field.signed, field.class),
                (size, signed, class),
                "{text}"
            );
            assert_eq!(listing(&schema), format!("ev\t{typed} f\n"));
            assert!(
                print_fmt(&schema).starts_with(&format!("\"f={format}\", ")),
                "{text}"
            );
        }
        assert!(is_type(typed.as_bytes()), "{typed}");
    }
    for text in [
        "",
        "s65",
        "unsigned",
        "struct foo",
        "char *",
        "unsigned s8",
        "Int",
    ] {
        assert!(!is_type(text.as_bytes()), "{text}");
    }
    // The definition then says no, as in the C code.
    assert!(is_type(b"int[4]") && is_type(b"char[257]"));
}

/// S-TYP-03, E-59.
#[test]
fn lengths_of_strings() {
    for ok in ["1", "255", "256", "001", "0x1", "377", ""] {
        let text = format!("ev char a[{ok}]");
        match ok {
            "377" => refused("ev char ^a[377]", SynthErr::InvalidArraySpec),
            _ => assert_eq!(defined(&text).len(), 1),
        }
    }
    for bad in [
        "257", "999", "1000", "0256", "0400", "0x100", " ", "1x", "x", "--1",
    ] {
        let text = format!("ev char a[{bad}]");
        assert!(define(&text).is_err(), "{text}");
    }
}

/// S-SYN-04.
#[test]
fn names() {
    for name in [
        "a",
        "_",
        "_1",
        "a1_B",
        "save",
        "save_this",
        "trace",
        "common_pid",
        "hitcount",
    ] {
        let schema = defined(&format!("{name} int {name}"));

        assert_eq!(schema.name().to_str(), Ok(name));
        assert_eq!(schema.field(0).map(|f| f.name), Some(schema.name()));
    }
    // Letters are those of Latin-1: the first is one of it, and the second of two in UTF-8 is none.
    assert!(schema::parse(b"\xe9t\xe9 int \xfcber", |_| false).is_ok());
    assert!(schema::parse("été int a".as_bytes(), |_| false).is_err());
    assert!(schema::parse(b"\xd7 int a", |_| false).is_err());
    // A blank of Latin-1 separates words, but does not end the name.
    assert!(schema::parse(b"ev int\xa0a", |_| false).is_ok());
    assert!(schema::parse(b"ev\xa0int a b", |_| false).is_err());
}

/// S-SYN-10.
#[test]
fn names_of_fields_may_be_equal() {
    let schema = defined("ev int a; long a");

    assert_eq!(schema.find(b"a"), Some(0));
    assert_eq!(schema.find(b"b"), None);
    assert_eq!(schema.len(), 2);
}

/// S-SYN-08, E-55.
#[test]
fn sixty_four_fields() {
    let fields: Vec<_> = (0..FIELDS_MAX).map(|n| format!("int f{n}")).collect();
    let most = format!("ev {}", fields.join("; "));
    let more = format!("{most}; int g");
    // What is wrong with the field itself comes first.
    let worse = format!("{most}; chr g");

    assert_eq!(defined(&most).len(), FIELDS_MAX);
    let refusal = define(&more).map(|_| ()).expect_err("a field too many");
    assert_eq!(said(&refusal), Some((SynthErr::TooManyFields, 0)));
    let refusal = define(&worse).map(|_| ()).expect_err("no such type");
    assert_eq!(
        said(&refusal).map(|(kind, _)| kind),
        Some(SynthErr::InvalidType)
    );
}

/// The message and the column of the caret.
fn said(refusal: &SynthRefusal) -> Option<(SynthErr, u16)> {
    refusal.entry().map(|entry| (entry.kind, entry.at))
}

fn dynamic(text: &str) -> Result<Option<String>, Option<(SynthErr, u16)>> {
    match schema::parse_dynamic(text.as_bytes(), b"s", b"synthetic", |n| n == b"taken") {
        Ok(None) => Ok(None),
        Ok(Some(SynthCommand::Create(schema))) => Ok(Some(listing(&schema))),
        Ok(Some(other)) => panic!("{text}: {other:?}"),
        Err(refusal) => Err(said(&refusal)),
    }
}

/// S-IF-04, E-53.
#[test]
fn lines_of_dynamic_events() {
    use SynthErr::*;
    let listed = Ok(Some("ev\tint a; char[] b\n".into()));

    assert_eq!(dynamic("s:ev int a; char b[]"), listed);
    assert_eq!(dynamic(" s:synthetic/ev\tint a char b[]"), listed);
    for other in [
        "p:ev do_nothing",
        "e:x a/b",
        "ss:ev int a",
        "s",
        "x",
        "S:ev int a",
        "-:ev",
    ] {
        assert_eq!(dynamic(other), Ok(None), "{other}");
    }
    for (text, kind, at) in [
        ("s:ev", InvalidCmd, 0),
        ("s:", InvalidCmd, 0),
        ("s:ev int", InvalidCmd, 0),
        ("s:ev int;", InvalidCmd, 0),
        ("s: int a b", InvalidCmd, 0),
        ("s:synthetic/ int a b", InvalidCmd, 0),
        ("s:other/ev int a", InvalidDynCmd, 0),
        ("s:syntheticx/ev int a", InvalidDynCmd, 0),
        ("s:synthetic/ev int a/b", BadName, 19),
        // A slash anywhere makes it a group.
        ("s:ev int a/b", InvalidDynCmd, 0),
        ("s:a/ev", InvalidCmd, 0),
        ("s:synthetic/e-v int a", BadName, 12),
        ("s:taken int a", EventExists, 2),
        ("s:!ev int a", BadName, 2),
        ("s:ev chr a", InvalidType, 5),
    ] {
        assert_eq!(dynamic(text), Err(Some((kind, at))), "{text}");
    }
}

/// The names beside the C code.
#[test]
fn lines_of_dynamic_events_under_other_names() {
    let parse = |text: &str| {
        schema::parse_dynamic(text.as_bytes(), b"rs", b"rsynthetic", |_| false)
            .map(|command| command.is_some())
            .map_err(|refusal| said(&refusal).map(|(kind, _)| kind))
    };

    assert_eq!(parse("rs:ev int a"), Ok(true));
    assert_eq!(parse("rs:rsynthetic/ev int a"), Ok(true));
    assert_eq!(parse("s:ev int a"), Ok(false));
    assert_eq!(
        parse("rs:synthetic/ev int a"),
        Err(Some(SynthErr::InvalidDynCmd))
    );
}

#[test]
fn no_memory_at_any_point() {
    let text = "ev unsigned char a[16]; char[] b; long[] c; u64 d";

    for n in 0.. {
        fail_after(Some(n));
        let schema = define(text);
        fail_after(None);
        match schema {
            Err(refusal) => assert_eq!(refusal, AllocError.into()),
            Ok(schema) => {
                assert!(n > 50);
                assert_eq!(listing(&schema), listing(&defined(text)));
                break;
            }
        }
    }
}

#[test]
fn the_texts_are_those_of_the_c_code_in_its_order() {
    let c = [
        "Illegal name",
        "Command must be of the form: <name> field[;field] ...",
        "Command must be of the form: s or -:[synthetic/]<name> field[;field] ...",
        "Event already exists",
        "Too many fields",
        "Incomplete type",
        "Invalid type",
        "Invalid field",
        "Invalid array specification",
    ];

    for (text, c) in SynthErr::TEXTS.iter().zip(c) {
        assert_eq!(text.to_str(), Ok(c));
    }
    assert_eq!(SynthErr::InvalidArraySpec.text(), SynthErr::TEXTS[8]);
    assert!(SynthErr::TEXTS.len() > c.len());
}
