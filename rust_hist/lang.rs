// SPDX-License-Identifier: GPL-2.0

//! The parser of the trigger language, which turns the text of a command into its specification.
//!
//! C counterpart: `event_hist_trigger_parse()` and `parse_hist_trigger_attrs()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! [`parse`] splits the text after `hist:` without knowing the event: a [`HistSpec`] holds spans of
//! that text. [`crate::program::Program::compile`] then checks what depends on the event's fields.
//! The text is bytes and need not be UTF-8.
//!
//! - `lang/spec.rs`: [`CommandText`] (the text and its carets), [`HistSpec`] and [`Modifier`];
//! - `lang/parse.rs`: the parameters, the filter, and the modifier of a field;
//! - `lang/quantiles.rs`: the list of `quantiles()`;
//! - `lang/expr.rs`: the operator at the root of an expression;
//! - `lang/enable.rs`: the commands `enable_hist` and `disable_hist`;
//! - `lang/load.rs`: the list of triggers that the module creates when it is loaded.
//!
//! Context: process. Only [`in_one_line`] allocates, and the detail of a refusal.

mod enable;
pub(crate) mod expr;
mod load;
mod parse;
mod quantiles;
mod spec;

pub use self::{
    enable::{
        EnableSpec,
        UNLIMITED as ENABLE_UNLIMITED, //
    },
    load::{
        load_entries,
        LoadEntry, //
    },
    parse::{
        in_one_line,
        parse, //
    },
    quantiles::Quantile,
    spec::{
        CommandText,
        HistSpec,
        Modifier,
        Update,
        Usage, //
    },
};
pub(crate) use self::{
    parse::{
        BLANK,
        EXPIRE,
        ON_CHANGE,
        ON_MATCH,
        ON_MAX,
        ON_OVER, //
    },
    spec::{
        CLOCK,
        PARAMETERS, //
    }, //
};
