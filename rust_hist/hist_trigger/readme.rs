// SPDX-License-Identifier: GPL-2.0

//! What the README of tracefs says of hist triggers while the module is loaded.
//!
//! The selftests of the kernel look here for what a kernel can do, so nothing is in it that does not
//! work.

use core::ffi::CStr;

/// The text, for a kernel that has none of its own.
pub(crate) const README: &CStr = c"\
      hist trigger\t- Counts the hits of an event by key, and sums its fields\n\
\t    Format: hist:keys=<field1[,field2,...]>\n\
\t            [:values=<field1[,field2,...]>]\n\
\t            [:sort=<field1[,field2,...]>]\n\
\t            [:size=#entries]\n\
\t            [:pause][:continue][:clear]\n\
\t            [:nohitcount]\n\
\t            [if <filter>]\n\n\
\t    Keys and values are fields of the event. These can be used, too:\n\n\
\t            common_timestamp  when it happened, by the trace clock\n\
\t            common_cpu        the CPU that it happened on\n\
\t            common_comm       the name of the task that it happened to\n\
\t            common_stacktrace the kernel stack (as a key)\n\
\t            hitcount          1\n\n\
\t    Up to three keys make one. Each key has an entry in the table, with\n\
\t    the number of its hits and the sums of up to two values. A sort\n\
\t    field can end in '.ascending' or '.descending'. The table is as\n\
\t    large as 'size' says, 2048 entries without it; hits of keys that\n\
\t    find no room are counted as dropped.\n\n\
\t    How a field is computed and shown is up to a modifier:\n\n\
\t            .hex          as a hexadecimal number\n\
\t            .sym          as the symbol at an address\n\
\t            .sym-offset   as symbol and offset\n\
\t            .syscall      as the name of a system call\n\
\t            .execname     as the name of the task (common_pid)\n\
\t            .log2         by the power of two that is not below\n\
\t            .buckets=size by intervals of that size\n\
\t            .usecs        in microseconds (common_timestamp)\n\
\t            .percent      as a share of the column (values)\n\
\t            .graph        as a bar (values)\n\n\
\t    With 'pause' a trigger is made stopped, or stops; 'continue' has it\n\
\t    go on, 'clear' empties its table. 'nohitcount' (NOHC) hides the\n\
\t    column of the hits.\n\n\
\t    The file 'hist' of the event shows the tables of all its triggers,\n\
\t    'hist_stats' what became of every hit.\n\n";
