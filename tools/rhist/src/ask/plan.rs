// SPDX-License-Identifier: MIT OR Apache-2.0

//! The lines that are written to ask a question.

use std::fmt::Write as _;

use crate::backend::lines::FIRST_KIB;
use crate::backend::{Backend, Plan, Step};
use crate::error::{Error, Result};
use crate::questions::Asked;
use crate::tracefs::{echo, Tracefs};

/// The longest trigger line, in bytes: the kernel must also accept the line that removes it, with `!` and a newline,
/// and takes less than a page.
const MOST_LINE: usize = 4093;

/// Returns the plan for a question, whose lines the kernel accepts.
pub fn plan(asked: &Asked, backend: Backend, tracefs: &Tracefs, owner: &str) -> Result<Plan> {
    let plan = backend.plan(tracefs, &asked.question, owner)?;
    let long = |step: &Step| matches!(step, Step::Trigger { line, .. } if line.len() > MOST_LINE);
    if !plan.steps.iter().any(long) {
        return Ok(plan);
    }
    Err(Error::new(match asked.question.threads.len() {
        threads @ 1.. => format!(
            "the processes have {threads} threads, and a filter that names all of them is too long for the kernel; \
             -c NAME asks for those of one name"
        ),
        0 => format!(
            "a trigger of this question has more than {MOST_LINE} bytes, which is too long for the kernel; \
             shorten the filter"
        ),
    }))
}

/// Returns the plan as shell commands.
pub fn lines(plan: &Plan) -> String {
    let instance = "instances/rhist-PID";
    let file =
        |event: &str, name: &str| format!("{instance}/events/{}/{name}", event.replace(':', "/"));
    let mut text = format!("mkdir {instance}\n");
    for step in &plan.steps {
        let _ = match step {
            Step::Schedstats => writeln!(text, "echo 1 > /proc/sys/kernel/sched_schedstats"),
            Step::Processes { pids } => {
                let _ = writeln!(text, "echo 1 > {instance}/options/event-fork");
                pids.iter().try_for_each(|pid| {
                    writeln!(text, "ls /proc/{pid}/task >> {instance}/set_event_pid")
                })
            }
            Step::Dynamic { line, .. } => writeln!(text, "{}", echo(line, "dynamic_events")),
            Step::Synthetic { file, line, .. } => writeln!(text, "{}", echo(line, file)),
            Step::Buffer { stack, user } => {
                let options = [(*stack, "stacktrace"), (*user, "userstacktrace")];
                for (_, option) in options.iter().filter(|(wanted, _)| *wanted) {
                    let _ = writeln!(text, "echo 1 > {instance}/options/{option}");
                }
                let _ = writeln!(text, "echo mono > {instance}/trace_clock");
                writeln!(text, "echo {FIRST_KIB} > {instance}/buffer_size_kb")
            }
            Step::Records { event, filter } => {
                if let Some(filter) = filter {
                    let _ = writeln!(text, "{}", echo(filter, &file(event, "filter")));
                }
                writeln!(text, "{}", echo("1", &file(event, "enable")))
            }
            Step::Trigger { event, line } => {
                writeln!(text, "{}", echo(line, &file(event, "trigger")))
            }
        };
    }
    let _ = match plan.each {
        Some(_) => writeln!(text, "cat {instance}/per_cpu/cpu*/trace_pipe_raw"),
        None => writeln!(text, "cat {}", file(&plan.event, &plan.file)),
    };
    if plan.fold.is_some() {
        text.push_str("# whose its rows are, the files of /proc, /sys/fs/cgroup and of container runtimes say\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::Measure;
    use crate::questions::tests::asked;

    #[test]
    fn a_trigger_that_is_too_long_is_said() {
        let tracefs = Tracefs::find(Some(std::path::Path::new("tests/tracefs"))).unwrap();
        let mut asked = asked("count sched:sched_switch");
        let mut fill = |length: usize, threads: Vec<u64>| {
            let rest = "hist:keys=common_type:size=2048 if ".len();
            let Measure::Count { event, .. } = &mut asked.question.measure else {
                panic!("no count")
            };
            event.filter = Some("x".repeat(length - rest));
            asked.question.threads = threads;
            let planned = plan(&asked, Backend::C, &tracefs, "1");
            planned.map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(fill(MOST_LINE, vec![]), Ok(()));
        assert!(fill(MOST_LINE + 1, vec![]).unwrap_err().contains("shorten"));
        let error = fill(MOST_LINE + 1, vec![7; 700]).unwrap_err();
        assert!(
            error.starts_with("the processes have 700 threads"),
            "{error}"
        );
    }

    #[test]
    fn triggers_say_what_they_take_where_they_can() {
        let growing = Tracefs::find(Some("tests/tracefs-growing".as_ref())).unwrap();
        let older = Tracefs::find(Some("tests/tracefs".as_ref())).unwrap();
        let module = Backend::Module { beside: false };
        let mut asked = asked("runq --if pid>1");
        let counted = |asked: &Asked, backend, tracefs: &Tracefs| {
            let text = lines(&plan(asked, backend, tracefs, "1").unwrap());
            let all = text.lines().filter(|line| line.contains("keys=")).count();
            (all, text.matches(":overhead").count())
        };
        assert_eq!(counted(&asked, module, &growing).1, 0);
        asked.question.costs = true;
        let (all, with) = counted(&asked, module, &growing);
        assert!(all > 1 && with == all, "{with} of {all}");
        assert_eq!(counted(&asked, Backend::C, &growing).1, 0);
        assert_eq!(counted(&asked, module, &older).1, 0);
    }

    #[test]
    fn requests_without_an_end_are_forgotten_where_they_can() {
        let find = |path: &str| Tracefs::find(Some(path.as_ref())).unwrap();
        let (present, older) = (find("tests/tracefs-growing"), find("tests/tracefs"));
        let module = Backend::Module { beside: false };
        let forgets = |text: &str, backend, tracefs: &Tracefs| {
            let text = lines(&plan(&asked(text), backend, tracefs, "1").unwrap());
            text.matches(":expire(10s)").count()
        };
        assert_eq!(forgets("bio --disks", module, &present), 1);
        assert_eq!(forgets("bio --queued", module, &present), 1);
        assert_eq!(forgets("runq", module, &present), 0);
        assert_eq!(forgets("bio --disks", Backend::C, &present), 0);
        assert_eq!(forgets("bio --disks", module, &older), 0);
    }

    #[test]
    fn few_rows_do_for_starts_that_are_forgotten() {
        let find = |path: &str| Tracefs::find(Some(path.as_ref())).unwrap();
        let (present, older) = (find("tests/tracefs-growing"), find("tests/tracefs"));
        let module = Backend::Module { beside: false };
        let starts = |text: &str, backend, tracefs: &Tracefs| {
            let text = lines(&plan(&asked(text), backend, tracefs, "1").unwrap());
            let line = text.lines().find(|line| line.contains(":ts0=")).unwrap();
            let (_, end) = line.split_once(":size=").unwrap();
            end.split('\'').next().unwrap().to_owned()
        };
        for rows in [128, 2048, 131_072] {
            for question in ["bio --disks", "bio --queued", "bio --disks --min 5"] {
                let question = format!("{question} --size {rows}");
                let wanted = format!("{rows}:expire(10s)");
                assert_eq!(starts(&question, module, &present), wanted);
            }
        }
        assert_eq!(starts("bio --disks", module, &present), "16384:expire(10s)");
        let sized = "bio --disks --size 2048";
        assert_eq!(starts(sized, module, &older), "16384");
        assert_eq!(starts(sized, Backend::C, &present), "16384");
        assert_eq!(starts("runq --size 2048", module, &present), "16384");
    }

    #[test]
    fn no_table_of_ends_fills_up() {
        let tracefs = Tracefs::find(Some("tests/tracefs-growing".as_ref())).unwrap();
        let module = Backend::Module { beside: false };
        let keyed_by_sector = |text: &str, backend| {
            let text = lines(&plan(&asked(text), backend, &tracefs, "1").unwrap());
            let keyed = text
                .lines()
                .filter(|line| line.contains("keys=dev,sector:"));
            let (forget, stay) = keyed.partition::<Vec<_>, _>(|line| line.contains(":expire("));
            (forget.len(), stay.len())
        };
        for question in ["bio --disks", "bio --disks --min 5", "bio --queued --max 5"] {
            assert_eq!(keyed_by_sector(question, module), (1, 0), "{question}");
            assert_eq!(keyed_by_sector(question, Backend::C), (0, 2), "{question}");
        }
    }
}
