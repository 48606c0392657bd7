// SPDX-License-Identifier: MIT OR Apache-2.0

//! Folding: rows of tasks, control groups or processes become rows of their owners. The kernel counts by numbers; files
//! of this machine give their names.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Lost, Source};
use crate::error::Result;
use crate::model::{Key, KeyColumn, Kind, Number, Row, Sum, Table};
use crate::question::{Only, Owner};
use crate::whose::{Seen, Task};

/// The name of the row for tasks that ended before they were looked up.
pub const ENDED: &str = "(ended)";

/// How rows are folded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fold {
    /// The columns that replace the first keys of a row. The other keys, such as the interval, follow unchanged.
    pub columns: Vec<Column>,
    /// The number of keys of the kernel's rows that are replaced.
    pub keys: usize,
    /// The only owners that are wanted, and the index of the key that tells a row's owner.
    pub only: Option<(usize, Only)>,
}

/// A key of the folded rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// The kernel's key with this index, unchanged.
    Same(usize),
    /// This owner of the kernel's key with this index.
    Of(usize, Owner),
}

/// A source whose rows are folded.
pub struct Folded {
    inner: Box<dyn Source>,
    fold: Fold,
    seen: Arc<Mutex<Seen>>,
    ended: Number,
    all: Number,
}

impl Folded {
    /// Returns a source with the folded rows of `inner`; `seen` has the owners.
    pub fn new(inner: Box<dyn Source>, fold: &Fold, seen: Arc<Mutex<Seen>>) -> Self {
        Self {
            inner,
            fold: fold.clone(),
            seen,
            ended: 0,
            all: 0,
        }
    }
}

/// Returns a text as a key of tables: each character stands for a byte.
fn text(name: &str) -> Key {
    Key::Text(name.bytes().map(char::from).collect())
}

/// Returns the number of a task, a control group or a process that a key holds.
fn number(key: &Key) -> Option<u64> {
    match key {
        Key::Number(number) | Key::Task { pid: number, .. } => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// Returns the kind of owner whose number a column has.
fn is_of(column: &KeyColumn) -> Owner {
    match column.name.as_str() {
        "common_cgroup" => Owner::Cgroup,
        "common_tgid" => Owner::Tgid,
        "common_uid" => Owner::Uid,
        _ => Owner::Task,
    }
}

/// The owner that a number refers to.
enum Said<'a> {
    Task(&'a Task),
    Cgroup(&'a str),
    /// The number itself, which needs no look-up.
    Number(u64),
    Unknown,
}

fn said<'a>(seen: &'a Seen, column: &KeyColumn, key: &Key) -> Said<'a> {
    let Some(number) = number(key) else {
        return Said::Unknown;
    };
    match is_of(column) {
        Owner::Task => seen.task(number).map_or(Said::Unknown, Said::Task),
        Owner::Cgroup | Owner::Pod => seen.cgroup(number).map_or(Said::Unknown, Said::Cgroup),
        Owner::Tgid | Owner::Uid => Said::Number(number),
    }
}

/// Returns the key for this kind of owner.
fn key(seen: &Seen, owner: Owner, said: &Said<'_>) -> Key {
    let pod = |path: &str| seen.pod_name(path).unwrap_or_else(|| "(no pod)".into());
    match (owner, said) {
        (Owner::Cgroup, Said::Task(Task { cgroup, .. })) => text(&seen.cgroup_name(cgroup)),
        (Owner::Cgroup, Said::Cgroup(path)) => text(&seen.cgroup_name(path)),
        (Owner::Pod, Said::Task(Task { cgroup, .. })) => text(&pod(cgroup)),
        (Owner::Pod, Said::Cgroup(path)) => text(&pod(path)),
        (Owner::Uid, Said::Task(task)) => text(&seen.user_name(task.uid)),
        (Owner::Uid, Said::Number(uid)) => {
            text(&u32::try_from(*uid).map_or(uid.to_string(), |uid| seen.user_name(uid)))
        }
        (Owner::Tgid, Said::Task(task)) => process(task.tgid, &task.comm),
        (Owner::Tgid, Said::Number(tgid)) => {
            process(*tgid, seen.task(*tgid).map_or("?", |task| &task.comm))
        }
        _ => text(ENDED),
    }
}

/// Returns the key of a process: its name and its id.
fn process(tgid: u64, comm: &str) -> Key {
    text(&format!("{comm}-{tgid}"))
}

/// Returns whether a row is wanted; `None` if its owner is unknown.
fn is_wanted(seen: &Seen, only: &Only, said: &Said<'_>) -> Option<bool> {
    match (only, said) {
        (_, Said::Unknown) => None,
        (Only::Processes(all), Said::Task(task)) => Some(all.contains(&task.tgid)),
        (Only::Processes(all), Said::Number(tgid)) => Some(all.contains(tgid)),
        (Only::Cgroup(typed), Said::Task(task)) => Some(seen.is_meant(&task.cgroup, typed)),
        (Only::Cgroup(typed), Said::Cgroup(path)) => Some(seen.is_meant(path, typed)),
        (Only::Processes(_), Said::Cgroup(_)) | (Only::Cgroup(_), Said::Number(_)) => Some(false),
    }
}

/// Returns a table with its rows folded, and the number of hits whose tasks or control groups are unknown.
fn fold(table: &Table, fold: &Fold, seen: &Seen) -> (Table, Number) {
    let mut folded = table.without_rows();
    // C's text names the columns only if there are rows.
    if table.keys.len() < fold.keys {
        return (folded, 0);
    }
    let columns = fold.columns.iter().map(|column| match *column {
        Column::Same(from) => table.keys[from].clone(),
        Column::Of(_, owner) => KeyColumn {
            name: owner.name().into(),
            kind: Kind::Text,
            unit: None,
        },
    });
    folded.keys = columns
        .chain(table.keys[fold.keys..].iter().cloned())
        .collect();
    let hits = |row: &Row| Number::from(table.hits_of(&row.values));
    let mut ended = 0;
    for row in &table.rows {
        let says = |from: usize| said(seen, &table.keys[from], &row.keys[from]);
        let mut known = true;
        if let Some((from, only)) = &fold.only {
            match is_wanted(seen, only, &says(*from)) {
                Some(true) => {}
                Some(false) => continue,
                None => known = false,
            }
        }
        let keys = fold.columns.iter().map(|column| match *column {
            Column::Same(from) => row.keys[from].clone(),
            Column::Of(from, owner) => {
                let says = says(from);
                known &= !matches!(says, Said::Unknown);
                key(seen, owner, &says)
            }
        });
        let keys = keys.chain(row.keys[fold.keys..].iter().cloned()).collect();
        if !known {
            ended += hits(row);
        }
        // A row of an unknown owner is left out if only some owners are wanted.
        if known || fold.only.is_none() {
            folded.rows.push(Row {
                keys,
                values: row.values.clone(),
                exemplar: row.exemplar.clone(),
            });
        }
    }
    let mut folded = Sum::of(&folded).table;
    let shown: Number = folded.rows.iter().map(hits).sum();
    folded.account.hits = u64::try_from(shown).unwrap_or(folded.account.hits);
    (folded, ended)
}

impl Source for Folded {
    fn next(&mut self) -> Result<Table> {
        let table = self.inner.next()?;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        // Lines are read more often than something comes.
        if !table.rows.is_empty() {
            seen.look();
        }
        let (folded, ended) = fold(&table, &self.fold, &seen);
        self.ended += ended;
        self.all += Number::from(folded.account.hits);
        if self.fold.only.is_some() {
            self.all += ended;
        }
        Ok(folded)
    }

    fn lost(&mut self) -> Result<Lost> {
        self.inner.lost()
    }

    fn remark(&self) -> Option<String> {
        let share = 100.0 * self.ended as f64 / self.all.max(1) as f64;
        let whose = match self.fold.only {
            Some(_) => "so nobody knows whether they are meant, and they are left out",
            None => "so nobody knows whose they are: the row (ended)",
        };
        (self.ended > 0).then(|| {
            format!(
                "{} hits ({share:.1} %) are of tasks that had ended before they were looked up, {whose}",
                self.ended
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::table;
    use crate::whose::tests::{machine, WEB};

    fn rows(table: &Table) -> Vec<(String, Number)> {
        let hits = table.hitcount().unwrap();
        let row = |row: &Row| {
            let keys: Vec<String> = row
                .keys
                .iter()
                .map(|key| match key {
                    Key::Text(text) => text.clone(),
                    Key::Bucket { bucket, .. } => bucket.hi.to_string(),
                    Key::Number(number) => number.to_string(),
                    other => format!("{other:?}"),
                })
                .collect();
            (keys.join(" "), row.values[hits])
        };
        table.rows.iter().map(row).collect()
    }

    fn of(columns: Vec<Column>, only: Option<Only>) -> Fold {
        Fold {
            columns,
            keys: 1,
            only: only.map(|only| (0, only)),
        }
    }

    fn owned(all: &[(&str, Number)]) -> Vec<(String, Number)> {
        all.iter()
            .map(|&(keys, hits)| (keys.to_owned(), hits))
            .collect()
    }

    /// Returns a table with two threads of one container, a unit, and an unknown task.
    fn counted() -> Table {
        table(&[
            (100, 10, 5),
            (101, 10, 7),
            (101, 11, 1),
            (200, 10, 2),
            (999, 10, 4),
        ])
    }

    #[test]
    fn tasks_become_their_owners() {
        let tree = machine("folded");
        let seen = Seen::of(&tree.0);
        let by = |owner| {
            let (folded, ended) = fold(&counted(), &of(vec![Column::Of(0, owner)], None), &seen);
            assert_eq!((ended, folded.account.hits), (4, 19));
            assert_eq!(folded.keys[0].name, owner.name());
            rows(&folded)
        };
        let rest = [("cron.service 1024", 2), ("(ended) 1024", 4)];
        let web = [("web 1024", 12), ("web 2048", 1)];
        assert_eq!(by(Owner::Cgroup), owned(&[&web[..], &rest].concat()));
        let tgids = [
            ("nginx-100 1024", 12),
            ("nginx-100 2048", 1),
            ("cron-200 1024", 2),
            ("(ended) 1024", 4),
        ];
        assert_eq!(by(Owner::Tgid), owned(&tgids));
        let pods = [
            ("(no pod) 1024", 14),
            ("(no pod) 2048", 1),
            ("(ended) 1024", 4),
        ];
        assert_eq!(by(Owner::Pod), owned(&pods));
    }

    #[test]
    fn some_alone_are_wanted() {
        let tree = machine("only");
        let seen = Seen::of(&tree.0);
        let only = |only, columns| {
            let (folded, ended) = fold(&counted(), &of(columns, Some(only)), &seen);
            assert_eq!(ended, 4);
            (rows(&folded), folded.account.hits)
        };
        let web = owned(&[("1024", 12), ("2048", 1)]);
        let processes = Only::Processes(vec![100]);
        assert_eq!(only(processes, Vec::new()), (web.clone(), 13));
        for typed in ["web", &WEB[..12]] {
            assert_eq!(
                only(Only::Cgroup(typed.into()), Vec::new()),
                (web.clone(), 13)
            );
        }
        let threads = owned(&[("200 1024", 2)]);
        let cron = Only::Cgroup("cron".into());
        assert_eq!(only(cron, vec![Column::Same(0)]), (threads, 2));
    }

    /// Folds rows that the module counts by its own keys.
    #[test]
    fn control_groups_have_names() {
        use std::os::unix::fs::MetadataExt;
        let tree = machine("inodes");
        let seen = Seen::of(&tree.0);
        let path = tree
            .0
            .join(format!("sys/fs/cgroup/system.slice/docker-{WEB}.scope"));
        let inode = std::fs::metadata(path).unwrap().ino();
        let mut counted = table(&[(inode.into(), 10, 5), (1 << 50, 10, 2)]);
        counted.keys[0].name = "common_cgroup".into();
        let by = of(vec![Column::Of(0, Owner::Cgroup)], None);
        let (folded, ended) = fold(&counted, &by, &seen);
        assert_eq!(
            rows(&folded),
            owned(&[("web 1024", 5), ("(ended) 1024", 2)])
        );
        assert_eq!(ended, 2);
        counted.keys[0].name = "common_tgid".into();
        counted.rows[0].keys[0] = Key::Number(100);
        let by = of(vec![Column::Of(0, Owner::Tgid)], None);
        let (folded, ended) = fold(&counted, &by, &seen);
        assert_eq!(rows(&folded)[0], ("nginx-100 1024".into(), 5));
        assert_eq!(ended, 0);
    }

    #[test]
    fn the_share_of_the_ended_is_said() {
        struct Once(Table);
        impl Source for Once {
            fn next(&mut self) -> Result<Table> {
                Ok(self.0.clone())
            }

            fn lost(&mut self) -> Result<Lost> {
                Ok(Lost::default())
            }
        }
        let tree = machine("share");
        let said = |table: Table, only| {
            let by = of(vec![Column::Of(0, Owner::Cgroup)], only);
            let mut folded = Folded::new(
                Box::new(Once(table)),
                &by,
                Arc::new(Mutex::new(Seen::of(&tree.0))),
            );
            folded.next().unwrap();
            folded.remark()
        };
        let all = said(counted(), None).unwrap();
        assert!(all.starts_with("4 hits (21.1 %) are of tasks"), "{all}");
        let only = said(counted(), Some(Only::Processes(vec![100]))).unwrap();
        assert!(
            only.starts_with("4 hits (23.5 %)") && only.ends_with("left out"),
            "{only}"
        );
        assert_eq!(said(table(&[(100, 10, 5)]), None), None);
    }
}
