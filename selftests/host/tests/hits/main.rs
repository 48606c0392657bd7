// SPDX-License-Identifier: GPL-2.0

//! What hits do, on the paths of the module. One binary, as all of these paths are compiled for it.

#![cfg(not(loom))]

#[path = "../grammar_file/mod.rs"]
mod grammar_file;
#[path = "../lang_common/mod.rs"]
mod lang_common;
#[path = "../lang_common/records.rs"]
mod records;
#[path = "../run/mod.rs"]
mod run;
#[path = "../stat_model/mod.rs"]
mod stat_model;
#[path = "../words/mod.rs"]
mod words;

mod exchanged;
mod exec_expr;
mod exec_join;
mod exec_own;
mod exec_plan;
mod exec_task;
mod exec_threads;
mod exec_trace;
mod exec_vars;
mod expiring;
mod growing;
mod known_bugs;
mod lang_exec;
mod model;
mod moving;
mod no_room;
mod paths;
mod pipeline;
mod quantiles;
mod thresholds;
mod turns;
mod vals;
