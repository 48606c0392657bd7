// SPDX-License-Identifier: GPL-2.0

//! The texts of `enable_hist` and `disable_hist`, and of the triggers at load time.

use rust_hist::{
    error::Errno,
    lang::{
        load_entries,
        EnableSpec,
        ENABLE_UNLIMITED, //
    },
};

fn spec(text: &str) -> EnableSpec<'_> {
    EnableSpec::parse(text.as_bytes()).expect(text)
}

#[test]
fn a_target_has_a_system_and_an_event() {
    let spec = spec("sched:sched_switch");

    assert_eq!(spec.system, b"sched");
    assert_eq!(spec.event, b"sched_switch");
    assert_eq!(spec.limit(), Ok(ENABLE_UNLIMITED));
    assert_eq!(spec.filter(), Ok(None));
    assert_eq!(EnableSpec::parse(b"sched"), Err(Errno::Einval));
    assert_eq!(EnableSpec::parse(b""), Err(Errno::Einval));
}

#[test]
fn a_count_is_any_number() {
    assert_eq!(spec("a:b:3").limit(), Ok(3));
    assert_eq!(spec("a:b:0").limit(), Ok(0));
    assert_eq!(spec("a:b:0x10").limit(), Ok(16));
    assert_eq!(spec("a:b:3:junk").limit(), Ok(3));
    assert_eq!(spec("a:b:").limit(), Err(Errno::Einval));
    assert_eq!(spec("a:b:x").limit(), Err(Errno::Einval));
    assert_eq!(spec("a:b:99999999999999999999").limit(), Err(Errno::Erange));
}

#[test]
fn h_enh_02_a_count_is_what_is_printed() {
    assert_eq!(spec("a:b:unlimited").limit(), Ok(ENABLE_UNLIMITED));
    assert_eq!(spec("a:b:unlimited if x").limit(), Ok(ENABLE_UNLIMITED));
    assert_eq!(spec("a:b:count=0").limit(), Ok(0));
    assert_eq!(spec("a:b:count=3 if x").limit(), Ok(3));
    // Printed as a signed number.
    assert_eq!(spec("a:b:count=-2").limit(), Ok(u64::MAX - 1));
    for wrong in [
        "a:b:count=",
        "a:b:count=-",
        "a:b:count=x",
        "a:b:unlimited1",
        "a:b:-2",
    ] {
        assert_eq!(spec(wrong).limit(), Err(Errno::Einval), "{wrong}");
    }
}

#[test]
fn a_filter_follows_if() {
    assert_eq!(
        spec("a:b:3 if  pid == 1").filter(),
        Ok(Some(&b" pid == 1"[..]))
    );
    assert_eq!(spec("a:b \t if\tx").filter(), Ok(Some(&b"x"[..])));
    assert_eq!(spec("a:b  ").filter(), Ok(None));
    assert_eq!(spec("a:b if").filter(), Err(Errno::Einval));
    assert_eq!(spec("a:b iffy").filter(), Err(Errno::Einval));
    assert_eq!(spec("a:b x").filter(), Err(Errno::Einval));
    assert_eq!(spec("a:b:3 if x").limit(), Ok(3));
}

#[test]
fn what_is_wrong_has_its_place() {
    let text = "a:bc:x  iffy";
    let spec = spec(text);

    assert_eq!(&text[spec.count_at..], "x  iffy");
    assert_eq!(&text[spec.rest_at..], "iffy");
}

fn list(text: &str) -> Vec<(&str, Option<(&str, &str)>, &str, Option<&str>)> {
    let s = |bytes| std::str::from_utf8(bytes).unwrap();

    load_entries(text.as_bytes())
        .map(|entry| {
            let (word, params) = entry.command();
            let names = entry.names().map(|(system, name)| (s(system), s(name)));
            (s(entry.text), names, s(word), params.map(s))
        })
        .collect()
}

#[test]
fn a_list_has_one_trigger_after_the_other() {
    assert_eq!(
        list(
            "sched.sched_switch hist:keys=next_pid:vals=a,b ; sched:sched_waking enable_hist:a:b\n"
        ),
        [
            (
                "sched.sched_switch hist:keys=next_pid:vals=a,b",
                Some(("sched", "sched_switch")),
                "hist",
                Some("keys=next_pid:vals=a,b")
            ),
            (
                "sched:sched_waking enable_hist:a:b",
                Some(("sched", "sched_waking")),
                "enable_hist",
                Some("a:b")
            ),
        ]
    );
    assert!(list("").is_empty());
    assert!(list(" ;; \n;").is_empty());
}

#[test]
fn a_quoted_string_may_have_a_separator() {
    assert_eq!(
        list(r#"a.b hist:keys=c if comm == "x;y";c.d hist"#),
        [
            (
                r#"a.b hist:keys=c if comm == "x;y""#,
                Some(("a", "b")),
                "hist",
                Some(r#"keys=c if comm == "x;y""#)
            ),
            ("c.d hist", Some(("c", "d")), "hist", None),
        ]
    );
}

#[test]
fn a_bad_entry_is_told_apart() {
    assert_eq!(
        list("a hist:keys=b"),
        [("a hist:keys=b", None, "hist", Some("keys=b"))]
    );
    assert_eq!(list("a. hist"), [("a. hist", None, "hist", None)]);
    assert_eq!(list(".a hist"), [(".a hist", None, "hist", None)]);
    assert_eq!(list("a.b"), [("a.b", Some(("a", "b")), "", None)]);
}
