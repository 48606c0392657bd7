// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests the dependencies between modules: no two use each other, not even through others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

type Uses = BTreeMap<String, BTreeSet<String>>;

/// Adds to `uses` the modules that the files in this directory use, except in tests.
fn read(directory: &Path, top: Option<&str>, uses: &mut Uses) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let module = top.unwrap_or(stem);
        if path.is_dir() {
            read(&path, Some(module), uses);
            continue;
        }
        if path.extension().is_none_or(|end| end != "rs") || matches!(stem, "lib" | "main") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let (code, _) = text
            .split_once("\n#[cfg(test)]\nmod tests")
            .unwrap_or((&text, ""));
        let own = uses.entry(module.to_owned()).or_default();
        // A line like `use crate::{a, b::c}` names several modules.
        for part in code.split("crate::").skip(1) {
            let several = part.strip_prefix('{').and_then(|list| list.split_once('}'));
            for name in several.map_or(part, |(list, _)| list).split(',') {
                let name = name.trim_start();
                let end = name.find(|c: char| c != '_' && !c.is_ascii_alphanumeric());
                own.insert(name[..end.unwrap_or(name.len())].to_owned());
                if several.is_none() {
                    break;
                }
            }
        }
        own.remove(module);
    }
}

/// Returns a path of uses from the last module of `way` back to its first one.
fn circle(uses: &Uses, way: &[String]) -> Option<Vec<String>> {
    let next = uses.get(way.last()?)?;
    next.iter().find_map(|next| {
        let way = [way, std::slice::from_ref(next)].concat();
        match (way[0] == *next, way[1..way.len() - 1].contains(next)) {
            (true, _) => Some(way),
            (false, true) => None,
            (false, false) => circle(uses, &way),
        }
    })
}

#[test]
fn modules_have_an_order() {
    let mut uses = Uses::new();
    read(Path::new("src"), None, &mut uses);
    assert!(uses["cli"].contains("error") && uses["cli"].contains("ask"));
    for module in uses.keys() {
        let found = circle(&uses, std::slice::from_ref(module));
        assert_eq!(found, None);
    }
}

#[test]
fn a_circle_is_found() {
    let uses = |pairs: &[(&str, &str)]| {
        let mut uses = Uses::new();
        for (user, used) in pairs {
            uses.entry((*user).to_owned())
                .or_default()
                .insert((*used).to_owned());
        }
        circle(&uses, &["a".to_owned()]).map(|way| way.join(" "))
    };
    assert_eq!(uses(&[("a", "b"), ("b", "c"), ("a", "c")]), None);
    assert_eq!(uses(&[("a", "b"), ("b", "c"), ("c", "b")]), None);
    let back = [("a", "b"), ("b", "c"), ("c", "b"), ("c", "a")];
    assert_eq!(uses(&back).as_deref(), Some("a b c a"));
}
