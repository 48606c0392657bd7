// SPDX-License-Identifier: GPL-2.0

//! The lines in the README of tracefs about hist triggers and synthetic events while the module is loaded.
//!
//! Programs read the README to find out what a kernel supports: libtracefs, `perf probe`, the selftests of the kernel.
//! They search for the exact syntax, so the syntax is copied from `readme_msg` of
//! [`kernel/trace/trace.c`](srctree/kernel/trace/trace.c); explanations are not. The text mentions nothing that does
//! not work. `readme/syntax.tc` compares the two, and `Documentation/testing.rst` lists the programs and their
//! searches.

use core::ffi::CStr;

/// The line of an action that needs a kernel option.
#[cfg(CONFIG_TRACER_SNAPSHOT)]
macro_rules! snapshot {
    () => {
        "\t        snapshot()               - takes a snapshot of the trace buffer\n"
    };
}
#[cfg(not(CONFIG_TRACER_SNAPSHOT))]
macro_rules! snapshot {
    () => {
        ""
    };
}

/// The lines about synthetic events, which a kernel with C's implementation has already.
#[cfg(rust_hist_synth_api)]
macro_rules! synthetic_events {
    () => {
        "\
\x20 synthetic_events\t- The synthetic events, which triggers and modules fire\n\
\t  One line makes one, in events/synthetic/; '!<event>' deletes it.\n\
\t     example: echo 'myevent u64 lat; char name[]; long[] stack' >> synthetic_events\n\
\t    Format: <event> <field> [<field>]\n\
\t    field: <stype> <name>;\n\
\t    stype: u8/u16/u32/u64, s8/s16/s32/s64, pid_t,\n\
\t           [unsigned] char/int/long\n\
\t           bool, gfp_t, char[<length>]\n\
\t           char[] (of any length), [unsigned] long[] (a stack)\n\
\t    Lines of the file dynamic_events:\n\
\t           s:[synthetic/]<event> <field> [<field>]\n\
\t           -:[synthetic/]<event>\n\n"
    };
}
#[cfg(not(rust_hist_synth_api))]
macro_rules! synthetic_events {
    () => {
        ""
    };
}

const TEXT: &str = concat!(
    "\
\x20     hist trigger\t- Counts the hits of an event by key, and sums its fields\n\
\t    Format: hist:keys=<field1[,field2,...]>\n\
\t            [:<var1>=<field|var_ref|numeric_literal>[,<var2>=...]]\n\
\t            [:values=<field1[,field2,...]>]\n\
\t            [:sort=<field1[,field2,...]>]\n\
\t            [:size=#entries]\n\
\t            [:pause][:continue][:clear]\n\
\t            [:name=histname1]\n\
\t            [:clock=<trace clock>]\n\
\t            [:nohitcount]\n\
\t            [:<handler>.<action>][:limit(<n>/s)]\n\
\t            [:join(<field1[,field2,...]>)]\n\
\t            [:quantiles(<p1[,p2,...]>)]\n\
\t            [:others]\n\
\t            [:expire(<time>)]\n\
\t            [:overhead[(<share>%)]]\n\
\t            [if <filter>]\n\n\
\t    Values are fields of the event that are numbers. A key\n\
\t    can be any field, or the special string 'common_stacktrace',\n\
\t    the kernel stack, which a variable can be, too. And there are:\n\n\
\t            common_timestamp  when it happened, by the trace clock\n\
\t            common_cpu        the CPU that it happened on\n\
\t            common_comm       the name of the task that it happened to\n\
\t            common_tgid       the process of that task\n\
\t            common_cgroup     its control group, as an inode of cgroup2\n\
\t            common_uid        its user\n\
\t            common_node       the memory node of the CPU\n\
\t            hitcount          1\n\n\
\t    A filter knows those of the task, too, and the node.\n\n\
\t    Up to eight keys make one. Each key has an entry in the table, with\n\
\t    the number of its hits and the sums of up to eight values. A sort\n\
\t    field can end in '.ascending' or '.descending'. The table is as\n\
\t    large as 'size' says, 2048 entries without it, or begins with A and\n\
\t    grows up to B entries with 'A..B'; hits of keys that find no room\n\
\t    are counted as dropped, or summed in one row with 'others'.\n\n\
\t    How a field is computed and shown is up to a modifier:\n\n\
\t            .hex          as a hexadecimal number\n\
\t            .sym          as the symbol at an address\n\
\t            .sym-offset   as symbol and offset\n\
\t            .syscall      as the name of a system call\n\
\t            .execname     as the name of the task (common_pid)\n\
\t            .log2         by the power of two that is not below\n\
\t            .log2=N       by 2^N parts of each power of two\n\
\t            .buckets=size by intervals of that size\n\
\t            .usecs        in microseconds (common_timestamp)\n\
\t            .percent      as a share of the column (values)\n\
\t            .graph        as a bar (values)\n\
\t            .sum .min .max .avg .stddev\n\
\t                          what is shown of a value: its sum, minimum,\n\
\t                          maximum, mean or standard deviation\n\n\
\t    A variable keeps a value of the last hit in the entry. Triggers of\n\
\t    other events with an equal key read it as $<var>, or\n\
\t    <system>.<event>.$<var>; while it is not set they ignore the hit.\n\
\t    Numbers can be computed from fields, variables and numbers by\n\
\t    + - * /, up to three of them; -(..) negates. In its own trigger\n\
\t    $<var> is the number of the hit, which keys and values can be, too.\n\
\t    With 'expire' the variables of an entry that nobody reads are\n\
\t    dropped and counted when they are so old, 100ms to 1h, up to twice\n\
\t    that, or when their room is wanted; and so are its sums.\n\
\t    With 'join' variables of others are found by these fields instead\n\
\t    of by the key, which then can be made of them.\n\n\
\t    With 'pause' a trigger is made stopped, or stops; 'continue' has it\n\
\t    go on, 'clear' empties its table. 'nohitcount' (NOHC) hides the\n\
\t    column of the hits. Triggers with the same 'name' share one table.\n\
\t    With 'limit' its actions run at most so often in a second (/s),\n\
\t    a minute (/m) or an hour (/h).\n\n\
\t    With 'overhead' the file 'hist_stats' says what its hits cost, and\n\
\t    it pauses if that is more than so much of all CPUs in a second.\n\n\
\t    'quantiles' leaves the one key with .log2 or .buckets out of the\n\
\t    rows, which show percentiles of it instead: quantiles(50,99.9).\n\n\
\t    What else a hit does is up to handlers:\n\n\
\t        onmatch(matching.event)  - acts at every hit\n\
\t        onmax(var)               - acts if the variable has a new maximum\n\
\t        onchange(var)            - acts if the variable has changed\n\
\t        onchange(var,delta)      - by delta at least\n\
\t        onover(var,t[,h])        - acts if the variable is above t, and was\n\
\t                                   not above t-h since it acted last\n\n\
\t    and to their actions, of which onmatch has the first only:\n\n\
\t        trace(<synthetic_event>,param list)\n\
\t                                 - fires a synthetic event with these values:\n\
\t                                   variables, fields, fields of the event\n\
\t                                   that onmatch names\n\
\t        <synthetic_event>(param list)\n\
\t                                 - the same\n\
\t        save(field,...)          - keeps fields of the event in the entry\n",
    snapshot!(),
    "\
\n\
\t    The file 'hist' of the event shows the tables of all its triggers,\n\
\t    'hist_stats' what became of every hit. 'hist_json' shows them as\n\
\t    lines of JSON. 'hist_pipe' does so, too, and each read from the\n\
\t    beginning empties them: every hit is in one such read.\n\n\
\x20     enable_hist trigger\t- Has the hits of an event start the hist triggers of\n\
\x20     disable_hist trigger\t  another one, or stop them\n\
\t    Format: <trigger>[:count] [if <filter>]\n\
\t   trigger: hist (see below)\n\
\t            enable_hist:<system>:<event>\n\
\t            disable_hist:<system>:<event>\n\n",
    synthetic_events!(),
    "\0"
);

/// The text for a kernel whose README lacks it.
pub(crate) const README: &CStr = match CStr::from_bytes_with_nul(TEXT.as_bytes()) {
    Ok(text) => text,
    Err(_) => panic!("a NUL in the middle"),
};
