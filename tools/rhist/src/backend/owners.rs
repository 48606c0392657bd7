// SPDX-License-Identifier: MIT OR Apache-2.0

//! Questions about owners of tasks: which numbers the kernel counts for them, and how its rows become the wanted rows.
//! The module knows the process, the user and the control group of the running task, so its tables and filters have
//! them. For other tasks and for C's implementation the kernel counts by task, using the field with the task's number,
//! and the tool looks the tasks up.

use super::fold::{Column, Fold};
use super::Backend;
use crate::error::Result;
use crate::question::{any_of, nobody, By, Measure, Only, Owner, Question, CURRENT};

/// A question in the form in which the kernel can count it.
pub(super) struct Resolved {
    /// The question with keys and filters that the kernel has.
    pub(super) question: Question,
    /// How the kernel's rows are folded, if they are.
    pub(super) fold: Option<Fold>,
    /// The processes to which the instance is restricted.
    pub(super) processes: Vec<u64>,
}

/// Resolves a question for a backend; `knows` says whether the backend has owners of the running task as keys.
pub(super) fn resolve(backend: Backend, knows: bool, question: &Question) -> Result<Resolved> {
    let mut resolved = Resolved {
        question: question.clone(),
        fold: None,
        processes: Vec::new(),
    };
    let current = |field: &Option<String>| field.as_deref() == Some(CURRENT);
    let is_latency = matches!(question.measure, Measure::Latency(_));
    let knows = knows && current(&question.task);
    // Lines of one event come without a trigger, and the filters of events do not know owners.
    let knows_filters = knows && (is_latency || !question.lines);
    let mut only = question.only.as_ref();
    if let Some(Only::Processes(all)) = only {
        let all_current = current(&question.task) && (!is_latency || current(&question.start_task));
        let tgids = || any_of("common_tgid", all.iter().map(u64::to_string));
        if knows_filters {
            let (start, counted) = resolved.question.records();
            counted.only(&tgids());
            if let Some(start) = start.filter(|_| current(&question.start_task)) {
                start.only(&tgids());
            }
            only = None;
        } else if (backend == Backend::C || question.lines) && all_current {
            resolved.processes.clone_from(all);
            only = None;
        } else if question.task.is_none() {
            // Only the first event has the task, so only its filter can leave other tasks out.
            let field = question
                .start_task
                .as_ref()
                .ok_or_else(|| nobody(&question.event().event, "-p"))?;
            let threads = question.threads.iter().map(u64::to_string);
            if let (Some(start), _) = resolved.question.records() {
                start.only(&any_of(field, threads));
            }
            only = None;
        }
    }
    if only.is_none() && question.by.iter().all(|by| by.owner.is_none()) {
        return Ok(resolved);
    }
    let mut keys: Vec<By> = question
        .by
        .iter()
        .filter(|by| by.owner.is_none())
        .cloned()
        .collect();
    // If tasks are counted by name, the key is a name instead of a number.
    let named = question.lacks_comm && question.is_by_comm();
    let mut place = |owner: Owner, wish: &str| -> Result<usize> {
        // A record has the number of the task alone.
        let field = match knows && !question.lines {
            true => owner.key().to_owned(),
            false => question
                .task
                .clone()
                .ok_or_else(|| nobody(&question.event().event, wish))?,
        };
        let has_number = |by: &By| {
            let modifier = by.modifier();
            by.field() == field && (modifier.is_empty() || modifier == ".execname" && !named)
        };
        Ok(keys.iter().position(has_number).unwrap_or_else(|| {
            keys.push(By {
                label: field.clone(),
                key: field,
                owner: None,
            });
            keys.len() - 1
        }))
    };
    let mut fold = Fold::default();
    let mut plain = 0..;
    for by in &question.by {
        fold.columns.push(match by.owner {
            None => Column::Same(plain.next().unwrap_or_default()),
            Some(owner) => Column::Of(place(owner, &format!("--by {}", by.label))?, owner),
        });
    }
    if let Some(only) = only {
        let (owner, wish) = match only {
            Only::Processes(_) => (Owner::Tgid, "-p"),
            Only::Cgroup(_) => (Owner::Cgroup, "--cgroup"),
        };
        fold.only = Some((place(owner, wish)?, only.clone()));
    }
    fold.keys = keys.len();
    resolved.question.by = keys;
    resolved.fold = Some(fold);
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::plan::{lines, plan};
    use crate::questions::tests::asked;
    use crate::tracefs::Tracefs;

    const MODULE: Backend = Backend::Module { beside: false };

    /// Returns the triggers and files that this question writes, and the fold.
    fn written(text: &str, backend: Backend) -> Result<(String, Option<Fold>)> {
        let tracefs = Tracefs::find(Some("tests/tracefs-growing".as_ref())).unwrap();
        let plan = plan(&asked(text), backend, &tracefs, "1")?;
        Ok((lines(&plan), plan.fold))
    }

    fn columns(text: &str, backend: Backend) -> (Vec<Column>, usize) {
        let fold = written(text, backend).unwrap().1.unwrap();
        (fold.columns, fold.keys)
    }

    #[test]
    fn the_module_knows_owners_of_the_task_that_runs() {
        let (text, fold) = written("syscalls --by cgroup,tgid,uid", MODULE).unwrap();
        let keys = "keys=id.syscall,common_cgroup,common_tgid,common_uid:";
        assert!(text.contains(keys), "{text}");
        let of = |at, owner| Column::Of(at, owner);
        let owners = [of(1, Owner::Cgroup), of(2, Owner::Tgid), of(3, Owner::Uid)];
        assert_eq!(
            fold.unwrap().columns,
            [&[Column::Same(0)], &owners[..]].concat()
        );
        let own = std::process::id();
        let (text, fold) = written(&format!("syscalls --latency -p {own},1"), MODULE).unwrap();
        let both = format!("if common_tgid == {own} || common_tgid == 1'");
        assert_eq!((text.matches(&both).count(), fold), (2, None), "{text}");
        // Two owners are found by one key.
        assert_eq!(
            columns("syscalls --by cgroup,pod", MODULE),
            (
                vec![Column::Same(0), of(1, Owner::Cgroup), of(1, Owner::Pod)],
                2
            )
        );
    }

    #[test]
    fn elsewhere_tasks_are_counted() {
        let of = |at, owner| Column::Of(at, owner);
        for (question, backend, keys) in [
            (
                "syscalls --by cgroup",
                Backend::C,
                "keys=id.syscall,common_pid:",
            ),
            // The task that waited is `next_pid`, not the running one, so the key is not `common_pid`.
            ("runq --by cgroup", MODULE, "keys=next_pid,$lat.log2=3:"),
            ("runq --by cgroup", Backend::C, "keys=next_pid,lat.log2:"),
            (
                "runq --by cgroup",
                Backend::Module { beside: true },
                "keys=next_pid,$lat.log2=3:",
            ),
        ] {
            let (text, _) = written(question, backend).unwrap();
            assert!(text.contains(keys), "{text}");
        }
        // A key of the question may have the task's number already; keys stay in the order of the question.
        let both = (vec![of(0, Owner::Cgroup), Column::Same(0)], 1);
        assert_eq!(columns("runq --by cgroup,pid", Backend::C), both);
        let error = written("bio --by cpu --cgroup /", Backend::C)
            .unwrap_err()
            .to_string();
        assert!(
            error.ends_with("does not say for which task it is, so there is no --cgroup here"),
            "{error}"
        );
    }

    #[test]
    fn threads_that_come_later_are_of_their_process() {
        let own = std::process::id();
        let ask =
            |question: &str, backend| written(&format!("{question} -p {own}"), backend).unwrap();
        let (text, fold) = ask("syscalls --latency", Backend::C);
        let files = format!(
            "echo 1 > instances/rhist-PID/options/event-fork\n\
             ls /proc/{own}/task >> instances/rhist-PID/set_event_pid\n"
        );
        assert!(text.contains(&files) && fold.is_none(), "{text}");
        assert!(!text.contains(" if "), "{text}");
        for backend in [MODULE, Backend::C] {
            let (text, fold) = ask("runq", backend);
            assert!(text.contains("keys=next_pid,"), "{text}");
            assert_eq!(
                fold.unwrap().only,
                Some((0, Only::Processes(vec![own.into()])))
            );
        }
        // The second event has no task, so the first event's filter has the threads that exist at the start.
        let (text, fold) = ask("bio --queued", Backend::C);
        assert!(
            text.contains(&format!("common_pid == {own}")) && fold.is_none(),
            "{text}"
        );
        let threads = format!("runq -t {own},7");
        let (text, fold) = written(&threads, Backend::C).unwrap();
        assert!(
            text.contains(&format!("if next_pid == {own} || next_pid == 7'")),
            "{text}"
        );
        assert_eq!(fold, None);
    }

    #[test]
    fn keys_of_owners_are_keys() {
        let error = written("runq --by comm,prio,cgroup", Backend::C)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("a table of C's implementation has 3 keys"),
            "{error}"
        );
        assert!(error.contains("tells tasks apart"), "{error}");
    }
}
