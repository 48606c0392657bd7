// SPDX-License-Identifier: MIT OR Apache-2.0

//! The memory budget of the tables that questions need.

use super::plan::plan;
use crate::backend::{cpus, Backend, Plan};
use crate::error::{Error, Result};
use crate::question::{By, Measure, Question, SIZE};
use crate::questions::Asked;
use crate::tracefs::Tracefs;

/// The number of rows of the largest table.
pub const MOST_ROWS: u32 = 131_072;

/// Returns the memory of this machine, in bytes.
pub fn memory() -> u64 {
    let all = rustix::system::sysinfo();
    all.totalram as u64 * u64::from(all.mem_unit)
}

/// Halves the tables of questions until all tables together take at most a hundredth of `memory`, and says so: a
/// machine with less memory has fewer tasks and requests, too. Tables of groups may grow as long as this budget lasts.
/// Tables whose size the user has chosen stay as they are.
pub fn fit(
    all: &[Asked],
    memory: u64,
    backend: Backend,
    tracefs: &Tracefs,
    quiet: bool,
) -> Result<Vec<Asked>> {
    let fits = |all: &[Asked]| {
        let mut needed = 0;
        for asked in all.iter().filter(|asked| !asked.question.size_asked) {
            let plan = plan(asked, backend, tracefs, "")?;
            needed += memory_of(backend, &asked.question, &plan);
        }
        Ok::<bool, Error>(needed <= memory / 100)
    };
    let mut all = all.to_vec();
    let mut part = 1;
    while !fits(&all)? {
        part *= 2;
        let given = all.iter_mut().filter(|asked| !asked.question.size_asked);
        let smaller = given.map(|asked| asked.question.halve());
        if smaller.filter(|&smaller| smaller).count() == 0 {
            return Err(Error::new(
                "the smallest tables take more than a hundredth of the memory of this machine; ask fewer questions",
            ));
        }
    }
    while backend.grows(tracefs) {
        let mut larger = all.clone();
        let questions = larger.iter_mut().map(|asked| &mut asked.question);
        let growing = questions.filter(|question| !question.size_asked && !question.by.is_empty());
        let raised = growing.map(|question| question.grow(MOST_ROWS));
        if raised.filter(|&raised| raised).count() == 0 || !fits(&larger)? {
            break;
        }
        all = larger;
    }
    if part > 1 && !quiet {
        say!(
            "rhist: tables with 1/{part} of their rows take a hundredth of the memory; --size asks for more"
        );
    }
    Ok(all)
}

/// Returns about how many bytes the tables of a question take.
fn memory_of(backend: Backend, question: &Question, plan: &Plan) -> u64 {
    // A row has its entry twice, an element and a key, of which a stack takes 248 bytes; and sums, of which the module
    // keeps one for each CPU, up to 36.
    let row = match backend {
        Backend::C => 192,
        Backend::Module { .. } => 256 + 16 * cpus().min(36),
    };
    let row_of = |stack: bool| row + if stack { 256 } else { 0 };
    let (waiting, stack) = match &question.measure {
        Measure::Latency(latency) => {
            let (waiting, stack) = (latency.waiting, latency.stack);
            // The first trigger's table holds the starts, with their stacks; with `expire()` it exists twice. So does
            // the table of a trigger between the first and the last, unless that trigger joins.
            let forgets = latency.expires.is_some() && backend != Backend::C;
            let first = row_of(stack) * if forgets { 2 } else { 1 };
            let between = if backend.joins(stack) { SIZE } else { waiting };
            let between = plan.triggers().saturating_sub(2) * u64::from(between) * row;
            (u64::from(waiting) * first + between, stack)
        }
        _ => {
            let is_stack = |by: &By| by.field().ends_with("stacktrace");
            (0, question.by.iter().any(is_stack))
        }
    };
    waiting + u64::from(question.size.max(question.most)) * row_of(stack)
}

/// Returns a size with which all tables of a question are larger, if there is one.
pub fn more_room(question: &Question) -> Option<u32> {
    let waiting = match &question.measure {
        Measure::Latency(latency) => latency.waiting,
        _ => question.size,
    };
    let size = question.size.max(question.most);
    let more = (size.saturating_mul(4)).max(waiting * 2).min(MOST_ROWS);
    (more > size.min(waiting)).then_some(more)
}

#[cfg(test)]
mod tests {
    use super::super::plan::lines;
    use super::*;
    use crate::backend::Lost;
    use crate::questions::tests::asked;

    #[test]
    fn all_tables_take_memory() {
        let tracefs = Tracefs::find(Some(std::path::Path::new("tests/tracefs"))).unwrap();
        let of = |backend: Backend, text: &str| {
            let question = asked(text).question;
            let plan = backend.plan(&tracefs, &question, "1").unwrap();
            memory_of(backend, &question, &plan)
        };
        let memory = |text: &str| of(Backend::C, text);
        assert_eq!(memory("count sched:sched_switch"), 2048 * 192);
        // A latency has two tables of starts and ends, and one of intervals.
        assert_eq!(memory("runq"), (2 * 16384 + 8192) * 192);
        assert_eq!(memory("offcpu --stacks"), 8192 * (448 + 192) + 4096 * 448);
        // A trigger that joins has few rows, unless it passes stacks on.
        let module = Backend::Module { beside: false };
        let row = of(module, "count sched:sched_switch") / 2048;
        let all = of(module, "runq --min 5");
        assert_eq!(all, (16384 + 2048 + 8192) * row);
        let stacks = 8192 * (2 * row + 256) + 4096 * (row + 256);
        assert_eq!(of(module, "offcpu --stacks"), stacks);
    }

    #[test]
    fn tables_fit_small_machines() {
        let tracefs = Tracefs::find(Some(std::path::Path::new("tests/tracefs"))).unwrap();
        let rows = |all: &[Asked], memory: u64| {
            let fitted = fit(all, memory << 20, Backend::C, &tracefs, true)?;
            let rows = fitted.iter().map(|asked| match &asked.question.measure {
                Measure::Latency(latency) => (latency.waiting, asked.question.size),
                _ => (0, asked.question.size),
            });
            Ok::<Vec<_>, Error>(rows.collect())
        };
        // The questions that the exporter's package asks, from its configuration file.
        let default = include_str!("../../debian/rhist-exporter.default");
        let exported = default.split('\'').skip(1).step_by(2).map(asked);
        let exported: Vec<Asked> = exported.collect();
        assert_eq!(exported.len(), 2);
        assert_eq!(rows(&exported, 2048), Ok(vec![(16384, 8192); 2]));
        assert_eq!(rows(&exported, 512), Ok(vec![(4096, 2048); 2]));
        let sized = ["runq --size 131072", "runq"].map(asked);
        let fitted = rows(&sized, 512).unwrap();
        assert_eq!(fitted, [(131_072, 131_072), (8192, 4096)]);
        let many = vec![asked("runq"); 128];
        let error = rows(&many, 512).unwrap_err();
        assert!(error.to_string().contains("ask fewer questions"), "{error}");
    }

    #[test]
    fn tables_grow_where_they_may() {
        let find = |path: &str| Tracefs::find(Some(std::path::Path::new(path))).unwrap();
        let growing = find("tests/tracefs-growing");
        let module = Backend::Module { beside: false };
        let size_in = |tracefs: &Tracefs, text: &str, backend: Backend, memory: u64| {
            let fitted = fit(&[asked(text)], memory << 20, backend, tracefs, true).unwrap();
            let plan = plan(&fitted[0], backend, tracefs, "1").unwrap();
            let lines = lines(&plan);
            let (_, size) = lines.rsplit_once(":size=").unwrap();
            size.split(|c: char| !c.is_ascii_digit() && c != '.')
                .next()
                .map(str::to_owned)
        };
        let size = |text: &str, backend, memory| size_in(&growing, text, backend, memory);
        let of = |text: &str| Some(text.to_owned());
        assert_eq!(size("runq --by comm", module, 1 << 20), of("8192..131072"));
        let small = size("runq --by comm", module, 2048).unwrap();
        let (first, last) = small.split_once("..").unwrap();
        assert_eq!(first, "8192");
        assert!(last.parse::<u32>().unwrap() < 131_072, "{small}");
        // Tables do not grow without groups, if the user has set a size, or if the implementation cannot grow them.
        assert_eq!(size("runq", module, 1 << 20), of("8192"));
        let sized = "runq --by comm --size 4096";
        assert_eq!(size(sized, module, 1 << 20), of("4096"));
        let beside = Backend::Module { beside: true };
        for backend in [beside, Backend::C] {
            assert_eq!(size("runq --by comm", backend, 1 << 20), of("8192"));
        }
        let older = find("tests/tracefs");
        assert_eq!(
            size_in(&older, "runq --by comm", module, 1 << 20),
            of("8192")
        );
    }

    #[test]
    fn the_advice_makes_room() {
        let waiting = |question: &Question| match question.measure {
            Measure::Latency(ref latency) => latency.waiting,
            _ => question.size,
        };
        for text in ["bio", "offcpu --stacks", "kmem"] {
            let before = asked(text).question;
            let more = more_room(&before).unwrap();
            let after = asked(&format!("{text} --size {more}")).question;
            assert!(after.size > before.size, "{text}");
            assert!(waiting(&after) > waiting(&before), "{text}");
            let largest = asked(&format!("{text} --size {MOST_ROWS}")).question;
            assert_eq!(more_room(&largest), None);
        }
        let full = Lost {
            full: 1,
            ..Lost::default()
        };
        assert!(full.sentences(Some(8192))[0].contains("--size 8192"));
        assert!(!full.sentences(None)[0].contains("--size"));
    }
}
